// plugins/gpu/binary.cuh: arithmetic of two and three elements.
#include "pointwise.cuh"
#include "tables.cuh"

namespace adjoin::gpu {

const Kernel binary_kernels[] = {
    {"add", two<AddChooser, all_types>},
    {"sub", two<SubChooser, numeric>},
    {"mul", two<scalar::Mul, all_types>},
    {"div", two<DivChooser, numeric>},
    {"remainder", two<scalar::Remainder, reals>},
    {"fmod", two<scalar::FMod, reals>},
    {"floor_divide", two<scalar::FloorDivide, reals>},
    {"pow", two<PowChooser, numeric>},
    {"atan2", two<scalar::Atan2, floating>},
    {"hypot", two<scalar::Hypot, floating>},
    {"logaddexp", two<scalar::LogAddExp, floating>},
    {"clamp", three<ClampChooser, reals_bool>},
    {"lerp", three<scalar::Lerp, floating_complex>},
    {"addcmul", three<AddCMulChooser, numeric>},
    {"addcdiv", three<AddCDivChooser, floating_complex>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu
