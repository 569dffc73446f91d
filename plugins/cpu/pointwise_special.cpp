// plugins/cpu/pointwise_special.cpp: special functions and activations.
#include <adjoin/kit/choosers.hpp>

#include "tables.hpp"

namespace adjoin::cpu {

const Kernel special_kernels[] = {
    {"erf", unary<scalar::Erf, floating>},
    {"erfc", unary<scalar::Erfc, floating>},
    {"erfinv", unary<scalar::Erfinv, floating>},
    {"lgamma", unary<scalar::Lgamma, floating>},
    {"digamma", unary<scalar::Digamma, floating>},
    {"nn::gelu", unary<GeluChooser, floating>},
    {"nn::elu", unary<EluChooser, floating>},
    {"nn::leaky_relu", unary<LeakyReluChooser, floating>},
    {"nn::softplus", unary<SoftplusChooser, floating>},
    {"nn::hardtanh", unary<HardtanhChooser, reals>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
