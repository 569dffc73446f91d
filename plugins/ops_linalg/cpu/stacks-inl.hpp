// plugins/ops_linalg/cpu/stacks-inl.hpp: matrices into the lanes of vectors and out of them.
// Include it, after "vector/simd.hpp", from vector code.
//
// In lanes, element (i, j) of all matrices of a group is the vector at w + (i * ld + j) * lanes.
#if defined(ADJOIN_PLUGINS_OPS_LINALG_STACKS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_OPS_LINALG_STACKS_INL_HPP
#undef ADJOIN_PLUGINS_OPS_LINALG_STACKS_INL_HPP
#else
#define ADJOIN_PLUGINS_OPS_LINALG_STACKS_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::lanes {
namespace hn = hwy::HWY_NAMESPACE;
using stacks::Lying;
using stacks::Range;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vec = hn::Vec<Tag<T>>;
template <class T>
constexpr int64_t kLanes = HWY_LANES(T);
template <class T>
constexpr int kSide = 16 / sizeof(T);  // elements of a block

// The matrices of a group: those beyond `count` are the last one again.
template <class T>
struct Group {
  T* at[kLanes<T>];
  int64_t count;
  Group(const Lying<T>& m, int64_t first, int64_t last)
      : count(std::min<int64_t>(kLanes<T>, last - first)) {
    for (int64_t i = 0; i < kLanes<T>; ++i)
      at[i] = m.data + (first + std::min(i, count - 1)) * m.step;
  }
};

// 16 bytes of each of some lines: at[0], at[kSide], ...
template <class T, class D>
HWY_INLINE hn::Vec<D> blocks_of(D d, const T* const* at, int64_t offset) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) == 16) {
    return hn::LoadU(d, at[0] + offset);
  } else {
    const hn::Half<D> half;
    constexpr int64_t lines = int64_t(hn::MaxLanes(D()) / 2);
    return hn::Combine(d, blocks_of<T>(half, at + lines, offset), blocks_of<T>(half, at, offset));
  }
}
template <class T, class D>
HWY_INLINE void blocks_to(D d, hn::Vec<D> v, T* const* at, int64_t offset) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) == 16) {
    hn::StoreU(v, d, at[0] + offset);
  } else {
    const hn::Half<D> half;
    constexpr int64_t lines = int64_t(hn::MaxLanes(D()) / 2);
    blocks_to<T>(half, hn::LowerHalf(half, v), at, offset);
    blocks_to<T>(half, hn::UpperHalf(half, v), at + lines, offset);
  }
}
// Each block of kSide by kSide elements is turned round.
template <class T>
HWY_INLINE void turn(Vec<T>* x) {
  const Tag<T> d;
  constexpr int side = kSide<T>;
  Vec<T> y[side];
#pragma GCC unroll 4
  for (int half = 1; half < side; half *= 2) {
#pragma GCC unroll 4
    for (int k = 0; k < side / 2; ++k) {
      y[2 * k] = hn::InterleaveLower(d, x[k], x[k + side / 2]);
      y[2 * k + 1] = hn::InterleaveUpper(d, x[k], x[k + side / 2]);
    }
#pragma GCC unroll 4
    for (int k = 0; k < side; ++k) x[k] = y[k];
  }
}

// n elements that lie one behind the other in each matrix, from `offset` on, to n vectors.
template <class T>
HWY_INLINE void read_run(const Group<const T>& g, int64_t offset, int64_t n, T* to, int64_t step) {
  const Tag<T> d;
  constexpr int64_t side = kSide<T>, L = kLanes<T>;
  for (int64_t e = 0; n >= side && e < n; e += side) {
    const int64_t from = std::min(e, n - side);  // the last block may overlap
    Vec<T> x[side];
#pragma GCC unroll 4
    for (int r = 0; r < side; ++r) x[r] = blocks_of<T>(d, g.at + r, offset + from);
    turn<T>(x);
#pragma GCC unroll 4
    for (int r = 0; r < side; ++r) hn::Store(x[r], d, to + (from + r) * step);
  }
  for (int64_t e = 0; n < side && e < n; ++e)
    for (int64_t i = 0; i < L; ++i) to[e * step + i] = g.at[i][offset + e];
}
template <class T>
HWY_INLINE void write_run(const Group<T>& g, int64_t offset, int64_t n, const T* from,
                          int64_t step) {
  const Tag<T> d;
  constexpr int64_t side = kSide<T>, L = kLanes<T>;
  if (g.count < L || n < side) {
    for (int64_t e = 0; e < n; ++e)
      for (int64_t i = 0; i < g.count; ++i) g.at[i][offset + e] = from[e * step + i];
    return;
  }
  for (int64_t e = 0; e < n; e += side) {
    const int64_t to = std::min(e, n - side);
    Vec<T> x[side];
#pragma GCC unroll 4
    for (int r = 0; r < side; ++r) x[r] = hn::Load(d, from + (to + r) * step);
    turn<T>(x);
#pragma GCC unroll 4
    for (int r = 0; r < side; ++r) blocks_to<T>(d, x[r], g.at + r, offset + to);
  }
}

