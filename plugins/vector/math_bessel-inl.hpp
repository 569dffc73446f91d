// plugins/vector/math_bessel-inl.hpp: Bessel functions of vectors of doubles. Absolute errors are
// 1e-15 where the functions are at most 1; arguments that are rare go to libm.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_BESSEL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_BESSEL_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_BESSEL_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_BESSEL_INL_HPP
#endif
#include "math_special-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::math {

// Chebyshev coefficients. Up to 8, of x^2 / 32 - 1: J0, J1 / x, Y0 - 2 / pi J0 log(x), and (Y1 - 2
// / pi (J1 log(x) - 1 / x)) / x. From 8, of 2 (8 / x)^2 - 1: with c = x - (n / 2 + 1 / 4) pi, J =
// sqrt(2 / (pi x)) (P cos c - 8 / x Q sin c) and Y = sqrt(2 / (pi x)) (P sin c + 8 / x Q cos c).
inline constexpr special::Series<17> kJ0Near = {
    {0.15772797147489012, -0.008723442352852221, 0.2651786132033368, -0.37009499387264977,
     0.15806710233209725, -0.034893769411408884, 0.004819180069467605, -0.00046062616620627504,
     3.246032882100508e-05, -1.7619469077621507e-06, 7.608163592418782e-08, -2.679253530557673e-09,
     7.848696314479465e-11, -1.9438346867370164e-12, 4.125320595634374e-14, -7.588508125447546e-16,
     1.2218515873961411e-17}};
inline constexpr special::Series<17> kJ1Near = {
    {0.08104484632565812, -0.1489751450676521, 0.1609992623572097, -0.08268049176681791,
     0.022213639654966037, -0.003646940600769276, 0.0004050337728354822, -3.255554866857259e-05,
     1.9858774049915165e-06, -9.521984756750436e-08, 3.687133759097148e-09, -1.178026622695885e-10,
     3.160154580348003e-12, -7.221755239651773e-14, 1.4232144003513942e-15, -2.4441972916190464e-17,
     3.6912682997929334e-19}};
inline constexpr special::Series<17> kY0Near = {
    {-0.03314611320328494, -0.2744743055297453, 0.17903431407718265, 0.26156734625504663,
     -0.17730201278114358, 0.04719668959576339, -0.007287962479552079, 0.0007531135932577742,
     -5.632079141056987e-05, 3.206532537654801e-06, -1.44072332740187e-07, 5.248794787330516e-09,
     -1.5837552541812015e-10, 4.02633081830612e-12, -8.747341203310769e-14, 1.6434898714919468e-15,
     -2.6977881152566837e-17}};
inline constexpr special::Series<17> kY1Near = {
    {0.0025380132357417816, -0.01608717304766875, -0.09591204536083074, 0.08445197259652346,
     -0.028328123944594365, 0.005289897544167113, -0.0006414551451326356, 5.505982873338744e-05,
     -3.53808001868935e-06, 1.7707804556154404e-07, -7.11055004989928e-09, 2.344337905911516e-10,
     -6.4651518414115946e-12, 1.51429151205002e-13, -3.0511859694473254e-15, 5.34668038572867e-17,
     -8.224911372021585e-19}};
inline constexpr special::Series<14> kP0 = {
    {0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06, -5.1705945376060975e-08,
     1.6306464635151382e-09, -7.86409137723707e-11, 5.168262387349193e-12, -4.3045788699253914e-13,
     4.3265957431549404e-14, -5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16,
     1.6305919233744186e-17, -2.880866169482871e-18}};
inline constexpr special::Series<16> kQ0 = {
    {-0.015555854605337009, 6.838519942611649e-05, -7.414498411060647e-07, 1.7972457247968992e-08,
     -7.27191593686632e-10, 4.2201219046687385e-11, -3.206747420996635e-12, 3.006145125351706e-13,
     -3.336328185322427e-14, 4.255225040245461e-15, -6.09993013164005e-16, 9.662128970303257e-17,
     -1.6686065214378146e-17, 3.1082440486738143e-18, -6.191115787358145e-19,
     1.3091448717220122e-19}};
inline constexpr special::Series<14> kP1 = {
    {1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06, 6.177633960644299e-08,
     -1.8718907491063067e-09, 8.816898659582339e-11, -5.704863640395645e-12, 4.699195515230542e-13,
     -4.6842237839904895e-14, 5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16,
     -1.7312313216116335e-17, 3.0492991197665872e-18}};
