// adjoin/kit/spectral.hpp: eigenvalues and singular values of one matrix by plain loops: Jacobi's
// rotations, which are accurate and always end; QR steps for matrices that are not Hermitian.
#ifndef ADJOIN_KIT_SPECTRAL_HPP
#define ADJOIN_KIT_SPECTRAL_HPP
#include <adjoin/kit/factor.hpp>
#include <vector>

namespace adjoin {
namespace AJ_HIDDEN kit {
namespace factor {

constexpr int kSweeps = 60;  // some 8 do

// The rotation that makes [[a, c], [conj(c), b]] diagonal: the columns (x, y) become
// (cos x - sin conj(phase) y, sin phase x + cos y). By differences, with `half`, the tangent of
// half the angle, for cos: a rounded cosine would stretch every vector a little in each turn.
template <class T>
struct Rotation {
  Real<T> tangent, sine, half;
  T phase;
  Rotation(Real<T> a, Real<T> b, T c) {
    using R = Real<T>;
    const R length = size(c);
    phase = c / T(length);
    const R theta = (b - a) / (2 * length);
    tangent = std::copysign(R(1), theta) / (std::fabs(theta) + std::hypot(R(1), theta));
    const R secant = std::sqrt(1 + tangent * tangent);
    sine = tangent / secant;
    half = tangent / (1 + secant);
  }
  void turn(T* x, T* y, int64_t n, int64_t step) const {
    const T s(sine), h(half), other = conj(phase);
    for (int64_t i = 0; i < n * step; i += step) {
      const T first = x[i], second = y[i];
      x[i] = first - s * (other * second + h * first);
      y[i] = second + s * (phase * first - h * second);
    }
  }
};

template <class T>
void exchange_columns(const Matrix<T>& a, int64_t i, int64_t j) {
  if (i != j) std::swap_ranges(a.column(i), a.column(i) + a.rows, a.column(j));
}

// The Hermitian A, of which one triangle is read, becomes its eigenvectors; values ascend.
template <class T>
void eigh(const Matrix<T>& a, bool upper, Real<T>* values) {
  using R = Real<T>;
  const int64_t n = a.rows;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < j; ++i) {
      if (upper)
        a(j, i) = conj(a(i, j));
      else
        a(i, j) = conj(a(j, i));
    }
    a(j, j) = T(real(a(j, j)));
  }
  if (!all_finite(a)) {
    std::fill_n(values, n, std::numeric_limits<R>::quiet_NaN());
    return fill(a, T(std::numeric_limits<R>::quiet_NaN()));
  }
  std::vector<T> memory(size_t(n * n), T(0));
  Matrix<T> v{memory.data(), n, n, n};
  for (int64_t i = 0; i < n; ++i) v(i, i) = T(1);
  bool turned = true;
  for (int sweep = 0; turned && sweep < kSweeps; ++sweep) {
    turned = false;
    for (int64_t q = 1; q < n; ++q)
      for (int64_t p = 0; p < q; ++p) {
        const R off = size(a(p, q)), here = std::fabs(real(a(p, p))),
                there = std::fabs(real(a(q, q)));
        constexpr R eps = std::numeric_limits<R>::epsilon();
        if (off <= std::numeric_limits<R>::min() || off <= eps * eps * std::max(here, there) ||
            off <= eps * std::sqrt(here) * std::sqrt(there) / 8)
          continue;
        turned = true;
        const R x = real(a(p, p)), y = real(a(q, q));
        Rotation<T> r(x, y, a(p, q));
        r.turn(a.column(p), a.column(q), n, 1);
        for (int64_t k = 0; k < n; ++k) {  // rows are the conjugates of columns
          if (k == p || k == q) continue;
          a(p, k) = conj(a(k, p));
          a(q, k) = conj(a(k, q));
        }
        a(p, p) = T(x - r.tangent * off);
        a(q, q) = T(y + r.tangent * off);
        a(p, q) = a(q, p) = T(0);
        r.turn(v.column(p), v.column(q), n, 1);
      }
  }
  for (int64_t i = 0; i < n; ++i) values[i] = real(a(i, i));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t least = std::min_element(values + i, values + n) - values;
    std::swap(values[i], values[least]);
    exchange_columns(v, i, least);
  }
  for (int64_t j = 0; j < n; ++j) std::copy_n(v.column(j), n, a.column(j));
}

