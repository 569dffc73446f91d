// plugins/gpu/kernels/grid.cuh: images read at the places that a grid names, and the derivatives.
// What meets at one place is added in one order.
#include <cmath>

#include "../runs.cuh"

namespace adjoin::gpu {
namespace {

enum class Pad : int32_t { kZeros, kBorder, kReflection };
enum class Mode : int32_t { kNearest, kLinear, kCubic };

// Places, weights and their derivatives along one dimension.
template <class T>
struct Ends {
  int64_t at[4];  // -1: outside
  T weight[4], change[4];
};

template <class T>
struct Sampler {
  Mode mode;
  Pad pad;
  bool align;
  int32_t dims;
  int64_t size[3], pixels;
  Divisor channels, places;

  AJ_HD int each() const { return mode == Mode::kNearest ? 1 : mode == Mode::kLinear ? 2 : 4; }
  AJ_HD int taps() const { return dims == 2 ? each() * each() : each() * each() * each(); }

  AJ_DEVICE static T mirrored(T x, T low, T high, T* slope) {
    if (low == high) {
      *slope = T(0);
      return T(0);
    }
    T least = low / 2, span = (high - low) / 2, from = x - least;
    if (from < 0) from = -from, *slope = -*slope;
    T extra = std::fmod(from, span), odd = std::fmod(std::floor(from / span), T(2));
    if (odd != 0) *slope = -*slope;
    return (odd != 0 ? span - extra : extra) + least;
  }
  AJ_DEVICE T inside(T x, int64_t n, T* slope) const {
    if (pad == Pad::kZeros) return x;
    if (pad == Pad::kReflection)
      x = align ? mirrored(x, T(0), T(2 * (n - 1)), slope)
                : mirrored(x, T(-1), T(2 * n - 1), slope);
    T last = T(n - 1);
    if (x > 0 && x < last) return x;
    *slope = T(0);
    return x > 0 ? last : T(0);
  }
  AJ_DEVICE static int64_t place(T p, int64_t n) {
    return p >= 0 && p <= T(n - 1) ? int64_t(p) : -1;
  }

