// plugins/cpu/pool_max.cpp: maxima of windows and where they are: over planes by columns first,
// over channels-last images by channels.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/layout.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <limits>

#include "tables.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pool_max.cpp"
#include "simd.hpp"
// after it, once per target
#include "lanes.hpp"

#ifndef ADJOIN_PLUGINS_CPU_POOL_MAX_ONCE
#define ADJOIN_PLUGINS_CPU_POOL_MAX_ONCE
namespace adjoin::cpu {

// The window of one output: a range of rows or columns of the image.
struct Taps {
  int64_t lo, hi;
};
inline Taps taps_of(const PoolGeometry& g, int d, int64_t o) {
  int64_t lo = o * g.stride[d] - g.pad[d];
  return {std::max<int64_t>(lo, 0), std::min(lo + g.kernel[d], g.in[d])};
}

// One output after another, in the order that ties and NaN are decided by: the first of equal ones,
// the last NaN.
template <class T>
void max_plainly(const PoolGeometry& g, const T* plane, int64_t oh, T* to, int64_t* at) {
  for (int64_t ow = 0; ow < g.out[1]; ++ow) {
    int64_t found = -1;
    T top = T(0);
    for (int64_t kh = 0, h = oh * g.stride[0] - g.pad[0]; kh < g.kernel[0];
         ++kh, h += g.dilation[0]) {
      if (h < 0 || h >= g.in[0]) continue;
      for (int64_t kw = 0, w = ow * g.stride[1] - g.pad[1]; kw < g.kernel[1];
           ++kw, w += g.dilation[1]) {
        if (w < 0 || w >= g.in[1]) continue;
        T v = plane[h * g.in[1] + w];
        if (found < 0 || v > top || scalar::is_nan(v)) top = v, found = h * g.in[1] + w;
      }
    }
    to[ow] = top;
    at[ow] = found;
  }
}

}  // namespace adjoin::cpu
#endif

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

template <class T>
using Place = hwy::MakeSigned<T>;

// The maxima of each column over the rows of one output row, and their places. Says if a NaN is
// among them.
template <class T>
bool max_of_columns(const T* plane, size_t width, Taps rows, T* best, Place<T>* place) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<Place<T>, decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  auto unordered = hn::FirstN(d, 0);
  for (size_t w = 0; w < width; w += lanes) {
    const T* p = plane + size_t(rows.lo) * width + w;
    auto top = load_n(d, p, width - w);
    auto row = hn::Set(di, Place<T>(size_t(rows.lo) * width));
    unordered = hn::Or(unordered, hn::IsNaN(top));
    for (int64_t r = rows.lo + 1; r < rows.hi; ++r) {
      auto v = load_n(d, p += width, width - w);
      auto take = hn::Gt(v, top);
      unordered = hn::Or(unordered, hn::IsNaN(v));
      top = hn::IfThenElse(take, v, top);
      row = hn::IfThenElse(hn::RebindMask(di, take), hn::Set(di, Place<T>(size_t(r) * width)), row);
    }
    store_n(top, d, best + w, width - w);
    store_n(hn::Add(row, hn::Iota(di, Place<T>(w))), di, place + w, width - w);
  }
  return !hn::AllFalse(d, unordered);
}

// Joins columns to windows; best and place begin with the left padding.
template <class T, int kStride>
void max_of_windows(const T* best, const Place<T>* place, size_t outputs, size_t kernel, T* to,
                    Place<T>* at) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<Place<T>, decltype(d)> di;
  for (size_t o = 0; o < outputs; o += hn::Lanes(d)) {
    hn::Vec<decltype(d)> top, v, skipped;
    hn::Vec<decltype(di)> where, i, unused;
    for (size_t k = 0; k < kernel; ++k) {
      if constexpr (kStride == 1) {
        v = hn::LoadU(d, best + o + k);
        i = hn::LoadU(di, place + o + k);
      } else {
        hn::LoadInterleaved2(d, best + 2 * o + k, v, skipped);
        hn::LoadInterleaved2(di, place + 2 * o + k, i, unused);
      }
      if (k == 0) {
        top = v, where = i;
        continue;
      }
      auto equal = hn::And(hn::RebindMask(di, hn::Eq(v, top)), hn::Lt(i, where));
      auto take = hn::Or(hn::RebindMask(di, hn::Gt(v, top)), equal);
      top = hn::IfThenElse(hn::RebindMask(d, take), v, top);
      where = hn::IfThenElse(take, i, where);
    }
    store_n(top, d, to + o, outputs - o);
    store_n(where, di, at + o, outputs - o);
  }
}

