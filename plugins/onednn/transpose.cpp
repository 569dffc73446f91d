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

}  // namespace

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
