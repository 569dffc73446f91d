// plugins/cpu/image/max_pool.cpp: maxima of windows of images and where they are; of channels-last
// images by channels.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/layout.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>

#include "max_pool_rows.hpp"
#include "vector/stored.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/image/max_pool.cpp"
#include "vector/simd.hpp"
// after it, once per target
#include "vector/lanes.hpp"

#ifndef ADJOIN_PLUGINS_CPU_IMAGE_MAX_POOL_ONCE
#define ADJOIN_PLUGINS_CPU_IMAGE_MAX_POOL_ONCE
namespace adjoin::cpu {

// The window of one output: a range of rows or columns of the image.
struct Taps {
  int64_t lo, hi;
};
inline Taps taps_of(const PoolGeometry& g, int d, int64_t o) {
  int64_t lo = o * g.stride[d] - g.pad[d];
  return {std::max<int64_t>(lo, 0), std::min(lo + g.kernel[d], g.in[d])};
}

// Windows that tile an image from its first pixel on; what they leave over lies right and below.
struct Tiling {
  int64_t in[2], out[2], size[2];
};

}  // namespace adjoin::cpu
#endif

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

template <class T>
using Place = hwy::MakeSigned<T>;

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

// As many elements as there are places, which are of eight bytes, in a vector.
using PlacesTag = hn::ScalableTag<int64_t>;
template <class T>
using Beside = hn::Rebind<T, PlacesTag>;

// Places as numbers of the elements' size, and all their bits, which tell if one does not fit.
template <class T, class V>
HWY_INLINE hn::Vec<Beside<Place<T>>> places_from(const int64_t* at, size_t n, V& bits) {
  auto wide = load_n(PlacesTag(), at, n);
  bits = hn::Or(bits, wide);
  if constexpr (sizeof(T) == 8) {
    return wide;
  } else {
    const hn::RebindToUnsigned<PlacesTag> du;
    auto narrow = hn::TruncateTo(Beside<uint32_t>(), hn::BitCast(du, wide));
    return hn::BitCast(Beside<int32_t>(), narrow);
  }
}

// The gradient of a channels-last image: each pixel is written once. False where a place lies
// outside its tile; then nothing is known of what was written.
template <class T>
bool spread_pixels(const Tiling& t, const T* grad, const int64_t* at, size_t channels, T* to) {
  const Beside<T> d;
  const Beside<Place<T>> di;
  const size_t line = size_t(t.in[1]) * channels;
  auto bits = hn::Zero(PlacesTag());
  for (int64_t h = 0; h < t.out[0]; ++h) {
    for (int64_t w = 0; w < t.out[1]; ++w, grad += channels, at += channels) {
      const int64_t first = h * t.size[0] * t.in[1] + w * t.size[1];
      for (size_t c = 0; c < channels; c += hn::Lanes(d)) {
        const size_t n = channels - c;
        auto g = load_n(d, grad + c, n);
        auto place = places_from<T>(at + c, n, bits);
        auto outside = hn::FirstN(d, n);
        for (int64_t i = 0; i < t.size[0]; ++i)
          for (int64_t j = 0; j < t.size[1]; ++j) {
            const int64_t pixel = first + i * t.in[1] + j;
            auto here = hn::RebindMask(d, hn::Eq(place, hn::Set(di, Place<T>(pixel))));
            outside = hn::AndNot(here, outside);
            store_n(hn::IfThenElseZero(here, g), d, to + size_t(pixel) * channels + c, n);
          }
        if (!hn::AllFalse(d, outside)) return false;
      }
    }
    const size_t used = size_t(t.out[1] * t.size[1]) * channels;
    for (int64_t i = h * t.size[0]; used < line && i < (h + 1) * t.size[0]; ++i)
      std::fill_n(to + size_t(i) * line + used, line - used, T(0));
  }
  std::fill(to + size_t(t.out[0] * t.size[0]) * line, to + size_t(t.in[0]) * line, T(0));
  return hn::AllFalse(PlacesTag(), hn::Ne(hn::ShiftRight<31>(bits), hn::Zero(PlacesTag())));
}

