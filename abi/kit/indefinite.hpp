// adjoin/kit/indefinite.hpp: A = L D L^T, or L D L^H, of symmetric and Hermitian matrices that need
// not be definite, by plain loops: D has blocks of one and of two rows, chosen so that nothing
// grows (J. R. Bunch, L. Kaufman, Some stable methods for calculating inertia, 1977). Where rows
// went is said as LAPACK says it: a positive number for a block of one, twice a negative one for a
// block of two.
#ifndef ADJOIN_KIT_INDEFINITE_HPP
#define ADJOIN_KIT_INDEFINITE_HPP
#include <adjoin/kit/linalg.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {
namespace factor {

template <class T>
T mirrored(T x, bool hermitian) {
  return hermitian ? conj(x) : x;
}

// Rows and columns p < q of a trailing matrix of which the lower triangle is kept change places.
template <class T>
void exchange(Matrix<T> a, int64_t p, int64_t q, bool hermitian) {
  for (int64_t i = q + 1; i < a.rows; ++i) std::swap(a(i, p), a(i, q));
  for (int64_t j = p + 1; j < q; ++j) {
    T held = mirrored(a(j, p), hermitian);
    a(j, p) = mirrored(a(q, j), hermitian);
    a(q, j) = held;
  }
  a(q, p) = mirrored(a(q, p), hermitian);
  std::swap(a(p, p), a(q, q));
}

// The row below k, and the size, of column k's largest element.
template <class T>
std::pair<int64_t, Real<T>> largest_below(Matrix<T> a, int64_t k) {
  int64_t at = k;
  Real<T> most = 0;
  for (int64_t i = k + 1; i < a.rows; ++i)
    if (rough_size(a(i, k)) > most) at = i, most = rough_size(a(i, k));
  return {at, most};
}

// How many rows the block at k has, and which row takes the place of its last one.
template <class T>
std::pair<int64_t, int64_t> choose_block(Matrix<T> a, int64_t k) {
  const Real<T> enough = (1 + std::sqrt(Real<T>(17))) / 8, own = rough_size(a(k, k));
  const auto [at, most] = largest_below(a, k);
  if (own >= enough * most) return {1, k};
  Real<T> beside = largest_below(a, at).second;
  for (int64_t j = k; j < at; ++j) beside = std::max(beside, rough_size(a(at, j)));
  if (own >= enough * most * (most / beside)) return {1, k};
  return {rough_size(a(at, at)) >= enough * beside ? 1 : 2, at};
}

template <class T>
void eliminate_one(Matrix<T> a, int64_t k, bool hermitian) {
  const T d = a(k, k);
  for (int64_t j = k + 1; j < a.rows; ++j) {
    const T times = mirrored(a(j, k), hermitian) / d;
    for (int64_t i = j; i < a.rows; ++i) a(i, j) = a(i, j) - a(i, k) * times;
    if (hermitian) a(j, j) = T(real(a(j, j)));
  }
  for (int64_t i = k + 1; i < a.rows; ++i) a(i, k) = a(i, k) / d;
}

// Numbers are divided by the one beside the diagonal, which is the largest of the block.
template <class T>
void eliminate_two(Matrix<T> a, int64_t k, bool hermitian) {
  const T below = a(k + 1, k), above = mirrored(below, hermitian);
  const T first = a(k + 1, k + 1) / below, second = a(k, k) / above;
  const T scale = T(1) / (first * second - T(1));
  for (int64_t j = k + 2; j < a.rows; ++j) {
    const T x = a(j, k), y = a(j, k + 1);
    const T left = scale * (first * x - y) / above, right = scale * (second * y - x) / below;
    for (int64_t i = j; i < a.rows; ++i)
      a(i, j) =
          a(i, j) - a(i, k) * mirrored(left, hermitian) - a(i, k + 1) * mirrored(right, hermitian);
    if (hermitian) a(j, j) = T(real(a(j, j)));
    a(j, k) = left, a(j, k + 1) = right;
  }
}

// The lower triangle becomes L and D. The result: 0, or from 1 the first block that is 0.
template <class T>
int32_t ldl(Matrix<T> a, bool hermitian, int32_t* pivots) {
  int32_t info = 0;
  if (hermitian)
    for (int64_t k = 0; k < a.rows; ++k) a(k, k) = T(real(a(k, k)));
  for (int64_t k = 0; k < a.rows;) {
    const Real<T> most = std::max(rough_size(a(k, k)), largest_below(a, k).second);
    if (!(most > 0)) {  // 0, or NaN
      if (!info) info = int32_t(k + 1);
      pivots[k] = int32_t(k + 1);
      ++k;
      continue;
    }
    const auto [rows, from] = choose_block(a, k);
    const int64_t to = k + rows - 1;
    if (from != to) {
      exchange(a, to, from, hermitian);
      if (rows == 2) std::swap(a(k + 1, k), a(from, k));
    }
    rows == 1 ? eliminate_one(a, k, hermitian) : eliminate_two(a, k, hermitian);
    for (int64_t i = k; i <= to; ++i) pivots[i] = int32_t(rows == 1 ? from + 1 : -(from + 1));
    k = to + 1;
  }
  return info;
}

// b becomes x with A x = b, of what ldl left; one column.
template <class T>
void solve_ldl(Matrix<T> a, bool hermitian, const int32_t* pivots, T* b) {
  const int64_t n = a.rows;
  for (int64_t k = 0; k < n;) {
    if (pivots[k] > 0) {
      std::swap(b[k], b[pivots[k] - 1]);
      for (int64_t i = k + 1; i < n; ++i) b[i] = b[i] - a(i, k) * b[k];
      b[k] = b[k] / a(k, k);
      ++k;
      continue;
    }
    std::swap(b[k + 1], b[-pivots[k] - 1]);
    for (int64_t i = k + 2; i < n; ++i) b[i] = b[i] - a(i, k) * b[k] - a(i, k + 1) * b[k + 1];
    const T below = a(k + 1, k), above = mirrored(below, hermitian);
    const T first = a(k + 1, k + 1) / below, second = a(k, k) / above;
    const T scale = T(1) / (first * second - T(1));
    const T x = b[k] / above, y = b[k + 1] / below;
    b[k] = scale * (first * x - y), b[k + 1] = scale * (second * y - x);
    k += 2;
  }
  for (int64_t k = n - 1; k >= 0;) {
    const int64_t rows = pivots[k] > 0 ? 1 : 2, begin = k + 1 - rows;
    for (int64_t i = k + 1; i < n; ++i)
      for (int64_t j = begin; j <= k; ++j) b[j] = b[j] - mirrored(a(i, j), hermitian) * b[i];
    std::swap(b[k], b[std::abs(pivots[k]) - 1]);
    k = begin - 1;
  }
}

}  // namespace factor

