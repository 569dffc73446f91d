// plugins/ops_fft/cpu/lines.cpp: transforms as vector code. Lines lie in the lanes of vectors, so a
// butterfly is the same for all lanes and nothing is ever shuffled but at the ends.
#include "lines.hpp"

#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/view.hpp>
#include <cstdlib>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_fft/cpu/lines.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {
using namespace fft;  // NOLINT: what the header declares

// An element of all lines: the real parts, then the imaginary ones.
template <class T>
constexpr int64_t kLanesOf = HWY_LANES(T);
template <class T>
constexpr int64_t kWide = 2 * kLanesOf<T>;

// Butterflies of 2, 4, 8, 16 in place, in natural order.
template <int R, class D, class V>
HWY_INLINE void even_butterfly(D d, V* re, V* im) {
  if constexpr (R == 2) {
    V a = re[0], b = im[0];
    re[0] = hn::Add(a, re[1]), im[0] = hn::Add(b, im[1]);
    re[1] = hn::Sub(a, re[1]), im[1] = hn::Sub(b, im[1]);
  } else {
    constexpr int H = R / 2;
    V er[H], ei[H], odd_re[H], odd_im[H];
#pragma GCC unroll 8
    for (int k = 0; k < H; ++k) {
      er[k] = re[2 * k], ei[k] = im[2 * k];
      odd_re[k] = re[2 * k + 1], odd_im[k] = im[2 * k + 1];
    }
    even_butterfly<H>(d, er, ei);
    even_butterfly<H>(d, odd_re, odd_im);
    constexpr double kCos[4] = {1, 0.92387953251128675613, 0.70710678118654752440,
                                0.38268343236508977173};
    using T = hn::TFromD<D>;
#pragma GCC unroll 8
    for (int k = 0; k < H; ++k) {
      const int turn = k * (16 / R);  // sixteenths
      V x = odd_re[k], y = odd_im[k];
      if (turn == 4) {  // times -i
        V t = x;
        x = y, y = hn::Neg(t);
      } else if (turn == 2) {
        const V half = hn::Set(d, T(kCos[2]));
        V t = hn::Mul(hn::Add(x, y), half);
        y = hn::Mul(hn::Sub(y, x), half);
        x = t;
      } else if (turn == 6) {
        const V half = hn::Set(d, T(kCos[2]));
        V t = hn::Mul(hn::Sub(y, x), half);
        y = hn::Neg(hn::Mul(hn::Add(x, y), half));
        x = t;
      } else if (turn) {
        const double at = turn < 4 ? kCos[turn] : -kCos[8 - turn];
        const V c = hn::Set(d, T(at)),
                s = hn::Set(d, T(turn < 4 ? kCos[4 - turn] : kCos[turn - 4]));
        V t = hn::MulAdd(x, c, hn::Mul(y, s));
        y = hn::MulSub(y, c, hn::Mul(x, s));
        x = t;
      }
      re[k] = hn::Add(er[k], x), im[k] = hn::Add(ei[k], y);
      re[k + H] = hn::Sub(er[k], x), im[k + H] = hn::Sub(ei[k], y);
    }
  }
}

// Butterflies of an odd number: of each two elements that are mirror images the sum and the
// difference, so that half of the products is left.
template <int N, class D, class V, class T>
HWY_INLINE void odd_butterfly(D d, V* re, V* im, const T* roots, int radix) {
  constexpr int H = N / 2;
  const int half = radix / 2;
  V sr[H], si[H], dr[H], di[H], zr = re[0], zi = im[0];
#pragma GCC unroll 3
  for (int k = 0; k < half; ++k) {
    sr[k] = hn::Add(re[k + 1], re[radix - 1 - k]), si[k] = hn::Add(im[k + 1], im[radix - 1 - k]);
    dr[k] = hn::Sub(re[k + 1], re[radix - 1 - k]), di[k] = hn::Sub(im[k + 1], im[radix - 1 - k]);
    re[0] = hn::Add(re[0], sr[k]), im[0] = hn::Add(im[0], si[k]);
  }
#pragma GCC unroll 3
  for (int j = 0; j < half; ++j) {
    V ur = zr, ui = zi, vr = hn::Zero(d), vi = hn::Zero(d);
#pragma GCC unroll 3
    for (int k = 0; k < half; ++k) {
      const V c = hn::Set(d, roots[2 * (j * half + k)]),
              s = hn::Set(d, roots[2 * (j * half + k) + 1]);
      ur = hn::MulAdd(sr[k], c, ur), ui = hn::MulAdd(si[k], c, ui);
      vr = hn::MulAdd(dr[k], s, vr), vi = hn::MulAdd(di[k], s, vi);
    }
    re[j + 1] = hn::Add(ur, vi), im[j + 1] = hn::Sub(ui, vr);
    re[radix - 1 - j] = hn::Sub(ur, vi), im[radix - 1 - j] = hn::Add(ui, vr);
  }
}

// Where the first pass reads and the last one writes, if not in rows of lanes: lines beside each
// other. What leaves the last pass may be turned before: element k by `by`, and by `far` where it
// is there.
template <class T>
struct Ends {
  const T* in = nullptr;
  T* out = nullptr;
  int64_t in_stride = 0, out_stride = 0;
  bool in_swapped = false, out_swapped = false;
  bool ahead = false;  // rows lie on pages of their own, where no hardware looks ahead
  T scale = 1;
  const T *by = nullptr, *far = nullptr;
};
enum class In { rows, beside };
enum class Out { rows, turned, beside, factors };

template <class D, class V, class T>
HWY_INLINE void times(D d, V& re, V& im, const T* by, const T* far) {
  V c = hn::LoadU(d, by), s = hn::LoadU(d, by + kLanesOf<T>);
  if (far) {
    const V fc = hn::Set(d, far[0]), fs = hn::Set(d, far[1]);
    const V t = hn::MulSub(c, fc, hn::Mul(s, fs));
    s = hn::MulAdd(c, fs, hn::Mul(s, fc));
    c = t;
  }
  const V t = hn::MulSub(re, c, hn::Mul(im, s));
  im = hn::MulAdd(re, s, hn::Mul(im, c));
  re = t;
}

// The butterflies of one p. N: the radix, or the largest one that has no code of its own. Those of
// the first pass have s = 1.
template <int N, In in, Out out, class T>
HWY_INLINE void butterflies(const Pass<T>& pass, int64_t p, const T* x, T* y, const T* turns,
                            const Ends<T>& ends) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int64_t L = kLanesOf<T>, W = kWide<T>;
  constexpr bool fixed = N <= 16;
  const int R = fixed ? N : pass.radix;
  const int64_t s = pass.s, apart = pass.m * s;
  x += p * s * W, y += p * s * R * W;
  for (int64_t q = 0; q < s; ++q, x += W, y += W) {
    V re[N], im[N];
    if constexpr (in == In::beside) {
      const T* from = ends.in + p * ends.in_stride;
      if (ends.ahead)
        for (int k = 0; k < R; ++k) {
          const T* next = from + k * apart * ends.in_stride + W;
          __builtin_prefetch(next), __builtin_prefetch(next + L);
        }
      if (ends.in_swapped) {
#pragma GCC unroll 16
        for (int k = 0; k < R; ++k)
          hn::LoadInterleaved2(d, from + k * apart * ends.in_stride, im[k], re[k]);
      } else {
#pragma GCC unroll 16
        for (int k = 0; k < R; ++k)
          hn::LoadInterleaved2(d, from + k * apart * ends.in_stride, re[k], im[k]);
      }
    } else {
#pragma GCC unroll 16
      for (int k = 0; k < R; ++k) {
        re[k] = hn::Load(d, x + k * apart * W);
        im[k] = hn::Load(d, x + k * apart * W + L);
      }
    }
    if constexpr (N % 2 == 0)
      even_butterfly<N>(d, re, im);
    else
      odd_butterfly<N>(d, re, im, pass.roots.data(), R);
    if constexpr (out == Out::beside) {
      const V by = hn::Set(d, ends.scale);
      T* to = ends.out + q * ends.out_stride;
      if (ends.ahead)
        for (int j = 0; j < R; ++j) {
          T* next = to + j * s * ends.out_stride + W;
          __builtin_prefetch(next, 1), __builtin_prefetch(next + L, 1);
        }
      if (ends.out_swapped) {
#pragma GCC unroll 16
        for (int j = 0; j < R; ++j)
          hn::StoreInterleaved2(hn::Mul(im[j], by), hn::Mul(re[j], by), d,
                                to + j * s * ends.out_stride);
      } else {
#pragma GCC unroll 16
        for (int j = 0; j < R; ++j)
          hn::StoreInterleaved2(hn::Mul(re[j], by), hn::Mul(im[j], by), d,
                                to + j * s * ends.out_stride);
      }
      continue;
    }
#pragma GCC unroll 16
    for (int j = 0; j < R; ++j) {
      if constexpr (out == Out::factors) {
        const int64_t k = q + j * s;
        times(d, re[j], im[j], ends.by + k * W, ends.far ? ends.far + 2 * k : nullptr);
      }
      if constexpr (out == Out::turned) {
        if (j > 0) {
          const V c = hn::Set(d, turns[2 * j - 2]), w = hn::Set(d, turns[2 * j - 1]);
          hn::Store(hn::MulSub(re[j], c, hn::Mul(im[j], w)), d, y + j * s * W);
          hn::Store(hn::MulAdd(re[j], w, hn::Mul(im[j], c)), d, y + j * s * W + L);
          continue;
        }
      }
      hn::Store(re[j], d, y + j * s * W);
      hn::Store(im[j], d, y + j * s * W + L);
    }
  }
}

