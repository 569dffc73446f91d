// plugins/vector/math_integer-inl.hpp: division of vectors of whole numbers, through the quotients
// of doubles: exact where both numbers keep to 51 bits, since a quotient that is not whole lies
// further from its whole neighbours than it is rounded.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_INTEGER_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_INTEGER_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_INTEGER_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_INTEGER_INL_HPP
#endif

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::math {
namespace hn = hwy::HWY_NAMESPACE;

// What a functor of whole numbers says of two elements, lane by lane.
template <class F, class D>
HWY_NOINLINE hn::Vec<D> whole_lanes(D d, hn::Vec<D> x, hn::Vec<D> y) {
  HWY_ALIGN hn::TFromD<D> a[hn::MaxLanes(d)];
  HWY_ALIGN hn::TFromD<D> b[hn::MaxLanes(d)];
  hn::Store(x, d, a);
  hn::Store(y, d, b);
  for (size_t i = 0; i < hn::MaxLanes(d); ++i) a[i] = F()(a[i], b[i]);
  return hn::Load(d, a);
}

template <class D>
HWY_INLINE bool all_within(D d, hn::Vec<D> x) {
  const auto most = hn::Set(d, hn::TFromD<D>(int64_t(1) << 51));
  return hn::AllTrue(d, hn::And(hn::Lt(x, most), hn::Lt(hn::Neg(most), x)));
}

// Towards zero; no divisor is 0.
template <class D>
HWY_INLINE hn::Vec<D> quotient(D d, hn::Vec<D> a, hn::Vec<D> b) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 8) {
    const hn::RebindToFloat<D> df;
    return hn::ConvertTo(d, hn::ConvertTo(df, a) / hn::ConvertTo(df, b));
  } else {
    const hn::Half<D> half;
    const hn::Repartition<double, D> wide;
    auto low =
        hn::PromoteTo(wide, hn::LowerHalf(half, a)) / hn::PromoteTo(wide, hn::LowerHalf(half, b));
    auto high =
        hn::PromoteTo(wide, hn::UpperHalf(half, a)) / hn::PromoteTo(wide, hn::UpperHalf(half, b));
    auto q = hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
    return hn::IfThenElse(hn::Eq(b, hn::Set(d, T(-1))), hn::Neg(a), q);  // the least one wraps
  }
}

// The remainder's sign is the dividend's; floors: one less where it is not the divisor's.
enum class Division { floor, remainder, fmod };
template <Division K, class F>
struct Divide {
  static constexpr bool kRepeat = true;  // short rows are filled with their own elements
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    const V zero = hn::Zero(d);
    bool plain = hn::AllFalse(d, hn::Eq(b, zero));  // otherwise the scalar code refuses
    if constexpr (sizeof(hn::TFromD<D>) == 8) plain = plain && all_within(d, a) && all_within(d, b);
    if (HWY_UNLIKELY(!plain)) return whole_lanes<F>(d, a, b);
    const hn::RebindToUnsigned<D> du;  // Highway multiplies 64 bits without a sign
    const V q = quotient(d, a, b);
    const V r = a - hn::BitCast(d, hn::BitCast(du, q) * hn::BitCast(du, b));
    if constexpr (K == Division::fmod) return r;
    const auto other_side = hn::AndNot(hn::Eq(r, zero), hn::Lt(hn::Xor(r, b), zero));
    if constexpr (K == Division::remainder) return r + hn::IfThenElseZero(other_side, b);
    return q - hn::IfThenElseZero(other_side, hn::Set(d, hn::TFromD<D>(1)));
  }
};

}  // namespace adjoin::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
#endif
