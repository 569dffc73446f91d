// plugins/gpu/kernels/compare.cuh: comparisons, logic and bits of two elements.
#include <adjoin/kit/scalar_rows.hpp>

#include "../pointwise.cuh"

namespace adjoin::gpu {

AJ_KERNELS(compare_kernels) = {
    AJ_COMPARE_ROWS(two),
    {nullptr, {}},
};

}  // namespace adjoin::gpu