template <int N, In in, class T>
HWY_INLINE void run_pass_from(const Pass<T>& pass, const T* x, T* y, const Ends<T>& ends) {
  const T* turns = pass.turns.data();
  if (pass.m == 1) {
    if (ends.out)
      butterflies<N, in, Out::beside>(pass, 0, x, y, turns, ends);
    else if (ends.by)
      butterflies<N, in, Out::factors>(pass, 0, x, y, turns, ends);
    else
      butterflies<N, in, Out::rows>(pass, 0, x, y, turns, ends);
    return;
  }
  butterflies<N, in, Out::rows>(pass, 0, x, y, turns, ends);
  for (int64_t p = 1; p < pass.m; ++p, turns += 2 * (pass.radix - 1))
    butterflies<N, in, Out::turned>(pass, p, x, y, turns, ends);
}

template <int N, class T>
void run_pass(const Pass<T>& pass, const T* x, T* y, const Ends<T>& ends) {
  if (pass.s == 1 && ends.in)
    run_pass_from<N, In::beside>(pass, x, y, ends);
  else
    run_pass_from<N, In::rows>(pass, x, y, ends);
}

// All passes; where the result lies: a or b, unless the last one writes elsewhere.
template <class T>
T* run_passes(const Plan<T>& plan, T* a, T* b, const Ends<T>& ends) {
  for (const Pass<T>& pass : plan.passes) {
    switch (pass.radix) {
      case 2:
        run_pass<2>(pass, a, b, ends);
        break;
      case 3:
        run_pass<3>(pass, a, b, ends);
        break;
      case 4:
        run_pass<4>(pass, a, b, ends);
        break;
      case 5:
        run_pass<5>(pass, a, b, ends);
        break;
      case 7:
        run_pass<7>(pass, a, b, ends);
        break;
      case 8:
        run_pass<8>(pass, a, b, ends);
        break;
      case 16:
        run_pass<16>(pass, a, b, ends);
        break;
      default:
        run_pass<61>(pass, a, b, ends);
        break;
    }
    std::swap(a, b);
  }
  return a;
}

// 16 bytes of each line, from `elements` on: kSide vectors, one for each number in these bytes.
template <class T>
constexpr int kSide = 16 / sizeof(T);

template <class D, class T>
HWY_INLINE hn::Vec<D> lanes_of(D d, T* const* lines, int64_t offset) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) == 16) {
    return hn::LoadU(d, lines[0] + offset);
  } else {
    const hn::Half<D> half;
    constexpr int apart = int(hn::MaxLanes(D()) * sizeof(T) / 32);
    return hn::Combine(d, lanes_of(half, lines + apart, offset), lanes_of(half, lines, offset));
  }
}
template <class D, class T>
HWY_INLINE void to_lines(D d, hn::Vec<D> v, T* const* lines, int64_t offset) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) == 16) {
    hn::StoreU(v, d, lines[0] + offset);
  } else {
    const hn::Half<D> half;
    constexpr int apart = int(hn::MaxLanes(D()) * sizeof(T) / 32);
    to_lines(half, hn::LowerHalf(half, v), lines, offset);
    to_lines(half, hn::UpperHalf(half, v), lines + apart, offset);
  }
}
template <int side, class D, class V>
HWY_INLINE void turn_blocks(D d, V* x) {
  V y[side];
#pragma GCC unroll 4
  for (int half = 1; half < side; half *= 2) {
#pragma GCC unroll 2
    for (int k = 0; k < side / 2; ++k) {
      y[2 * k] = hn::InterleaveLower(d, x[k], x[k + side / 2]);
      y[2 * k + 1] = hn::InterleaveUpper(d, x[k], x[k + side / 2]);
    }
#pragma GCC unroll 4
    for (int k = 0; k < side; ++k) x[k] = y[k];
  }
}