// Columns from `known` on become unit vectors, orthogonal to those before and to each other.
template <class T>
void complete_basis(const Matrix<T>& u, int64_t known) {
  int64_t axis = 0;
  for (int64_t j = known; j < u.columns;) {
    T* x = u.column(j);
    std::fill_n(x, u.rows, T(0));
    x[axis++ % u.rows] = T(1);
    for (int twice = 0; twice < 2; ++twice)
      for (int64_t k = 0; k < j; ++k)
        subtract(x, u.column(k), inner(u.column(k), x, u.rows), u.rows);
    const Real<T> length = norm(x, u.rows);
    if (!(length * length * Real<T>(2 * u.rows) > 1)) continue;  // some axis is far enough
    for (int64_t i = 0; i < u.rows; ++i) x[i] = x[i] / T(length);
    ++j;
  }
}

// A with no more columns than rows: its columns become U * S, v the V of A = U S V^H; then U, whose
// further columns complete it. False: not finite.
template <class T>
bool svd_tall(const Matrix<T>& a, const Matrix<T>& u, const Matrix<T>& v, Real<T>* values) {
  using R = Real<T>;
  const int64_t n = a.columns;
  if (!all_finite(a)) return false;
  R most = 0;  // so that no square leaves the range
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < a.rows; ++i) most = std::max(most, rough_size(a(i, j)));
  int power = 0;
  if (most > 0) std::frexp(most, &power);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < a.rows; ++i) a(i, j) = a(i, j) * T(std::ldexp(R(1), -power));
  fill(v, T(0));
  for (int64_t i = 0; i < n; ++i) v(i, i) = T(1);
  bool turned = true;
  for (int sweep = 0; turned && sweep < kSweeps; ++sweep) {
    turned = false;
    for (int64_t q = 1; q < n; ++q)
      for (int64_t p = 0; p < q; ++p) {
        const R x = real(inner(a.column(p), a.column(p), a.rows)),
                y = real(inner(a.column(q), a.column(q), a.rows));
        const T c = inner(a.column(p), a.column(q), a.rows);
        constexpr R eps = std::numeric_limits<R>::epsilon();
        if (size(c) <= std::numeric_limits<R>::min() ||
            size(c) <= eps * std::sqrt(x) * std::sqrt(y))
          continue;
        turned = true;
        Rotation<T> r(x, y, c);
        r.turn(a.column(p), a.column(q), a.rows, 1);
        r.turn(v.column(p), v.column(q), n, 1);
      }
  }
  for (int64_t j = 0; j < n; ++j) values[j] = norm(a.column(j), a.rows);
  for (int64_t j = 0; j < n; ++j) {
    const int64_t best = std::max_element(values + j, values + n) - values;
    std::swap(values[j], values[best]);
    exchange_columns(a, j, best);
    exchange_columns(v, j, best);
  }
  int64_t known = 0;
  const R least = n ? values[0] * std::numeric_limits<R>::epsilon() * R(a.rows) : R(0);
  for (; known < n && values[known] > least; ++known)
    for (int64_t i = 0; u.at && i < a.rows; ++i) u(i, known) = a(i, known) / T(values[known]);
  if (u.at) complete_basis(u, known);
  for (int64_t j = 0; j < n; ++j) values[j] = std::ldexp(values[j], power);
  return true;
}

// A = U S V^H; A is used up. u, vh without memory: not wanted.
template <class T>
bool svd(const Matrix<T>& a, const Matrix<T>& u, const Matrix<T>& vh, Real<T>* values) {
  const bool tall = a.rows >= a.columns;
  const int64_t n = std::min(a.rows, a.columns), m = std::max(a.rows, a.columns);
  std::vector<T> memory;
  Matrix<T> work = a;
  if (!tall) {
    memory.resize(size_t(n * m));
    work = {memory.data(), m, n, m};
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) work(i, j) = conj(a(j, i));
  }
  const int64_t more = !u.at ? 0 : tall ? u.columns : vh.rows;
  std::vector<T> right(size_t(n * n)), left(size_t(tall ? 0 : m * more));
  Matrix<T> v{right.data(), n, n, n}, basis = u;
  if (!tall) basis = {more ? left.data() : nullptr, m, more, m};
  if (!svd_tall(work, basis, v, values)) return false;
  if (!u.at) return true;
  const Matrix<T>& turned = tall ? v : basis;  // becomes vh
  for (int64_t j = 0; j < turned.rows; ++j)
    for (int64_t i = 0; i < turned.columns; ++i) vh(i, j) = conj(turned(j, i));
  if (!tall)
    for (int64_t j = 0; j < n; ++j) std::copy_n(v.column(j), n, u.column(j));
  return true;
}

