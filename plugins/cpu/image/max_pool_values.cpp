// plugins/cpu/image/max_pool_values.cpp: maxima of windows without their places: of each column
// over the rows of a window, then along the line.
#include <adjoin/kit/layout.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <adjoin/kit/windows.hpp>

#include "max_pool_rows.hpp"
#include "vector/stored.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/image/max_pool_values.cpp"
#include "vector/simd.hpp"
// after it, once per target
#include "vector/lanes.hpp"

#ifndef ADJOIN_PLUGINS_CPU_IMAGE_MAX_POOL_VALUES_ONCE
#define ADJOIN_PLUGINS_CPU_IMAGE_MAX_POOL_VALUES_ONCE
namespace adjoin::cpu {

// The last three dimensions; missing ones are of size 1 and stand first.
struct Pooled {
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  WindowRule rule[3];

  int64_t places() const { return in[0] * in[1] * in[2]; }
  int64_t windows() const { return out[0] * out[1] * out[2]; }
  // Windows of the line, all of whose taps lie inside.
  int64_t first_whole() const {
    return std::min(out[2], (rule[2].padding + rule[2].stride - 1) / rule[2].stride);
  }
  int64_t end_whole() const {
    const WindowRule& r = rule[2];
    int64_t room = in[2] - 1 + r.padding - (r.kernel - 1) * r.dilation;
    return std::max(first_whole(), room < 0 ? 0 : std::min(out[2], room / r.stride + 1));
  }
};

// How many elements vectors may read from where `count` windows of a line begin, made so many at
// once.
inline int64_t reach_of(const WindowRule& r, int64_t count, int64_t at_once) {
  int64_t windows = (count + at_once - 1) / at_once * at_once;
  return windows * r.stride + (r.kernel - 1) * r.dilation + at_once;
}

// Whether maxima of ever more neighbours cost less than every window's own taps, in vectors of
// taps; the maximum of a vector's lanes, which windows far apart need, is as much as three.
inline bool shared_taps_pay(const WindowRule& r, int64_t count, int64_t lanes) {
  const int64_t shared = (count + lanes) * r.stride + r.kernel;
  return r.dilation == 1 && r.kernel > 8 &&
         8 * shared < count * (r.kernel + (r.stride > 4 ? 3 * lanes : 0));
}

// Windows of a line that are made at once: `count`, whose taps begin at `first` and of which
// vectors read `reach` elements.
struct Part {
  int64_t count, first, reach;
  bool copied;  // between enough of the least number on both sides
  bool shares;  // maxima of neighbours among its windows
};

// The lines in parts, cut once for all. A vector has `lanes`, one of 16 bytes `few`. Vectors may
// read what follows the line, if something does, and use none of it.
inline std::vector<Part> parts_of(const Pooled& p, int64_t lanes, int64_t few, bool followed) {
  const WindowRule& r = p.rule[2];
  const int64_t in = p.in[2], out = p.out[2];
  const int64_t room = std::max<int64_t>(2048, 2 * (r.kernel - 1) * r.dilation);
  const int64_t most = std::max<int64_t>(1, room / r.stride / lanes) * lanes;
  const bool shares = shared_taps_pay(r, std::min(most, out), lanes);
  const int64_t at_once = r.stride > 4 && r.dilation == 1 && !shares ? few : lanes;
  followed = followed && p.end_whole() == out;
  std::vector<Part> parts;
  for (int64_t lo = 0, count; lo < out; lo += count) {
    const int64_t first = lo * r.stride - r.padding;
    count = std::min(most, out - lo);
    // What vectors can read of the line is not copied, unless few windows would share taps.
    const int64_t inside = (in - first - reach_of(r, 0, at_once)) / (r.stride * at_once) * at_once;
    const int64_t before = (-first / r.stride / at_once + 1) * at_once;
    if (first < 0 && count > 8 * before && !shares) count = before;
    if (first >= 0 && inside > 0 && !shares && !followed) count = std::min(count, inside);
    const int64_t reach = reach_of(r, count, at_once);
    parts.push_back({count, first, reach, first < 0 || (first + reach > in && !followed), shares});
  }
  return parts;
}

// How much of what follows a line vectors read.
inline int64_t beyond(const Pooled& p, const std::vector<Part>& parts) {
  int64_t most = 0;
  for (const Part& part : parts)
    if (!part.copied) most = std::max(most, part.first + part.reach - p.in[2]);
  return most;
}

template <class T>
T larger(T a, T b) {
  return b > a || scalar::is_nan(b) ? b : a;
}

// The part of a window that lies inside; the least number where none does.
template <class T>
T cut_window(const T* x, int64_t count, int64_t dilation) {
  T top = count ? x[0] : kLeast<T>;
  for (int64_t k = 1; k < count; ++k) top = larger(top, x[k * dilation]);
  return top;
}

}  // namespace adjoin::cpu
#endif

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

