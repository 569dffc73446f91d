// plugins/cpu/pointwise_binary.cpp: arithmetic of two elements.
#include <adjoin/kit/choosers.hpp>

#include "tables.hpp"

namespace adjoin::cpu {

const Kernel binary_kernels[] = {
    {"add", binary<AddChooser, all_types>},
    {"sub", binary<SubChooser, numeric>},
    {"mul", binary<scalar::Mul, all_types>},
    {"div", binary<DivChooser, numeric>},
    {"maximum", binary<scalar::Maximum, reals_bool>},
    {"minimum", binary<scalar::Minimum, reals_bool>},
    {"pow", binary<PowChooser, numeric>},
    {"atan2", binary<scalar::Atan2, floating>},
    {"hypot", binary<scalar::Hypot, floating>},
    {"logaddexp", binary<scalar::LogAddExp, floating>},
    {"relu_backward", binary<scalar::ReluBackward, reals>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
