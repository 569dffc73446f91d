// plugins/vector/math_special-inl.hpp: special functions of vectors, computed in double with the
// tables of the kit's scalar functions, which serve arguments that are rare. float: 1 ULP; double:
// as the scalar ones, but for lgamma, which is theirs.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_SPECIAL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_SPECIAL_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_SPECIAL_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_SPECIAL_INL_HPP
#endif
#include "math_erf-inl.hpp"
#include "math_inverse-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::math {
namespace special = kit::scalar::special;

// Core of doubles: of floats through them. Functor: the scalar function.
template <class Functor, class Core, class D>
HWY_NOINLINE Vec<D> in_double(D d, Vec<D> x, Functor f, Core core) {
  if constexpr (!kFused)
    return lanes(d, x, f);
  else if constexpr (kSingle<Scalar<D>>)
    return through_double(d, x, core);
  else
    return core(d, x);
}

// y where the mask is set, else what the scalar function says: a lane depends on itself only.
template <class D, class F>
HWY_INLINE Vec<D> or_lanes(D d, hn::Mask<D> plain, Vec<D> y, Vec<D> x, F f) {
  if (HWY_LIKELY(hn::AllTrue(d, plain))) return y;
  return hn::IfThenElse(plain, y, lanes(d, x, f));
}

template <int N, class D>
HWY_INLINE Vec<D> chebyshev(D d, const special::Series<N>& s, Vec<D> t) {
  Vec<D> a = hn::Zero(d), b = hn::Zero(d), twice = t + t;
#pragma GCC unroll 40
  for (int k = N - 1; k > 0; --k) {
    Vec<D> next = hn::MulAdd(twice, a, hn::Set(d, s.c[k]) - b);
    b = a;
    a = next;
  }
  return hn::MulAdd(t, a, hn::Set(d, s.c[0]) - b);
}

// Modified Bessel functions times e^-|x|, or not.
template <bool Odd, bool Scaled>
struct BesselICore {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    static constexpr auto kNear = special::bessel_i_near<Odd>();
    static constexpr auto kFar = [] {
      if constexpr (Odd)
        return special::i1e_far();
      else
        return special::i0e_far();
    }();
    V y = hn::Abs(x), ten = hn::Set(d, 10.0), one = hn::Set(d, 1.0), half = x * hn::Set(d, 0.5);
    V r = polynomial(d, half * half, kNear.c);
    if constexpr (Odd) r = half * r;
    if constexpr (Scaled) r = r * exp(d, hn::Neg(y));
    auto far = hn::Gt(y, ten);
    if (HWY_UNLIKELY(!hn::AllFalse(d, far))) {
      V z = hn::IfThenElse(far, y, ten);
      V t = chebyshev(d, kFar, hn::Set(d, 20.0) / z - one) / hn::Sqrt(z);
      if constexpr (Odd) t = hn::CopySign(t, x);
      r = hn::IfThenElse(far, Scaled ? t : exp(d, z) * t, r);
    }
    return r;
  }
};

// The other modified Bessel functions, times e^x or not.
template <bool Odd, bool Scaled>
struct BesselKCore {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    static constexpr auto kNear = [] {
      if constexpr (Odd)
        return special::k1_near();
      else
        return special::k0_near();
    }();
    static constexpr auto kFar = [] {
      if constexpr (Odd)
        return special::k1_far();
      else
        return special::k0_far();
    }();
    V zero = hn::Zero(d), one = hn::Set(d, 1.0), two = hn::Set(d, 2.0), inf = hn::Set(d, HUGE_VAL);
    auto far = hn::Gt(x, two), near = hn::AndNot(far, hn::Gt(x, zero));
    V r = hn::IfThenElse(hn::Eq(x, zero), inf, hn::Set(d, NAN));
    if (!hn::AllFalse(d, far)) {
      V z = hn::IfThenElse(far, x, two);
      V y = chebyshev(d, kFar, hn::Set(d, 4.0) / z - one) / hn::Sqrt(z);
      r = hn::IfThenElse(far, Scaled ? y : y * exp(d, hn::Neg(z)), r);
    }
    if (!hn::AllFalse(d, near)) {
      V z = hn::IfThenElse(near, x, one), half = z * hn::Set(d, 0.5);
      V y = chebyshev(d, kNear, hn::MulSub(half, z, one));
      V i = BesselICore<Odd, false>()(d, z), l = log(d, z) - hn::Set(d, 0.69314718055994530942);
      y = Odd ? hn::MulAdd(l, i, y / z) : hn::NegMulAdd(l, i, y);
      r = hn::IfThenElse(near, Scaled ? y * exp(d, z) : y, r);
    }
    return r;
  }
};