  AJ_DEVICE void axis(T coordinate, int64_t n, Ends<T>& e) const {
    T unit = T(align ? n - 1 : n) / 2, slope = unit;
    T x = align ? (coordinate + 1) * unit : (coordinate + 1) * unit - T(0.5);
    if (mode != Mode::kCubic) x = inside(x, n, &slope);
    if (!(std::fabs(x) < T(1e9))) x = T(-100);  // outside
    if (mode == Mode::kNearest) {
      e.at[0] = place(std::nearbyint(x), n), e.weight[0] = T(1), e.change[0] = T(0);
      return;
    }
    T low = std::floor(x), t = x - low;
    if (mode == Mode::kLinear) {
      e.at[0] = place(low, n), e.weight[0] = 1 - t, e.change[0] = -slope;
      e.at[1] = place(low + 1, n), e.weight[1] = t, e.change[1] = slope;
      return;
    }
    const T a = T(-0.75);  // Keys, 1981
    for (int k = -1; k <= 2; ++k) {
      T y = k < 1 ? t - T(k) : T(k) - t, sign = k < 1 ? slope : -slope, unused = T(1);
      bool near = k == 0 || k == 1;
      e.at[k + 1] = place(inside(low + T(k), n, &unused), n);
      e.weight[k + 1] =
          near ? ((a + 2) * y - (a + 3)) * y * y + 1 : (((y - 5) * y + 8) * y - 4) * a;
      e.change[k + 1] =
          sign * (near ? (3 * (a + 2) * y - 2 * (a + 3)) * y : ((3 * y - 10) * y + 8) * a);
    }
  }
  // A grid has x first.
  AJ_DEVICE void ends(const T* grid, Ends<T>* e) const {
    for (int d = 0; d < dims; ++d) axis(grid[dims - 1 - d], size[d], e[d]);
  }
  // Tap k: its pixel, or -1; which end of each dimension it is.
  AJ_DEVICE int64_t tap(const Ends<T>* e, int k, int* part) const {
    int64_t pixel = 0;
    bool out = false;
    for (int d = dims - 1; d >= 0; --d, k /= each()) part[d] = k % each();
    for (int d = 0; d < dims; ++d) {
      int64_t at = e[d].at[part[d]];
      out = out || at < 0;
      pixel = pixel * size[d] + at;
    }
    return out ? -1 : pixel;
  }
  AJ_DEVICE T weight(const Ends<T>* e, const int* part) const {
    T all = T(1);
    for (int d = 0; d < dims; ++d) all *= e[d].weight[part[d]];
    return all;
  }
};

template <class T>
struct Read {  // a place of an image, all channels
  Sampler<T> s;
  const T *images, *grid;
  T* out;
  AJ_DEVICE void operator()(int64_t i) const {
    Quotient q = s.places.divided(i);
    int64_t image = q.whole, place = q.rest;
    Ends<T> e[3];
    s.ends(grid + i * s.dims, e);
    for (int64_t c = image * s.channels.size; c < (image + 1) * s.channels.size; ++c) {
      T sum = T(0);
      int part[3];
      for (int k = 0; k < s.taps(); ++k) {
        int64_t pixel = s.tap(e, k, part);
        if (pixel < 0) continue;
        T w = s.weight(e, part);
        if (w != 0) sum += w * images[c * s.pixels + pixel];
      }
      out[c * s.places.size + place] = sum;
    }
  }
};
template <class T>
struct AddToImage {  // a channel of an image
  Sampler<T> s;
  const T *grid, *grad;
  T* images;
  AJ_DEVICE void operator()(int64_t c) const {
    int64_t image = s.channels.quotient(c);
    for (int64_t place = 0; place < s.places.size; ++place) {
      Ends<T> e[3];
      int part[3];
      s.ends(grid + (image * s.places.size + place) * s.dims, e);
      for (int k = 0; k < s.taps(); ++k) {
        int64_t pixel = s.tap(e, k, part);
        if (pixel < 0) continue;
        T w = s.weight(e, part);
        if (w != 0) images[c * s.pixels + pixel] += w * grad[c * s.places.size + place];
      }
    }
  }
};
// The same by runs of equal pixels: element i is a tap of a place.
template <class T>
struct TapPixels {
  Sampler<T> s;
  Divisor taps;
  const T* grid;
  T* weights;
  AJ_DEVICE int64_t operator()(int64_t i) const {
    Quotient q = taps.divided(i);
    Ends<T> e[3];
    int part[3];
    s.ends(grid + q.whole * s.dims, e);
    int64_t pixel = s.tap(e, int(q.rest), part);
    if (pixel < 0) return -1;
    weights[i] = s.weight(e, part);
    return weights[i] != 0 ? s.places.quotient(q.whole) * s.pixels + pixel : -1;
  }
};
template <class T>
struct AddTaps {
  using State = T;
  Sampler<T> s;
  Divisor taps, pixels;
  const T *grad, *weights;
  T* images;
  AJ_DEVICE T value(int64_t i, int64_t channel) const {
    Quotient q = s.places.divided(taps.quotient(i));
    return weights[i] * grad[(q.whole * s.channels.size + channel) * s.places.size + q.rest];
  }
  AJ_DEVICE T join(T a, T b) const { return a + b; }
  AJ_DEVICE void put(int64_t at, int64_t channel, T sum) const {
    images[in_line(at, channel, s.channels.size, pixels)] += sum;
  }
};
template <class T>
void add_to_images(const aj_call* call, const Sampler<T>& s, int64_t count, const T* grid,
                   const T* grad, T* images) {
  int64_t taps = s.taps();
  int64_t n = count * s.places.size * taps;
  if (by_lines(count * s.channels.size, s.places.size * taps))
    return each(call, count * s.channels.size, AddToImage<T>{s, grid, grad, images});
  Buffer<T> weights(call, n);
  join_runs(call, TapPixels<T>{s, taps, grid, weights.data()}, n, s.channels.size,
            AddTaps<T>{s, taps, s.pixels, grad, weights.data(), images});
}
template <class T>
struct SlopeOfGrid {  // a place of an image
  Sampler<T> s;
  const T *images, *grid, *grad;
  T* out;
  AJ_DEVICE void operator()(int64_t i) const {
    Quotient q = s.places.divided(i);
    int64_t image = q.whole, place = q.rest;
    Ends<T> e[3];
    s.ends(grid + i * s.dims, e);
    T slope[3] = {T(0), T(0), T(0)};
    for (int k = 0; k < s.taps(); ++k) {
      int part[3];
      int64_t pixel = s.tap(e, k, part);
      if (pixel < 0) continue;
      T sum = T(0);
      for (int64_t c = image * s.channels.size; c < (image + 1) * s.channels.size; ++c)
        sum += images[c * s.pixels + pixel] * grad[c * s.places.size + place];
      for (int d = 0; d < s.dims; ++d) {
        T w = e[d].change[part[d]];
        for (int other = 0; other < s.dims; ++other)
          if (other != d) w *= e[other].weight[part[other]];
        if (w != 0) slope[d] += w * sum;
      }
    }
    for (int d = 0; d < s.dims; ++d) out[i * s.dims + d] = slope[s.dims - 1 - d];
  }
};

template <class T>
Sampler<T> sampler(Args args, uint32_t at, TensorView input, TensorView grid) {
  std::string_view m = args.string(at), p = args.string(at + 1);
  Sampler<T> s = {};
  s.mode = m == "bilinear" ? Mode::kLinear : m == "nearest" ? Mode::kNearest : Mode::kCubic;
  s.pad = p == "zeros" ? Pad::kZeros : p == "border" ? Pad::kBorder : Pad::kReflection;
  s.align = args.flag(at + 2);
  s.dims = int32_t(input.ndim() - 2);
  s.channels = input.size(1);
  s.pixels = 1;
  int64_t places = 1;
  for (int d = 0; d < s.dims; ++d) s.pixels *= s.size[d] = input.size(2 + d);
  for (int d = 1; d <= s.dims; ++d) places *= grid.size(d);
  s.places = places;
  return s;
}

void grid_sampler(Args args) {
  TensorView input = args.tensor(0), grid = args.tensor(1);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  if (out.numel() == 0) return;
  visit<stored_floating>(input.dtype(), [&]<class S>() {
    using T = Math<S>;
    Plain<T> images(call, input), at(call, grid), to(call, out);
    Sampler<T> s = sampler<T>(args, 2, input, grid);
    each(call, input.size(0) * s.places.size, Read<T>{s, images.data(), at.data(), to.data()});
    to.commit();
  });
}

void grid_sampler_backward(Args args) {
  TensorView grad = args.tensor(0), input = args.tensor(1), grid = args.tensor(2);
  MutView image_out = args.result(0), grid_out = args.result(1);
  const aj_call* call = args.call();
  visit<stored_floating>(input.dtype(), [&]<class S>() {
    using T = Math<S>;
    Plain<T> g(call, grad), images(call, input), at(call, grid);
    Sampler<T> s = sampler<T>(args, 3, input, grid);
    if (args.bit(6, 0) && image_out.numel()) {
      Plain<T> to(call, image_out);
      fill_zero(call, to.data(), image_out.numel() * int64_t(sizeof(T)));
      add_to_images(call, s, input.size(0), at.data(), g.data(), to.data());
      to.commit();
    }
    if (args.bit(6, 1) && grid_out.numel()) {
      Plain<T> to(call, grid_out);
      each(call, input.size(0) * s.places.size,
           SlopeOfGrid<T>{s, images.data(), at.data(), g.data(), to.data()});
      to.commit();
    }
  });
}

}  // namespace

AJ_KERNELS(grid_kernels) = {
    {"_::grid_sampler", custom<grid_sampler, stored_floating>},
    {"_::grid_sampler_backward", custom<grid_sampler_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu
