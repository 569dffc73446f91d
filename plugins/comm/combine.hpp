// plugins/comm/combine.hpp: what a reduction does with elements.
#pragma once

#include <adjoin/abi/comm.h>

#include <cstddef>
#include <cstdint>

namespace adjoin::comm {

// out[i] = a[i] op b[i]
using Combine = void (*)(void* out, const void* a, const void* b, size_t n);
// Raises where the dtype has no such operation.
Combine combine_of(DLDataType dtype, int32_t op);
uint64_t combines(int32_t op);  // AJ_DT_ mask
// x[i] *= by; integers are divided and cut, as PyTorch does, by 1 / by.
void scale(DLDataType dtype, void* x, size_t n, double by);

}  // namespace adjoin::comm
