// plugins/onednn/transpose.cpp: transposing in tiles that are a cache line on both sides.
#include "transpose.hpp"

#include <algorithm>
#include <cstring>

namespace adjoin::onednn {
namespace {

typedef float Four __attribute__((vector_size(16)));

Four load(const float* p) {
  Four v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(float* p, Four v) { std::memcpy(p, &v, sizeof v); }

void four_by_four(const float* from, int64_t from_ld, float* to, int64_t to_ld) {
  Four a = load(from), b = load(from + from_ld), c = load(from + 2 * from_ld),
       d = load(from + 3 * from_ld);
  Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
       ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
       cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
       cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  store(to + to_ld, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  store(to + 2 * to_ld, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  store(to + 3 * to_ld, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

#if defined(__x86_64__)
#define AJ_WIDE_ __attribute__((target("avx512f")))
typedef float Sixteen __attribute__((vector_size(64)));

// By reference: vectors of this size have no way to be passed that all targets share.
#define AJ_TURN_(name, ...)                                                               \
  AJ_WIDE_ inline __attribute__((always_inline)) void name(Sixteen& to, const Sixteen& a, \
                                                           const Sixteen& b) {            \
    to = __builtin_shufflevector(a, b, __VA_ARGS__);                                      \
  }
AJ_TURN_(low_one, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
AJ_TURN_(high_one, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
AJ_TURN_(low_two, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
AJ_TURN_(high_two, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
AJ_TURN_(even_fours, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
AJ_TURN_(odd_fours, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
#undef AJ_TURN_

// x becomes y turned: pairs, fours, eights, all.
AJ_WIDE_ inline __attribute__((always_inline)) void turn(Sixteen* x, Sixteen* y) {
  Sixteen a, b, c, d;
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    low_one(y[i], x[i], x[i + 1]);
    high_one(y[i + 1], x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    low_two(x[i], y[i], y[i + 2]);
    high_two(x[i + 1], y[i], y[i + 2]);
    low_two(x[i + 2], y[i + 1], y[i + 3]);
    high_two(x[i + 3], y[i + 1], y[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // x[i + 4 * g]: four rows' columns i, i + 4, i + 8, i + 12
    even_fours(a, x[i], x[i + 4]);
    even_fours(b, x[i + 8], x[i + 12]);
    odd_fours(c, x[i], x[i + 4]);
    odd_fours(d, x[i + 8], x[i + 12]);
    even_fours(y[i], a, b);
    even_fours(y[i + 4], c, d);
    odd_fours(y[i + 8], a, b);
    odd_fours(y[i + 12], c, d);
  }
}

AJ_WIDE_ void sixteen_by_sixteen(const float* from, int64_t from_ld, float* to, int64_t to_ld) {
  Sixteen x[16], y[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) std::memcpy(&x[i], from + i * from_ld, sizeof x[i]);
  turn(x, y);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) std::memcpy(to + i * to_ld, &y[i], sizeof y[i]);
}
const bool kWide = __builtin_cpu_supports("avx512f");
#else
constexpr bool kWide = false;
void sixteen_by_sixteen(const float*, int64_t, float*, int64_t) {}
#endif

}  // namespace

#if defined(__x86_64__)
AJ_WIDE_ void scatter_tile(const float* from, int64_t from_ld, int rows, float* to,
                           const int64_t* place) {
  Sixteen x[16], y[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) std::memcpy(&x[i], from + i * from_ld, sizeof x[i]);
  turn(x, y);
  for (int i = 0; i < rows; ++i) std::memcpy(to + place[i], &y[i], sizeof y[i]);
}
AJ_WIDE_ void gather_tile(const float* from, const int64_t* place, float* to, int64_t to_ld) {
  Sixteen x[16], y[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) std::memcpy(&x[i], from + place[i], sizeof x[i]);
  turn(x, y);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) std::memcpy(to + i * to_ld, &y[i], sizeof y[i]);
}
#else
void scatter_tile(const float*, int64_t, int, float*, const int64_t*) {}
void gather_tile(const float*, const int64_t*, float*, int64_t) {}
#endif

bool has_tiles() { return kWide; }

void transpose(const float* from, int64_t rows, int64_t columns, int64_t from_ld, float* to,
               int64_t to_ld) {
  constexpr int64_t tile = 16;
  // One side's lines are far apart: tiles follow each other along them, and a tile asks for all of
  // its own at once.
  bool wide = to_ld > from_ld;
  int64_t outer = wide ? columns : rows, inner = wide ? rows : columns;
  for (int64_t o = 0; o < outer; o += tile)
    for (int64_t n = 0; n < inner; n += tile) {
      int64_t r = wide ? n : o, c = wide ? o : n;
      int64_t r_end = std::min(rows, r + tile), c_end = std::min(columns, c + tile), i = r;
      if (wide)
        for (int64_t k = c; k < c_end; ++k) __builtin_prefetch(to + k * to_ld + r, 1);
      else
        for (int64_t k = r; k < r_end; ++k) __builtin_prefetch(from + k * from_ld + c);
      if (kWide && r_end - r == tile && c_end - c == tile) {
        sixteen_by_sixteen(from + r * from_ld + c, from_ld, to + c * to_ld + r, to_ld);
        continue;
      }
      for (; i + 4 <= r_end; i += 4) {
        int64_t j = c;
        for (; j + 4 <= c_end; j += 4)
          four_by_four(from + i * from_ld + j, from_ld, to + j * to_ld + i, to_ld);
        for (; j < c_end; ++j)
          for (int64_t k = i; k < i + 4; ++k) to[j * to_ld + k] = from[k * from_ld + j];
      }
      for (; i < r_end; ++i)
        for (int64_t j = c; j < c_end; ++j) to[j * to_ld + i] = from[i * from_ld + j];
    }
}

}  // namespace adjoin::onednn