template <class D>
HWY_INLINE Vec<D> erfcx_of_positive(D d, Vec<D> x) {
  static constexpr auto kSum = special::erfcx_series();
  Vec<D> inf = hn::Set(d, HUGE_VAL), one = hn::Set(d, 1.0), shift = hn::Set(d, 3.75);
  Vec<D> y = hn::IfThenElse(hn::Eq(x, inf), one, x);
  Vec<D> r = chebyshev(d, kSum, (y - shift) / (y + shift)) / (y + y + one);
  return hn::IfThenElse(hn::Eq(x, inf), hn::Zero(d), r);
}
struct ErfcxCore {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V y = erfcx_of_positive(d, hn::Abs(x)), e = exp(d, x * x);
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e + e - y, y);
  }
};

struct LogNdtrCore {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V half = hn::Set(d, 0.5), z = x * hn::Set(d, 0.70710678118654752440), one = hn::Set(d, 1.0);
    auto far = hn::Lt(x, hn::Neg(one));
    V y = hn::IfThenElse(far, one, z);
    y = log1p(d, hn::Neg(half) * erfc(d, y));
    if (HWY_LIKELY(hn::AllFalse(d, far))) return y;
    V tail = log(d, half * erfcx_of_positive(d, hn::IfThenElse(far, hn::Neg(z), one)));
    return hn::IfThenElse(far, hn::NegMulAdd(half * x, x, tail), y);
  }
};

// Through erfinv of 1 - 2 z, z the smaller tail; doubles with one of Halley's steps, on erf or on
// erfc in the tails.
template <bool Exact>
struct NdtriCore {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V p) const {
    V one = hn::Set(d, 1.0), two = hn::Set(d, 2.0), z = hn::Min(p, one - p);
    V w = hn::Neg(log(d, hn::Set(d, 4.0) * z * (one - z)));
    auto plain = hn::And(hn::Gt(z, hn::Zero(d)), hn::Lt(w, hn::Set(d, 17.6)));
    V a = hn::NegMulAdd(two, z, one), y = a * erfinv_ratio(d, w);
    if constexpr (Exact) {
      V tail = hn::MulSub(two, z, erfc(d, y)), middle = erf(d, y) - a;
      V error = hn::IfThenElse(hn::Gt(z, hn::Set(d, 0.25)), middle, tail);
      V u = error * hn::Set(d, 0.88622692545275801365) * exp(d, y * y);
      y = y - u / hn::MulAdd(y, u, one);
    }
    y = y * hn::Set(d, 1.41421356237309504880);
    y = hn::IfThenElse(hn::Lt(p, hn::Set(d, 0.5)), hn::Neg(y), y);
    return or_lanes(d, plain, y, p, kit::scalar::Ndtri());
  }
};

// By shifting to 8 and more, and Stirling's series: 1e-15.
struct LgammaCore {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V given) const {
    V x = given;
    auto plain = hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, hn::Set(d, HUGE_VAL)));
    static constexpr double kTail[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                       1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
    V one = hn::Set(d, 1.0), eight = hn::Set(d, 8.0), product = one;
    for (int k = 0; k < 8; ++k) {
      auto low = hn::Lt(x, eight);
      product = hn::IfThenElse(low, product * x, product);
      x = hn::IfThenElse(low, x + one, x);
    }
    V r = one / x, y = hn::MulSub(x - hn::Set(d, 0.5), log(d, x), x);
    y = y + hn::MulAdd(r, polynomial(d, r * r, kTail), hn::Set(d, 0.91893853320467274178));
    // The two roots, whose sum of logarithms is rounded.
    auto root = hn::Or(hn::Eq(given, one), hn::Eq(given, hn::Set(d, 2.0)));
    y = hn::IfThenZeroElse(root, y - log(d, product));
    return or_lanes(d, plain, y, given, kit::scalar::Lgamma());
  }
};