// Of the lines that come next what lies where element j is, a cache line of each.
template <class T>
HWY_INLINE void fetch(const Lines<T>& lines, int64_t j) {
  if (lines.next == 0 || j % (32 / int64_t(sizeof(T))) != 0) return;
  for (int i = 0; i < lines.count; ++i) __builtin_prefetch(lines.at[i] + lines.next + 2 * j, 0, 2);
}

template <class T>
void load(const Lines<T>& from, int64_t n, bool swapped, T* to) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int64_t L = kLanesOf<T>, W = kWide<T>;
  const int64_t re = swapped ? L : 0, im = L - re;
  if (from.beside) {
    const T* x = from.at[0];
    HWY_ALIGN T part[W] = {};
    for (int64_t j = 0; j < n; ++j, x += from.stride, to += W) {
      const T* row = x;
      if (from.count < L) std::memcpy(part, x, size_t(from.count) * 2 * sizeof(T)), row = part;
      V a, b;
      hn::LoadInterleaved2(d, row, a, b);
      hn::Store(a, d, to + re);
      hn::Store(b, d, to + im);
    }
    return;
  }
  T* lines[kMostLanes];  // lanes that are not wanted see the first line
  for (int i = 0; i < L; ++i) lines[i] = from.at[i < from.count ? i : 0];
  int64_t j = 0;
  if (from.stride == 2)
    for (; j + kSide<T> / 2 <= n; j += kSide<T> / 2, to += kSide<T> / 2 * W) {
      V x[kSide<T>];
      fetch(from, j);
#pragma GCC unroll 4
      for (int r = 0; r < kSide<T>; ++r) {
        T* some[kMostLanes];
#pragma GCC unroll 16
        for (int i = 0; i < L / kSide<T>; ++i) some[i] = lines[r + kSide<T> * i];
        x[r] = lanes_of(d, some, 2 * j);
      }
      turn_blocks<kSide<T>>(d, x);
#pragma GCC unroll 2
      for (int r = 0; r < kSide<T>; r += 2) {
        hn::Store(x[r], d, to + r / 2 * W + re);
        hn::Store(x[r + 1], d, to + r / 2 * W + im);
      }
    }
  for (; j < n; ++j, to += W)
    for (int i = 0; i < L; ++i) {
      to[re + i] = lines[i][j * from.stride];
      to[im + i] = lines[i][j * from.stride + 1];
    }
}

template <class T>
void store(const T* from, int64_t n, bool swapped, T scale, const Lines<T>& to) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int64_t L = kLanesOf<T>, W = kWide<T>;
  const int64_t re = swapped ? L : 0, im = L - re;
  const V by = hn::Set(d, scale);
  if (to.beside) {
    T* y = to.at[0];
    HWY_ALIGN T part[W];
    for (int64_t j = 0; j < n; ++j, y += to.stride, from += W) {
      const V a = hn::Mul(hn::Load(d, from + re), by), b = hn::Mul(hn::Load(d, from + im), by);
      hn::StoreInterleaved2(a, b, d, to.count < L ? part : y);
      if (to.count < L) std::memcpy(y, part, size_t(to.count) * 2 * sizeof(T));
    }
    return;
  }
  int64_t j = 0;
  if (to.stride == 2 && to.count == L)
    for (; j + kSide<T> / 2 <= n; j += kSide<T> / 2, from += kSide<T> / 2 * W) {
      V x[kSide<T>];
      fetch(to, j);
#pragma GCC unroll 2
      for (int r = 0; r < kSide<T>; r += 2) {
        x[r] = hn::Mul(hn::Load(d, from + r / 2 * W + re), by);
        x[r + 1] = hn::Mul(hn::Load(d, from + r / 2 * W + im), by);
      }
      turn_blocks<kSide<T>>(d, x);
#pragma GCC unroll 4
      for (int r = 0; r < kSide<T>; ++r) {
        T* some[kMostLanes];
#pragma GCC unroll 16
        for (int i = 0; i < L / kSide<T>; ++i) some[i] = to.at[r + kSide<T> * i];
        to_lines(d, x[r], some, 2 * j);
      }
    }
  for (; j < n; ++j, from += W)
    for (int i = 0; i < to.count; ++i) {
      to.at[i][j * to.stride] = from[re + i] * scale;
      to.at[i][j * to.stride + 1] = from[im + i] * scale;
    }
}

