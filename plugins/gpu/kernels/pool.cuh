// plugins/gpu/kernels/pool.cuh: maxima and means over windows. Gradients of means are gathered: a
// thread owns an element of the input and asks which windows hold it.
#include <adjoin/kit/geometry.hpp>
#include <limits>

#include "../runs.cuh"

namespace adjoin::gpu {
namespace {

using pooled = Join<reals, halves>;

// An element of a plane of the last two dimensions.
struct Pixel {
  int64_t plane, row, column;
};
struct Planes {
  Divisor rows, columns;
  AJ_HD Pixel operator()(int64_t i) const {
    int64_t column = columns.split(&i), row = rows.split(&i);
    return {i, row, column};
  }
};

template <class T>
struct MaxPool {
  PoolGeometry g;
  Planes planes;  // of the result
  const T* x;
  T* out;
  int64_t* where;
  AJ_DEVICE void operator()(int64_t i) const {
    Pixel o = planes(i);
    const T* plane = x + o.plane * (g.in[0] * g.in[1]);
    int64_t row = o.row * g.stride[0] - g.pad[0], column = o.column * g.stride[1] - g.pad[1];
    int64_t at = -1;
    using Limits = std::numeric_limits<Math<T>>;
    Math<T> best = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    for (int64_t kh = 0; kh < g.kernel[0]; ++kh)
      for (int64_t kw = 0; kw < g.kernel[1]; ++kw) {
        int64_t h = row + kh * g.dilation[0], w = column + kw * g.dilation[1];
        if (h < 0 || w < 0 || h >= g.in[0] || w >= g.in[1]) continue;
        Math<T> v(plane[h * g.in[1] + w]);
        if (at < 0 || v > best || scalar::is_nan(v)) best = v, at = h * g.in[1] + w;
      }
    out[i] = cast<T>(best);
    where[i] = at;
  }
};
void max_pool(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  PoolGeometry g(x.shape(), out.shape(), args.ints(1), args.ints(2), args.ints(3));
  for (int d = 0; d < 2; ++d) g.dilation[d] = args.ints(4)[d];
  visit<pooled>(x.dtype(), [&]<class T>() {
    Plain<T> in(call, x), best(call, out);
    Plain<int64_t> where(call, args.result(1));
    each(call, out.numel(),
         MaxPool<T>{g, {g.out[0], g.out[1]}, in.data(), best.data(), where.data()});
    best.commit();
    where.commit();
  });
}

// Windows may meet: what is added to one element is added in one order.
template <class T>
struct MaxPoolBackward {
  using State = Math<T>;
  const T* grad;
  const int64_t* where;
  State* out;
  int64_t in_pixels, dim;
  Divisor out_pixels;
  Fault* fault;
  AJ_DEVICE int64_t operator()(int64_t i) const {
    int64_t at = checked(where[i], in_pixels, dim, fault);
    return at < 0 ? at : out_pixels.quotient(i) * in_pixels + at;
  }
  AJ_DEVICE State value(int64_t i, int64_t) const { return State(grad[i]); }
  AJ_DEVICE State join(State a, State b) const { return State(a + b); }
  AJ_DEVICE void put(int64_t at, int64_t, State s) const { out[at] = State(out[at] + s); }
};
void max_pool_backward(Args args) {
  TensorView grad = args.tensor(0);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  int64_t in_pixels = out.size(-1) * out.size(-2), out_pixels = grad.size(-1) * grad.size(-2);
  visit<pooled>(grad.dtype(), [&]<class T>() {
    Plain<T> dy(call, grad);
    Plain<Math<T>> dx(call, out);
    Plain<int64_t> where(call, args.tensor(1));
    fill_zero(call, dx.data(), out.numel() * int64_t(sizeof(Math<T>)));
    if (grad.numel())
      join_all(call, grad.numel() / out_pixels, out_pixels,
               MaxPoolBackward<T>{dy.data(), where.data(), dx.data(), in_pixels, out.ndim() - 1,
                                  out_pixels, fault_of(call)});
    dx.commit();
  });
}

// Which inputs a window of a mean has, and by how many it divides; which windows an input is in.
struct Means {
  PoolGeometry g;
  int64_t divisor;  // 0: what the window holds
  bool count_pad, adaptive;
  Divisor in[2], out[2], stride[2];

