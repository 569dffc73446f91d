// plugins/cpu/pool.cpp: pooling, threaded over planes.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>

#include "tables.hpp"

namespace adjoin::cpu {
namespace {

using maxable = Join<reals, halves>;

template <class F>
void for_planes(int64_t planes, int64_t pixels, F f) {
  parallel_for(planes, grain_of(pixels), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) f(lo);
  });
}

void max_pool(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0), indices = args.result(1);
  PoolGeometry g(x.shape(), out.shape(), args.ints(1), args.ints(2), args.ints(3));
  for (int d = 0; d < 2; ++d) g.dilation[d] = args.ints(4)[d];
  visit<maxable>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> in(x), best(out);
    Dense<int64_t> where(indices);
    for_planes(g.planes, g.in_pixels(), [&](int64_t plane) {
      const T* p = in.data() + plane * g.in_pixels();
      T* to = best.data() + plane * g.out_pixels();
      int64_t* at = where.data() + plane * g.out_pixels();
      for (int64_t oh = 0; oh < g.out[0]; ++oh)
        for (int64_t ow = 0; ow < g.out[1]; ++ow, ++to, ++at) {
          int64_t h0 = oh * g.stride[0] - g.pad[0], w0 = ow * g.stride[1] - g.pad[1], found = -1;
          T top = T(0);
          for (int64_t kh = 0, h = h0; kh < g.kernel[0]; ++kh, h += g.dilation[0]) {
            if (h < 0 || h >= g.in[0]) continue;
            for (int64_t kw = 0, w = w0; kw < g.kernel[1]; ++kw, w += g.dilation[1]) {
              if (w < 0 || w >= g.in[1]) continue;
              T v = p[h * g.in[1] + w];
              if (found < 0 || v > top || scalar::is_nan(v)) top = v, found = h * g.in[1] + w;
            }
          }
          *to = top;
          *at = found;
        }
    });
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
    Dense<T> dy(grad), dx(out);
    Dense<int64_t> where(args.tensor(1));
    for_planes(planes, in_pixels, [&](int64_t plane) {
      T* to = dx.data() + plane * in_pixels;
      std::fill_n(to, in_pixels, T(0));
      for (int64_t i = plane * out_pixels; i < (plane + 1) * out_pixels; ++i) {
        if (where[i] < 0 || where[i] >= in_pixels) index_error(where[i], in_pixels, out.ndim() - 1);
        to[where[i]] = scalar::Add()(to[where[i]], dy[i]);
      }
    });
    dx.commit();
  });
}

using Range = PoolGeometry::Range;

// Averages: windows(d, o) is what output o reads of dimension d, divide(oh, ow, rows, columns) what
// the sum is divided by.
template <class Windows, class Divide>
void average(const PoolGeometry& g, TensorView from, MutView to, bool backward, Windows windows,
             Divide divide) {
  visit<stored_floating>(from.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> x(from), y(to);
    for_planes(g.planes, g.in_pixels(), [&](int64_t plane) {
      T* image = (backward ? y.data() : x.data()) + plane * g.in_pixels();
      T* small = (backward ? x.data() : y.data()) + plane * g.out_pixels();
      if (backward) std::fill_n(image, g.in_pixels(), T(0));
      for (int64_t oh = 0; oh < g.out[0]; ++oh)
        for (int64_t ow = 0; ow < g.out[1]; ++ow, ++small) {
          Range rows = windows(0, oh), columns = windows(1, ow);
          T n = T(divide(oh, ow, rows, columns)), sum = 0, share = backward ? *small / n : T(0);
          for (int64_t h = rows.lo; h < rows.hi; ++h)
            for (int64_t w = columns.lo; w < columns.hi; ++w) {
              if (backward)
                image[h * g.in[1] + w] += share;
              else
                sum += image[h * g.in[1] + w];
            }
          if (!backward) *small = sum / n;
        }
    });
    y.commit();
  });
}

void windows_average(const PoolGeometry& g, Args args, uint32_t options, TensorView from,
                     MutView to, bool backward) {
  bool count_pad = args.flag(options);
  int64_t given = args.none(options + 1) ? 0 : args.integer(options + 1);
  average(
      g, from, to, backward, [&](int d, int64_t o) { return g.inside(d, o); },
      [&](int64_t oh, int64_t ow, Range rows, Range columns) {
        if (given) return given;
        return count_pad ? g.padded(0, oh) * g.padded(1, ow)
                         : (rows.hi - rows.lo) * (columns.hi - columns.lo);
      });
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
  average(
      g, from, to, backward, [&](int d, int64_t o) { return g.adaptive(o, g.out[d], g.in[d]); },
      [](int64_t, int64_t, Range rows, Range columns) {
        return (rows.hi - rows.lo) * (columns.hi - columns.lo);
      });
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

const Kernel pool_kernels[] = {
    {"max_pool2d_with_indices", custom<max_pool, maxable>},
    {"max_pool2d_backward", custom<max_pool_backward, maxable>},
    {"avg_pool2d_forward", custom<avg_pool, stored_floating>},
    {"avg_pool2d_backward", custom<avg_pool_backward, stored_floating>},
    {"adaptive_avg_pool2d_forward", custom<adaptive_avg_pool, stored_floating>},
    {"adaptive_avg_pool2d_backward", custom<adaptive_avg_pool_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