template <class T>
struct Work {  // where passes read and write
  T *a, *b;
  explicit Work(int64_t n) {
    const int64_t elements = n * kWide<T> + 32;
    a = static_cast<T*>(room(kLanes, 2 * elements * int64_t(sizeof(T))));
    b = a + elements;
  }
};

// From lines to lines; by, far: as Ends has them.
template <class T>
void through(const Plan<T>& plan, const Lines<T>& from, bool from_swapped, const Lines<T>& to,
             bool to_swapped, T scale, const Work<T>& work, const T* by = nullptr,
             const T* far = nullptr) {
  constexpr int64_t L = kLanesOf<T>;
  Ends<T> ends;
  ends.by = by, ends.far = far;
  ends.ahead = std::max(from.beside ? from.stride : 0, to.beside ? to.stride : 0) >= 1024;
  if (plan.n > 1 && from.beside && from.count == L)
    ends.in = from.at[0], ends.in_stride = from.stride, ends.in_swapped = from_swapped;
  else
    load(from, plan.n, from_swapped, work.a);
  if (plan.n > 1 && to.beside && to.count == L && !by)
    ends.out = to.at[0], ends.out_stride = to.stride, ends.out_swapped = to_swapped,
    ends.scale = scale;
  const T* done = run_passes(plan, work.a, work.b, ends);
  if (!ends.out) store(done, plan.n, to_swapped, scale, to);
}

template <class T>
void group(const Plan<T>& plan, const Lines<T>& from, const Lines<T>& to, bool back, T scale) {
  through(plan, from, back, to, back, scale, Work<T>(plan.n));
}

template <class T>
void matrix(const Plan<T>& plan, const T* from, T* to, bool back, T scale) {
  constexpr int64_t L = kLanesOf<T>;
  const int64_t columns = plan.columns->n, rows = plan.rows->n;  // their lengths
  // Rows that begin at different sets of the cache.
  const int64_t length = columns + 64 / int64_t(2 * sizeof(T));
  T* between = static_cast<T*>(room(kMatrix, rows * length * 2 * int64_t(sizeof(T))));
  const int64_t grain = std::max<int64_t>(1, (int64_t(1) << 16) / (L * std::max(columns, rows)));
  kit::parallel_for((rows + L - 1) / L, grain, [&](int64_t lo, int64_t hi) HWY_ATTR {
    Work<T> work(columns);
    for (; lo < hi; ++lo) {
      Lines<T> in, out;
      in.at[0] = const_cast<T*>(from) + 2 * lo * L;
      in.stride = 2 * rows, in.beside = true;
      out.stride = 2, out.beside = false;
      in.count = out.count = int(std::min(L, rows - lo * L));
      for (int i = 0; i < out.count; ++i) out.at[i] = between + (lo * L + i) * length * 2;
      const bool all = plan.far.empty();
      through(*plan.columns, in, back, out, false, T(1), work,
              plan.turns.data() + (all ? lo * columns * 2 * L : 0),
              all ? nullptr : plan.far.data() + lo * columns * 2);
    }
  });
  kit::parallel_for((columns + L - 1) / L, grain, [&](int64_t lo, int64_t hi) HWY_ATTR {
    Work<T> work(rows);
    for (; lo < hi; ++lo) {
      Lines<T> in, out;
      in.at[0] = between + 2 * lo * L, in.stride = 2 * length;
      out.at[0] = to + 2 * lo * L, out.stride = 2 * columns;
      in.beside = out.beside = true;
      in.count = out.count = int(std::min(L, columns - lo * L));
      through(*plan.rows, in, false, out, back, scale, work);
    }
  });
}

