// plugins/cpu/pointwise_integer.cpp: division with remainder, bits and shifts.
#include <adjoin/kit/choosers.hpp>

#include "rows.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pointwise_integer.cpp"
#include "simd.hpp"
// the functions of each set
#include "plain-inl.hpp"

#if HWY_ONCE
namespace adjoin::cpu {

const Kernel integer_kernels[] = {
    {"remainder", binary<scalar::Remainder, reals>},
    {"fmod", binary<scalar::FMod, reals>},
    {"floor_divide", binary<scalar::FloorDivide, reals>},
    {"bitwise_and", binary<scalar::BitwiseAnd, integral_bool>},
    {"bitwise_or", binary<scalar::BitwiseOr, integral_bool>},
    {"bitwise_xor", binary<scalar::BitwiseXor, integral_bool>},
    {"bitwise_left_shift", binary<scalar::ShiftLeft, integral>},
    {"bitwise_right_shift", binary<scalar::ShiftRight, integral>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
