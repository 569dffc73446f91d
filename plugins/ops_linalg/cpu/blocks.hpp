// plugins/ops_linalg/cpu/blocks.hpp: what recursions over products end in: parts of matrices that
// the first cache holds.
#ifndef ADJOIN_PLUGINS_OPS_LINALG_BLOCKS_HPP
#define ADJOIN_PLUGINS_OPS_LINALG_BLOCKS_HPP
#include <cstdint>

namespace adjoin::cpu::blocks {

constexpr int64_t kTriangle = 32;  // rows of a triangle that is solved by itself
constexpr int64_t kPanel = 16;     // columns that are eliminated one by one

template <class T>
struct Code {
  // Columns lie one behind the other, ld apart. L and U of m rows and n <= kPanel columns; pivots
  // count from 0. 0, or the first zero of U's diagonal, from 1.
  int32_t (*panel)(T* a, int64_t ld, int64_t m, int64_t n, int32_t* pivots);
  // op(A) X = B in place of B (n, m), n <= kTriangle: op(A)(i, j) is at i * row + j * column.
  void (*left)(const T* a, int64_t row, int64_t column, bool upper, bool unit, T* b, int64_t ld,
               int64_t n, int64_t m);
  // X op(A) = B in place of B (m, n).
  void (*right)(const T* a, int64_t row, int64_t column, bool upper, bool unit, T* b, int64_t ld,
                int64_t m, int64_t n);
};
template <class T>
const Code<T>& code();

}  // namespace adjoin::cpu::blocks
#endif
