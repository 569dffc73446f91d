// plugins/ops_linalg/cpu/stack_spectral.cpp: eigenvalues and singular values of small matrices by
// Jacobi's rotations, one matrix in each lane of a vector.
#include <adjoin/kit/spectral.hpp>
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops_linalg/cpu/stacks.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_linalg/cpu/stack_spectral.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
#include "ops_linalg/cpu/stacks-inl.hpp"
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using namespace lanes;

// It turns by differences, x - sine (y + half x), half the tangent of half the angle: their
// rounding is that of the sine, where a rounded cosine would stretch every vector by as much in
// each turn.
template <class T>
struct Rotation {
  Vec<T> tangent, sine, half;
  // What makes [[a, c], [c, b]] diagonal, in the lanes `wanted`; in the others nothing.
  HWY_INLINE Rotation(Vec<T> a, Vec<T> b, Vec<T> c, hn::Mask<Tag<T>> wanted) {
    const Tag<T> d;
    const auto one = hn::Set(d, T(1));
    const auto twice = hn::IfThenElse(wanted, hn::Add(c, c), one);
    const auto theta = hn::Div(hn::Sub(b, a), twice);
    const auto root = hn::Sqrt(hn::MulAdd(theta, theta, one));
    const auto size = hn::Div(one, hn::Add(hn::Abs(theta), root));
    tangent = hn::IfThenElseZero(wanted, hn::CopySign(size, theta));
    const auto secant = hn::Sqrt(hn::MulAdd(tangent, tangent, one));
    sine = hn::Div(tangent, secant);
    half = hn::Div(tangent, hn::Add(one, secant));
  }
  HWY_INLINE void turn(T* x, T* y) const {
    const Tag<T> d;
    const auto a = hn::Load(d, x), b = hn::Load(d, y);
    hn::Store(hn::NegMulAdd(sine, hn::MulAdd(half, a, b), a), d, x);
    hn::Store(hn::MulAdd(sine, hn::NegMulAdd(half, b, a), b), d, y);
  }
  HWY_INLINE void turn(T* x, T* y, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) turn(x + i * kLanes<T>, y + i * kLanes<T>);
  }
};

// Every lane's numbers times a power of two, so that no square leaves the range; what is not finite
// becomes zero. The powers, to be undone; NaN of what was not finite.
template <class T>
Vec<T> bring_into_range(T* w, int64_t count) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  auto most = hn::Zero(d), poison = hn::Zero(d);
  for (int64_t i = 0; i < count; ++i) {
    const auto x = hn::Load(d, w + i * L);
    most = hn::Max(most, hn::Abs(x));
    poison = hn::MulAdd(x, hn::Zero(d), poison);
  }
  HWY_ALIGN T up[L], down[L];
  hn::Store(most, d, up);
  for (int64_t i = 0; i < L; ++i) {
    int power = 0;
    if (up[i] > 0 && std::isfinite(up[i])) std::frexp(up[i], &power);
    // So that both factors are normal numbers.
    power = std::clamp(power, std::numeric_limits<T>::min_exponent,
                       std::numeric_limits<T>::max_exponent - 2);
    up[i] = std::ldexp(T(1), -power), down[i] = std::ldexp(T(1), power);
  }
  const auto finite = hn::Eq(poison, hn::Zero(d));
  const auto by = hn::Load(d, up);
  for (int64_t i = 0; i < count; ++i)
    hn::Store(hn::IfThenElseZero(finite, hn::Mul(hn::Load(d, w + i * L), by)), d, w + i * L);
  return hn::IfThenElse(finite, hn::Load(d, down), hn::Set(d, std::numeric_limits<T>::quiet_NaN()));
}

