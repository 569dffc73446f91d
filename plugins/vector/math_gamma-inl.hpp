// plugins/vector/math_gamma-inl.hpp: the incomplete gamma functions of vectors of doubles, by the
// formulas of the kit's scalar ones, which serve arguments that are rare.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_GAMMA_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_GAMMA_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_GAMMA_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_GAMMA_INL_HPP
#endif
#include "math_pow-inl.hpp"
#include "math_special-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::math {

// x^a e^-x / gamma(a + 1). exact: below a = 20 by the power and the product themselves, for sums of
// logarithms lose digits that only doubles have.
template <class D>
HWY_INLINE Vec<D> gamma_density(D d, Vec<D> a, Vec<D> x, bool exact) {
  const Vec<D> one = hn::Set(d, 1.0), y20 = hn::Set(d, 20.0);
  Vec<D> mu = (x - a) / a, y = one;
  auto below = hn::Lt(a, y20), large = hn::AndNot(below, hn::Le(hn::Abs(mu), hn::Set(d, 0.4)));
  auto few = hn::And(below, hn::Eq(one, hn::Set(d, exact ? 1.0 : 0.0)));
  auto rest = hn::Not(hn::Or(few, large));
  if (!hn::AllFalse(d, few)) {
    static constexpr auto kInverse = special::inverse_gamma();
    Vec<D> b = hn::IfThenElse(few, a, one), product = one, half = exp(d, x * hn::Set(d, -0.5));
    y = pow(d, hn::Min(x, hn::Set(d, 1600.0)), b);
    const Vec<D> two = hn::Set(d, 2.0);
    for (auto more = hn::Gt(b, two); !hn::AllFalse(d, more); more = hn::Gt(b, two)) {
      product = hn::IfThenElse(more, product * (b * (b - one)), product);
      b = hn::IfThenElse(more, b - two, b);
    }
    auto last = hn::Gt(b, one);
    product = hn::IfThenElse(last, product * b, product);
    b = hn::IfThenElse(last, b - one, b);
    y = y * half / product * polynomial(d, b - hn::Set(d, 0.5), kInverse.c) * half;
  }
  if (!hn::AllFalse(d, rest))
    y = hn::IfThenElse(rest, exp(d, a * log(d, x) - x - LgammaCore()(d, a + one)), y);
  if (HWY_LIKELY(hn::AllFalse(d, large))) return y;
  static constexpr double kTail[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680};
  Vec<D> b = hn::IfThenElse(large, a, y20), m = hn::IfThenElseZero(large, mu);
  Vec<D> tail = polynomial(d, one / (b * b), kTail) / b;
  Vec<D> z = exp(d, hn::MulSub(b, log1p(d, m) - m, tail)) /
             hn::Sqrt(hn::Set(d, 6.28318530717958647693) * b);
  return hn::IfThenElse(large, z, y);
}

// Sums and fractions end lane by lane, so that neighbours do not change a lane's bits. What a lane
// outside of the mask says is not used.
template <bool Upper>
struct IGammaCore {
  double enough;  // the share of the result from which on terms do not count