template <class T>
void max_plane(const PoolGeometry& g, const T* plane, T* to, int64_t* at, T* best, Place<T>* place,
               Place<T>* found) {
  size_t pad = size_t(g.pad[1]), width = size_t(g.in[1]), outputs = size_t(g.out[1]);
  for (int64_t oh = 0; oh < g.out[0]; ++oh, to += outputs, at += outputs) {
    Taps rows = taps_of(g, 0, oh);
    if (max_of_columns(plane, width, rows, best + pad, place + pad)) {
      max_plainly(g, plane, oh, to, at);
      continue;
    }
    if (g.stride[1] == 1)
      max_of_windows<T, 1>(best, place, outputs, size_t(g.kernel[1]), to, found);
    else
      max_of_windows<T, 2>(best, place, outputs, size_t(g.kernel[1]), to, found);
    for (size_t i = 0; i < outputs; ++i) at[i] = found[i];
  }
}

// One output pixel of a channels-last image.
template <class T>
void max_pixel(const T* image, size_t width, size_t channels, Taps rows, Taps columns, T* to,
               int64_t* at, Place<T>* found) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<Place<T>, decltype(d)> di;
  for (size_t c = 0; c < channels; c += hn::Lanes(d)) {
    size_t n = channels - c, first = size_t(rows.lo) * width + size_t(columns.lo);
    auto top = load_n(d, image + first * channels + c, n);
    auto where = hn::Set(di, Place<T>(first));
    for (int64_t h = rows.lo; h < rows.hi; ++h)
      for (int64_t w = columns.lo; w < columns.hi; ++w) {
        size_t pixel = size_t(h) * width + size_t(w);
        auto v = load_n(d, image + pixel * channels + c, n);
        auto take = hn::Or(hn::Gt(v, top), hn::IsNaN(v));
        top = hn::IfThenElse(take, v, top);
        where = hn::IfThenElse(hn::RebindMask(di, take), hn::Set(di, Place<T>(pixel)), where);
      }
    store_n(top, d, to + c, n);
    store_n(where, di, found + c, n);
  }
  for (size_t c = 0; c < channels; ++c) at[c] = found[c];
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

using maxable = Join<reals, halves>;
constexpr int64_t kSlack = 256;  // elements that vectors may read behind a line

template <class F>
void for_planes(int64_t planes, int64_t pixels, F f) {
  parallel_for(planes, grain_of(pixels), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) f(lo);
  });
}

template <class T>
constexpr bool kVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;

// Every window holds an element, and places fit.
bool regular(const PoolGeometry& g) {
  for (int d = 0; d < 2; ++d)
    if (g.dilation[d] != 1 || g.pad[d] > g.kernel[d] / 2 || g.in[d] < 1 || g.kernel[d] > 1 << 20 ||
        (g.out[d] - 1) * g.stride[d] - g.pad[d] >= g.in[d])
      return false;
  return g.in_pixels() < 1 << 30;
}

template <class T>
void max_planes(const PoolGeometry& g, const T* in, T* best, int64_t* where) {
  bool vectors = kVectors<T> && regular(g) && g.stride[1] <= 2;
  parallel_for(g.planes, grain_of(g.in_pixels()), [&](int64_t lo, int64_t hi) {
    if constexpr (kVectors<T>) {
      if (vectors) {
        using Int = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
        size_t line = size_t(g.in[1] + g.pad[1] + g.kernel[1] + g.out[1] * 2 + 2 * kSlack);
        std::vector<T> columns(line, -std::numeric_limits<T>::infinity());
        std::vector<Int> places(line, std::numeric_limits<Int>::max()), found(line);
        for (int64_t p = lo; p < hi; ++p) AJ_SIMD(max_plane<T>)
        (g, in + p * g.in_pixels(), best + p * g.out_pixels(), where + p * g.out_pixels(),
         columns.data(), places.data(), found.data());
        return;
      }
    }
    for (int64_t p = lo; p < hi; ++p)
      for (int64_t oh = 0; oh < g.out[0]; ++oh)
        max_plainly(g, in + p * g.in_pixels(), oh, best + p * g.out_pixels() + oh * g.out[1],
                    where + p * g.out_pixels() + oh * g.out[1]);
  });
}