// a (n, n), whose upper triangle is read, becomes diagonal; the rows of v its eigenvectors.
template <class T>
void diagonalize(T* a, T* v, int64_t n) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  auto at = [&](int64_t i, int64_t j) { return a + (i * n + j) * L; };
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i; j < n; ++j)
      sum = hn::MulAdd(hn::Load(d, at(i, j)), hn::Load(d, at(i, j)), sum);
  constexpr T eps = std::numeric_limits<T>::epsilon();
  // Beside the others' rounding nothing: it would end as a denormal number.
  const auto nothing = hn::Mul(hn::Sqrt(sum), hn::Set(d, eps * eps));
  const auto relative = hn::Set(d, eps * eps / 64);
  bool turned = true;
  for (int sweep = 0; turned && sweep < kit::factor::kSweeps; ++sweep) {
    turned = false;
    for (int64_t q = 1; q < n; ++q)
      for (int64_t p = 0; p < q; ++p) {
        const auto c = hn::Load(d, at(p, q)), x = hn::Load(d, at(p, p)), y = hn::Load(d, at(q, q));
        const auto far = hn::Gt(hn::Mul(c, c), hn::Mul(relative, hn::Abs(hn::Mul(x, y))));
        const auto wanted = hn::And(far, hn::Gt(hn::Abs(c), nothing));
        if (hn::AllFalse(d, wanted)) continue;
        turned = true;
        const Rotation<T> r(x, y, c, wanted);
        hn::Store(hn::NegMulAdd(r.tangent, c, x), d, at(p, p));
        hn::Store(hn::MulAdd(r.tangent, c, y), d, at(q, q));
        hn::Store(hn::IfThenElse(wanted, hn::Zero(d), c), d, at(p, q));
        for (int64_t k = 0; k < p; ++k) r.turn(at(k, p), at(k, q));
        for (int64_t k = p + 1; k < q; ++k) r.turn(at(p, k), at(k, q));
        r.turn(at(p, q + 1), at(q, q + 1), n - q - 1);
        if (v) r.turn(v + p * n * L, v + q * n * L, n);
      }
  }
}

// Places of a lane's values, each L behind the one before, from the least to the greatest.
template <class T>
void order(const T* values, int64_t n, int* places, bool down) {
  constexpr int64_t L = kLanes<T>;
  for (int i = 0; i < n; ++i) {
    int j = i;
    for (; j > 0 && (down ? values[i * L] > values[places[j - 1] * L]
                          : values[i * L] < values[places[j - 1] * L]);
         --j)
      places[j] = places[j - 1];
    places[j] = i;
  }
}

template <class T>
void set_identity(T* v, int64_t n) {
  const Tag<T> d;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      hn::Store(hn::Set(d, T(i == j)), d, v + (i * n + j) * kLanes<T>);
}

template <class T>
void eigh(Range<T> range, Lying<const T> a, T* values, Lying<T> vectors, int64_t n) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  T *w = range.work, *v = vectors.data ? w + n * n * L : nullptr;
  HWY_ALIGN T scale[L];
  HWY_ALIGN T diagonal[stacks::kMost * L];
  int places[stacks::kMost];
  for (int64_t i = range.first; i < range.last; i += L) {
    read<T>(a.transposed(), i, range.last, n, n, w, n);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < r; ++c) hn::Store(hn::Zero(d), d, w + (r * n + c) * L);
    const auto power = bring_into_range(w, n * n);
    if (v) set_identity(v, n);
    diagonalize(w, v, n);
    hn::Store(power, d, scale);
    for (int64_t j = 0; j < n; ++j)
      hn::Store(hn::Mul(power, hn::Load(d, w + (j * n + j) * L)), d, diagonal + j * L);
    for (int64_t lane = 0; lane < std::min(L, range.last - i); ++lane) {
      order(diagonal + lane, n, places, false);
      for (int64_t j = 0; j < n; ++j) values[(i + lane) * n + j] = diagonal[places[j] * L + lane];
      if (!v) continue;
      const bool finite = scale[lane] == scale[lane];
      T* out = vectors.data + (i + lane) * vectors.step;
      for (int64_t j = 0; j < n; ++j, out += vectors.column)
        for (int64_t r = 0; r < n; ++r)
          out[r * vectors.row] = finite ? v[(places[j] * n + r) * L + lane] : scale[lane];
    }
  }
}

