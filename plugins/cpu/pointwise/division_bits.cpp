// plugins/cpu/pointwise/division_bits.cpp: division with remainder, bits and shifts.
#include <adjoin/kit/choosers.hpp>
#include <adjoin/kit/scalar_math.hpp>

#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/division_bits.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/math_integer-inl.hpp"
#include "vector/math_remainder-inl.hpp"
#include "vector/plain-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
AJ_BINARY(remainder, math::remainder(d, a, b))
AJ_BINARY(fmod, math::fmod(d, a, b))
AJ_BINARY(floor_divide, math::floor_divide(d, a, b))

// Whole numbers of 32 and 64 bits.
template <math::Division K, class F, class T>
constexpr Loops whole_loops = loops_of<math::Divide<K, F>, T, 2>();
template <math::Division K, class F>
constexpr LoopPair whole_pair = {&whole_loops<K, F, int32_t>, &whole_loops<K, F, int64_t>};
static LoopPair whole_remainder_loops() {
  return whole_pair<math::Division::remainder, scalar::Remainder>;
}
static LoopPair whole_fmod_loops() { return whole_pair<math::Division::fmod, scalar::FMod>; }
static LoopPair whole_floor_divide_loops() {
  return whole_pair<math::Division::floor, scalar::FloorDivide>;
}
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
LoopPair floor_divide_pair() { return AJ_PAIR(floor_divide)(); }

namespace {
template <LoopPair (*Whole)(), class F>
aj_status* whole_kernel(void* self, aj_call* call) {
  const DLDataType compute = call->plan->compute;
  const Loops* loops = same(compute, dtype_of<int32_t>)   ? Whole().single
                       : same(compute, dtype_of<int64_t>) ? Whole().twice
                                                          : nullptr;
  if (!loops) return plain_kernel<F, integral, 2>(self, call);
  return guard(call, [&] {
    const char stateless = 0;
    run_rows(*call->plan, *loops, &stateless);
  });
}

template <LoopPair (*Pair)(), LoopPair (*Whole)(), class F>
constexpr Spec spec = vectors<Pair, &whole_kernel<Whole, F>, reals>;

AJ_KERNELS(integer_kernels) = {
    {"remainder", spec<AJ_PAIR(remainder), AJ_PAIR(whole_remainder), scalar::Remainder>},
    {"fmod", spec<AJ_PAIR(fmod), AJ_PAIR(whole_fmod), scalar::FMod>},
    {"floor_divide", spec<AJ_PAIR(floor_divide), AJ_PAIR(whole_floor_divide), scalar::FloorDivide>},
    {"bitwise_and", binary<scalar::BitwiseAnd, integral_bool>},
    {"bitwise_or", binary<scalar::BitwiseOr, integral_bool>},
    {"bitwise_xor", binary<scalar::BitwiseXor, integral_bool>},
    {"bitwise_left_shift", binary<scalar::ShiftLeft, integral>},
    {"bitwise_right_shift", binary<scalar::ShiftRight, integral>},
    {nullptr, {}},
};

}  // namespace
}  // namespace adjoin::cpu
#endif