template <class T>
using ComplexOf = Complex<Real<T>>;

// A triangular T with A = Z T Z^H; h: A, used up. False: some eigenvalue was not found.
template <class R>
class Schur {
 public:
  using C = Complex<R>;
  Schur(const Matrix<C>& h, const Matrix<C>& z) : h_(h), z_(z), n_(h.rows) {}
  bool find() {
    fill(z_, C(0));
    for (int64_t i = 0; i < n_; ++i) z_(i, i) = C(1);
    for (int64_t k = 0; k + 2 < n_; ++k) clear_column(k);
    int tries = 0;
    for (int64_t high = n_ - 1; high > 0;) {
      int64_t low = high;
      for (; low > 0; --low)
        if (is_small(low)) {
          h_(low, low - 1) = C(0);
          break;
        }
      if (low == high) {
        --high, tries = 0;
        continue;
      }
      if (++tries > kSweeps) return false;
      step(low, high, shift_at(high, tries));
    }
    return true;
  }

 private:
  bool is_small(int64_t i) const {
    R beside = rough_size(h_(i, i)) + rough_size(h_(i - 1, i - 1));
    constexpr R least = std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon();
    return rough_size(h_(i, i - 1)) <= std::numeric_limits<R>::epsilon() * beside + least;
  }
  // Column k becomes zero below its first subdiagonal.
  void clear_column(int64_t k) {
    const int64_t n = n_ - k - 1;
    C *v = h_.column(k) + k + 1, alpha = *v;
    const R rest = norm(v + 1, n - 1);
    if (rest < kShort<R>) {  // nothing, beside a largest element of about 1
      std::fill_n(v + 1, n - 1, C(0));
      return;
    }
    const R beta = -std::copysign(std::hypot(size(alpha), rest), alpha.re);
    const C tau = (C(beta) - alpha) / C(beta), scale = C(1) / (alpha - C(beta));
    std::vector<C> u(v, v + n);
    u[0] = C(1);
    for (int64_t i = 1; i < n; ++i) u[size_t(i)] = u[size_t(i)] * scale;
    for (int64_t j = k; j < n_; ++j) {
      C* x = h_.column(j) + k + 1;
      subtract(x, u.data(), conj(tau) * inner(u.data(), x, n), n);
    }
    for (const Matrix<C>& m : {h_, z_})
      for (int64_t i = 0; i < n_; ++i) {
        C sum(0);
        for (int64_t j = 0; j < n; ++j) sum = sum + m(i, k + 1 + j) * u[size_t(j)];
        for (int64_t j = 0; j < n; ++j)
          m(i, k + 1 + j) = m(i, k + 1 + j) - tau * sum * conj(u[size_t(j)]);
      }
    *v = C(beta);
    std::fill_n(v + 1, n - 1, C(0));
  }
  // The eigenvalue of the last two rows that is nearer to the last element.
  C shift_at(int64_t i, int tries) const {
    if (tries % 10 == 0) return C(size(h_(i, i - 1)) + size(h_(i, i)));
    const C a = h_(i - 1, i - 1), d = h_(i, i), half = (a - d) * C(R(0.5));
    const C product = h_(i - 1, i) * h_(i, i - 1), square = half * half + product;
    C root(std::sqrt((size(square) + std::fabs(square.re)) / 2));
    if (root.re != 0) {
      const R other = square.im / (2 * root.re);
      root = square.re >= 0 ? C(root.re, other)
                            : C(std::fabs(other), std::copysign(root.re, square.im));
    }
    const C sum = half.re * root.re + half.im * root.im >= 0 ? half + root : half - root;
    return size(sum) == 0 ? d : d - product / sum;
  }
  void step(int64_t low, int64_t high, C shift) {
    struct Turn {
      R c;
      C s;
    };
    std::vector<Turn> turns;
    for (int64_t i = low; i <= high; ++i) h_(i, i) = h_(i, i) - shift;
    for (int64_t k = low; k < high; ++k) {
      const C x = h_(k, k), y = h_(k + 1, k);
      const R a = size(x), length = std::hypot(a, size(y));
      Turn t{R(1), C(0)};
      if (length > 0)
        t = a > 0 ? Turn{a / length, (x / C(a)) * conj(y) / C(length)}
                  : Turn{R(0), conj(y) / C(size(y))};
      for (int64_t j = k; j < n_; ++j) {
        const C up = h_(k, j), down = h_(k + 1, j);
        h_(k, j) = C(t.c) * up + t.s * down;
        h_(k + 1, j) = C(t.c) * down - conj(t.s) * up;
      }
      turns.push_back(t);
    }
    for (int64_t k = low; k < high; ++k) {
      const Turn t = turns[size_t(k - low)];
      auto turn = [&](const Matrix<C>& m, int64_t rows) {
        for (int64_t i = 0; i < rows; ++i) {
          const C left = m(i, k), right = m(i, k + 1);
          m(i, k) = C(t.c) * left + conj(t.s) * right;
          m(i, k + 1) = C(t.c) * right - t.s * left;
        }
      };
      turn(h_, std::min(k + 2, high + 1));
      turn(z_, n_);
    }
    for (int64_t i = low; i <= high; ++i) h_(i, i) = h_(i, i) + shift;
  }

