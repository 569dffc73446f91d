// plugins/reference/pool.cpp: pooling windows, one output after the other.
#include <adjoin/kit/geometry.hpp>
#include <limits>

#include "element.hpp"

namespace adjoin::reference {
namespace {

void max_pool(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0), indices = args.result(1);
  PoolGeometry g(x.shape(), out.shape(), args.ints(1), args.ints(2), args.ints(3));
  for (int d = 0; d < 2; ++d) g.dilation[d] = args.ints(4)[d];
  visit_math<Join<reals, halves>>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), best(out);
    Dense<int64_t> where(indices);
    using Limits = std::numeric_limits<T>;
    for (int64_t i = 0; i < out.numel(); ++i) {
      best[i] = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();  // where none is
      int64_t plane = i / g.out_pixels(), o = i % g.out_pixels(), at = -1;
      for (int64_t kh = 0; kh < g.kernel[0]; ++kh)
        for (int64_t kw = 0; kw < g.kernel[1]; ++kw) {
          int64_t h = o / g.out[1] * g.stride[0] - g.pad[0] + kh * g.dilation[0];
          int64_t w = o % g.out[1] * g.stride[1] - g.pad[1] + kw * g.dilation[1];
          if (h < 0 || w < 0 || h >= g.in[0] || w >= g.in[1]) continue;
          T v = in[plane * g.in_pixels() + h * g.in[1] + w];
          if (at < 0 || v > best[i] || scalar::is_nan(v)) best[i] = v, at = h * g.in[1] + w;
        }
      where[i] = at;
    }
    best.commit();
    where.commit();
  });
}

void max_pool_backward(Args args) {
  TensorView grad = args.tensor(0), indices = args.tensor(1);
  MutView out = args.result(0);
  int64_t in_pixels = out.size(-1) * out.size(-2), out_pixels = grad.size(-1) * grad.size(-2);
  visit_math<Join<reals, halves>>(grad.dtype(), [&]<class T>() {
    Dense<T> dy(grad), dx(out);
    Dense<int64_t> where(indices);
    std::fill_n(dx.data(), out.numel(), T(0));
    for (int64_t i = 0; i < grad.numel(); ++i) {
      if (where[i] < 0 || where[i] >= in_pixels) index_error(where[i], in_pixels, out.ndim() - 1);
      dx[i / out_pixels * in_pixels + where[i]] += dy[i];
    }
    dx.commit();
  });
}

// Calls f(output, input, divisor) for every pair of an average.
template <class F>
void for_average(const PoolGeometry& g, bool count_pad, int64_t divisor_override, F f) {
  for (int64_t i = 0; i < g.planes * g.out_pixels(); ++i) {
    int64_t plane = i / g.out_pixels(), oh = i % g.out_pixels() / g.out[1], ow = i % g.out[1];
    auto rows = g.inside(0, oh), columns = g.inside(1, ow);
    int64_t n = count_pad ? g.padded(0, oh) * g.padded(1, ow)
                          : (rows.hi - rows.lo) * (columns.hi - columns.lo);
    if (divisor_override) n = divisor_override;
    for (int64_t h = rows.lo; h < rows.hi; ++h)
      for (int64_t w = columns.lo; w < columns.hi; ++w)
        f(i, plane * g.in_pixels() + h * g.in[1] + w, n);
  }
}
template <class F>
void for_adaptive(const PoolGeometry& g, F f) {
  for (int64_t i = 0; i < g.planes * g.out_pixels(); ++i) {
    int64_t plane = i / g.out_pixels(), oh = i % g.out_pixels() / g.out[1], ow = i % g.out[1];
    auto rows = g.adaptive(oh, g.out[0], g.in[0]), columns = g.adaptive(ow, g.out[1], g.in[1]);
    int64_t n = (rows.hi - rows.lo) * (columns.hi - columns.lo);
    for (int64_t h = rows.lo; h < rows.hi; ++h)
      for (int64_t w = columns.lo; w < columns.hi; ++w)
        f(i, plane * g.in_pixels() + h * g.in[1] + w, n);
  }
}

// Sums from -> to over the pairs that `pairs` gives, in double.
template <class Pairs>
void average(TensorView from, MutView to, bool backward, Pairs pairs) {
  visit_math<stored_floating>(from.dtype(), [&]<class T>() {
    Dense<T> x(from), y(to);
    std::vector<double> sum(to.numel());
    pairs([&](int64_t out, int64_t in, int64_t n) {
      sum[backward ? in : out] += double(x[backward ? out : in]) / double(n);
    });
    for (int64_t i = 0; i < to.numel(); ++i) y[i] = T(sum[i]);
    y.commit();
  });
}

void avg_pool(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  PoolGeometry g(x.shape(), out.shape(), args.ints(1), args.ints(2), args.ints(3));
  average(x, out, false,
          [&](auto f) { for_average(g, args.flag(5), args.none(6) ? 0 : args.integer(6), f); });
}
void avg_pool_backward(Args args) {
  TensorView grad = args.tensor(0);
  MutView out = args.result(0);
  PoolGeometry g(out.shape(), grad.shape(), args.ints(2), args.ints(3), args.ints(4));
  average(grad, out, true,
          [&](auto f) { for_average(g, args.flag(6), args.none(7) ? 0 : args.integer(7), f); });
}
constexpr int64_t kNoWindow[2] = {1, 1};
void adaptive_avg_pool(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  PoolGeometry g(x.shape(), out.shape(), kNoWindow, kNoWindow, kNoWindow);
  average(x, out, false, [&](auto f) { for_adaptive(g, f); });
}
void adaptive_avg_pool_backward(Args args) {
  TensorView grad = args.tensor(0);
  MutView out = args.result(0);
  PoolGeometry g(out.shape(), grad.shape(), kNoWindow, kNoWindow, kNoWindow);
  average(grad, out, true, [&](auto f) { for_adaptive(g, f); });
}

}  // namespace

AJ_KERNELS(pool_kernels) = {
    {"max_pool2d_with_indices", custom<max_pool, Join<reals, halves>>},
    {"max_pool2d_backward", custom<max_pool_backward, Join<reals, halves>>},
    {"avg_pool2d_forward", custom<avg_pool, stored_floating>},
    {"avg_pool2d_backward", custom<avg_pool_backward, stored_floating>},
    {"adaptive_avg_pool2d_forward", custom<adaptive_avg_pool, stored_floating>},
    {"adaptive_avg_pool2d_backward", custom<adaptive_avg_pool_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::reference
