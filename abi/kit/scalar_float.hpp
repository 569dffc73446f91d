// adjoin/kit/scalar_float.hpp: exp, log and their kin for float32, computed in double without
// branches or calls, so that compilers turn loops over them into vector code; within 0.51 ULP.
// Results leave float's range in the cast back to float.
#ifndef ADJOIN_KIT_SCALAR_FLOAT_HPP
#define ADJOIN_KIT_SCALAR_FLOAT_HPP
#include <adjoin/kit/dtype.hpp>
#include <bit>
#include <cstdint>

namespace adjoin {
namespace AJ_HIDDEN kit {
namespace scalar_float {

// 2^k e^r with |r| <= ln 2 / 2. The sum with kRound leaves k, rounded, in the low bits.
AJ_HD inline double exp(double x) {
  constexpr double kRound = 0x1.8p52, kLog2e = 1.4426950408889634074, kLn2 = 0.69314718055994530942;
  x = x < -200.0 ? -200.0 : x;
  x = x > 200.0 ? 200.0 : x;
  double shifted = x * kLog2e + kRound, r = x - (shifted - kRound) * kLn2;
  double p = 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  p *= std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52);
  return x == 200.0 ? __builtin_inf() : p;
}

AJ_HD inline double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

// Near zero the quotient of exponentials has lost its digits: there, the continued fraction x / (1
// + x^2 / (3 + x^2 / ...)).
AJ_HD inline double tanh(double x) {
  double y = x * x;
  double small = x * (135135.0 + y * (17325.0 + y * (378.0 + y))) /
                 (135135.0 + y * (62370.0 + y * (3150.0 + y * 28.0)));
  double large = 1.0 - 2.0 / (exp(2.0 * x) + 1.0);
  return y < 0.25 ? small : large;
}

// ln(2^e m) with m in [sqrt(1/2), sqrt(2)): e ln 2 + 2 atanh((m - 1) / (m + 1)).
AJ_HD inline double log(double x) {
  constexpr double kLn2 = 0.69314718055994530942;
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcdu;
  uint64_t bits = std::bit_cast<uint64_t>(x), above = bits - kRootHalf;
  // The exponent as a double without a conversion of 64-bit integers, which plain vector units
  // lack.
  double e = std::bit_cast<double>((above >> 52) | 0x4330000000000000u) - 0x1p52;
  e = e > 2048.0 ? e - 4096.0 : e;
  double m = std::bit_cast<double>((above & 0x000fffffffffffffu) + kRootHalf);
  double s = (m - 1.0) / (m + 1.0), y = s * s;
  double p = 1.0 / 15;
  p = p * y + 1.0 / 13;
  p = p * y + 1.0 / 11;
  p = p * y + 1.0 / 9;
  p = p * y + 1.0 / 7;
  p = p * y + 1.0 / 5;
  p = p * y + 1.0 / 3;
  double result = e * kLn2 + 2.0 * (s + s * y * p);
  constexpr double kInf = __builtin_inf();
  result = x == 0.0 ? -kInf : result;
  result = x == kInf ? kInf : result;
  return x >= 0.0 ? result : __builtin_nan("");
}

}  // namespace scalar_float
}  // namespace kit
}  // namespace adjoin
#endif
