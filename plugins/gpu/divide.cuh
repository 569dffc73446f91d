// plugins/gpu/divide.cuh: quotients of what is not negative. The device has no division: one of 64
// bits is a call of a hundred instructions, a divisor that the host has prepared is a product.
#ifndef ADJOIN_PLUGINS_GPU_DIVIDE_CUH
#define ADJOIN_PLUGINS_GPU_DIVIDE_CUH
#include <bit>

#include "launch.cuh"

namespace adjoin::gpu {

struct Quotient {
  int64_t whole, rest;
};

AJ_HD inline uint64_t product_high(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return __umul64hi(a, b);
#else
  __extension__ typedef unsigned __int128 Wide;
  return uint64_t(Wide(a) * b >> 64);
#endif
}

// Exact for all numbers below 2^63: with 2^(shift - 1) < size <= 2^shift and factor = 2^(63 +
// shift) / size, rounded up by less than one, i * factor / 2^(63 + shift) is above i / size by less
// than 1 / size (T. Granlund and P. Montgomery, 1994).
struct Divisor {
  int64_t size = 1;
  uint64_t factor = uint64_t(1) << 63;
  int32_t shift = 0;

  constexpr Divisor() = default;
  Divisor(int64_t by) : size(by) {  // NOLINT: every size is one; nothing is divided by 0
    if (by < 2) return;
    shift = int32_t(std::bit_width(uint64_t(by) - 1));
    if (std::has_single_bit(uint64_t(by))) return;
    __extension__ typedef unsigned __int128 Wide;
    factor = uint64_t(((Wide(1) << (63 + shift)) - 1) / uint64_t(by)) + 1;
  }
  AJ_HD int64_t quotient(int64_t i) const {
    return int64_t(product_high(uint64_t(i) * 2, factor) >> shift);
  }
  AJ_HD Quotient divided(int64_t i) const {
    int64_t whole = quotient(i);
    return {whole, i - whole * size};
  }
  // i becomes i / size; returns what is left.
  AJ_HD int64_t split(int64_t* i) const {
    Quotient q = divided(*i);
    *i = q.whole;
    return q.rest;
  }
};

// Where element k of a line starts among lines of `size` elements that lie `inner` apart.
AJ_HD inline int64_t in_line(int64_t line, int64_t k, int64_t size, const Divisor& inner) {
  Quotient q = inner.divided(line);
  return (q.whole * size + k) * inner.size + q.rest;
}

}  // namespace adjoin::gpu
#endif