template <class D, class V>
HWY_INLINE V larger_of(D, V top, V v) {
  return hn::IfThenElse(hn::Or(hn::Gt(v, top), hn::IsNaN(v)), v, top);
}

// The maxima of each column over some rows, given by where they begin.
template <class T>
HWY_INLINE void over_rows(const T* x, size_t width, const std::vector<int64_t>& rows, T* to) {
  const hn::ScalableTag<T> d;
  for (size_t w = 0; w < width; w += hn::Lanes(d)) {
    auto top = load_n(d, x + rows[0] + w, width - w);
    for (size_t r = 1; r < rows.size(); ++r)
      top = larger_of(d, top, load_n(d, x + rows[r] + w, width - w));
    store_n(top, d, to + w, width - w);
  }
}

// Joins the taps of a vector of windows from x on. Neighbouring ones come by one load, each
// stride-th apart; at longer strides (kStride 0) they are gathered.
template <int kStride, class D, class T, class Join>
HWY_INLINE void join_taps(D d, const T* x, const WindowRule& r, const Join& join) {
  hn::Vec<D> part[4];
  const int64_t together = kStride && r.dilation == 1 ? kStride : 1;
  const hn::RebindToSigned<D> di;
  const auto places = hn::Mul(hn::Iota(di, 0), hn::Set(di, hn::TFromD<decltype(di)>(r.stride)));
  for (int64_t k = 0; k < r.kernel; k += together) {
    const T* tap = x + k * r.dilation;
    if constexpr (kStride == 0) part[0] = hn::GatherIndex(d, tap, places);
    if constexpr (kStride == 1) part[0] = hn::LoadU(d, tap);
    if constexpr (kStride == 2) hn::LoadInterleaved2(d, tap, part[0], part[1]);
    if constexpr (kStride == 3) hn::LoadInterleaved3(d, tap, part[0], part[1], part[2]);
    if constexpr (kStride == 4) hn::LoadInterleaved4(d, tap, part[0], part[1], part[2], part[3]);
    join(part[0]);
    for (int64_t j = 1; j < kStride; ++j)
      if (j < together && k + j < r.kernel) join(part[j]);
  }
}

// One vector of windows. A sum tells that no NaN is among the taps at less than a comparison of
// each; opposite infinities make it ask too often.
template <int kStride, class D, class T>
HWY_INLINE hn::Vec<D> windows_from(D d, const T* x, const WindowRule& r) {
  const auto least = hn::Set(d, kLeast<T>);
  auto top = least, sum = hn::Zero(d);
  join_taps<kStride>(d, x, r, [&](hn::Vec<D> v) HWY_ATTR {
    sum = hn::Add(sum, v);
    top = hn::Max(v, top);
  });
  if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(sum)))) return top;
  top = least;
  join_taps<kStride>(d, x, r, [&](hn::Vec<D> v) HWY_ATTR { top = larger_of(d, top, v); });
  return top;
}

// `count` windows from x on. Here and below vectors read as far as reach_of() says.
template <int kStride, class T>
HWY_INLINE void along(const T* x, int64_t count, const WindowRule& r, T* to) {
  const hn::ScalableTag<T> d;
  for (int64_t o = 0; o < count; o += int64_t(hn::Lanes(d)))
    store_n(windows_from<kStride>(d, x + o * r.stride, r), d, to + o, size_t(count - o));
}

