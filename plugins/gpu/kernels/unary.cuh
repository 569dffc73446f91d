// plugins/gpu/kernels/unary.cuh: signs, rounding and tests of one element.
#include <adjoin/kit/scalar_rows.hpp>

#include "../pointwise.cuh"

namespace adjoin::gpu {

AJ_KERNELS(unary_kernels) = {
    AJ_UNARY_ROWS(one),
    {nullptr, {}},
};

}  // namespace adjoin::gpu
