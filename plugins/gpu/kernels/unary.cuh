// plugins/gpu/kernels/unary.cuh: signs, rounding and tests of one element.
#include "../pointwise.cuh"

namespace adjoin::gpu {

AJ_KERNELS(unary_kernels) = {
    {"abs", one<scalar::Abs, numeric>},
    {"neg", one<scalar::Neg, numeric>},
    {"sign", one<scalar::Sign, reals_bool>},
    {"square", one<scalar::Square, numeric>},
    {"reciprocal", one<scalar::Reciprocal, floating_complex>},
    {"floor", one<scalar::Floor, reals>},
    {"ceil", one<scalar::Ceil, reals>},
    {"round", one<RoundChooser, reals>},
    {"trunc", one<scalar::Trunc, reals>},
    {"frac", one<scalar::Frac, floating>},
    {"relu", one<scalar::Relu, reals>},
    {"logical_not", one<scalar::LogicalNot, all_types>},
    {"bitwise_not", one<scalar::BitwiseNot, integral_bool>},
    {"isnan", one<scalar::IsNan, all_types>},
    {"isinf", one<scalar::IsInf, all_types>},
    {"isfinite", one<scalar::IsFinite, all_types>},
    {"signbit", one<scalar::SignBit, reals_bool>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu
