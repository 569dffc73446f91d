// plugins/cpu/pointwise_integer.cpp: division with remainder, bits and shifts.
#include <adjoin/kit/choosers.hpp>
#include <adjoin/kit/scalar_math.hpp>

#include "vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pointwise_integer.cpp"
#include "simd.hpp"
// the functions of each set
#include "math_inverse-inl.hpp"
#include "plain-inl.hpp"
#include "rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
#define AJ_DIVISION(name)                          \
  struct name##_f {                                \
    template <class D, class V>                    \
    HWY_INLINE V operator()(D d, V a, V b) const { \
      return math::name(d, a, b);                  \
    }                                              \
  };                                               \
  AJ_LOOPS(name, name##_f, 2, same)
AJ_DIVISION(remainder)
AJ_DIVISION(fmod)
AJ_DIVISION(floor_divide)
#undef AJ_DIVISION
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
AJ_CHOSEN(remainder)
AJ_CHOSEN(fmod)
AJ_CHOSEN(floor_divide)

template <LoopPair (*Pair)(), class F>
constexpr Spec spec = vectors<Pair, &plain_kernel<F, integral, 2>, reals>;
}  // namespace

const Kernel integer_kernels[] = {
    {"remainder", spec<remainder_pair, scalar::Remainder>},
    {"fmod", spec<fmod_pair, scalar::FMod>},
    {"floor_divide", spec<floor_divide_pair, scalar::FloorDivide>},
    {"bitwise_and", binary<scalar::BitwiseAnd, integral_bool>},
    {"bitwise_or", binary<scalar::BitwiseOr, integral_bool>},
    {"bitwise_xor", binary<scalar::BitwiseXor, integral_bool>},
    {"bitwise_left_shift", binary<scalar::ShiftLeft, integral>},
    {"bitwise_right_shift", binary<scalar::ShiftRight, integral>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
