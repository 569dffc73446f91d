// plugins/ops_linalg/cpu/stack_factors.cpp: Cholesky's and Gauss's factors of small matrices, one
// matrix in each lane of a vector, in tiles of four rows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops_linalg/cpu/stacks.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_linalg/cpu/stack_factors.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
#include "ops_linalg/cpu/stacks-inl.hpp"
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using namespace lanes;

constexpr int64_t kTile = 4;

constexpr int64_t whole_tiles(int64_t n) { return (n + kTile - 1) / kTile * kTile; }

// Rows and columns from n on are those of the identity.
template <class T>
void pad(T* w, int64_t n, int64_t ld) {
  const Tag<T> d;
  const int64_t whole = whole_tiles(n);
  for (int64_t i = 0; i < whole; ++i)
    for (int64_t j = i < n ? n : 0; j < whole; ++j)
      hn::Store(hn::Set(d, T(i == j)), d, w + (i * ld + j) * kLanes<T>);
}

// One group's lower triangle becomes Cholesky's factor; the numbers of what failed.
template <class T>
HWY_INLINE Vec<T> cholesky_of(T* w, int64_t n) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  auto at = [&](int64_t i, int64_t j) { return w + (i * n + j) * L; };
  Vec<T> info = hn::Zero(d);
  for (int64_t J = 0; J < n; J += kTile) {
    Vec<T> inverse[kTile];
    for (int64_t I = J; I < n; I += kTile) {
      Vec<T> c[kTile][kTile];
#pragma GCC unroll 4
      for (int r = 0; r < kTile; ++r)
#pragma GCC unroll 4
        for (int s = 0; s < kTile; ++s) c[r][s] = hn::Zero(d);
      // The products are small beside the elements that they are taken from: their sum is rounded
      // by itself.
      for (int64_t k = 0; k < J; ++k) {
        Vec<T> y[kTile];
#pragma GCC unroll 4
        for (int s = 0; s < kTile; ++s) y[s] = hn::Load(d, at(J + s, k));
#pragma GCC unroll 4
        for (int r = 0; r < kTile; ++r) {
          const auto x = hn::Load(d, at(I + r, k));
#pragma GCC unroll 4
          for (int s = 0; s < kTile; ++s) c[r][s] = hn::MulAdd(x, y[s], c[r][s]);
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < kTile; ++r)
#pragma GCC unroll 4
        for (int s = 0; s < kTile; ++s) c[r][s] = hn::Sub(hn::Load(d, at(I + r, J + s)), c[r][s]);
      if (I == J) {
#pragma GCC unroll 4
        for (int s = 0; s < kTile; ++s) {
          const auto good = hn::Gt(c[s][s], hn::Zero(d));
          info = hn::IfThenElse(hn::Or(good, hn::Ne(info, hn::Zero(d))), info,
                                hn::Set(d, T(J + s + 1)));
          c[s][s] = hn::Sqrt(c[s][s]);
          inverse[s] = hn::Div(hn::Set(d, T(1)), c[s][s]);
#pragma GCC unroll 4
          for (int r = s + 1; r < kTile; ++r) c[r][s] = hn::Mul(c[r][s], inverse[s]);
#pragma GCC unroll 4
          for (int t = s + 1; t < kTile; ++t)
#pragma GCC unroll 4
            for (int r = t; r < kTile; ++r) c[r][t] = hn::NegMulAdd(c[r][s], c[t][s], c[r][t]);
        }
      } else {
#pragma GCC unroll 4
        for (int s = 0; s < kTile; ++s) {
#pragma GCC unroll 4
          for (int r = 0; r < kTile; ++r) c[r][s] = hn::Mul(c[r][s], inverse[s]);
#pragma GCC unroll 4
          for (int t = s + 1; t < kTile; ++t) {
            const auto y = hn::Load(d, at(J + t, J + s));
#pragma GCC unroll 4
            for (int r = 0; r < kTile; ++r) c[r][t] = hn::NegMulAdd(c[r][s], y, c[r][t]);
          }
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < kTile; ++r)
#pragma GCC unroll 4
        for (int s = 0; s < kTile; ++s)
          hn::Store(I == J && s > r ? hn::Zero(d) : c[r][s], d, at(I + r, J + s));
    }
    for (int64_t i = 0; i < J; ++i)
#pragma GCC unroll 4
      for (int s = 0; s < kTile; ++s) hn::Store(hn::Zero(d), d, at(i, J + s));
  }
  return info;
}

template <class T>
void cholesky(Range<T> range, Lying<const T> a, Lying<T> l, int64_t n, int32_t* info) {
  const int64_t whole = whole_tiles(n);
  for (int64_t i = range.first; i < range.last; i += kLanes<T>) {
    read<T>(a, i, range.last, n, n, range.work, whole);
    pad<T>(range.work, n, whole);
    const auto failed = cholesky_of<T>(range.work, whole);
    void_failed<T>(failed, n, n, range.work, whole);
    write<T>(l, i, range.last, n, n, range.work, whole);
    write_info<T>(failed, i, range.last, info);
  }
}

// Gauss's elimination with pivots of one group: n rows of ld vectors, of which the first n are the
// matrix; what is behind them takes part.
template <class T>
struct Elimination {
  T *w, *pivots;  // pivots: a vector of row numbers for each column
  int64_t n, ld, columns;
  bool all;  // exchange L's rows, too
  Vec<T> info, sign;

  static constexpr int64_t L = kLanes<T>;
  HWY_INLINE T* at(int64_t i, int64_t j) const { return w + (i * ld + j) * L; }

  // Row j and that of its pivot change places, each lane's own.
  HWY_INLINE void exchange(int64_t j, int64_t from) {
    const Tag<T> d;
    auto most = hn::Abs(hn::Load(d, at(j, j))), row = hn::Set(d, T(j));
    const auto own = row;
    for (int64_t i = j + 1; i < n; ++i) {
      const auto size = hn::Abs(hn::Load(d, at(i, j)));
      const auto more = hn::Gt(size, most);
      most = hn::IfThenElse(more, size, most);
      row = hn::IfThenElse(more, hn::Set(d, T(i)), row);
    }
    hn::Store(row, d, pivots + j * L);
    sign = hn::IfThenElse(hn::Eq(row, own), sign, hn::Neg(sign));
    for (int64_t i = j + 1; i < n; ++i) {
      const auto here = hn::Eq(row, hn::Set(d, T(i)));
      if (hn::AllFalse(d, here)) continue;
      for (int64_t k = from; k < columns; ++k) {
        const auto x = hn::Load(d, at(j, k)), y = hn::Load(d, at(i, k));
        hn::Store(hn::IfThenElse(here, y, x), d, at(j, k));
        hn::Store(hn::IfThenElse(here, x, y), d, at(i, k));
      }
    }
  }
  // Columns J ... J + 3.
  HWY_INLINE void panel(int64_t J) {
    const Tag<T> d;
    for (int64_t s = 0; s < kTile; ++s) {
      const int64_t j = J + s;
      exchange(j, all ? 0 : J);
      const auto pivot = hn::Load(d, at(j, j));
      const auto none = hn::Eq(pivot, hn::Zero(d));
      info = hn::IfThenElse(hn::And(none, hn::Eq(info, hn::Zero(d))), hn::Set(d, T(j + 1)), info);
      const Divisor<T> by(hn::IfThenElse(none, hn::Set(d, T(1)), pivot));
      for (int64_t i = j + 1; i < n; ++i) {
        const auto l = by(hn::Load(d, at(i, j)));
        hn::Store(l, d, at(i, j));
        for (int64_t k = j + 1; k < J + kTile; ++k)
          hn::Store(hn::NegMulAdd(l, hn::Load(d, at(j, k)), hn::Load(d, at(i, k))), d, at(i, k));
      }
    }
  }
  // Of the columns behind a panel: its rows of U, then what is below them.
  HWY_INLINE void update(int64_t J) {
    const Tag<T> d;
    for (int64_t k = J + kTile; k < columns; ++k)
      for (int64_t r = 1; r < kTile; ++r) {
        auto x = hn::Load(d, at(J + r, k));
        for (int64_t s = 0; s < r; ++s)
          x = hn::NegMulAdd(hn::Load(d, at(J + r, J + s)), hn::Load(d, at(J + s, k)), x);
        hn::Store(x, d, at(J + r, k));
      }
    for (int64_t I = J + kTile; I < n; I += kTile) {
      Vec<T> l[kTile][kTile];
#pragma GCC unroll 4
      for (int r = 0; r < kTile; ++r)
#pragma GCC unroll 4
        for (int s = 0; s < kTile; ++s) l[r][s] = hn::Load(d, at(I + r, J + s));
      for (int64_t k = J + kTile; k < columns; ++k) {
        Vec<T> u[kTile];
#pragma GCC unroll 4
        for (int s = 0; s < kTile; ++s) u[s] = hn::Load(d, at(J + s, k));
#pragma GCC unroll 4
        for (int r = 0; r < kTile; ++r) {
          auto x = hn::Load(d, at(I + r, k));
#pragma GCC unroll 4
          for (int s = 0; s < kTile; ++s) x = hn::NegMulAdd(l[r][s], u[s], x);
          hn::Store(x, d, at(I + r, k));
        }
      }
    }
  }
  HWY_INLINE void run() {
    const Tag<T> d;
    info = hn::Zero(d), sign = hn::Set(d, T(1));
    for (int64_t J = 0; J < n; J += kTile) {
      panel(J);
      update(J);
    }
  }

  // U X = Y for `wide` columns from k on.
  template <int wide>
  HWY_INLINE void back(int64_t k) const {
    const Tag<T> d;
    for (int64_t J = n - kTile; J >= 0; J -= kTile) {
      Vec<T> x[kTile][wide];
#pragma GCC unroll 4
      for (int r = 0; r < kTile; ++r)
#pragma GCC unroll 4
        for (int c = 0; c < wide; ++c) x[r][c] = hn::Load(d, at(J + r, k + c));
      for (int64_t i = J + kTile; i < n; ++i) {
        Vec<T> y[wide];
#pragma GCC unroll 4
        for (int c = 0; c < wide; ++c) y[c] = hn::Load(d, at(i, k + c));
#pragma GCC unroll 4
        for (int r = 0; r < kTile; ++r) {
          const auto u = hn::Load(d, at(J + r, i));
#pragma GCC unroll 4
          for (int c = 0; c < wide; ++c) x[r][c] = hn::NegMulAdd(u, y[c], x[r][c]);
        }
      }
#pragma GCC unroll 4
      for (int r = kTile - 1; r >= 0; --r) {
        const Divisor<T> by(hn::Load(d, at(J + r, J + r)));
#pragma GCC unroll 4
        for (int c = 0; c < wide; ++c) {
          x[r][c] = by(x[r][c]);
          hn::Store(x[r][c], d, at(J + r, k + c));
        }
#pragma GCC unroll 4
        for (int up = 0; up < r; ++up) {
          const auto u = hn::Load(d, at(J + up, J + r));
#pragma GCC unroll 4
          for (int c = 0; c < wide; ++c) x[up][c] = hn::NegMulAdd(u, x[r][c], x[up][c]);
        }
      }
    }
  }
};

// A group's elimination, its matrices read; `sides` more columns.
template <class T>
HWY_INLINE Elimination<T> eliminate(Range<T> range, int64_t i, const Lying<const T>& a, int64_t n,
                                    int64_t sides, bool all) {
  Elimination<T> e;
  e.n = whole_tiles(n), e.columns = e.ld = e.n + sides;
  e.pivots = range.work, e.w = range.work + e.n * kLanes<T>;
  e.all = all;
  read<T>(a, i, range.last, n, n, e.w, e.ld);
  pad<T>(e.w, n, e.ld);
  return e;
}

template <class T>
void lu(Range<T> range, Lying<const T> a, Lying<T> out, int64_t n, int32_t* pivots, int32_t* info) {
  constexpr int64_t L = kLanes<T>;
  for (int64_t i = range.first; i < range.last; i += L) {
    auto e = eliminate(range, i, a, n, 0, true);
    e.run();
    write<T>(out, i, range.last, n, n, e.w, e.ld);
    write_info<T>(e.info, i, range.last, info);
    for (int64_t lane = 0; lane < std::min(L, range.last - i); ++lane)
      for (int64_t j = 0; j < n; ++j)
        pivots[(i + lane) * n + j] = int32_t(e.pivots[j * L + lane]) + 1;
  }
}

template <class T>
void solve(Range<T> range, Lying<const T> a, Lying<const T> b, Lying<T> out, int64_t n, int64_t m,
           int32_t* info) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  for (int64_t i = range.first; i < range.last; i += L) {
    auto e = eliminate(range, i, a, n, m, false);
    T* x = e.w + e.n * L;
    if (b.data) read<T>(b, i, range.last, n, m, x, e.ld);
    for (int64_t r = b.data ? n : 0; r < e.n; ++r)
      for (int64_t c = 0; c < m; ++c)
        hn::Store(hn::Set(d, T(!b.data && r == c)), d, x + (r * e.ld + c) * L);
    e.run();
    int64_t k = e.n;
    for (; k + 4 <= e.columns; k += 4) e.template back<4>(k);
    for (; k < e.columns; ++k) e.template back<1>(k);
    void_failed<T>(e.info, n, m, x, e.ld);
    write<T>(out, i, range.last, n, m, x, e.ld);
    write_info<T>(e.info, i, range.last, info);
  }
}

template <class T>
void det(Range<T> range, Lying<const T> a, int64_t n, T* out) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  HWY_ALIGN T each[L];
  for (int64_t i = range.first; i < range.last; i += L) {
    auto e = eliminate(range, i, a, n, 0, false);
    e.run();
    auto product = e.sign;
    for (int64_t j = 0; j < n; ++j) product = hn::Mul(product, hn::Load(d, e.at(j, j)));
    hn::Store(product, d, each);
    std::copy_n(each, std::min(L, range.last - i), out + i);
  }
}

template <class T>
constexpr stacks::Factors<T> kFactors = {kLanes<T>, &cholesky<T>, &lu<T>, &solve<T>, &det<T>};

}  // namespace

AJ_CODE(stacks::Factors, factors, kFactors)

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu::stacks {
AJ_CHOSEN_CODE(Factors, factors)
}  // namespace adjoin::cpu::stacks
#endif
