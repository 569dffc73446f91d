// plugins/vector/math_exp-inl.hpp: exponentials of vectors. float: exp, exp2 1 ULP, tanh, sigmoid
// 2, silu 3; double: 2.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_EXP_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_EXP_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_EXP_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_EXP_INL_HPP
#endif
#include "math_base-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::math {

// Coefficients in this folder's math headers are minimax fits of our own, made with 50 digits.
template <class T>
struct ExpTable;
template <>
struct ExpTable<float> {
  // kLow: e^x is 0 below; kLowest: so is x e^x, and scale() ends there
  static constexpr float kLow = -104.0f, kHigh = 89.0f, kLowest = -170.0f;
  static constexpr float kLog2e = 1.44269502f;
  // (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2, relative to e^r: 2^-28
  static constexpr float kTail[] = {0.49999994f, 0.166665196f, 0.0416684002f, 0.00836885069f,
                                    0.00138143124f};
};
template <>
struct ExpTable<double> {
  static constexpr double kLow = -746.0, kHigh = 710.0, kLowest = -1400.0;
  static constexpr double kLog2e = 1.4426950408889634;
  static constexpr double kTail[] = {0.5,
                                     0.16666666666666682,
                                     0.041666666666666081,
                                     0.0083333333333167857,
                                     0.0013888888889119096,
                                     0.0001984126989701351,
                                     2.4801586922370519e-05,
                                     2.7557234219928419e-06,
                                     2.7557583803123151e-07,
                                     2.5112264651108689e-08,
                                     2.0826455310855701e-09};  // 2^-64
};

// e^x = (1 + r + tail) 2^n. The argument has to lie in its table's range. Exact: with what the
// rounding of r lost.
template <class D>
struct ExpParts {
  Vec<D> r, tail, n;
};
template <bool Exact = false, class D>
HWY_INLINE ExpParts<D> exp_parts(D d, Vec<D> x) {
  using T = Scalar<D>;
  using E = ExpTable<T>;
  Vec<D> n = hn::Round(x * hn::Set(d, E::kLog2e)), rest = hn::Set(d, Format<T>::kLn2[1]);
  Vec<D> first = hn::NegMulAdd(n, hn::Set(d, Format<T>::kLn2[0]), x);  // no rounding here
  Vec<D> r = hn::NegMulAdd(n, rest, first), q = polynomial(d, r, E::kTail);
  if constexpr (Exact) return {r, hn::MulAdd(r * r, q, hn::NegMulAdd(n, rest, first - r)), n};
  return {r, r * r * q, n};
}
template <bool Exact = false, class D>
HWY_INLINE Vec<D> mantissa(D d, const ExpParts<D>& p) {
  Vec<D> one = hn::Set(d, Scalar<D>(1));
  if constexpr (!Exact) return one + (p.r + p.tail);
  Vec<D> sum = one + p.r;
  return sum + (p.tail + (p.r - (sum - one)));
}

template <class D>
HWY_INLINE Vec<D> exp(D d, Vec<D> x) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Exp());
  // What comes to 0, as masks of attention do, is not computed: on Intel's processors results
  // below the normal numbers take a hundred times as long.
  const auto nothing = hn::Lt(x, hn::Set(d, ExpTable<T>::kLow));
  auto p = exp_parts(d, hn::Min(hn::Set(d, ExpTable<T>::kHigh), hn::IfThenZeroElse(nothing, x)));
  return hn::IfThenZeroElse(nothing, scale(d, mantissa(d, p), p.n));
}

// e^x - 1: 2^n (r + tail) + (2^n - 1), its first two terms added without error.
template <class D>
HWY_INLINE Vec<D> expm1(D d, Vec<D> x) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Expm1());
  if constexpr (kSingle<T>) {
    auto y = through_double(d, clamped(d, x, T(-30), T(100)), [](auto wide, auto v) HWY_ATTR {
      auto p = exp_parts(wide, v);
      auto power = power_of_two(wide, p.n);
      return hn::MulAdd(power, p.r + p.tail, power - hn::Set(wide, 1.0));
    });
    return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);
  } else {
    auto p = exp_parts<true>(d, clamped(d, x, T(-40), ExpTable<T>::kHigh));
    // Half of the power, since 2^1024 is not a number.
    Vec<D> half = power_of_two(d, p.n - hn::Set(d, T(1)));
    Vec<D> whole = half - hn::Set(d, T(0.5));
    Vec<D> high = hn::MulAdd(half, p.r, whole);
    Vec<D> low = hn::MulAdd(half, p.r, whole - high);
    Vec<D> y = (high + hn::MulAdd(half, p.tail, low)) * hn::Set(d, T(2));
    Vec<D> small = p.r + p.tail;  // n = 0: nothing cancels, and subnormal numbers stay whole
    y = hn::IfThenElse(hn::Eq(p.n, hn::Zero(d)), small, y);
    return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);
  }
}

