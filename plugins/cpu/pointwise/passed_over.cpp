// plugins/cpu/pointwise/passed_over.cpp: functions of two numbers, one of which may not count.
#include <adjoin/kit/scalar_masked.hpp>

#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/passed_over.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/math-inl.hpp"
#include "vector/plain-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
AJ_BINARY(xlogy, hn::IfThenElse(hn::And(hn::Eq(a, hn::Zero(d)), hn::Eq(b, b)), hn::Zero(d),
                                a* math::log(d, b)))
AJ_BINARY(fmax, hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(b)), a, b))
AJ_BINARY(fmin, hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(b)), a, b))
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
template <LoopPair (*Pair)(), class F>
constexpr Spec of_reals = vectors<Pair, &plain_kernel<F, integral_bool, 2>, reals_bool>;

AJ_KERNELS(passed_over_kernels) = {
    {"xlogy", vectors<AJ_PAIR(xlogy), nullptr, floating>},
    {"fmax", of_reals<AJ_PAIR(fmax), scalar::FMax>},
    {"fmin", of_reals<AJ_PAIR(fmin), scalar::FMin>},
    {"_::angle_of_real", unary<scalar::AngleOfReal, floating>},
    {nullptr, {}},
};

}  // namespace
}  // namespace adjoin::cpu
#endif