  template <class D, class V, class M>
  HWY_INLINE V series(D d, M mask, V a, V x) const {
    const V one = hn::Set(d, 1.0), least = hn::Set(d, enough);
    V sum = one, term = hn::IfThenElseZero(mask, one), k = a + one;
    while (!hn::AllFalse(d, hn::Gt(term, hn::Zero(d)))) {
      term = term * (x / k);
      sum = sum + term;
      k = k + one;
      term = hn::IfThenElseZero(hn::Gt(term, least * sum), term);
    }
    return sum;
  }
  template <class D, class V, class M>
  HWY_INLINE V fraction(D d, M mask, V a, V x) const {
    const V one = hn::Set(d, 1.0), two = hn::Set(d, 2.0);
    const V least = hn::Set(d, std::max(enough, 4e-16));  // a rounding is no change
    a = hn::IfThenElse(mask, a, one);
    x = hn::IfThenElse(mask, x, hn::Set(d, 8.0));
    V b = x + one - a, c = hn::Set(d, 1e300), e = one / b, h = e, k = one;
    for (int i = 1; i < 100000; ++i, k = k + one) {
      V n = k * (a - k);
      b = b + two;
      e = one / hn::MulAdd(n, e, b);
      c = b + n / c;
      V change = c * e;
      h = hn::IfThenElse(mask, h * change, h);
      mask = hn::And(mask, hn::Ge(hn::Abs(change - one), least));
      if (hn::AllFalse(d, mask)) break;
    }
    return h;
  }
  // 1 less the lower function, for small a and x, without the subtraction.
  template <class D, class V, class M>
  HWY_INLINE V small_upper(D d, M mask, V a, V x) const {
    const V one = hn::Set(d, 1.0), least = hn::Set(d, enough);
    static constexpr double kTiny[] = {-0.57721566490153286061, 0.82246703342411321824,
                                       -0.40068563438653142847};
    V tiny = a * polynomial(d, a, kTiny);  // log(gamma(a + 1))
    static constexpr auto kInverse = special::inverse_gamma();
    V larger = hn::Neg(log(d, polynomial(d, a - hn::Set(d, 0.5), kInverse.c)));
    V shift = hn::IfThenElse(hn::Lt(a, hn::Set(d, 1e-4)), tiny, larger);
    V power = a * log(d, x) - shift, sum = hn::Zero(d), k = one;
    V term = hn::IfThenElseZero(mask, one);
    for (int i = 1; i < 60 && !hn::AllFalse(d, hn::Ne(term, hn::Zero(d))); ++i, k = k + one) {
      term = hn::Neg(term * (x / k));
      sum = sum + term / (a + k);
      auto more = hn::Ge(hn::Abs(term), least * hn::Abs(sum));
      term = hn::IfThenElseZero(more, term);
    }
    return hn::Neg(hn::MulAdd(exp(d, power), a * sum, expm1(d, power)));
  }

  template <class D, class V>
  HWY_NOINLINE V operator()(D d, V given_a, V given_x) const {
    using F = std::conditional_t<Upper, kit::scalar::IGammaC, kit::scalar::IGamma>;
    const V zero = hn::Zero(d), one = hn::Set(d, 1.0);
    auto plain = hn::And(hn::And(hn::Gt(given_a, zero), hn::Le(given_a, hn::Set(d, 1e5))),
                         hn::And(hn::Gt(given_x, zero), hn::Lt(given_x, hn::Set(d, 1e300))));
    V a = hn::IfThenElse(plain, given_a, one), x = hn::IfThenElse(plain, given_x, one);
    auto small = hn::And(hn::Le(x, hn::Set(d, 1.1)), hn::Lt(a, one));
    auto below = hn::Lt(x, a + one);
    if constexpr (!Upper) below = hn::Or(below, small);
    auto other = hn::Not(below);
    if constexpr (Upper) below = hn::AndNot(small, below), other = hn::AndNot(small, other);
    V y = zero, density = gamma_density(d, a, x, enough < 1e-12);
    if (!hn::AllFalse(d, below)) {
      V sum = density * series(d, below, a, x);
      y = Upper ? one - sum : sum;
    }
    if (!hn::AllFalse(d, other)) {
      V rest = density * a * fraction(d, other, a, x);
      y = hn::IfThenElse(other, Upper ? rest : one - rest, y);
    }
    if constexpr (Upper)
      if (!hn::AllFalse(d, small)) y = hn::IfThenElse(small, small_upper(d, small, a, x), y);
    if (HWY_LIKELY(hn::AllTrue(d, plain))) return y;
    return hn::IfThenElse(plain, y, lanes(d, given_a, given_x, F()));
  }
};

}  // namespace adjoin::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
#endif
