// adjoin/files/crc32.hpp: the check sum of zip files, at the speed of memory.
//
// Long runs are folded by carry-less products: V. Gopal et al., "Fast CRC Computation for Generic
// Polynomials Using PCLMULQDQ Instruction", Intel 2009. The rest goes through eight tables: M.
// Kounavis and F. Berry, "A Systematic Approach to Building High Performance Software-based CRC
// Generators", 2005.
#ifndef ADJOIN_FILES_CRC32_HPP
#define ADJOIN_FILES_CRC32_HPP
#include <adjoin/kit/env.hpp>
#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace adjoin {
namespace AJ_HIDDEN files {

inline constexpr uint32_t crc_polynomial = 0xedb88320u;  // bits reversed: bit 31 is x^0

// a * b modulo the polynomial.
constexpr uint32_t crc_product(uint32_t a, uint32_t b) {
  uint32_t p = 0;
  for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
    if (a & bit) p ^= b;
    b = b & 1 ? (b >> 1) ^ crc_polynomial : b >> 1;
  }
  return p;
}

// x^n modulo the polynomial.
constexpr uint32_t crc_power(uint64_t n) {
  uint32_t p = 1u << 31, square = 1u << 30;
  for (; n; n >>= 1) {
    if (n & 1) p = crc_product(square, p);
    square = crc_product(square, square);
  }
  return p;
}

inline constexpr auto crc_tables = [] {
  std::array<std::array<uint32_t, 256>, 8> t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? (c >> 1) ^ crc_polynomial : c >> 1;
    t[0][i] = c;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t i = 0; i < 256; ++i) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 255];
  return t;
}();

// On the inverted sum, as the functions below.
inline uint32_t crc_by_tables(uint32_t c, const unsigned char* p, size_t n) {
  const auto& t = crc_tables;
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t w;
    std::memcpy(&w, p, 8);
    w ^= c;
    c = t[7][w & 255] ^ t[6][w >> 8 & 255] ^ t[5][w >> 16 & 255] ^ t[4][w >> 24 & 255] ^
        t[3][w >> 32 & 255] ^ t[2][w >> 40 & 255] ^ t[1][w >> 48 & 255] ^ t[0][w >> 56];
  }
  for (; n; --n, ++p) c = (c >> 8) ^ t[0][(c ^ *p) & 255];
  return c;
}

#if defined(__x86_64__)
// The factors that carry 128 bits over a distance of `bits`.
constexpr uint64_t crc_factor(uint64_t bits) { return uint64_t(crc_power(bits)) << 1; }
static_assert(crc_factor(512 + 32) == 0x154442bd4 && crc_factor(512 - 32) == 0x1c6e41596);

[[gnu::target("pclmul,sse4.1")]] inline __m128i crc_fold(__m128i a, __m128i factors, __m128i next) {
  __m128i low = _mm_clmulepi64_si128(a, factors, 0x00),
          high = _mm_clmulepi64_si128(a, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// n is a multiple of 64, and not 0.
[[gnu::target("pclmul,sse4.1")]] inline uint32_t crc_by_folding(uint32_t c, const unsigned char* p,
                                                                size_t n) {
  auto load = [](const unsigned char* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  };
  const __m128i far = _mm_set_epi64x(crc_factor(512 - 32), crc_factor(512 + 32));
  const __m128i near = _mm_set_epi64x(crc_factor(128 - 32), crc_factor(128 + 32));
  __m128i a = _mm_xor_si128(load(p), _mm_cvtsi32_si128(int(c))), b = load(p + 16), d = load(p + 32),
          e = load(p + 48);
  for (p += 64, n -= 64; n; p += 64, n -= 64) {
    a = crc_fold(a, far, load(p));
    b = crc_fold(b, far, load(p + 16));
    d = crc_fold(d, far, load(p + 32));
    e = crc_fold(e, far, load(p + 48));
  }
  a = crc_fold(crc_fold(crc_fold(a, near, b), near, d), near, e);
  unsigned char rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), a);
  return crc_by_tables(0, rest, 16);
}

inline const bool crc_can_fold =
    __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif

// The sum of what came before (0 at first) and n bytes more.
inline uint32_t crc32(uint32_t before, const void* data, size_t n) {
  auto* p = static_cast<const unsigned char*>(data);
  uint32_t c = ~before;
#if defined(__x86_64__)
  if (n >= 128 && crc_can_fold) {
    size_t even = n / 64 * 64;
    c = crc_by_folding(c, p, even);
    p += even, n -= even;
  }
#endif
  return ~crc_by_tables(c, p, n);
}

// The sum of two runs, the second of n bytes, from the sums of each.
inline uint32_t crc32_joined(uint32_t first, uint32_t second, uint64_t n) {
  return crc_product(crc_power(n * 8), first) ^ second;
}

}  // namespace files
}  // namespace adjoin
#endif