// Below 3 from [1, 2], by the distance from the root; above it from the logarithm.
struct DigammaCore {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    static constexpr auto kNear = kit::scalar::digamma_near();
    static constexpr auto kFar = kit::scalar::digamma_far();
    const V one = hn::Set(d, 1.0), two = hn::Set(d, 2.0), three = hn::Set(d, 3.0);
    auto plain = hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, hn::Set(d, 1e300)));
    auto near = hn::Lt(x, three);
    V r = hn::Zero(d);
    if (!hn::AllTrue(d, near)) {
      V z = one / hn::IfThenElse(near, three, x), y = z * z;
      V rest = y * polynomial(d, y - hn::Set(d, 1.0 / 18), kFar.c);
      r = log(d, x) - hn::MulAdd(hn::Set(d, 0.5), z, rest);
    }
    if (!hn::AllFalse(d, near)) {
      auto low = hn::Lt(x, one), high = hn::Gt(x, two);
      V z = hn::IfThenElse(low, x + one, hn::IfThenElse(high, x - one, x));
      V step = one / hn::IfThenElse(low, hn::Neg(x), hn::IfThenElse(high, z, one));
      V away =
          z - hn::Set(d, kit::scalar::kDigammaRoot) - hn::Set(d, kit::scalar::kDigammaRootRest);
      V y = away * polynomial(d, z - hn::Set(d, 1.5), kNear.c);
      y = hn::IfThenElse(hn::Or(low, high), y + step, y);
      r = hn::IfThenElse(near, y, r);
    }
    return or_lanes(d, plain, r, x, kit::scalar::Digamma());
  }
};

// (-1)^(n+1) n! zeta(n + 1, x) for x > 0, by the formula of Euler and Maclaurin.
struct PolygammaCore {
  int64_t n;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    static constexpr auto kBernoulli = special::zeta_series();
    auto plain = hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, hn::Set(d, 1e20)));
    if (n < 1 || n > 12) return lanes(d, x, kit::scalar::Polygamma{n});
    const V one = hn::Set(d, 1.0), half = hn::Set(d, 0.5);
    auto power = [&](V r) HWY_ATTR {  // r^(n + 1)
      V y = r;
      for (int64_t k = 0; k < n; ++k) y = y * r;
      return y;
    };
    V sum = hn::Zero(d), q = x;
    for (int k = 0; k < 9; ++k, q = q + one) sum = sum + power(one / q);
    double size = 1;
    for (int64_t k = 2; k <= n; ++k) size *= double(k);
    V r = one / q, last = power(r), rr = r * r, factor = hn::Set(d, double(n + 1)) * last * r;
    V rest = last * hn::MulAdd(q, hn::Set(d, 1.0 / double(n)), half);
    for (int j = 0; j < 9; ++j) {
      rest = hn::MulAdd(hn::Set(d, kBernoulli.c[j]), factor, rest);
      factor = factor * hn::Set(d, double(n + 2 + 2 * j) * double(n + 3 + 2 * j)) * rr;
    }
    V y = hn::Set(d, n % 2 ? size : -size) * (sum + rest);
    return or_lanes(d, plain, y, x, kit::scalar::Polygamma{n});
  }
};

// 2 ULP of the larger of its terms.
template <class D>
HWY_INLINE Vec<D> logaddexp2(D d, Vec<D> a, Vec<D> b) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, a, b, kit::scalar::LogAddExp2());
  Vec<D> larger = hn::IfThenElse(hn::Gt(a, b), a, b), base = hn::Set(d, T(1.44269504088896340736));
  Vec<D> y = hn::MulAdd(log1p_to_one(d, exp2(d, hn::Neg(hn::Abs(a - b)))), base, larger);
  y = hn::IfThenElse(hn::Eq(a, b), a + hn::Set(d, T(1)), y);
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), a + b, y);
}

template <class D>
HWY_INLINE Vec<D> sinc(D d, Vec<D> x) {  // of pi x
  using T = Scalar<D>;
  Vec<D> y = x * hn::Set(d, T(3.14159265358979323846));
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, T(1)), sin(d, y) / y);
}

}  // namespace adjoin::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
#endif
