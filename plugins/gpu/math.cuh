// plugins/gpu/math.cuh: exponentials, trigonometry, special functions and activations of one
// element.
#include "pointwise.cuh"
#include "tables.cuh"

namespace adjoin::gpu {

AJ_TABLE Kernel math_kernels[] = {
    {"exp", one<scalar::Exp, floating_complex>},
    {"exp2", one<scalar::Exp2, floating_complex>},
    {"expm1", one<scalar::Expm1, floating_complex>},
    {"log", one<scalar::Log, floating_complex>},
    {"log2", one<scalar::Log2, floating_complex>},
    {"log10", one<scalar::Log10, floating_complex>},
    {"log1p", one<scalar::Log1p, floating_complex>},
    {"sqrt", one<scalar::Sqrt, floating_complex>},
    {"rsqrt", one<scalar::Rsqrt, floating_complex>},
    {"sin", one<scalar::Sin, floating_complex>},
    {"cos", one<scalar::Cos, floating_complex>},
    {"tan", one<scalar::Tan, floating_complex>},
    {"asin", one<scalar::Asin, floating_complex>},
    {"acos", one<scalar::Acos, floating_complex>},
    {"atan", one<scalar::Atan, floating_complex>},
    {"sinh", one<scalar::Sinh, floating_complex>},
    {"cosh", one<scalar::Cosh, floating_complex>},
    {"tanh", one<scalar::Tanh, floating_complex>},
    {"asinh", one<scalar::Asinh, floating_complex>},
    {"acosh", one<scalar::Acosh, floating_complex>},
    {"atanh", one<scalar::Atanh, floating_complex>},
    {"erf", one<scalar::Erf, floating>},
    {"erfc", one<scalar::Erfc, floating>},
    {"erfinv", one<scalar::Erfinv, floating>},
    {"lgamma", one<scalar::Lgamma, floating>},
    {"digamma", one<scalar::Digamma, floating>},
    {"sigmoid", one<scalar::Sigmoid, floating_complex>},
    {"nn::gelu", one<GeluChooser, floating>},
    {"nn::silu", one<scalar::Silu, floating_complex>},
    {"nn::elu", one<EluChooser, floating>},
    {"nn::leaky_relu", one<LeakyReluChooser, floating>},
    {"nn::softplus", one<SoftplusChooser, floating>},
    {"nn::hardtanh", one<HardtanhChooser, reals>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu
