// plugins/vector/math_remainder-inl.hpp: division with remainder of vectors.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_REMAINDER_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_REMAINDER_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_REMAINDER_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_REMAINDER_INL_HPP
#endif
#include "math_base-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::math {

// a - trunc(a / b) b, exact: the product's rounding is in the fused difference, and a quotient that
// was rounded to the wrong side is put right. Quotients of more digits than a number has go to
// libm.
template <class D>
HWY_INLINE Vec<D> fmod(D d, Vec<D> a, Vec<D> b) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, a, b, kit::scalar::FMod());
  Vec<D> size = hn::Abs(b), q = hn::Trunc(hn::Abs(a) / size);
  constexpr T most = kSingle<T> ? T(1 << 22) : T(int64_t(1) << 51);
  constexpr T least = kSingle<T> ? T(1e-30) : T(1e-290);
  auto plain = hn::And(hn::Lt(q, hn::Set(d, most)),
                       hn::And(hn::Ge(size, hn::Set(d, least)),
                               hn::Le(size, hn::Set(d, std::numeric_limits<T>::max()))));
  if (HWY_UNLIKELY(!hn::AllTrue(d, plain))) return lanes(d, a, b, kit::scalar::FMod());
  Vec<D> r = hn::NegMulAdd(q, size, hn::Abs(a));
  r = hn::IfThenElse(hn::Lt(r, hn::Zero(d)), r + size, r);
  r = hn::IfThenElse(hn::Ge(r, size), r - size, r);
  return hn::CopySign(r, a);
}
template <class D>
HWY_INLINE Vec<D> remainder(D d, Vec<D> a, Vec<D> b) {
  Vec<D> r = fmod(d, a, b), zero = hn::Zero(d);
  auto other_side = hn::Xor(hn::Lt(r, zero), hn::Lt(b, zero));
  return hn::IfThenElse(hn::AndNot(hn::Eq(r, zero), other_side), r + b, r);
}
template <class D>
HWY_INLINE Vec<D> floor_divide(D d, Vec<D> a, Vec<D> b) {
  using T = Scalar<D>;
  Vec<D> zero = hn::Zero(d), one = hn::Set(d, T(1)), ratio = a / b, r = fmod(d, a, b);
  Vec<D> q = (a - r) / b;
  auto below = hn::AndNot(hn::Eq(r, zero), hn::Xor(hn::Lt(b, zero), hn::Lt(r, zero)));
  q = hn::IfThenElse(below, q - one, q);
  Vec<D> whole = hn::Floor(q);
  whole = hn::IfThenElse(hn::Gt(q - whole, hn::Set(d, T(0.5))), whole + one, whole);
  Vec<D> y = hn::IfThenElse(hn::Eq(q, zero), hn::CopySign(zero, ratio), whole);
  return hn::IfThenElse(hn::Eq(b, zero), ratio, y);
}

}  // namespace adjoin::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
#endif