// Kernels of ops.
struct Indefinite {
  static void factorize(Args args) {
    visit<floating_complex>(args.tensor(0).dtype(), [&]<class T>() {
      Stack<T> a(args.result(0));
      Dense<int32_t> pivots(args.result(1)), info(args.result(2));
      a.read(args.tensor(0));
      for (int64_t i = 0; i < a.batch; ++i) {
        info[i] = factor::ldl(a.at(i), args.flag(1), pivots.data() + i * a.rows);
        for (int64_t j = 1; j < a.rows; ++j) std::fill_n(a.at(i).column(j), j, T(0));
      }
      a.commit(), pivots.commit(), info.commit();
      for (int64_t i = 0; args.flag(2) && i < a.batch; ++i)
        if (info[i])
          raise(AJ_INVALID_ARGUMENT, "block ", info[i], " of D of matrix ", i,
                " is zero, and ldl_solve would divide by it; ldl_factor_ex gives the factors");
    });
  }

  static void solve(Args args) {
    visit<floating_complex>(args.tensor(0).dtype(), [&]<class T>() {
      Stack<T> a = Stack<T>::of(args.tensor(0), false), x(args.result(0));
      Dense<int32_t> pivots(args.tensor(1));
      x.read(args.tensor(2));
      for (int64_t i = 0; i < x.batch; ++i) {
        const int32_t* mine = pivots.data() + i * a.rows;
        check_pivots(mine, a.rows);
        for (int64_t c = 0; c < x.columns; ++c)
          factor::solve_ldl(a.at(i), args.flag(3), mine, x.at(i).column(c));
      }
      x.commit();
    });
  }

 private:
  static void check_pivots(const int32_t* pivots, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      const int64_t at = std::abs(int64_t(pivots[k]));
      const bool pair = pivots[k] < 0;
      if (at == 0 || at > n || at < k + 1 + pair ||
          (pair && (k + 1 == n || pivots[k + 1] != pivots[k])))
        raise(AJ_OUT_OF_RANGE, "pivot ", pivots[k], " of row ", k,
              " is none that ldl_factor gives: a row's own number or a later one up to ", n,
              ", or twice its negative");
      k += pair;
    }
  }
};

}  // namespace kit
}  // namespace adjoin
#endif
