// adjoin/kit/factor.hpp: factorisations of one matrix by plain loops, for devices whose memory the
// host reads: column by column, as LAPACK counts, with LAPACK's signs.
#ifndef ADJOIN_KIT_FACTOR_HPP
#define ADJOIN_KIT_FACTOR_HPP
#include <adjoin/kit/dtype.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace adjoin {
namespace AJ_HIDDEN kit {
namespace factor {

template <class T>
struct Matrix {  // element (i, j) is at[i + j * ld]
  T* at;
  int64_t rows, columns, ld;
  T& operator()(int64_t i, int64_t j) const { return at[i + j * ld]; }
  T* column(int64_t j) const { return at + j * ld; }
};

template <class T>
T conj(T x) {
  if constexpr (is_complex<T>)
    return {x.re, -x.im};
  else
    return x;
}
template <class T>
Real<T> real(T x) {
  if constexpr (is_complex<T>)
    return x.re;
  else
    return x;
}
template <class T>
Real<T> imaginary(T x) {
  if constexpr (is_complex<T>)
    return x.im;
  else
    return 0;
}
template <class T>
Real<T> size(T x) {
  if constexpr (is_complex<T>)
    return std::hypot(x.re, x.im);
  else
    return std::fabs(x);
}
template <class T>
Real<T> rough_size(T x) {  // what LAPACK compares pivots by
  return std::fabs(real(x)) + std::fabs(imaginary(x));
}
template <class T>
Real<T> square(T x) {
  return real(x) * real(x) + imaginary(x) * imaginary(x);
}
template <class T>
bool finite(T x) {
  return std::isfinite(real(x)) && std::isfinite(imaginary(x));
}
template <class T>
bool all_finite(const Matrix<T>& a) {
  for (int64_t j = 0; j < a.columns; ++j)
    for (int64_t i = 0; i < a.rows; ++i)
      if (!finite(a(i, j))) return false;
  return true;
}
template <class T>
void fill(const Matrix<T>& a, T x) {
  for (int64_t j = 0; j < a.columns; ++j) std::fill_n(a.column(j), a.rows, x);
}

// y -= x * f, for n elements.
template <class T>
void subtract(T* __restrict y, const T* __restrict x, T f, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] - x[i] * f;
}
// The sum of conj(x) y.
template <class T>
T inner(const T* x, const T* y, int64_t n) {
  T sum(0);
  for (int64_t i = 0; i < n; ++i) sum = sum + conj(x[i]) * y[i];
  return sum;
}
template <class T>
Real<T> norm(const T* x, int64_t n) {
  Real<T> sum = 0, most = 0;
  for (int64_t i = 0; i < n; ++i) sum += square(x[i]);
  if (std::isnormal(sum) || sum != sum) return std::sqrt(sum);
  for (int64_t i = 0; i < n; ++i) most = std::max(most, rough_size(x[i]));
  if (most == 0 || !std::isfinite(most)) return most;
  sum = 0;  // squares that leave the range
  for (int64_t i = 0; i < n; ++i) sum += square(x[i] / T(most));
  return most * std::sqrt(sum);
}

// A = L L^H in the lower triangle, or U^H U in the upper one; the other is not read. 0, or the
// order of the leading minor that is not positive.
template <class T>
int32_t cholesky(const Matrix<T>& a, bool upper) {
  const int64_t n = a.rows;
  for (int64_t j = 0; j < n; ++j) {
    if (upper) {
      for (int64_t i = 0; i < j; ++i)
        a(i, j) = (a(i, j) - inner(a.column(i), a.column(j), i)) / a(i, i);
      a(j, j) = a(j, j) - inner(a.column(j), a.column(j), j);
    } else {
      for (int64_t k = 0; k < j; ++k)
        subtract(a.column(j) + j, a.column(k) + j, conj(a(j, k)), n - j);
    }
    const Real<T> d = real(a(j, j));
    if (!(d > 0)) return int32_t(j + 1);
    const T root(std::sqrt(d));
    a(j, j) = root;
    for (int64_t i = j + 1; !upper && i < n; ++i) a(i, j) = a(i, j) / root;
  }
  return 0;
}

// P A = L U; pivots count from 1: row i was exchanged with row pivots[i] - 1. 0, or the first zero
// on U's diagonal.
template <class T>
int32_t lu(const Matrix<T>& a, int32_t* pivots) {
  int32_t info = 0;
  for (int64_t j = 0; j < std::min(a.rows, a.columns); ++j) {
    int64_t best = j;
    for (int64_t i = j + 1; i < a.rows; ++i)
      if (rough_size(a(i, j)) > rough_size(a(best, j))) best = i;
    pivots[j] = int32_t(best + 1);
    if (best != j)
      for (int64_t k = 0; k < a.columns; ++k) std::swap(a(j, k), a(best, k));
    if (a(j, j) == T(0)) {
      if (!info) info = int32_t(j + 1);
      continue;
    }
    const T pivot = a(j, j);
    for (int64_t i = j + 1; i < a.rows; ++i) a(i, j) = a(i, j) / pivot;
    for (int64_t k = j + 1; k < a.columns; ++k)
      subtract(a.column(k) + j + 1, a.column(j) + j + 1, a(j, k), a.rows - j - 1);
  }
  return info;
}

struct Triangle {
  bool left, upper, unit;
  int trans;  // 0 as it is, 1 transposed, 2 conjugated and transposed
};

// B becomes X with op(A) X = B, or X op(A) = B.
template <class T>
void solve_triangular(const Matrix<T>& a, const Matrix<T>& b, Triangle how) {
  const int64_t n = a.rows;
  const bool upper = how.upper != (how.trans != 0);  // of op(A)
  auto op = [&](int64_t i, int64_t j) {
    return how.trans == 0 ? a(i, j) : how.trans == 1 ? a(j, i) : conj(a(j, i));
  };
  if (!how.left) {
    for (int64_t at = 0; at < n; ++at) {
      const int64_t j = upper ? at : n - 1 - at;
      for (int64_t k = upper ? 0 : j + 1; k < (upper ? j : n); ++k)
        subtract(b.column(j), b.column(k), op(k, j), b.rows);
      for (int64_t i = 0; !how.unit && i < b.rows; ++i) b(i, j) = b(i, j) / op(j, j);
    }
    return;
  }
  for (int64_t c = 0; c < b.columns; ++c) {
    T* x = b.column(c);
    for (int64_t at = 0; at < n; ++at) {
      const int64_t i = upper ? n - 1 - at : at;
      if (how.trans == 0) {  // down the columns of A
        if (!how.unit) x[i] = x[i] / a(i, i);
        const int64_t from = upper ? 0 : i + 1;
        subtract(x + from, a.column(i) + from, x[i], upper ? i : n - i - 1);
      } else {
        for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); ++k) x[i] = x[i] - op(i, k) * x[k];
        if (!how.unit) x[i] = x[i] / op(i, i);
      }
    }
  }
}

