// adjoin/kit/normal.hpp: normal numbers of uniform ones, the same bits on every backend: sums,
// products, fused multiply-adds, quotients and roots only, each of which IEEE 754 rounds in one
// way.
//
// Written over M, the arithmetic of one number or of a vector of them: M::V are numbers of type
// M::T, M::I the bits of as many.
#ifndef ADJOIN_KIT_NORMAL_HPP
#define ADJOIN_KIT_NORMAL_HPP
#include <adjoin/kit/dtype.hpp>
#include <bit>
#include <cmath>

// Always inlined, for M's vectors may belong to an instruction set that only its caller is made
// for.
#define AJ_EVERYWHERE [[gnu::always_inline]] AJ_HD inline

namespace adjoin {
namespace AJ_HIDDEN kit {

template <class M>
AJ_EVERYWHERE typename M::V horner(typename M::V, typename M::T c) {
  return M::number(c);
}
// c + c1 x + c2 x^2 ...
template <class M, class Next, class... Rest>
AJ_EVERYWHERE typename M::V horner(typename M::V x, typename M::T c, Next next, Rest... rest) {
  return M::fma(horner<M>(x, typename M::T(next), typename M::T(rest)...), x, M::number(c));
}

// log x of 0 < x <= 1, x not subnormal: x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2).
template <class M>
AJ_EVERYWHERE typename M::V log_to_one(typename M::V x) {
  using T = typename M::T;
  using V = typename M::V;
  constexpr bool kFloat = sizeof(T) == 4;
  using Bits = std::conditional_t<kFloat, uint32_t, uint64_t>;
  constexpr int kMantissa = kFloat ? 23 : 52;
  constexpr Bits kOne = Bits(kFloat ? 127 : 1023) << kMantissa, kPart = (Bits(1) << kMantissa) - 1;
  constexpr Bits kRootHalf = Bits(kFloat ? 0x3f3504f3 : 0x3fe6a09e667f3bcd);
  constexpr T kTo = T(Bits(1) << kMantissa);
  auto above = M::bits(x) + M::word(kOne - kRootHalf);
  // The exponent as a number without a conversion of integers: added to 2^kMantissa's last bits.
  V e = M::of_bits(M::template right<kMantissa>(above) | M::bits(M::number(kTo))) -
        M::number(kTo + T(kFloat ? 127 : 1023));
  V f = M::of_bits((above & M::word(kPart)) + M::word(kRootHalf)) - M::number(T(1));
  if constexpr (kFloat) {  // (log(1 + f) - f + f^2 / 2) / f^3 to 2^-30
    V z = f * f;
    V tail = horner<M>(f, 0.333333135f, -0.250000089f, 0.200021192f, -0.166679963f, 0.142195538f,
                       -0.124055885f, 0.118881576f, -0.116756499f, 0.0674663931f);
    V y = M::fma(z * f, tail, e * M::number(-1.90465421e-09f));
    return M::fma(e, M::number(0.693147182f), f + M::fma(z, M::number(-0.5f), y));
  } else {
    // f - (f^2 / 2 - s (f^2 / 2 + R)), s = f / (2 + f), R an even function of s (P. Tang, ACM TOMS
    // 16, 1990)
    V s = f / (f + M::number(2.0)), z = s * s, half = f * f * M::number(0.5);
    V tail = horner<M>(z, 0.66666666666666663, 0.40000000000006702, 0.28571428568940083,
                       0.22222222668774516, 0.18181773905731433, 0.15387167744327784,
                       0.13248381412153645, 0.13267127613841634);
    V y = M::fma(e, M::number(2.3190468138462996e-17), s * M::fma(z, tail, half));
    return M::fma(e, M::number(0.69314718055994529), f - (half - y));
  }
}

// The cosine and the sine of `turns` whole turns, 0 <= turns < 1.
template <class M>
AJ_EVERYWHERE void cosine_and_sine(typename M::V turns, typename M::V* cosine,
                                   typename M::V* sine) {
  using T = typename M::T;
  using V = typename M::V;
  constexpr bool kFloat = sizeof(T) == 4;
  constexpr int kSign = kFloat ? 31 : 63;
  const V magic = M::number(kFloat ? T(0x1.8p23) : T(0x1.8p52));
  V shifted = M::fma(turns, M::number(T(4)), magic);  // the nearest quarter in its last bits
  V r = M::fma(shifted - magic, M::number(T(-0.25)), turns), z = r * r, c, s;
  if constexpr (kFloat) {  // Taylor's series of sin(2 pi r) and cos(2 pi r), |r| <= 1/8
    s = r * horner<M>(z, 6.2831853f, -41.3417022f, 81.6052493f, -76.7058598f, 42.0586939f);
    c = horner<M>(z, 1.0f, -19.7392088f, 64.9393940f, -85.4568172f, 60.2446414f, -26.4262568f);
  } else {
    s = r * horner<M>(z, 6.283185307179586, -41.34170224039976, 81.60524927607506,
                      -76.70585975306139, 42.058693944897655, -15.09464257682299, 3.819952584848282,
                      -0.7181223017785006, 0.10422916220813984);
    c = horner<M>(z, 1.0, -19.739208802178716, 64.9393940226683, -85.45681720669373,
                  60.24464137187666, -26.4262567833744, 7.903536371318469, -1.714390711088672,
                  0.28200596845579123);
  }
  auto quarter = M::bits(shifted), zero = M::word(0), one = M::word(1), two = M::word(2);
  auto odd = zero - (quarter & one);  // all bits, where sine and cosine change places
  auto mixed = (M::bits(c) ^ M::bits(s)) & odd;
  auto cosine_sign = M::template left<kSign - 1>((quarter + one) & two);
  auto sine_sign = M::template left<kSign - 1>(quarter & two);
  *cosine = M::of_bits((M::bits(c) ^ mixed) ^ cosine_sign);
  *sine = M::of_bits((M::bits(s) ^ mixed) ^ sine_sign);
}

// Two normal numbers of two uniform ones in [0, 1) (G. Box and M. Muller, Ann. Math. Stat. 29,
// 1958).
template <class M>
AJ_EVERYWHERE void normal_pair(typename M::V* u, typename M::V* v) {
  using T = typename M::T;
  auto radius = M::sqrt(M::number(T(-2)) * log_to_one<M>(M::number(T(1)) - *u));
  cosine_and_sine<M>(*v, u, v);
  *u = radius * *u;
  *v = radius * *v;
}

// The arithmetic of single numbers.
template <class Number>
struct OneNumber {
  using T = Number;
  using V = Number;
  using I = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static AJ_HD V number(T x) { return x; }
  static AJ_HD I word(I x) { return x; }
  static AJ_HD I bits(V x) { return std::bit_cast<I>(x); }
  static AJ_HD V of_bits(I x) { return std::bit_cast<V>(x); }
  static AJ_HD V fma(V a, V b, V c) { return std::fma(a, b, c); }
  static AJ_HD V sqrt(V x) { return std::sqrt(x); }
  template <int N>
  static AJ_HD I right(I x) {
    return x >> N;
  }
  template <int N>
  static AJ_HD I left(I x) {
    return x << N;
  }
};

}  // namespace kit
}  // namespace adjoin
#undef AJ_EVERYWHERE
#endif
