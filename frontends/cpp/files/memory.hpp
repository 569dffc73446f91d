// adjoin/files/memory.hpp: tensors in the memory of a file, which they keep.
#ifndef ADJOIN_FILES_MEMORY_HPP
#define ADJOIN_FILES_MEMORY_HPP
#include <adjoin/kit/tensor.hpp>
#include <span>

#include "mapping.hpp"

namespace adjoin {
namespace AJ_HIDDEN files {

// A tensor of the host, whatever the default device is.
inline Tensor tensor_in(const std::shared_ptr<Mapping>& home, char* data,
                        std::span<const int64_t> shape, DLDataType dtype) {
  DLTensor like{
      data, {kDLCPU, 0}, int32_t(shape.size()), dtype, const_cast<int64_t*>(shape.data()), nullptr,
      0};
  uint64_t bytes = dtype.bits / 8;
  for (int64_t n : shape) bytes *= uint64_t(n);
  aj_tensor* t = nullptr;
  auto* keep = new std::shared_ptr<Mapping>(home);
  auto drop = [](void* p) { delete static_cast<std::shared_ptr<Mapping>*>(p); };
  aj_status* s = kit::env.core->tensor_from_memory(&like, bytes, 0, keep, drop, &t);
  if (s) delete keep;
  kit::check(s);
  return Tensor::steal(t);
}

}  // namespace files
}  // namespace adjoin
#endif
