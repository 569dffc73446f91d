// plugins/ops_linalg/cpu/stacks.hpp: stacks of small matrices, one matrix in each lane of a vector.
#ifndef ADJOIN_PLUGINS_OPS_LINALG_STACKS_HPP
#define ADJOIN_PLUGINS_OPS_LINALG_STACKS_HPP
#include <cstdint>

namespace adjoin::cpu::stacks {

constexpr int64_t kMost = 32;  // rows, columns, right sides

// Matrices that lie evenly: element (i, j) of matrix k is at i * row + j * column + k * step.
template <class T>
struct Lying {
  T* data;
  int64_t row, column, step;
  Lying transposed() const { return {data, column, row, step}; }
};

// Matrices first ... last - 1 of a stack. work: what work_of says, aligned to 64 bytes.
template <class T>
struct Range {
  int64_t first, last;
  T* work;
};

// info: of each matrix 0, or LAPACK's number. What failed is NaN.
template <class T>
struct Factors {
  int64_t lanes;
  // The lower triangle of a is read; above l's there are zeros.
  void (*cholesky)(Range<T>, Lying<const T> a, Lying<T> l, int64_t n, int32_t* info);
  void (*lu)(Range<T>, Lying<const T> a, Lying<T> lu, int64_t n, int32_t* pivots, int32_t* info);
  // A X = B; b without memory: the identity.
  void (*solve)(Range<T>, Lying<const T> a, Lying<const T> b, Lying<T> x, int64_t n, int64_t m,
                int32_t* info);
  // Products of the diagonals of U, with the sign of the exchanges.
  void (*det)(Range<T>, Lying<const T> a, int64_t n, T* out);
};
template <class T>
const Factors<T>& factors();

template <class T>
struct Orthogonal {
  // q without memory: r alone, r with min(m, n) rows; else q (m, k) and r (k, n).
  void (*qr)(Range<T>, Lying<const T> a, Lying<T> q, Lying<T> r, int64_t m, int64_t n, int64_t k);
};
template <class T>
const Orthogonal<T>& orthogonal();

template <class T>
struct Spectral {
  // The lower triangle of a is read. values: n of each matrix, ascending; v without memory: not
  // wanted. What is not finite has NaN.
  void (*eigh)(Range<T>, Lying<const T> a, T* values, Lying<T> v, int64_t n);
  // m >= n: u (m, n), vh (n, n), without memory: not wanted; values descend. info: 1 of what is not
  // finite.
  void (*svd)(Range<T>, Lying<const T> a, T* values, Lying<T> u, Lying<T> vh, int64_t m, int64_t n,
              int32_t* info);
};
template <class T>
const Spectral<T>& spectral();

// Elements that a range wants, of matrices with so many rows, columns and right sides.
constexpr int64_t work_of(int64_t lanes, int64_t m, int64_t n, int64_t sides) {
  return lanes * ((m + 4) * (n + sides + 8) + (n + 4) * (n + 4) + 4 * (m + n));
}

}  // namespace adjoin::cpu::stacks
#endif