// Windows of neighbouring taps at longer strides, each read by vectors of 16 bytes; as many windows
// as such a vector has lanes are then joined to one, even lanes with odd ones.
template <class T>
void apart(const T* x, int64_t count, const WindowRule& r, T* to) {
  constexpr int64_t lanes = 16 / sizeof(T);
  const hn::FixedTag<T, lanes> d;
  const auto least = hn::Set(d, kLeast<T>);
  const auto inside = hn::FirstN(d, size_t(std::min(r.kernel, lanes)));
  const int64_t second = std::clamp<int64_t>(r.kernel - lanes, 0, lanes);
  for (int64_t o = 0; o < count; o += lanes) {
    const T* from = x + o * r.stride;
    hn::Vec<decltype(d)> top[lanes];
    auto sum = hn::Zero(d);
#pragma GCC unroll 4
    for (int64_t j = 0; j < lanes; ++j) {
      const T* window = from + j * r.stride;
      auto v = hn::IfThenElse(inside, hn::LoadU(d, window), least);
      auto w = hn::IfThenElse(inside, hn::LoadU(d, window + second), least);
      sum = hn::Add(sum, hn::Add(v, w));
      top[j] = hn::Max(w, v);
    }
    for (int64_t k = 2 * lanes; k < r.kernel; k += lanes) {
      const T* window = from + std::min(k, r.kernel - lanes);
#pragma GCC unroll 4
      for (int64_t j = 0; j < lanes; ++j) {
        auto v = hn::LoadU(d, window + j * r.stride);
        sum = hn::Add(sum, v);
        top[j] = hn::Max(v, top[j]);
      }
    }
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(sum)))) {
      for (int64_t j = 0; j < std::min(lanes, count - o); ++j)
        to[o + j] = cut_window(from + j * r.stride, r.kernel, 1);
      continue;
    }
#pragma GCC unroll 2
    for (int64_t left = lanes; left > 1; left /= 2)
#pragma GCC unroll 2
      for (int64_t j = 0; j < left / 2; ++j)
        top[j] = hn::Max(hn::ConcatEven(d, top[2 * j + 1], top[2 * j]),
                         hn::ConcatOdd(d, top[2 * j + 1], top[2 * j]));
    store_n(top[0], d, to + o, size_t(count - o));
  }
}

// Neighbouring taps, so many that a vector of them at a time pays.
template <class T>
HWY_INLINE T wide_window(const T* x, size_t n) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  auto top = hn::LoadU(d, x);
  for (size_t k = lanes; k + lanes <= n; k += lanes) top = larger_of(d, top, hn::LoadU(d, x + k));
  top = larger_of(d, top, hn::LoadU(d, x + n - lanes));
  if (!hn::AllFalse(d, hn::IsNaN(top))) return std::numeric_limits<T>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, top));
}

template <class T>
HWY_NOINLINE void whole_windows(const T* x, int64_t count, const WindowRule& r, T* to) {
  const int64_t lanes = int64_t(hn::Lanes(hn::ScalableTag<T>()));
  const bool wide = r.dilation == 1 && r.kernel >= 2 * lanes;
  if (r.stride == 1) return along<1>(x, count, r, to);
  if (r.stride == 2) return along<2>(x, count, r, to);
  if (r.stride == 3) return along<3>(x, count, r, to);
  if (r.stride == 4) return along<4>(x, count, r, to);
  if (r.dilation > 1) return along<0>(x, count, r, to);
  if (!wide) return apart(x, count, r, to);
  for (int64_t o = 0; o < count; ++o) to[o] = wide_window(x + o * r.stride, size_t(r.kernel));
}

// Windows of many neighbouring taps that overlap much: maxima of ever more neighbours, and of two
// such for each window. left: how much of x there is. The number of passes is that of the digits of
// the kernel in base 4.
template <class T>
void long_windows(const T* x, int64_t count, int64_t left, const WindowRule& r, T* parts, T* to) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  int64_t size = 1;
  const T* from = x;
  while (2 * size <= r.kernel) {
    const int64_t taps = 4 * size <= r.kernel ? 4 : 2;
    left -= size * (taps - 1);
    for (int64_t i = 0; i < left; i += lanes) {
      const size_t n = size_t(left - i);
      auto top = load_n(d, from + i, n);
      for (int64_t j = 1; j < taps; ++j) top = larger_of(d, top, load_n(d, from + i + j * size, n));
      store_n(top, d, parts + i, n);
    }
    size *= taps;
    from = parts;
  }
  // Without a second tap a dilation would still count in where vectors read.
  const bool two = size < r.kernel;
  whole_windows(from, count, {two ? 2 : 1, r.stride, 0, two ? r.kernel - size : 1}, to);
}

