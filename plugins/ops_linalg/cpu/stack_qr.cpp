// plugins/ops_linalg/cpu/stack_qr.cpp: Householder's factors of small matrices, one matrix in each
// lane of a vector.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops_linalg/cpu/stacks.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_linalg/cpu/stack_qr.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
#include "ops_linalg/cpu/stacks-inl.hpp"
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using namespace lanes;

// One group in lanes, a column's vectors ld apart.
template <class T>
struct Reflections {
  T *w, *taus;
  int64_t m, n, ld;

  static constexpr int64_t L = kLanes<T>;
  static constexpr T kShort = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
  HWY_INLINE T* at(int64_t i, int64_t j) const { return w + (i * ld + j) * L; }

  // Lengths of column j from row j on, and from the row below on; no square leaves the range.
  HWY_INLINE void lengths(int64_t j, Vec<T>& all, Vec<T>& rest) const {
    const Tag<T> d;
    const auto first = hn::Load(d, at(j, j));
    auto sum = hn::Zero(d), most = hn::Zero(d);
    for (int64_t i = j + 1; i < m; ++i) {
      const auto x = hn::Load(d, at(i, j));
      sum = hn::MulAdd(x, x, sum);
      most = hn::Max(most, hn::Abs(x));
    }
    const auto total = hn::MulAdd(first, first, sum);
    rest = hn::Sqrt(sum), all = hn::Sqrt(total);
    const auto far = hn::Or(hn::Lt(sum, hn::Set(d, kShort)), hn::Gt(total, hn::Set(d, 1 / kShort)));
    if (HWY_LIKELY(hn::AllFalse(d, far))) return;
    most = hn::Max(most, hn::Abs(first));
    const auto none = hn::Or(hn::Eq(most, hn::Zero(d)),
                             hn::Not(hn::Le(most, hn::Set(d, std::numeric_limits<T>::max()))));
    const auto unit = hn::IfThenElse(none, hn::Set(d, T(1)), most);
    auto scaled = hn::Zero(d);
    for (int64_t i = j + 1; i < m; ++i) {
      const auto x = hn::Div(hn::Load(d, at(i, j)), unit);
      scaled = hn::MulAdd(x, x, scaled);
    }
    const auto x = hn::Div(first, unit);
    rest = hn::IfThenElse(far, hn::Mul(unit, hn::Sqrt(scaled)), rest);
    all = hn::IfThenElse(far, hn::Mul(unit, hn::Sqrt(hn::MulAdd(x, x, scaled))), all);
  }
  // Column j in units of what it returns: 1, or less where its elements are so small that they have
  // few digits, of which no reflection is made.
  HWY_INLINE Vec<T> lengthen(int64_t j, Vec<T> all) const {
    const Tag<T> d;
    const auto one = hn::Set(d, T(1)), less = hn::Set(d, kShort);
    const auto few = hn::Lt(all, less);
    if (HWY_LIKELY(hn::AllFalse(d, few))) return one;
    const auto more = hn::IfThenElse(few, hn::Set(d, 1 / kShort), one);
    for (int64_t i = j; i < m; ++i) hn::Store(hn::Mul(hn::Load(d, at(i, j)), more), d, at(i, j));
    return hn::IfThenElse(few, less, one);
  }
  // Columns k ... k + wide - 1 of `to` are reflected by w's column j, whose first element counts
  // as 1.
  template <int wide>
  HWY_INLINE void reflect(int64_t j, Vec<T> tau, T* to, int64_t to_ld, int64_t k) const {
    const Tag<T> d;
    auto place = [&](int64_t i, int64_t c) { return to + (i * to_ld + k + c) * L; };
    Vec<T> sum[wide];
#pragma GCC unroll 4
    for (int c = 0; c < wide; ++c) sum[c] = hn::Load(d, place(j, c));
    for (int64_t i = j + 1; i < m; ++i) {
      const auto v = hn::Load(d, at(i, j));
#pragma GCC unroll 4
      for (int c = 0; c < wide; ++c) sum[c] = hn::MulAdd(v, hn::Load(d, place(i, c)), sum[c]);
    }
#pragma GCC unroll 4
    for (int c = 0; c < wide; ++c) {
      sum[c] = hn::Mul(sum[c], tau);
      hn::Store(hn::Sub(hn::Load(d, place(j, c)), sum[c]), d, place(j, c));
    }
    for (int64_t i = j + 1; i < m; ++i) {
      const auto v = hn::Load(d, at(i, j));
#pragma GCC unroll 4
      for (int c = 0; c < wide; ++c)
        hn::Store(hn::NegMulAdd(v, sum[c], hn::Load(d, place(i, c))), d, place(i, c));
    }
  }
  HWY_INLINE void reflect_all(int64_t j, Vec<T> tau, T* to, int64_t to_ld, int64_t k,
                              int64_t end) const {
    for (; k + 4 <= end; k += 4) reflect<4>(j, tau, to, to_ld, k);
    for (; k < end; ++k) reflect<1>(j, tau, to, to_ld, k);
  }
  // w becomes R above and the vectors below its diagonal.
  HWY_INLINE void factor() const {
    const Tag<T> d;
    for (int64_t j = 0; j < std::min(m, n); ++j) {
      Vec<T> all, rest;
      lengths(j, all, rest);
      const auto unit = lengthen(j, all);
      if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Eq(unit, hn::Set(d, T(1)))))) lengths(j, all, rest);
      const auto alpha = hn::Load(d, at(j, j));
      const auto done = hn::Eq(rest, hn::Zero(d));
      const auto beta = hn::IfThenElse(done, alpha, hn::Neg(hn::CopySign(all, alpha)));
      const auto one = hn::Set(d, T(1));
      const auto tau = hn::IfThenElse(
          done, hn::Zero(d), hn::Div(hn::Sub(beta, alpha), hn::IfThenElse(done, one, beta)));
      const Divisor<T> by(hn::IfThenElse(done, one, hn::Sub(alpha, beta)));
      for (int64_t i = j + 1; i < m; ++i) hn::Store(by(hn::Load(d, at(i, j))), d, at(i, j));
      hn::Store(hn::Mul(beta, unit), d, at(j, j));
      hn::Store(tau, d, taus + j * L);
      reflect_all(j, tau, w, ld, j + 1, n);
    }
  }
  // The first k columns of the product of the reflections.
  HWY_INLINE void form(T* q, int64_t k) const {
    const Tag<T> d;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < k; ++j) hn::Store(hn::Set(d, T(i == j)), d, q + (i * k + j) * L);
    for (int64_t j = std::min(m, n); j-- > 0;)
      if (j < k) reflect_all(j, hn::Load(d, taus + j * L), q, k, j, k);
  }
};

template <class T>
void qr(Range<T> range, Lying<const T> a, Lying<T> q, Lying<T> r, int64_t m, int64_t n, int64_t k) {
  const Tag<T> d;
  constexpr int64_t L = kLanes<T>;
  const int64_t least = std::min(m, n);
  Reflections<T> h{range.work + least * L, range.work, m, n, n};
  T* form = h.w + m * n * L;
  for (int64_t i = range.first; i < range.last; i += L) {
    read<T>(a, i, range.last, m, n, h.w, n);
    h.factor();
    if (q.data) {
      h.form(form, k);
      write<T>(q, i, range.last, m, k, form, k);
    }
    for (int64_t row = 1; row < k; ++row)
      for (int64_t j = 0; j < std::min(row, n); ++j) hn::Store(hn::Zero(d), d, h.at(row, j));
    write<T>(r, i, range.last, k, n, h.w, n);
  }
}

template <class T>
constexpr stacks::Orthogonal<T> kOrthogonal = {&qr<T>};

}  // namespace

AJ_CODE(stacks::Orthogonal, orthogonal, kOrthogonal)

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu::stacks {
AJ_CHOSEN_CODE(Orthogonal, orthogonal)
}  // namespace adjoin::cpu::stacks
#endif
