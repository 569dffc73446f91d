// plugins/cpu/pointwise/unary.cpp: signs, rounding and tests of one element.
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
AJ_UNARY(abs, hn::Abs(x))
AJ_UNARY(neg, hn::Neg(x))
AJ_UNARY(square, x* x)
AJ_UNARY(reciprocal, hn::Set(d, hn::TFromD<D>(1)) / x)
AJ_UNARY(floor, hn::Floor(x))
AJ_UNARY(ceil, hn::Ceil(x))
AJ_UNARY(trunc, hn::Trunc(x))
AJ_UNARY(relu, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x))
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
AJ_CHOSEN(abs)
AJ_CHOSEN(neg)
AJ_CHOSEN(square)
AJ_CHOSEN(reciprocal)
AJ_CHOSEN(floor)
AJ_CHOSEN(ceil)
AJ_CHOSEN(trunc)
AJ_CHOSEN(relu)

using integral_complex = Join<integral, complexes>;
template <LoopPair (*Pair)(), class F, class Set, class Rest>
constexpr Spec spec = vectors<Pair, &plain_kernel<F, Rest, 1>, Set>;
}  // namespace

AJ_KERNELS(unary_kernels) = {
    {"abs", spec<abs_pair, scalar::Abs, numeric, integral_complex>},
    {"neg", spec<neg_pair, scalar::Neg, numeric, integral_complex>},
    {"sign", unary<scalar::Sign, reals_bool>},
    {"square", spec<square_pair, scalar::Square, numeric, integral_complex>},
    {"reciprocal", spec<reciprocal_pair, scalar::Reciprocal, floating_complex, complexes>},
    {"floor", spec<floor_pair, scalar::Floor, reals, integral>},
    {"ceil", spec<ceil_pair, scalar::Ceil, reals, integral>},
    {"round", unary<RoundChooser, reals>},
    {"trunc", spec<trunc_pair, scalar::Trunc, reals, integral>},
    {"frac", unary<scalar::Frac, floating>},
    {"relu", spec<relu_pair, scalar::Relu, reals, integral>},
    {"logical_not", unary<scalar::LogicalNot, all_types>},
    {"bitwise_not", unary<scalar::BitwiseNot, integral_bool>},
    {"isnan", unary<scalar::IsNan, all_types>},
    {"isinf", unary<scalar::IsInf, all_types>},
    {"isfinite", unary<scalar::IsFinite, all_types>},
    {"signbit", unary<scalar::SignBit, reals_bool>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