// Part by part; what lies outside the line is the least number.
template <class T>
void over_line(const Pooled& p, const std::vector<Part>& cut, const T* x, std::vector<T>& padded,
               std::vector<T>& parts, T* to) {
  const WindowRule& r = p.rule[2];
  const int64_t in = p.in[2];
  for (const Part& part : cut) {
    const T* from = x + part.first;
    if (part.copied) {
      const int64_t begin = std::clamp<int64_t>(part.first, 0, in);
      const int64_t end = std::clamp<int64_t>(part.first + part.reach, begin, in);
      padded.resize(std::max(padded.size(), size_t(part.reach)));
      T* to_pad = std::fill_n(padded.data(), begin - part.first, kLeast<T>);
      to_pad = std::copy(x + begin, x + end, to_pad);
      std::fill_n(to_pad, part.first + part.reach - end, kLeast<T>);
      from = padded.data();
    }
    if (!part.shares) {
      whole_windows(from, part.count, r, to);
    } else {
      parts.resize(std::max(parts.size(), size_t(part.reach)));
      long_windows(from, part.count, part.reach, r, parts.data(), to);
    }
    to += part.count;
  }
}

template <class T>
void maxima_of_volumes(const Pooled& p, const T* x, int64_t count, T* to) {
  const int64_t lanes = int64_t(hn::Lanes(hn::ScalableTag<T>())), width = p.in[2];
  const std::vector<Part> followed = parts_of(p, lanes, 16 / sizeof(T), true);
  const std::vector<Part> alone = parts_of(p, lanes, 16 / sizeof(T), false);
  const int64_t after = width + beyond(p, followed);
  std::vector<T> columns(static_cast<size_t>(after)), padded, parts;
  std::vector<int64_t> rows;
  const T* const end = x + count * p.places();
  for (; count-- > 0; x += p.places())
    for (int64_t i = 0; i < p.out[0]; ++i)
      for (int64_t j = 0; j < p.out[1]; ++j, to += p.out[2]) {
        rows.clear();
        even_window(p.in[0], i, p.rule[0], [&](int64_t plane, int64_t planes) {
          even_window(p.in[1], j, p.rule[1], [&](int64_t row, int64_t many) {
            for (int64_t a = 0; a < planes; ++a)
              for (int64_t b = 0; b < many; ++b)
                rows.push_back(
                    ((plane + a * p.rule[0].dilation) * p.in[1] + row + b * p.rule[1].dilation) *
                    p.in[2]);
          });
        });
        if (rows.empty()) {
          std::fill_n(to, p.out[2], kLeast<T>);
          continue;
        }
        const T* line = x + rows[0];
        if (rows.size() > 1) {
          over_rows(x, size_t(width), rows, columns.data());
          line = columns.data();
        }
        const bool room = rows.size() > 1 || end - line >= after;
        over_line(p, room ? followed : alone, line, padded, parts, to);
      }
}