template <class D>
HWY_INLINE Vec<D> exp2(D d, Vec<D> x) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Exp2());
  constexpr bool single = kSingle<T>;
  Vec<D> y = clamped(d, x, single ? T(-151) : T(-1076), single ? T(129) : T(1025));
  Vec<D> n = hn::Round(y), f = y - n;
  if constexpr (single) {  // (2^f - 1) / f: 2^-28.9
    static constexpr T kTail[] = {0.693147182f,   0.240226507f,   0.0555032454f,
                                  0.00961809698f, 0.00134015107f, 0.000154455513f};
    return scale(d, hn::MulAdd(f, polynomial(d, f, kTail), hn::Set(d, T(1))), n);
  } else {
    auto p = exp_parts(d, f * hn::Set(d, Format<T>::kLn2[0]));
    return scale(d, mantissa(d, p), n + p.n);
  }
}

// 1 / (1 + e^-x) = e^x / (1 + e^x): whichever exponential is below 1.
template <class D>
HWY_INLINE Vec<D> sigmoid(D d, Vec<D> x) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Sigmoid());
  Vec<D> one = hn::Set(d, T(1));
  auto p = exp_parts<true>(d, hn::Max(hn::Set(d, ExpTable<T>::kLow), hn::Neg(hn::Abs(x))));
  Vec<D> e = scale(d, mantissa<true>(d, p), p.n);
  Vec<D> sum = one + e, lost = e - (sum - one);
  Vec<D> y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one) / sum;
  return hn::NegMulAdd(y, lost, y);  // lost / sum: the sum is near 1 where this counts
}

// x / (1 + e^-x); in the left tail the product is made before the scaling, which may leave the
// normal numbers.
template <class D>
HWY_INLINE Vec<D> silu(D d, Vec<D> x) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Silu());
  auto p = exp_parts<true>(d, hn::Max(hn::Set(d, ExpTable<T>::kLowest), hn::Neg(hn::Abs(x))));
  Vec<D> m = mantissa<true>(d, p), e = scale(d, m, p.n);
  Vec<D> left = scale(d, hn::Max(hn::Set(d, ExpTable<T>::kLowest), x) * m, p.n);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), left, x) / (hn::Set(d, T(1)) + e);
}

template <class D>
HWY_INLINE Vec<D> tanh(D d, Vec<D> x) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Tanh());
  Vec<D> a = hn::Abs(x), one = hn::Set(d, T(1)), two = hn::Set(d, T(2)), y;
  if constexpr (kSingle<T>) {
    // 1 - 2 / (e^2a + 1); near zero, where that cancels, x + x^3 p(x^2): 2^-32
    static constexpr T kSmall[] = {-0.333333313f, 0.133332103f,    -0.0539472029f,
                                   0.0217029676f, -0.00818267558f, 0.00214753742f};
    Vec<D> limited = hn::Min(hn::Set(d, T(10)), a);
    auto p = exp_parts(d, limited + limited);
    Vec<D> e = mantissa(d, p) * power_of_two(d, p.n);
    Vec<D> large = one - two / (e + one), z = a * a;
    Vec<D> small = hn::MulAdd(a * z, polynomial(d, z, kSmall), a);
    y = hn::IfThenElse(hn::Lt(a, hn::Set(d, T(0.625))), small, large);
  } else {
    Vec<D> t = expm1(d, hn::Min(hn::Set(d, T(40)), a + a));
    Vec<D> sum = t + two, lost = t - (sum - two);
    y = t / sum;
    Vec<D> undo = hn::NegMulAdd(y * lost, hn::Set(d, T(0.5)), y);
    y = hn::IfThenElse(hn::Lt(t, one), undo, y);
  }
  return hn::CopySign(y, x);
}

}  // namespace adjoin::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
#endif