  Means(const PoolGeometry& geometry, int64_t by, bool pads, bool adapts)
      : g(geometry), divisor(by), count_pad(pads), adaptive(adapts) {
    for (int d = 0; d < 2; ++d) in[d] = g.in[d], out[d] = g.out[d], stride[d] = g.stride[d];
  }
  AJ_HD PoolGeometry::Range window(int d, int64_t o) const {
    if (adaptive)
      return {out[d].quotient(o * g.in[d]), out[d].quotient((o + 1) * g.in[d] + g.out[d] - 1)};
    int64_t lo = o * g.stride[d] - g.pad[d], hi = lo + g.kernel[d];
    return {lo > 0 ? lo : 0, hi < g.in[d] ? hi : g.in[d]};
  }
  AJ_HD int64_t padded(int d, int64_t o) const {
    int64_t lo = o * g.stride[d] - g.pad[d], hi = lo + g.kernel[d];
    return (hi < g.in[d] + g.pad[d] ? hi : g.in[d] + g.pad[d]) - lo;
  }
  AJ_HD int64_t count(int64_t oh, int64_t ow) const {
    if (divisor) return divisor;
    if (count_pad && !adaptive) return padded(0, oh) * padded(1, ow);
    auto rows = window(0, oh), columns = window(1, ow);
    return (rows.hi - rows.lo) * (columns.hi - columns.lo);
  }
  AJ_HD PoolGeometry::Range windows_of(int d, int64_t i) const {  // may be too many, never too few
    if (adaptive) {
      int64_t hi = in[d].quotient((i + 1) * g.out[d] + g.in[d] - 1) + 1;
      return {in[d].quotient(i * g.out[d]), hi < g.out[d] ? hi : g.out[d]};
    }
    int64_t from = i + g.pad[d] - g.kernel[d], hi = stride[d].quotient(i + g.pad[d]) + 1;
    return {from > 0 ? stride[d].quotient(from) : 0, hi < g.out[d] ? hi : g.out[d]};
  }
};
template <class T>
struct MeanPool {
  Means m;
  const T* x;
  T* out;
  AJ_DEVICE void operator()(int64_t i) const {
    Pixel o = Planes{m.out[0], m.out[1]}(i);
    auto rows = m.window(0, o.row), columns = m.window(1, o.column);
    const T* plane = x + o.plane * (m.g.in[0] * m.g.in[1]);
    Math<T> sum(0);
    for (int64_t h = rows.lo; h < rows.hi; ++h)
      for (int64_t w = columns.lo; w < columns.hi; ++w) sum += Math<T>(plane[h * m.g.in[1] + w]);
    out[i] = T(sum / Math<T>(m.count(o.row, o.column)));
  }
};
template <class T>
struct MeanPoolBackward {
  Means m;
  const T* grad;
  T* out;
  AJ_DEVICE void operator()(int64_t i) const {
    Pixel at = Planes{m.in[0], m.in[1]}(i);
    int64_t h = at.row, w = at.column;
    auto rows = m.windows_of(0, h), columns = m.windows_of(1, w);
    const T* plane = grad + at.plane * (m.g.out[0] * m.g.out[1]);
    Math<T> sum(0);
    for (int64_t oh = rows.lo; oh < rows.hi; ++oh) {
      auto r = m.window(0, oh);
      if (h < r.lo || h >= r.hi) continue;
      for (int64_t ow = columns.lo; ow < columns.hi; ++ow) {
        auto c = m.window(1, ow);
        if (w < c.lo || w >= c.hi) continue;
        sum += Math<T>(plane[oh * m.g.out[1] + ow]) / Math<T>(m.count(oh, ow));
      }
    }
    out[i] = T(sum);
  }
};
void mean(const aj_call* call, const Means& m, TensorView from, MutView to, bool backward) {
  visit<stored_floating>(from.dtype(), [&]<class T>() {
    Plain<T> x(call, from), y(call, to);
    if (backward)
      each(call, to.numel(), MeanPoolBackward<T>{m, x.data(), y.data()});
    else
      each(call, to.numel(), MeanPool<T>{m, x.data(), y.data()});
    y.commit();
  });
}

void avg_pool(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  PoolGeometry g(x.shape(), out.shape(), args.ints(1), args.ints(2), args.ints(3));
  mean(args.call(), {g, args.none(6) ? 0 : args.integer(6), args.flag(5), false}, x, out, false);
}
void avg_pool_backward(Args args) {
  TensorView grad = args.tensor(0);
  MutView out = args.result(0);
  PoolGeometry g(out.shape(), grad.shape(), args.ints(2), args.ints(3), args.ints(4));
  mean(args.call(), {g, args.none(7) ? 0 : args.integer(7), args.flag(6), false}, grad, out, true);
}
constexpr int64_t kNoWindow[2] = {1, 1};
void adaptive_avg_pool(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  PoolGeometry g(x.shape(), out.shape(), kNoWindow, kNoWindow, kNoWindow);
  mean(args.call(), {g, 0, false, true}, x, out, false);
}
void adaptive_avg_pool_backward(Args args) {
  TensorView grad = args.tensor(0);
  MutView out = args.result(0);
  PoolGeometry g(out.shape(), grad.shape(), kNoWindow, kNoWindow, kNoWindow);
  mean(args.call(), {g, 0, false, true}, grad, out, true);
}

}  // namespace

AJ_KERNELS(pool_kernels) = {
    {"max_pool2d_with_indices", custom<max_pool, pooled>},
    {"max_pool2d_backward", custom<max_pool_backward, pooled>},
    {"avg_pool2d_forward", custom<avg_pool, stored_floating>},
    {"avg_pool2d_backward", custom<avg_pool_backward, stored_floating>},
    {"adaptive_avg_pool2d_forward", custom<adaptive_avg_pool, stored_floating>},
    {"adaptive_avg_pool2d_backward", custom<adaptive_avg_pool_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu
