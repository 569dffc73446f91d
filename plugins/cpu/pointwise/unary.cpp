// plugins/cpu/pointwise/unary.cpp: signs, rounding and tests of one element.
#include "vector/pointwise.hpp"
#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/unary.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/plain-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
AJ_SIGNS(AJ_UNARY)
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
using integral_complex = Join<integral, complexes>;
template <LoopPair (*Pair)(), class F, class Set, class Rest>
constexpr Spec spec = vectors<Pair, &plain_kernel<F, Rest, 1>, Set>;

AJ_KERNELS(unary_kernels) = {
    {"abs", spec<AJ_PAIR(abs), scalar::Abs, numeric, integral_complex>},
    {"neg", spec<AJ_PAIR(neg), scalar::Neg, numeric, integral_complex>},
    {"sign", unary<scalar::Sign, reals_bool>},
    {"square", spec<AJ_PAIR(square), scalar::Square, numeric, integral_complex>},
    {"reciprocal", spec<AJ_PAIR(reciprocal), scalar::Reciprocal, floating_complex, complexes>},
    {"floor", spec<AJ_PAIR(floor), scalar::Floor, reals, integral>},
    {"ceil", spec<AJ_PAIR(ceil), scalar::Ceil, reals, integral>},
    {"round", unary<RoundChooser, reals>},
    {"trunc", spec<AJ_PAIR(trunc), scalar::Trunc, reals, integral>},
    {"frac", unary<scalar::Frac, floating>},
    {"relu", spec<AJ_PAIR(relu), scalar::Relu, reals, integral>},
    {"logical_not", unary<scalar::LogicalNot, all_types>},
    {"bitwise_not", unary<scalar::BitwiseNot, integral_bool>},
    {"isnan", unary<scalar::IsNan, all_types>},
    {"isinf", unary<scalar::IsInf, all_types>},
    {"isfinite", unary<scalar::IsFinite, all_types>},
    {"signbit", unary<scalar::SignBit, reals_bool>},
    {nullptr, {}},
};

}  // namespace
}  // namespace adjoin::cpu
#endif