  Matrix<C> h_, z_;
  int64_t n_;
};

// Eigenvalues of A, and where v has memory right eigenvectors of length 1, whose largest component
// is real.
template <class T>
bool eig(const Matrix<T>& a, const Matrix<ComplexOf<T>>& v, ComplexOf<T>* values) {
  using R = Real<T>;
  using C = ComplexOf<T>;
  const int64_t n = a.rows;
  std::vector<C> memory(size_t(2 * n * n + n));
  Matrix<C> h{memory.data(), n, n, n}, z{h.at + n * n, n, n, n};
  C* x = z.at + n * n;
  R most = 0;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) {
      h(i, j) = C(real(a(i, j)), imaginary(a(i, j)));
      most = std::max(most, rough_size(h(i, j)));
    }
  int power = 0;  // squares of huge numbers leave the range
  if (most > 0 && std::isfinite(most)) most = std::frexp(most, &power);
  for (int64_t i = 0; i < n * n; ++i)
    h.at[i] = C(std::ldexp(h.at[i].re, -power), std::ldexp(h.at[i].im, -power));
  if (!Schur<R>(h, z).find()) return false;
  for (int64_t i = 0; i < n; ++i)
    values[i] = C(std::ldexp(h(i, i).re, power), std::ldexp(h(i, i).im, power));
  const R least = std::max(most * std::numeric_limits<R>::epsilon(), std::numeric_limits<R>::min());
  for (int64_t k = 0; v.at && k < n; ++k) {
    x[k] = C(1);
    for (int64_t i = k; i-- > 0;) {
      C sum(0), gap = h(i, i) - h(k, k);
      for (int64_t j = i + 1; j <= k; ++j) sum = sum - h(i, j) * x[j];
      if (rough_size(gap) < least) gap = C(least);
      x[i] = sum / gap;
      const R large = rough_size(x[i]);
      if (large > 1 / std::numeric_limits<R>::epsilon())
        for (int64_t j = i; j <= k; ++j) x[j] = x[j] / C(large);
    }
    C* to = v.column(k);
    std::fill_n(to, n, C(0));
    for (int64_t j = 0; j <= k; ++j) subtract(to, z.column(j), C(0) - x[j], n);
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i)
      if (square(to[i]) > square(to[best])) best = i;
    const C unit = conj(to[best]) / C(size(to[best]) * norm(to, n));
    for (int64_t i = 0; i < n; ++i) to[i] = to[i] * unit;
    to[best].im = 0;
  }
  return true;
}

}  // namespace factor
}  // namespace kit
}  // namespace adjoin
#endif