// A vector that is shorter has elements of few digits, so a reflection made of them would turn
// lengths.
template <class T>
constexpr T kShort = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();

// Householder's vectors below the diagonal, R above; H = I - tau v v^H, v begins with 1.
template <class T>
void qr(const Matrix<T>& a, T* tau) {
  for (int64_t j = 0; j < std::min(a.rows, a.columns); ++j) {
    T *v = a.column(j) + j, alpha = *v;
    const int64_t n = a.rows - j;
    Real<T> rest = norm(v + 1, n - 1), unit = 1;
    tau[j] = T(0);
    if (rest == 0 && imaginary(alpha) == 0) continue;
    if (std::hypot(size(alpha), rest) < kShort<Real<T>>) {
      unit = kShort<Real<T>>;
      for (int64_t i = 0; i < n; ++i) v[i] = v[i] * T(1 / unit);
      alpha = *v, rest = norm(v + 1, n - 1);
    }
    const Real<T> beta = -std::copysign(std::hypot(size(alpha), rest), real(alpha));
    tau[j] = (T(beta) - alpha) / T(beta);
    const T scale = T(1) / (alpha - T(beta));
    for (int64_t i = 1; i < n; ++i) v[i] = v[i] * scale;
    *v = T(1);
    for (int64_t k = j + 1; k < a.columns; ++k) {
      T* x = a.column(k) + j;
      subtract(x, v, conj(tau[j]) * inner(v, x, n), n);
    }
    *v = T(beta * unit);
  }
}

// The first columns of H(0) H(1) ... H(k - 1), in the place of the vectors.
template <class T>
void form_q(const Matrix<T>& a, const T* tau, int64_t k) {
  for (int64_t j = k; j < a.columns; ++j) {
    std::fill_n(a.column(j), a.rows, T(0));
    a(j, j) = T(1);
  }
  for (int64_t j = k; j-- > 0;) {
    T* v = a.column(j) + j;
    const int64_t n = a.rows - j;
    *v = T(1);
    for (int64_t c = j + 1; c < a.columns; ++c) {
      T* x = a.column(c) + j;
      subtract(x, v, tau[j] * inner(v, x, n), n);
    }
    for (int64_t i = 0; i < n; ++i) v[i] = T(0) - v[i] * tau[j];
    *v = T(1) + *v;
    std::fill_n(a.column(j), j, T(0));
  }
}

}  // namespace factor
}  // namespace kit
}  // namespace adjoin
#endif
