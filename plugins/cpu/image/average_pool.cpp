// plugins/cpu/image/average_pool.cpp: averages of windows, over planes or, channels-last, over
// images.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/layout.hpp>
#include <adjoin/kit/reduce.hpp>

#include "vector/reduce_leaf.hpp"
#include "vector/stored.hpp"
#include "window_sums.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/image/average_pool.cpp"
#include "vector/simd.hpp"
// after it, once per target
#include "vector/lanes.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

template <class T>
double sum_line(const T* p, size_t n) {
  const hn::ScalableTag<T> d;
  return sum_of(d, n, [&](size_t i, size_t count) HWY_ATTR { return load_n(d, p + i, count); });
}

// A leaf at most.
template <class T>
T sum_few(const T* p, size_t n) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, p + i));
    b = hn::Add(b, hn::LoadU(d, p + i + lanes));
    c = hn::Add(c, hn::LoadU(d, p + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, p + i + 3 * lanes));
  }
  for (; i < n; i += lanes) a = hn::Add(a, load_n(d, p + i, n - i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

// to[c] = scale * sum over a window's pixels of image[pixel, c]: leaves of 64 pixels, in order.
template <class T>
void average_pixel(const T* image, size_t width, size_t channels, PoolGeometry::Range rows,
                   PoolGeometry::Range columns, T n, T* to) {
  const hn::ScalableTag<T> d;
  for (size_t c = 0; c < channels; c += hn::Lanes(d)) {
    size_t count = channels - c, leaf = 0;
    auto total = hn::Zero(d), sum = hn::Zero(d);
    for (int64_t h = rows.lo; h < rows.hi; ++h)
      for (int64_t w = columns.lo; w < columns.hi; ++w) {
        size_t pixel = size_t(h) * width + size_t(w);
        sum = hn::Add(sum, load_n(d, image + pixel * channels + c, count));
        if (++leaf % 64 == 0) total = hn::Add(total, sum), sum = hn::Zero(d);
      }
    store_n(hn::Div(hn::Add(total, sum), hn::Set(d, n)), d, to + c, count);
  }
}

// Adds g / n to every pixel of a window.
template <class T>
void share_pixel(const T* g, T n, size_t width, size_t channels, PoolGeometry::Range rows,
                 PoolGeometry::Range columns, T* image) {
  const hn::ScalableTag<T> d;
  for (size_t c = 0; c < channels; c += hn::Lanes(d)) {
    size_t count = channels - c;
    auto share = hn::Div(load_n(d, g + c, count), hn::Set(d, n));
    for (int64_t h = rows.lo; h < rows.hi; ++h)
      for (int64_t w = columns.lo; w < columns.hi; ++w) {
        T* p = image + (size_t(h) * width + size_t(w)) * channels + c;
        store_n(hn::Add(load_n(d, p, count), share), d, p, count);
      }
  }
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

using Range = PoolGeometry::Range;

// to[w] += the sum of lines of w.
template <class T>
void add_lines(const T* lines, int64_t count, int64_t width, T* to) {
  for (; count-- > 0; lines += width)
    for (int64_t w = 0; w < width; ++w) to[w] += lines[w];
}

// A few in order, many in lanes.
template <class T>
T sum_columns(const T* p, int64_t n) {
  if (n > kLeaf) return T(AJ_SIMD(sum_line<T>)(p, size_t(n)));
  if (n > 32) return AJ_SIMD(sum_few<T>)(p, size_t(n));
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += p[i];
  return sum;
}

// What each window of an average reads, and what its sum is divided by: a given number, or the
// product of how many elements count in each dimension.
struct Averaged {
  const PoolGeometry& g;
  int64_t given = 0;
  bool adaptive = false, count_pad = false;

  Range window(int d, int64_t o) const {
    return adaptive ? g.adaptive(o, g.out[d], g.in[d]) : g.inside(d, o);
  }
  int64_t count(int d, int64_t o) const {
    if (count_pad) return g.padded(d, o);
    const Range r = window(d, o);
    return r.hi - r.lo;
  }
  int64_t divisor(int64_t oh, int64_t ow) const {
    return given ? given : count(0, oh) * count(1, ow);
  }
};

// Windows' rows are added to one line, whose columns are added then; backward the other way round.
template <class T>
void average_planes(const Averaged& a, T* images, T* smalls, bool backward) {
  const PoolGeometry& g = a.g;
  const int64_t width = g.out[1];
  std::vector<Range> windows;
  std::vector<int64_t> counts;
  for (int64_t ow = 0; ow < width; ++ow)
    windows.push_back(a.window(1, ow)), counts.push_back(a.count(1, ow));
  const LineWindows across(std::move(windows));
  // One window over all of a plane: found out once, for its divisions cost as much as a short
  // plane.
  bool whole = false;
  T all = 1;
  if (g.out_pixels() == 1) {
    Range rows = a.window(0, 0), columns = a.window(1, 0);
    whole = rows.lo == 0 && rows.hi == g.in[0] && columns.lo == 0 && columns.hi == g.in[1];
    all = T(a.divisor(0, 0));
  }
  // A few long windows over a single row: their shares are laid, not added to zeros.
  bool laid = backward && g.in[0] == 1 && g.out[0] == 1 && across.begin == across.end;
  if (laid) {
    const Range rows = a.window(0, 0);
    laid = rows.hi - rows.lo == 1;
  }
  parallel_for(g.planes, grain_of(g.in_pixels()), [&](int64_t lo, int64_t hi) {
    std::vector<T> line(static_cast<size_t>(g.in[1])), divisors(counts.size()),
        shares(counts.size());
    int64_t divided = 0;  // by how many rows the divisors count
    for (int64_t plane = lo; plane < hi; ++plane) {
      T* image = images + plane * g.in_pixels();
      T* small = smalls + plane * g.out_pixels();
      if (whole) {
        if (backward)
          std::fill_n(image, g.in_pixels(), *small / all);
        else
          *small = sum_columns(image, g.in_pixels()) / all;
        continue;
      }
      if (backward && !laid) std::fill_n(image, g.in_pixels(), T(0));
      for (int64_t oh = 0; oh < g.out[0]; ++oh, small += width) {
        const Range rows = a.window(0, oh);
        if (const int64_t n = a.given ? 1 : a.count(0, oh); n != divided) {
          divided = n;
          for (size_t ow = 0; ow < counts.size(); ++ow)
            divisors[ow] = T(a.given ? a.given : n * counts[ow]);
        }
        // A single row needs no line of sums.
        T* sums = rows.hi - rows.lo == 1 ? image + rows.lo * g.in[1] : line.data();
        if (sums == line.data()) {
          std::fill_n(sums, g.in[1], T(0));
          if (!backward) add_lines(image + rows.lo * g.in[1], rows.hi - rows.lo, g.in[1], sums);
        }
        if (!backward) {
          if (across.taps <= kShortWindow)
            sum_windows(across, sums, small);
          else
            for (int64_t ow = 0; ow < width; ++ow)
              small[ow] = sum_columns(sums + across.all[size_t(ow)].lo,
                                      across.all[size_t(ow)].hi - across.all[size_t(ow)].lo);
          divide(small, divisors.data(), width, small);
          continue;
        }
        divide(small, divisors.data(), width, shares.data());
        if (laid) {
          lay_shares(across, shares.data(), image, g.in[1]);
          continue;
        }
        add_shares(across, shares.data(), sums);
        for (int64_t h = rows.lo; sums == line.data() && h < rows.hi; ++h)
          add_lines(sums, 1, g.in[1], image + h * g.in[1]);
      }
    }
  });
}

// Images [batch, height, width, channels].
template <class T>
void average_images(const Averaged& a, int64_t channels, T* images, T* smalls, bool backward) {
  const PoolGeometry& g = a.g;
  int64_t batch = g.planes / std::max<int64_t>(channels, 1);
  auto line = [&](int64_t n, int64_t oh) {
    T* image = images + n * g.in_pixels() * channels;
    T* small = smalls + (n * g.out[0] + oh) * g.out[1] * channels;
    for (int64_t ow = 0; ow < g.out[1]; ++ow, small += channels) {
      Range rows = a.window(0, oh), columns = a.window(1, ow);
      T count = T(a.divisor(oh, ow));
      if (backward) AJ_SIMD(share_pixel<T>)
      (small, count, size_t(g.in[1]), size_t(channels), rows, columns, image);
      else AJ_SIMD(average_pixel<T>)(image, size_t(g.in[1]), size_t(channels), rows, columns, count,
                                     small);
    }
  };
  if (!backward)
    return parallel_for(batch * g.out[0],
                        grain_of(g.in_pixels() * channels / std::max<int64_t>(1, g.out[0])),
                        [&](int64_t lo, int64_t hi) {
                          for (; lo < hi; ++lo) line(lo / g.out[0], lo % g.out[0]);
                        });
  parallel_for(batch, grain_of(g.in_pixels() * channels), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {  // windows of one image may overlap
      std::fill_n(images + lo * g.in_pixels() * channels, g.in_pixels() * channels, T(0));
      for (int64_t oh = 0; oh < g.out[0]; ++oh) line(lo, oh);
    }
  });
}

void average(const Averaged& a, TensorView from, MutView to, bool backward) {
  visit_math<floating>(from.dtype(), [&]<class T>() {
    if (channels_last(backward ? TensorView(to.get()) : from)) {
      ChannelsLast x(from), y(to);
      Dense<T> in(x.view()), out(y.writable());
      average_images(a, from.size(1), backward ? out.data() : in.data(),
                     backward ? in.data() : out.data(), backward);
      return out.commit();
    }
    Dense<T> in(from), out(to);
    average_planes(a, backward ? out.data() : in.data(), backward ? in.data() : out.data(),
                   backward);
    out.commit();
  });
}

void windows_average(const PoolGeometry& g, Args args, uint32_t options, TensorView from,
                     MutView to, bool backward) {
  const int64_t given = args.none(options + 1) ? 0 : args.integer(options + 1);
  average({g, given, false, args.flag(options)}, from, to, backward);
}
void avg_pool(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  windows_average(PoolGeometry(x.shape(), out.shape(), args.ints(1), args.ints(2), args.ints(3)),
                  args, 5, x, out, false);
}
void avg_pool_backward(Args args) {
  TensorView grad = args.tensor(0);
  MutView out = args.result(0);
  windows_average(PoolGeometry(out.shape(), grad.shape(), args.ints(2), args.ints(3), args.ints(4)),
                  args, 6, grad, out, true);
}

void adaptive_average(TensorView big, TensorView small, TensorView from, MutView to,
                      bool backward) {
  constexpr int64_t unused[2] = {1, 1};
  PoolGeometry g(big.shape(), small.shape(), unused, unused, unused);
  average({g, 0, true}, from, to, backward);
}
void adaptive_avg_pool(Args args) {
  MutView out = args.result(0);
  adaptive_average(args.tensor(0), out, args.tensor(0), out, false);
}
void adaptive_avg_pool_backward(Args args) {
  MutView out = args.result(0);
  adaptive_average(out, args.tensor(0), args.tensor(0), out, true);
}

}  // namespace

AJ_KERNELS(pool_kernels) = {
    {"avg_pool2d_forward", custom<avg_pool, stored_floating>},
    {"avg_pool2d_backward", custom<avg_pool_backward, stored_floating>},
    {"adaptive_avg_pool2d_forward", custom<adaptive_avg_pool, stored_floating>},
    {"adaptive_avg_pool2d_backward", custom<adaptive_avg_pool_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