template <class T>
void read(const Lying<const T>& a, int64_t first, int64_t last, int64_t m, int64_t n, T* w,
          int64_t ld) {
  constexpr int64_t L = kLanes<T>;
  const Group<const T> g(a, first, last);
  if (a.column == 1) {
    for (int64_t i = 0; i < m; ++i) read_run<T>(g, i * a.row, n, w + i * ld * L, L);
  } else if (a.row == 1) {
    for (int64_t j = 0; j < n; ++j) read_run<T>(g, j * a.column, m, w + j * L, ld * L);
  } else {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        read_run<T>(g, i * a.row + j * a.column, 1, w + (i * ld + j) * L, L);
  }
}
template <class T>
void write(const Lying<T>& a, int64_t first, int64_t last, int64_t m, int64_t n, const T* w,
           int64_t ld) {
  constexpr int64_t L = kLanes<T>;
  const Group<T> g(a, first, last);
  if (a.column == 1) {
    for (int64_t i = 0; i < m; ++i) write_run<T>(g, i * a.row, n, w + i * ld * L, L);
  } else if (a.row == 1) {
    for (int64_t j = 0; j < n; ++j) write_run<T>(g, j * a.column, m, w + j * L, ld * L);
  } else {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        write_run<T>(g, i * a.row + j * a.column, 1, w + (i * ld + j) * L, L);
  }
}

template <class T>
HWY_INLINE void write_info(Vec<T> numbers, int64_t first, int64_t last, int32_t* info) {
  const Tag<T> d;
  HWY_ALIGN T each[kLanes<T>];
  hn::Store(numbers, d, each);
  for (int64_t i = 0; i < std::min<int64_t>(kLanes<T>, last - first); ++i)
    info[first + i] = int32_t(each[i]);
}
// NaN in the lanes that failed.
template <class T>
HWY_INLINE void void_failed(Vec<T> info, int64_t m, int64_t n, T* w, int64_t ld) {
  const Tag<T> d;
  const auto failed = hn::Ne(info, hn::Zero(d));
  if (hn::AllFalse(d, failed)) return;
  const auto nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T* at = w + (i * ld + j) * kLanes<T>;
      hn::Store(hn::IfThenElse(failed, nan, hn::Load(d, at)), d, at);
    }
}

// Quotients by one divisor: by its reciprocal where that is in range.
template <class T>
class Divisor {
 public:
  explicit HWY_INLINE Divisor(Vec<T> by) : by_(by), inverse_(hn::Div(hn::Set(Tag<T>(), T(1)), by)) {
    const Tag<T> d;
    constexpr T least = 4 * std::numeric_limits<T>::min();
    const auto size = hn::Abs(by);
    far_ = hn::Or(hn::Lt(size, hn::Set(d, least)), hn::Gt(size, hn::Set(d, 1 / least)));
    any_ = !hn::AllFalse(d, far_);
  }
  HWY_INLINE Vec<T> operator()(Vec<T> x) const {
    const auto quotient = hn::Mul(x, inverse_);
    return HWY_UNLIKELY(any_) ? hn::IfThenElse(far_, hn::Div(x, by_), quotient) : quotient;
  }

 private:
  Vec<T> by_, inverse_;
  hn::Mask<Tag<T>> far_;
  bool any_;
};

}  // namespace adjoin::cpu::HWY_NAMESPACE::lanes
HWY_AFTER_NAMESPACE();
#endif