// to = from * by, n complex numbers; either of the products' ends with its parts swapped.
template <class T>
void product(const T* from, const T* by, T* to, int64_t n, bool swap_from, bool swap_to, T scale) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = kLanesOf<T>;
  const auto factor = hn::Set(d, scale);
  HWY_ALIGN T x[2 * kLanesOf<T>] = {}, w[2 * kLanesOf<T>] = {};
  for (int64_t j = 0; j < n; j += L) {
    const int64_t count = std::min(L, n - j);
    const T *at = from + 2 * j, *turn = by + 2 * j;
    if (count < L) {
      std::memcpy(x, at, size_t(count) * 2 * sizeof(T)), at = x;
      std::memcpy(w, turn, size_t(count) * 2 * sizeof(T)), turn = w;
    }
    hn::Vec<decltype(d)> re, im, c, s;
    hn::LoadInterleaved2(d, at, re, im);
    hn::LoadInterleaved2(d, turn, c, s);
    if (swap_from) std::swap(re, im);
    auto a = hn::Mul(hn::MulSub(re, c, hn::Mul(im, s)), factor);
    auto b = hn::Mul(hn::MulAdd(re, s, hn::Mul(im, c)), factor);
    if (swap_to) std::swap(a, b);
    hn::StoreInterleaved2(a, b, d, count < L ? x : to + 2 * j);
    if (count < L) std::memcpy(to + 2 * j, x, size_t(count) * 2 * sizeof(T));
  }
}

template <class T>
void single(const Plan<T>& plan, const T* from, T* to, bool back, T scale);

template <class T>
void chirped(const Plan<T>& plan, const T* from, T* to, bool back, T scale) {
  const int64_t n = plan.n, m = plan.convolution->n;
  T* wave = static_cast<T*>(room(kChirp, 2 * m * int64_t(sizeof(T))));
  product(from, plan.chirp.data(), wave, n, back, false, T(1));
  std::fill(wave + 2 * n, wave + 2 * m, T(0));
  single(*plan.convolution, wave, wave, false, T(1));
  product(wave, plan.kernel.data(), wave, m, false, false, T(1));
  single(*plan.convolution, wave, wave, true, T(1));
  product(wave, plan.chirp.data(), to, n, false, back, scale);
}

template <class T>
void by_powers(const Plan<T>& plan, const T* from, T* to, bool back, T scale) {
  const int64_t m = plan.n - 1;
  const int re = back ? 1 : 0, im = 1 - re;
  T* wave = static_cast<T*>(room(kChirp, 2 * m * int64_t(sizeof(T))));
  const T first_re = from[re], first_im = from[im];
  for (int64_t k = 0; k < m; ++k) {
    const T* x = from + 2 * int64_t(plan.powers[size_t(k)]);
    wave[2 * k] = x[re], wave[2 * k + 1] = x[im];
  }
  single(*plan.convolution, wave, wave, false, T(1));
  to[re] = (first_re + wave[0]) * scale, to[im] = (first_im + wave[1]) * scale;
  product(wave, plan.kernel.data(), wave, m, false, false, T(1));
  wave[0] += first_re, wave[1] += first_im;  // and so does every element of the result
  single(*plan.convolution, wave, wave, true, scale);
  for (int64_t k = 0; k < m; ++k) {
    T* y = to + 2 * int64_t(plan.places[size_t(k)]);
    y[re] = wave[2 * k], y[im] = wave[2 * k + 1];
  }
}

template <class T>
void in_double(const Plan<T>& plan, const T* from, T* to, bool back, T scale) {
  const int64_t n = 2 * plan.n;
  double* line = static_cast<double*>(room(kDouble, n * int64_t(sizeof(double))));
  std::copy_n(from, n, line);
  single(*plan.wide, line, line, back, double(scale));
  for (int64_t j = 0; j < n; ++j) to[j] = T(line[j]);
}

template <class T>
void single(const Plan<T>& plan, const T* from, T* to, bool back, T scale) {
  if (plan.wide) return in_double(plan, from, to, back, scale);
  if (!plan.powers.empty()) return by_powers(plan, from, to, back, scale);
  if (plan.convolution) return chirped(plan, from, to, back, scale);
  if (plan.columns) return matrix(plan, from, to, back, scale);
  Lines<T> in, out;
  in.at[0] = const_cast<T*>(from), out.at[0] = to;
  in.stride = out.stride = 2, in.count = out.count = 1, in.beside = out.beside = false;
  group(plan, in, out, back, scale);
}

// One pair of mirror images, k and h - k: a + b and a - b, turned.
template <class T>
HWY_INLINE void mirrored(T* p, T* q, const T* w, T sign) {
  const T ar = (p[0] + q[0]) / 2, ai = (p[1] - q[1]) / 2;
  const T br = (p[1] + q[1]) / 2, bi = (q[0] - p[0]) / 2;  // (p - conj q) / 2i
  const T tr = br * w[0] - bi * w[1], ti = br * w[1] + bi * w[0];
  p[0] = ar + tr, p[1] = sign * (ai + ti);
  q[0] = ar - tr, q[1] = sign * (ti - ai);
}

