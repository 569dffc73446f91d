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

// a < 15: 2^-26
static constexpr Parts6 kTanhParts = {
    {1.24969041f, 1.74966192f, 2.2493403f, 2.74950457f, 3.4993751f, 4.49860525f, 5.49857903f,
     6.49895954f, 7.99856949f, 10.002861f, 11.997139f, 13.997139f, 0.0f, 0.374920607f, 0.624833763f,
     0.874826074f},
    {{0.848196805f, 0.941337049f, 0.977997422f, 0.991851687f, 0.998175621f, 0.999752522f,
      0.999966502f, 0.99999547f, 0.999999762f, 1.0f, 1.0f, 1.0f, 0.0f, 0.358288199f, 0.554484606f,
      0.703817844f},
     {0.280562073f, 0.113884509f, 0.0435210392f, 0.016230233f, 0.00364550063f, 0.000494906446f,
      6.6996181e-05f, 9.06031892e-06f, 4.51828811e-07f, 8.0225373e-09f, 1.55579494e-10f,
      2.84953766e-12f, 1.0f, 0.871629596f, 0.692546844f, 0.50464046f},
     {-0.237971991f, -0.107203744f, -0.0425634608f, -0.0160979703f, -0.00363879185f,
      -0.000494773558f, -6.69957517e-05f, -9.06370497e-06f, -3.49957133e-07f, -4.09904573e-08f,
      -7.59385888e-10f, -1.39086373e-11f, -1.06732898e-06f, -0.312294573f, -0.38400653f,
      -0.355174929f},
     {0.108341701f, 0.0629600435f, 0.0271203108f, 0.0105563737f, 0.00241472316f, 0.000329340401f,
      4.46110935e-05f, 6.03344552e-06f, 2.96635363e-07f, 6.11563022e-09f, 8.55019111e-11f,
      1.56602216e-12f, -0.333271831f, -0.178654417f, -0.0179295354f, 0.0817626193f},
     {-0.0125540327f, -0.0235281065f, -0.012336025f, -0.00510507124f, -0.00119921367f,
      -0.000164620622f, -2.22921481e-05f, -2.98976602e-06f, -3.52447699e-07f, 6.2874598e-08f,
      1.16475563e-09f, 2.13332425e-11f, -0.00120258413f, 0.16810289f, 0.137939394f, 0.0608447716f},
     {-0.0197189413f, 0.00347812497f, 0.00397968804f, 0.00191643077f, 0.000490956998f,
      6.84907282e-05f, 9.30619626e-06f, 1.25951578e-06f, 6.99422671e-08f, 6.45288767e-10f,
      3.57816138e-11f, 6.55363134e-13f, 0.143341541f, 0.0190365836f, -0.0543114766f,
      -0.0585610196f},
     {0.0150894821f, 0.00207233266f, -0.000719454954f, -0.000542415481f, -0.000156699796f,
      -2.24244523e-05f, -3.11706845e-06f, -4.80434892e-07f, 9.34878059e-08f, -3.78916063e-08f,
      -7.01921632e-10f, -1.28561424e-11f, -0.0376126394f, -0.0690723434f, -0.0239947159f,
      0.0130344806f}}};
template <class D>
HWY_INLINE Vec<D> tanh(D d, Vec<D> x) {
  using T = Scalar<D>;
  if constexpr (!kFused) return lanes(d, x, kit::scalar::Tanh());
  Vec<D> a = hn::Abs(x), one = hn::Set(d, T(1)), two = hn::Set(d, T(2)), y;
  if constexpr (kLookups && kSingle<T>) {
    // near zero x + x^3 p(x^2): 2^-26
    static constexpr T kNear[] = {-0.333333164f, 0.133286983f, -0.0519749448f};
    Vec<D> z = a * a, near = hn::MulAdd(a * z, polynomial(d, z, kNear), a);
    y = by_parts(d, hn::Min(hn::Set(d, T(10)), a), 1.0f, kTanhParts).high;
    y = hn::IfThenElse(hn::Lt(a, hn::Set(d, T(0.25))), near, y);
  } else if constexpr (kSingle<T>) {
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
