// plugins/cpu/pointwise_unary.cpp: signs, rounding and tests of one element.
#include <adjoin/kit/choosers.hpp>

#include "tables.hpp"

namespace adjoin::cpu {

const Kernel unary_kernels[] = {
    {"abs", unary<scalar::Abs, numeric>},
    {"neg", unary<scalar::Neg, numeric>},
    {"sign", unary<scalar::Sign, reals_bool>},
    {"square", unary<scalar::Square, numeric>},
    {"reciprocal", unary<scalar::Reciprocal, floating_complex>},
    {"floor", unary<scalar::Floor, reals>},
    {"ceil", unary<scalar::Ceil, reals>},
    {"round", unary<RoundChooser, reals>},
    {"trunc", unary<scalar::Trunc, reals>},
    {"frac", unary<scalar::Frac, floating>},
    {"relu", unary<scalar::Relu, reals>},
    {"logical_not", unary<scalar::LogicalNot, all_types>},
    {"bitwise_not", unary<scalar::BitwiseNot, integral_bool>},
    {"isnan", unary<scalar::IsNan, all_types>},
    {"isinf", unary<scalar::IsInf, all_types>},
    {"isfinite", unary<scalar::IsFinite, all_types>},
    {"signbit", unary<scalar::SignBit, reals_bool>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