// images: [batch, height, width, channels]
template <class T>
void max_images(const PoolGeometry& g, int64_t batch, int64_t channels, const T* in, T* best,
                int64_t* where) {
  using Int = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  int64_t lines = batch * g.out[0];
  parallel_for(lines, grain_of(g.out[1] * channels), [&](int64_t lo, int64_t hi) {
    std::vector<Int> found(size_t(channels + kSlack));
    for (; lo < hi; ++lo) {
      const T* image = in + lo / g.out[0] * g.in_pixels() * channels;
      Taps rows = taps_of(g, 0, lo % g.out[0]);
      for (int64_t ow = 0, at = lo * g.out[1] * channels; ow < g.out[1]; ++ow, at += channels)
        AJ_SIMD(max_pixel<T>)
      (image, size_t(g.in[1]), size_t(channels), rows, taps_of(g, 1, ow), best + at, where + at,
       found.data());
    }
  });
}

void max_pool(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0), indices = args.result(1);
  PoolGeometry g(x.shape(), out.shape(), args.ints(1), args.ints(2), args.ints(3));
  for (int d = 0; d < 2; ++d) g.dilation[d] = args.ints(4)[d];
  visit<maxable>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    if constexpr (kVectors<T>) {
      if (x.ndim() == 4 && channels_last(x) && regular(g)) {
        ChannelsLast image(x), top(out), place(indices);
        Dense<T> in(image.view()), best(top.writable());
        Dense<int64_t> where(place.writable());
        max_images(g, x.size(0), x.size(1), in.data(), best.data(), where.data());
        best.commit();
        return where.commit();
      }
    }
    Dense<T> in(x), best(out);
    Dense<int64_t> where(indices);
    max_planes(g, in.data(), best.data(), where.data());
    best.commit();
    where.commit();
  });
}

void max_pool_backward(Args args) {
  TensorView grad = args.tensor(0);
  MutView out = args.result(0);
  int64_t in_pixels = out.size(-1) * out.size(-2), out_pixels = grad.size(-1) * grad.size(-2);
  int64_t planes = in_pixels ? out.numel() / in_pixels : 0;
  visit<maxable>(grad.dtype(), [&]<class S>() {
    using T = Math<S>;
    auto add = [&](T* to, int64_t at, T v) {
      if (at < 0 || at >= in_pixels) index_error(at, in_pixels, out.ndim() - 1);
      *to = scalar::Add()(*to, v);
    };
    if (out.ndim() == 4 && channels_last(out)) {
      int64_t channels = out.size(1);
      ChannelsLast g(grad), image(out), place(args.tensor(1));
      Dense<T> dy(g.view()), dx(image.writable());
      Dense<int64_t> where(place.view());
      // One chunk owns an image, so that no two threads add to one place.
      for_planes(out.size(0), in_pixels * channels, [&](int64_t n) {
        T* to = dx.data() + n * in_pixels * channels;
        std::fill_n(to, in_pixels * channels, T(0));
        for (int64_t i = n * out_pixels * channels; i < (n + 1) * out_pixels * channels;
             i += channels)
          for (int64_t c = 0; c < channels; ++c) {
            int64_t at = where[i + c];
            add(to + at * channels + c, at, dy[i + c]);
          }
      });
      return dx.commit();
    }
    Dense<T> dy(grad), dx(out);
    Dense<int64_t> where(args.tensor(1));
    for_planes(planes, in_pixels, [&](int64_t plane) {
      T* to = dx.data() + plane * in_pixels;
      std::fill_n(to, in_pixels, T(0));
      for (int64_t i = plane * out_pixels; i < (plane + 1) * out_pixels; ++i)
        add(to + where[i], where[i], dy[i]);
    });
    dx.commit();
  });
}

}  // namespace

const Kernel pool_max_kernels[] = {
    {"max_pool2d_with_indices", custom<max_pool, maxable>},
    {"max_pool2d_backward", custom<max_pool_backward, maxable>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