// One line of the windows of an image whose channels lie beside each other.
template <class T>
void maxima_of_pixels(const Pooled& p, const T* image, int64_t line, size_t channels, T* to) {
  const hn::ScalableTag<T> d;
  const WindowRule &down = p.rule[1], &across = p.rule[2];
  even_window(p.in[1], line, down, [&](int64_t row, int64_t rows) HWY_ATTR {
    for (int64_t o = 0; o < p.out[2]; ++o, to += channels)
      even_window(p.in[2], o, across, [&](int64_t column, int64_t columns) HWY_ATTR {
        if (rows * columns == 0) return void(std::fill_n(to, channels, kLeast<T>));
        const T* first = image + size_t(row * p.in[2] + column) * channels;
        for (size_t c = 0; c < channels; c += hn::Lanes(d)) {
          auto top = load_n(d, first + c, channels - c);
          for (int64_t a = 0; a < rows; ++a)
            for (int64_t b = 0; b < columns; ++b) {
              size_t pixel = size_t(a * down.dilation * p.in[2] + b * across.dilation);
              top = larger_of(d, top, load_n(d, first + pixel * channels + c, channels - c));
            }
          store_n(top, d, to + c, channels - c);
        }
      });
  });
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

using maxable = Join<reals, halves>;

template <class T>
constexpr bool kVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;

// Integers: the compiler finds the vectors.
template <class T>
void plain_volumes(const Pooled& p, const T* x, int64_t count, T* to) {
  const WindowRule& r = p.rule[2];
  for (; count-- > 0; x += p.places())
    for (int64_t i = 0; i < p.out[0]; ++i)
      for (int64_t j = 0; j < p.out[1]; ++j, to += p.out[2]) {
        std::fill_n(to, p.out[2], kLeast<T>);
        even_window(p.in[0], i, p.rule[0], [&](int64_t plane, int64_t planes) {
          even_window(p.in[1], j, p.rule[1], [&](int64_t row, int64_t rows) {
            for (int64_t t = 0; t < planes * rows; ++t) {
              const T* line = x + ((plane + t / rows * p.rule[0].dilation) * p.in[1] + row +
                                   t % rows * p.rule[1].dilation) *
                                      p.in[2];
              const int64_t lo = p.first_whole(), hi = p.end_whole();
              for (int64_t k = 0; k < r.kernel; ++k) {
                const T* tap = line + k * r.dilation - r.padding;
                if (r.stride == 1)
                  for (int64_t o = lo; o < hi; ++o) to[o] = std::max(to[o], tap[o]);
                else
                  for (int64_t o = lo; o < hi; ++o) to[o] = std::max(to[o], tap[o * r.stride]);
              }
              for (int64_t o = 0; o < p.out[2]; ++o) {
                if (o == lo) o = hi;
                if (o < p.out[2])
                  even_window(p.in[2], o, r, [&](int64_t low, int64_t count) {
                    to[o] = std::max(to[o], cut_window(line + low, count, r.dilation));
                  });
              }
            }
          });
        });
      }
}

// Planes of one line without padding, whose windows end before the next line, are one long line.
Pooled joined(Pooled p, int64_t dims, int64_t planes) {
  const WindowRule& r = p.rule[2];
  if (dims > 1 || r.padding || p.out[2] * r.stride != p.in[2] ||
      (r.kernel - 1) * r.dilation >= r.stride)
    return p;
  p.in[2] *= planes, p.out[2] *= planes;
  return p;
}

void window_maxima(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  int64_t dims = int64_t(args.ints(1).size()), planes = 1;
  if (out.numel() == 0) return;
  Pooled p;
  for (int64_t d = 0; d < x.ndim() - dims; ++d) planes *= x.size(d);
  for (int64_t d = 0; d < dims; ++d) {
    int64_t at = 3 - dims + d;
    p.in[at] = x.size(x.ndim() - dims + d), p.out[at] = out.size(x.ndim() - dims + d);
    p.rule[at] = {args.ints(1)[d], args.ints(2)[d], args.ints(3)[d], args.ints(4)[d]};
  }
  visit_math<reals>(x.dtype(), [&]<class T>() {
    if constexpr (kVectors<T>) {
      if (dims == 2 && x.ndim() == 4 && channels_last(x)) {
        ChannelsLast image(x), made(out);
        Dense<T> in(image.view()), to(made.writable());
        int64_t channels = x.size(1), lines = x.size(0) * p.out[1];
        parallel_for(lines, grain_of(p.out[2] * channels * p.rule[1].kernel),
                     [&](int64_t lo, int64_t hi) {
                       for (; lo < hi; ++lo) AJ_SIMD(maxima_of_pixels<T>)
                       (p, in.data() + lo / p.out[1] * p.places() * channels, lo % p.out[1],
                        size_t(channels), to.data() + lo * p.out[2] * channels);
                     });
        return to.commit();
      }
    }
    Dense<T> in(x), to(out);
    parallel_for(planes, grain_of(p.places()), [&](int64_t lo, int64_t hi) {
      const T* from = in.data() + lo * p.places();
      T* made = to.data() + lo * p.windows();
      const Pooled part = joined(p, dims, hi - lo);
      const int64_t count = part.in[2] == p.in[2] ? hi - lo : 1;
      if constexpr (kVectors<T>)
        AJ_SIMD(maxima_of_volumes<T>)(part, from, count, made);
      else
        plain_volumes(part, from, count, made);
    });
    to.commit();
  });
}

}  // namespace

AJ_KERNELS(window_maxima_kernels) = {
    {"_::window_maxima", custom<window_maxima, maxable>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