// The rows of w become orthogonal, as products of singular values and left vectors.
template <class T>
void orthogonalize(T* w, T* v, int64_t m, int64_t n) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  constexpr T least = std::numeric_limits<T>::min();
  const auto rounding = hn::Set(d, std::numeric_limits<T>::epsilon() * std::sqrt(T(m)));
  bool turned = true;
  for (int sweep = 0; turned && sweep < kit::factor::kSweeps; ++sweep) {
    turned = false;
    for (int64_t q = 1; q < n; ++q)
      for (int64_t p = 0; p < q; ++p) {
        T *one = w + p * m * L, *other = w + q * m * L;
        auto x = hn::Zero(d), y = x, c = x;
        for (int64_t i = 0; i < m; ++i) {
          const auto a = hn::Load(d, one + i * L), b = hn::Load(d, other + i * L);
          x = hn::MulAdd(a, a, x), y = hn::MulAdd(b, b, y), c = hn::MulAdd(a, b, c);
        }
        const auto far = hn::Gt(hn::Abs(c), hn::Mul(rounding, hn::Mul(hn::Sqrt(x), hn::Sqrt(y))));
        const auto wanted = hn::And(far, hn::Gt(hn::Abs(c), hn::Set(d, least)));
        if (hn::AllFalse(d, wanted)) continue;
        turned = true;
        const Rotation<T> r(x, y, c, wanted);
        r.turn(one, other, m);
        if (v) r.turn(v + p * n * L, v + q * n * L, n);
      }
  }
}

template <class T>
void svd(Range<T> range, Lying<const T> a, T* values, Lying<T> u, Lying<T> vh, int64_t m, int64_t n,
         int32_t* info) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  T *w = range.work, *v = u.data ? w + m * n * L : nullptr;
  HWY_ALIGN T scale[L];
  HWY_ALIGN T lengths[stacks::kMost * L];
  int places[stacks::kMost];
  T columns[stacks::kMost * stacks::kMost];
  for (int64_t i = range.first; i < range.last; i += L) {
    read<T>(a.transposed(), i, range.last, n, m, w, m);
    hn::Store(bring_into_range(w, m * n), d, scale);
    if (v) set_identity(v, n);
    orthogonalize(w, v, m, n);
    for (int64_t j = 0; j < n; ++j) {
      auto sum = hn::Zero(d);
      for (int64_t r = 0; r < m; ++r) {
        const auto x = hn::Load(d, w + (j * m + r) * L);
        sum = hn::MulAdd(x, x, sum);
      }
      hn::Store(hn::Sqrt(sum), d, lengths + j * L);
    }
    for (int64_t lane = 0; lane < std::min(L, range.last - i); ++lane) {
      info[i + lane] = scale[lane] == scale[lane] ? 0 : 1;
      order(lengths + lane, n, places, true);
      auto length = [&](int64_t j) { return lengths[places[j] * L + lane]; };
      for (int64_t j = 0; j < n; ++j) values[(i + lane) * n + j] = length(j) * scale[lane];
      if (!v) continue;
      const T least = length(0) * std::numeric_limits<T>::epsilon() * T(m);
      int64_t known = 0;
      for (; known < n && length(known) > least; ++known)
        for (int64_t r = 0; r < m; ++r)
          columns[known * m + r] = w[(places[known] * m + r) * L + lane] / length(known);
      if (known < n) kit::factor::complete_basis(kit::factor::Matrix<T>{columns, m, n, m}, known);
      for (int64_t j = 0; j < n; ++j) {
        T *left = u.data + (i + lane) * u.step + j * u.column,
          *right = vh.data + (i + lane) * vh.step + j * vh.row;
        for (int64_t r = 0; r < m; ++r) left[r * u.row] = columns[j * m + r];
        for (int64_t r = 0; r < n; ++r) right[r * vh.column] = v[(places[j] * n + r) * L + lane];
      }
    }
  }
}

template <class T>
constexpr stacks::Spectral<T> kSpectral = {&eigh<T>, &svd<T>};

}  // namespace

AJ_CODE(stacks::Spectral, spectral, kSpectral)

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu::stacks {
AJ_CHOSEN_CODE(Spectral, spectral)
}  // namespace adjoin::cpu::stacks
#endif