template <class T>
void unfold(const Plan<T>& plan, T* line, bool conj) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = kLanesOf<T>;
  const int64_t h = plan.n / 2;
  const T* w = plan.mirror.data();
  const T sign = conj ? -1 : 1, re = line[0], im = line[1];
  line[0] = re + im, line[1] = 0;
  line[2 * h] = re - im, line[2 * h + 1] = 0;
  const auto half = hn::Set(d, T(0.5)), signs = hn::Set(d, sign);
  int64_t k = 1;
  for (; 2 * (k + L - 1) < h; k += L) {
    T *p = line + 2 * k, *q = line + 2 * (h - k - L + 1);
    hn::Vec<decltype(d)> pr, pi, qr, qi, c, s;
    hn::LoadInterleaved2(d, p, pr, pi);
    hn::LoadInterleaved2(d, q, qr, qi);
    hn::LoadInterleaved2(d, w + 2 * k, c, s);
    qr = hn::Reverse(d, qr), qi = hn::Reverse(d, qi);
    const auto ar = hn::Mul(hn::Add(pr, qr), half), ai = hn::Mul(hn::Sub(pi, qi), half);
    const auto br = hn::Mul(hn::Add(pi, qi), half), bi = hn::Mul(hn::Sub(qr, pr), half);
    const auto tr = hn::MulSub(br, c, hn::Mul(bi, s)), ti = hn::MulAdd(br, s, hn::Mul(bi, c));
    hn::StoreInterleaved2(hn::Add(ar, tr), hn::Mul(signs, hn::Add(ai, ti)), d, p);
    hn::StoreInterleaved2(hn::Reverse(d, hn::Sub(ar, tr)),
                          hn::Reverse(d, hn::Mul(signs, hn::Sub(ti, ai))), d, q);
  }
  for (; 2 * k < h; ++k) mirrored(line + 2 * k, line + 2 * (h - k), w + 2 * k, sign);
  if (2 * k == h) line[2 * k + 1] *= -sign;
}

template <class T>
void fold(const Plan<T>& plan, const T* from, T* to, bool conj) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = kLanesOf<T>;
  const int64_t h = plan.n / 2;
  const T* w = plan.mirror.data();
  const T sign = conj ? -1 : 1;
  to[0] = from[0] + from[2 * h], to[1] = from[0] - from[2 * h];
  const auto signs = hn::Set(d, sign);
  int64_t k = 1;
  for (; 2 * (k + L - 1) < h; k += L) {
    const T *p = from + 2 * k, *q = from + 2 * (h - k - L + 1);
    hn::Vec<decltype(d)> pr, pi, qr, qi, c, s;
    hn::LoadInterleaved2(d, p, pr, pi);
    hn::LoadInterleaved2(d, q, qr, qi);
    hn::LoadInterleaved2(d, w + 2 * k, c, s);
    qr = hn::Reverse(d, qr), qi = hn::Reverse(d, qi);
    pi = hn::Mul(pi, signs), qi = hn::Mul(qi, signs);
    const auto ar = hn::Add(pr, qr), ai = hn::Sub(pi, qi);
    const auto br = hn::Sub(pr, qr), bi = hn::Add(pi, qi);  // p - conj q
    // times i conj(w)
    const auto tr = hn::MulSub(br, s, hn::Mul(bi, c)), ti = hn::MulAdd(br, c, hn::Mul(bi, s));
    hn::StoreInterleaved2(hn::Add(ar, tr), hn::Add(ai, ti), d, to + 2 * k);
    hn::StoreInterleaved2(hn::Reverse(d, hn::Sub(ar, tr)), hn::Reverse(d, hn::Sub(ti, ai)), d,
                          to + 2 * (h - k - L + 1));
  }
  for (; 2 * k <= h; ++k) {
    const T *p = from + 2 * k, *q = from + 2 * (h - k), *turn = w + 2 * k;
    const T pi = sign * p[1], qi = sign * q[1];
    const T ar = p[0] + q[0], ai = pi - qi, br = p[0] - q[0], bi = pi + qi;
    const T tr = br * turn[1] - bi * turn[0], ti = br * turn[0] + bi * turn[1];
    T *one = to + 2 * k, *other = to + 2 * (h - k);
    other[0] = ar - tr, other[1] = ti - ai;
    one[0] = ar + tr, one[1] = ai + ti;
  }
}