inline constexpr special::Series<16> kQ1 = {
    {0.04677778706953532, -9.62772354915708e-05, 9.138615257955454e-07, -2.0959781384083424e-08,
     8.229193327650554e-10, -4.686363688176945e-11, 3.5152187949686082e-12, -3.2643156743279e-13,
     3.5967765829165294e-14, -4.5612523950772974e-15, 6.508282957783384e-16,
     -1.0269147531823243e-16, 1.767635548776479e-17, -3.2834519872981614e-18, 6.524081149589261e-19,
     -1.3765771484849487e-19}};

// Both of Hankel's series at x >= 8.
template <bool Odd, bool Second, class D>
HWY_INLINE Vec<D> bessel_far(D d, Vec<D> x) {
  Vec<D> inverse = hn::Set(d, 8.0) / x, t = inverse * inverse;
  t = t + t - hn::Set(d, 1.0);
  Vec<D> p, q;
  if constexpr (Odd)
    p = chebyshev(d, kP1, t), q = inverse * chebyshev(d, kQ1, t);
  else
    p = chebyshev(d, kP0, t), q = inverse * chebyshev(d, kQ0, t);
  Vec<D> sine = sine_of_reduced<false>(d, x), cosine = sine_of_reduced<true>(d, x);
  // sqrt(2) times cosine and sine of x less pi / 4 or 3 pi / 4
  Vec<D> c = Odd ? sine - cosine : cosine + sine;
  Vec<D> s = Odd ? hn::Neg(sine + cosine) : sine - cosine;
  Vec<D> wave = Second ? hn::MulAdd(p, s, q * c) : hn::NegMulAdd(q, s, p * c);
  return wave * hn::Sqrt(hn::Set(d, 0.31830988618379067154) / x);
}
template <bool Odd, class D>
HWY_INLINE Vec<D> bessel_j_near(D d, Vec<D> x, Vec<D> t) {
  if constexpr (Odd)
    return x * chebyshev(d, kJ1Near, t);
  else
    return chebyshev(d, kJ0Near, t);
}

inline constexpr double kNearBessel = 8.0;
template <bool Odd>
struct BesselJCore {
  template <class D, class V>
  HWY_NOINLINE V operator()(D d, V x) const {
    using F = std::conditional_t<Odd, kit::scalar::J1, kit::scalar::J0>;
    V y = hn::Abs(x), one = hn::Set(d, 1.0), eight = hn::Set(d, kNearBessel);
    V r = bessel_j_near<Odd>(d, x, hn::MulSub(y, y * hn::Set(d, 1.0 / 32), one));
    auto far = hn::Gt(y, eight), plain = hn::Le(y, hn::Set(d, Quarter<double>::kLimit));
    if (!hn::AllFalse(d, far)) {
      V z = bessel_far<Odd, false>(d, hn::IfThenElse(hn::And(far, plain), y, eight));
      if constexpr (Odd) z = hn::Xor(z, hn::And(x, hn::SignBit(d)));
      r = hn::IfThenElse(far, z, r);
    }
    return or_lanes(d, plain, r, x, F());
  }
};
template <bool Odd>
struct BesselYCore {
  template <class D, class V>
  HWY_NOINLINE V operator()(D d, V x) const {
    using F = std::conditional_t<Odd, kit::scalar::Y1, kit::scalar::Y0>;
    V one = hn::Set(d, 1.0), eight = hn::Set(d, kNearBessel);
    auto plain = hn::And(hn::Gt(x, hn::Zero(d)), hn::Le(x, hn::Set(d, Quarter<double>::kLimit)));
    auto far = hn::And(plain, hn::Gt(x, eight)), near = hn::AndNot(far, plain);
    V r = x;
    if (!hn::AllFalse(d, near)) {
      V y = hn::IfThenElse(near, x, one), t = hn::MulSub(y, y * hn::Set(d, 1.0 / 32), one);
      V first = bessel_j_near<Odd>(d, y, t) * log(d, y), to = hn::Set(d, 0.63661977236758134308);
      if constexpr (Odd)
        r = hn::MulAdd(to, first - one / y, y * chebyshev(d, kY1Near, t));
      else
        r = hn::MulAdd(to, first, chebyshev(d, kY0Near, t));
    }
    if (!hn::AllFalse(d, far)) {
      V z = bessel_far<Odd, true>(d, hn::IfThenElse(far, x, eight));
      r = hn::IfThenElse(far, z, r);
    }
    return or_lanes(d, plain, r, x, F());
  }
};

}  // namespace adjoin::cpu::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
#endif