// The same for a plane in C order, two columns a tile.
template <class T>
bool spread_plane(const Tiling& t, const T* grad, const int64_t* at, T* to) {
  const Beside<T> d;
  const Beside<Place<T>> di;
  const size_t windows = size_t(t.out[1]), line = size_t(t.in[1]);
  HWY_ALIGN T pair[2 * hn::MaxLanes(d)];
  auto bits = hn::Zero(PlacesTag());
  for (int64_t h = 0; h < t.out[0]; ++h, grad += windows, at += windows)
    for (size_t w = 0; w < windows; w += hn::Lanes(d)) {
      const size_t n = HWY_MIN(windows - w, hn::Lanes(d));
      auto g = load_n(d, grad + w, n);
      auto place = places_from<T>(at + w, n, bits);
      auto outside = hn::FirstN(d, n);
      for (int64_t i = h * t.size[0]; i < (h + 1) * t.size[0]; ++i) {
        const size_t first = size_t(i) * line + 2 * w;
        auto left = hn::Add(hn::Set(di, Place<T>(first)), hn::Iota(di, 0));
        left = hn::Add(left, hn::Iota(di, 0));
        auto even = hn::RebindMask(d, hn::Eq(place, left));
        auto odd = hn::RebindMask(d, hn::Eq(place, hn::Add(left, hn::Set(di, 1))));
        outside = hn::AndNot(hn::Or(even, odd), outside);
        T* pixels = n == hn::Lanes(d) ? to + first : pair;
        hn::StoreInterleaved2(hn::IfThenElseZero(even, g), hn::IfThenElseZero(odd, g), d, pixels);
        if (pixels == pair) std::copy_n(pair, 2 * n, to + first);
        if (w + n == windows && 2 * windows < line)
          std::fill_n(to + first + 2 * n, line - 2 * windows, T(0));
      }
      if (!hn::AllFalse(d, outside)) return false;
    }
  std::fill(to + size_t(t.out[0] * t.size[0]) * line, to + size_t(t.in[0]) * line, T(0));
  return hn::AllFalse(PlacesTag(), hn::Ne(hn::ShiftRight<31>(bits), hn::Zero(PlacesTag())));
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
  MaxWindows w;
  w.set(0, 1, 1, {});
  for (int d = 0; d < 2; ++d)
    w.set(d + 1, g.in[d], g.out[d], {g.kernel[d], g.stride[d], g.pad[d], g.dilation[d]});
  parallel_for(g.planes, grain_of(g.in_pixels()), [&](int64_t lo, int64_t hi) {
    max_of_volumes(w, in + lo * g.in_pixels(), hi - lo, best + lo * g.out_pixels(),
                   where + lo * g.out_pixels());
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
  visit_math<reals>(x.dtype(), [&]<class T>() {
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

// What windows beside each other without padding would be: their sizes are no arguments here, and
// places outside these are found when they are read.
Tiling tiles_of(const MutView& out, const TensorView& grad) {
  Tiling t;
  for (int d = 0; d < 2; ++d) {
    t.in[d] = out.size(d - 2), t.out[d] = grad.size(d - 2);
    t.size[d] = t.out[d] ? t.in[d] / t.out[d] : 0;
  }
  return t;
}
bool likely(const Tiling& t) {
  return t.size[0] > 0 && t.size[1] > 0 && t.size[0] * t.size[1] <= 16 &&
         t.in[0] * t.in[1] < 1 << 30;
}

void max_pool_backward(Args args) {
  TensorView grad = args.tensor(0);
  MutView out = args.result(0);
  const Tiling tiles = tiles_of(out, grad);
  int64_t in_pixels = out.size(-1) * out.size(-2), out_pixels = grad.size(-1) * grad.size(-2);
  int64_t planes = in_pixels ? out.numel() / in_pixels : 0;
  visit_math<reals>(grad.dtype(), [&]<class T>() {
    auto add = [](T* to, T v) { *to = scalar::Add()(*to, v); };
    if (out.ndim() == 4 && channels_last(out)) {
      int64_t channels = out.size(1);
      ChannelsLast g(grad), image(out), place(args.tensor(1));
      Dense<T> dy(g.view()), dx(image.writable());
      Dense<int64_t> where(place.view());
      // One chunk owns an image, so that no two threads add to one place.
      for_planes(out.size(0), in_pixels * channels, [&](int64_t n) {
        T* to = dx.data() + n * in_pixels * channels;
        if constexpr (kVectors<T>) {
          const int64_t first = n * out_pixels * channels;
          if (likely(tiles) &&
              AJ_SIMD(spread_pixels<T>)(tiles, dy.data() + first, where.data() + first,
                                        size_t(channels), to))
            return;
        }
        std::fill_n(to, in_pixels * channels, T(0));
        for (int64_t i = n * out_pixels * channels; i < (n + 1) * out_pixels * channels;
             i += channels) {
          check_indices(where.data() + i, channels, in_pixels, out.ndim() - 1);
          for (int64_t c = 0; c < channels; ++c) add(to + where[i + c] * channels + c, dy[i + c]);
        }
      });
      return dx.commit();
    }
    Dense<T> dy(grad), dx(out);
    Dense<int64_t> where(args.tensor(1));
    for_planes(planes, in_pixels, [&](int64_t plane) {
      T* to = dx.data() + plane * in_pixels;
      if constexpr (kVectors<T>) {
        const int64_t first = plane * out_pixels;
        if (likely(tiles) && tiles.size[1] == 2 &&
            AJ_SIMD(spread_plane<T>)(tiles, dy.data() + first, where.data() + first, to))
          return;
      }
      std::fill_n(to, in_pixels, T(0));
      check_indices(where.data() + plane * out_pixels, out_pixels, in_pixels, out.ndim() - 1);
      for (int64_t i = plane * out_pixels; i < (plane + 1) * out_pixels; ++i)
        add(to + where[i], dy[i]);
    });
    dx.commit();
  });
}

}  // namespace

AJ_KERNELS(pool_max_kernels) = {
    {"max_pool2d_with_indices", custom<max_pool, maxable>},
    {"max_pool2d_backward", custom<max_pool_backward, maxable>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
