// plugins/cpu/pointwise_math.cpp: exponentials and trigonometry.
#include <adjoin/kit/choosers.hpp>

#include "tables.hpp"

namespace adjoin::cpu {

const Kernel math_kernels[] = {
    {"exp2", unary<scalar::Exp2, floating_complex>},
    {"expm1", unary<scalar::Expm1, floating_complex>},
    {"log2", unary<scalar::Log2, floating_complex>},
    {"log10", unary<scalar::Log10, floating_complex>},
    {"log1p", unary<scalar::Log1p, floating_complex>},
    {"sqrt", unary<scalar::Sqrt, floating_complex>},
    {"rsqrt", unary<scalar::Rsqrt, floating_complex>},
    {"sin", unary<scalar::Sin, floating_complex>},
    {"cos", unary<scalar::Cos, floating_complex>},
    {"tan", unary<scalar::Tan, floating_complex>},
    {"asin", unary<scalar::Asin, floating_complex>},
    {"acos", unary<scalar::Acos, floating_complex>},
    {"atan", unary<scalar::Atan, floating_complex>},
    {"sinh", unary<scalar::Sinh, floating_complex>},
    {"cosh", unary<scalar::Cosh, floating_complex>},
    {"asinh", unary<scalar::Asinh, floating_complex>},
    {"acosh", unary<scalar::Acosh, floating_complex>},
    {"atanh", unary<scalar::Atanh, floating_complex>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
