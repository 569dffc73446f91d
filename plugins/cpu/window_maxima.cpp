// plugins/cpu/window_maxima.cpp: maxima of windows without their places: of each column over the
// rows of a window, then along the line.
#include <adjoin/kit/layout.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <adjoin/kit/windows.hpp>

#include "max_windows.hpp"
#include "vision.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "window_maxima.cpp"
#include "simd.hpp"
// after it, once per target
#include "lanes.hpp"

#ifndef ADJOIN_PLUGINS_CPU_WINDOW_MAXIMA_ONCE
#define ADJOIN_PLUGINS_CPU_WINDOW_MAXIMA_ONCE
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

// One vector of windows from tap x on. Neighbouring taps come by one load, each stride-th apart.
template <int kStride, class D, class T>
HWY_INLINE hn::Vec<D> windows_from(D d, const T* x, const WindowRule& r) {
  hn::Vec<D> part[4], top;
  const int64_t together = r.dilation == 1 ? kStride : 1;
  for (int64_t k = 0; k < r.kernel; k += together) {
    const T* tap = x + k * r.dilation;
    if constexpr (kStride == 1) part[0] = hn::LoadU(d, tap);
    if constexpr (kStride == 2) hn::LoadInterleaved2(d, tap, part[0], part[1]);
    if constexpr (kStride == 3) hn::LoadInterleaved3(d, tap, part[0], part[1], part[2]);
    if constexpr (kStride == 4) hn::LoadInterleaved4(d, tap, part[0], part[1], part[2], part[3]);
    top = k ? larger_of(d, top, part[0]) : part[0];
    for (int64_t j = 1; j < kStride; ++j)
      if (j < together && k + j < r.kernel) top = larger_of(d, top, part[j]);
  }
  return top;
}

// Windows from `lo` on as far as vectors read nothing behind the line; returns where it stopped.
template <int kStride, class T>
HWY_INLINE int64_t along(const T* x, int64_t in, const WindowRule& r, int64_t lo, int64_t hi,
                         T* to) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  const int64_t reach = (r.kernel - 1) * r.dilation - r.padding;
  for (; lo + lanes <= hi && (lo + lanes) * kStride + reach <= in; lo += lanes)
    hn::StoreU(windows_from<kStride>(d, x + lo * kStride - r.padding, r), d, to + lo);
  return lo;
}

// The same for longer strides: of the windows from neighbouring places each stride-th is kept.
template <class T>
HWY_INLINE int64_t along_some(const T* x, int64_t in, const WindowRule& r, int64_t lo, int64_t hi,
                              T* to) {
  const hn::ScalableTag<T> d;
  HWY_ALIGN T all[hn::MaxLanes(d)];
  const int64_t lanes = int64_t(hn::Lanes(d)), kept = (lanes - 1) / r.stride + 1;
  const int64_t reach = (r.kernel - 1) * r.dilation - r.padding;
  for (; lo + kept <= hi && lo * r.stride + lanes + reach <= in; lo += kept) {
    hn::Store(windows_from<1>(d, x + lo * r.stride - r.padding, r), d, all);
    for (int64_t j = 0; j < kept; ++j) to[lo + j] = all[j * r.stride];
  }
  return lo;
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
void over_line(const Pooled& p, const T* x, T* to) {
  const WindowRule& r = p.rule[2];
  const int64_t in = p.in[2], lo = p.first_whole(), hi = p.end_whole();
  const int64_t lanes = int64_t(hn::Lanes(hn::ScalableTag<T>()));
  const bool wide = r.dilation == 1 && r.kernel >= 2 * lanes;
  int64_t at = lo;
  if (r.stride == 1) at = along<1>(x, in, r, lo, hi, to);
  if (r.stride == 2) at = along<2>(x, in, r, lo, hi, to);
  if (r.stride == 3) at = along<3>(x, in, r, lo, hi, to);
  if (r.stride == 4) at = along<4>(x, in, r, lo, hi, to);
  if (r.stride > 4 && r.stride < lanes && !wide) at = along_some(x, in, r, lo, hi, to);
  auto single = [&](int64_t o) HWY_ATTR {
    return even_window(in, o, r, [&](int64_t low, int64_t count) HWY_ATTR {
      return r.dilation == 1 && count >= lanes ? wide_window(x + low, size_t(count))
                                               : cut_window(x + low, count, r.dilation);
    });
  };
  for (int64_t o = 0; o < lo; ++o) to[o] = single(o);
  for (; at < p.out[2]; ++at) to[at] = single(at);
}

template <class T>
void maxima_of_volumes(const Pooled& p, const T* x, int64_t count, T* to) {
  std::vector<T> columns(size_t(p.in[2]));
  std::vector<int64_t> rows;
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
        if (rows.size() > 1) over_rows(x, columns.size(), rows, columns.data());
        over_line(p, rows.size() > 1 ? columns.data() : x + rows[0], to);
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
  visit<maxable>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
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

const Kernel window_maxima_kernels[] = {
    {"_::window_maxima", custom<window_maxima, maxable>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