// Two real numbers of each line beside the others as a complex one.
template <class T>
void load_pairs(const Lines<T>& from, int64_t pairs, T* to) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = kLanesOf<T>;
  const T* x = from.at[0];
  HWY_ALIGN T part[L] = {};
  for (int64_t j = 0; j < 2 * pairs; ++j, x += from.stride, to += L) {
    const T* row = x;
    if (from.count < L) std::memcpy(part, x, size_t(from.count) * sizeof(T)), row = part;
    hn::Store(hn::LoadU(d, row), d, to);
  }
}

template <class T>
void half_group(const Plan<T>& plan, const Lines<T>& from, const Lines<T>& to, bool conj, T scale) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = kLanesOf<T>, W = kWide<T>;
  const int64_t h = plan.half->n;
  const Work<T> work(h + 1);
  if (from.beside) {
    load_pairs(from, h, work.a);
  } else if (from.stride == 1) {
    Lines<T> pairs = from;
    pairs.stride = 2;
    load(pairs, h, false, work.a);
  } else {
    for (int64_t j = 0; j < 2 * h; ++j)
      for (int i = 0; i < L; ++i)
        work.a[j * L + i] = from.at[i < from.count ? i : 0][j * from.stride];
  }
  T* x = run_passes(*plan.half, work.a, work.b, Ends<T>());
  const auto re = hn::Load(d, x), im = hn::Load(d, x + L);
  for (T* zero : {x + L, x + h * W + L}) hn::Store(hn::Zero(d), d, zero);
  hn::Store(hn::Add(re, im), d, x);
  hn::Store(hn::Sub(re, im), d, x + h * W);
  const auto half = hn::Set(d, T(0.5)), sign = hn::Set(d, T(conj ? -1 : 1));
  for (int64_t k = 1; 2 * k <= h; ++k) {
    T *p = x + k * W, *q = x + (h - k) * W;
    const auto pr = hn::Load(d, p), pi = hn::Load(d, p + L), qr = hn::Load(d, q),
               qi = hn::Load(d, q + L);
    const auto c = hn::Set(d, plan.mirror[size_t(2 * k)]),
               s = hn::Set(d, plan.mirror[size_t(2 * k + 1)]);
    const auto ar = hn::Mul(hn::Add(pr, qr), half), ai = hn::Mul(hn::Sub(pi, qi), half);
    const auto br = hn::Mul(hn::Add(pi, qi), half), bi = hn::Mul(hn::Sub(qr, pr), half);
    const auto tr = hn::MulSub(br, c, hn::Mul(bi, s)), ti = hn::MulAdd(br, s, hn::Mul(bi, c));
    hn::Store(hn::Sub(ar, tr), d, q);
    hn::Store(hn::Mul(sign, hn::Sub(ti, ai)), d, q + L);
    hn::Store(hn::Add(ar, tr), d, p);
    hn::Store(hn::Mul(sign, hn::Add(ai, ti)), d, p + L);
  }
  store(x, h + 1, false, scale, to);
}

template <class T>
constexpr Code<T> table = {int(kLanesOf<T>), &group<T>,  &single<T>,
                           &half_group<T>,   &unfold<T>, &fold<T>};

}  // namespace

AJ_CODE(Code, fft_code, table)

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu::fft {

template <>
const Code<float>& code<float>() {
  static const Code<float>& chosen = *AJ_SIMD(fft_code_single)();
  return chosen;
}
template <>
const Code<double>& code<double>() {
  static const Code<double>& chosen = *AJ_SIMD(fft_code_twice)();
  return chosen;
}

namespace {

// Freed with the thread; what is large goes back at once when less is asked for.
constexpr int64_t kKept = int64_t(64) << 20;
struct Held {
  char* at = nullptr;
  int64_t bytes = 0;
  ~Held() { std::free(at); }
};

}  // namespace

void* room(Slot slot, int64_t bytes) {
  static thread_local Held held[kOther + 1];
  Held& h = held[slot];
  if (h.bytes < bytes || (h.bytes > kKept && bytes <= kKept)) {
    std::free(h.at);
    h.bytes = (bytes + 4095) / 4096 * 4096;
    h.at = static_cast<char*>(std::aligned_alloc(64, size_t(h.bytes)));
    if (!h.at) {
      h.bytes = 0;
      kit::raise(AJ_OUT_OF_MEMORY, "no room for ", bytes, " bytes");
    }
  }
  return h.at;
}

}  // namespace adjoin::cpu::fft
#endif
