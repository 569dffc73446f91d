// plugins/cpu/lines/batch_norm.cpp: batch normalization and its gradient: channels as planes,
// threaded over channels, or as the contiguous dimension, threaded over rows.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/layout.hpp>
#include <adjoin/kit/parallel.hpp>
#include <cmath>

#include "channel_values.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/lines/batch_norm.cpp"
#include "vector/simd.hpp"
// after it, once per target
#include "vector/lanes.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

// A channel's planes: n elements each, `step` apart.
template <class T>
double sum_planes(const T* p, size_t planes, size_t n, size_t step) {
  const hn::ScalableTag<T> d;
  double total = 0;
  for (size_t k = 0; k < planes; ++k, p += step)
    total += sum_of(d, n, [&](size_t i, size_t count) HWY_ATTR { return load_n(d, p + i, count); });
  return total;
}

template <class T>
double squares_planes(const T* p, size_t planes, size_t n, size_t step, T mean) {
  const hn::ScalableTag<T> d;
  const auto m = hn::Set(d, mean);
  double total = 0;
  for (size_t k = 0; k < planes; ++k, p += step)
    total += sum_of(d, n, [&](size_t i, size_t count) HWY_ATTR {
      auto v = hn::Sub(load_n(d, p + i, count), m);
      v = hn::Mul(v, v);
      return count < hn::Lanes(d) ? hn::IfThenElseZero(hn::FirstN(d, count), v) : v;
    });
  return total;
}

// Sum of g (x - mean).
template <class T>
double products_planes(const T* g, const T* x, size_t planes, size_t n, size_t step, T mean) {
  const hn::ScalableTag<T> d;
  const auto m = hn::Set(d, mean);
  double total = 0;
  for (size_t k = 0; k < planes; ++k, g += step, x += step)
    total += sum_of(d, n, [&](size_t i, size_t count) HWY_ATTR {
      auto v = hn::Mul(load_n(d, g + i, count), hn::Sub(load_n(d, x + i, count), m));
      return count < hn::Lanes(d) ? hn::IfThenElseZero(hn::FirstN(d, count), v) : v;
    });
  return total;
}

// y = (x - mean) * scale + shift
template <class T>
void affine_planes(const T* x, T* y, size_t planes, size_t n, size_t step, T mean, T scale,
                   T shift) {
  const hn::ScalableTag<T> d;
  const auto m = hn::Set(d, mean), s = hn::Set(d, scale), b = hn::Set(d, shift);
  for (size_t k = 0; k < planes; ++k, x += step, y += step)
    for (size_t i = 0; i < n; i += hn::Lanes(d))
      store_n(hn::Add(hn::Mul(hn::Sub(load_n(d, x + i, n - i), m), s), b), d, y + i, n - i);
}

// dx = scale * (g - of_grad - (x - mean) * of_hat)
template <class T>
void gradient_planes(const T* g, const T* x, T* dx, size_t planes, size_t n, size_t step, T mean,
                     T scale, T of_grad, T of_hat) {
  const hn::ScalableTag<T> d;
  const auto m = hn::Set(d, mean), s = hn::Set(d, scale), og = hn::Set(d, of_grad),
             oh = hn::Set(d, of_hat);
  for (size_t k = 0; k < planes; ++k, g += step, x += step, dx += step)
    for (size_t i = 0; i < n; i += hn::Lanes(d)) {
      auto hat = hn::Mul(hn::Sub(load_n(d, x + i, n - i), m), oh);
      auto v = hn::Sub(hn::Sub(load_n(d, g + i, n - i), og), hat);
      store_n(hn::Mul(v, s), d, dx + i, n - i);
    }
}

// sums[c] += f(row, c) over rows: leaves of 64 rows in T, joined in double.
template <class T, class F>
HWY_INLINE void sum_rows(size_t rows, size_t channels, double* sums, F f) {
  const hn::ScalableTag<T> d;
  constexpr size_t lanes = hn::MaxLanes(d);
  HWY_ALIGN T leaf[lanes];
  for (size_t from = 0; from < rows; from += 64) {
    size_t to = HWY_MIN(rows, from + 64);
    for (size_t c = 0; c < channels; c += lanes) {
      size_t count = HWY_MIN(lanes, channels - c);
      auto sum = hn::Zero(d);
      for (size_t r = from; r < to; ++r) sum = hn::Add(sum, f(r * channels + c, c, count));
      hn::Store(sum, d, leaf);
      for (size_t i = 0; i < count; ++i) sums[c + i] += double(leaf[i]);
    }
  }
}

template <class T>
void sum_channels(const T* x, size_t rows, size_t channels, double* sums) {
  const hn::ScalableTag<T> d;
  sum_rows<T>(rows, channels, sums,
              [&](size_t at, size_t, size_t count) HWY_ATTR { return load_n(d, x + at, count); });
}
template <class T>
void squares_channels(const T* x, size_t rows, size_t channels, const T* mean, double* sums) {
  const hn::ScalableTag<T> d;
  sum_rows<T>(rows, channels, sums, [&](size_t at, size_t c, size_t count) HWY_ATTR {
    auto v = hn::Sub(load_n(d, x + at, count), load_n(d, mean + c, count));
    return hn::Mul(v, v);
  });
}
template <class T>
void products_channels(const T* g, const T* x, size_t rows, size_t channels, const T* mean,
                       double* sums) {
  const hn::ScalableTag<T> d;
  sum_rows<T>(rows, channels, sums, [&](size_t at, size_t c, size_t count) HWY_ATTR {
    return hn::Mul(load_n(d, g + at, count),
                   hn::Sub(load_n(d, x + at, count), load_n(d, mean + c, count)));
  });
}
template <class T>
void affine_channels(const T* x, T* y, size_t rows, size_t channels, const T* mean, const T* scale,
                     const T* shift) {
  const hn::ScalableTag<T> d;
  for (size_t r = 0; r < rows; ++r, x += channels, y += channels)
    for (size_t c = 0; c < channels; c += hn::Lanes(d)) {
      size_t n = channels - c;
      auto v = hn::Sub(load_n(d, x + c, n), load_n(d, mean + c, n));
      store_n(hn::Add(hn::Mul(v, load_n(d, scale + c, n)), load_n(d, shift + c, n)), d, y + c, n);
    }
}
template <class T>
void gradient_channels(const T* g, const T* x, T* dx, size_t rows, size_t channels, const T* mean,
                       const T* scale, const T* of_grad, const T* of_hat) {
  const hn::ScalableTag<T> d;
  for (size_t r = 0; r < rows; ++r, g += channels, x += channels, dx += channels)
    for (size_t c = 0; c < channels; c += hn::Lanes(d)) {
      size_t n = channels - c;
      auto hat =
          hn::Mul(hn::Sub(load_n(d, x + c, n), load_n(d, mean + c, n)), load_n(d, of_hat + c, n));
      auto v = hn::Sub(hn::Sub(load_n(d, g + c, n), load_n(d, of_grad + c, n)), hat);
      store_n(hn::Mul(v, load_n(d, scale + c, n)), d, dx + c, n);
    }
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

using Doubles = std::vector<double>;

template <class T>
std::vector<T> narrow(const Doubles& v) {
  return std::vector<T>(v.begin(), v.end());
}

// The kernels' view of a tensor: `planes` of n elements a channel, or rows of channels.
struct Channels {
  int64_t batch, channels, n;
  bool last;  // channels are the contiguous dimension
  explicit Channels(TensorView x)
      : batch(x.size(0)), channels(x.size(1)), n(1), last(channels_last(x)) {
    for (int64_t d = 2; d < x.ndim(); ++d) n *= x.size(d);
    last |= n == 1;
  }
  int64_t rows() const { return batch * n; }
  size_t step() const { return size_t(channels * n); }

  template <class F>
  void for_channels(F f) const {
    parallel_for(channels, grain_of(rows()), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) f(lo, lo * n);
    });
  }
  template <class F>
  void for_rows(F f) const {  // f(first element, rows)
    parallel_for(rows(), grain_of(channels),
                 [&](int64_t lo, int64_t hi) { f(lo * channels, size_t(hi - lo)); });
  }
  // Sums over all rows of what f(first element, rows, sums) adds: in parts that the shape fixes.
  template <class F>
  Doubles sum_rows(F f) const {
    int64_t part = std::max<int64_t>(64, grain_of(channels, 1 << 16) / 64 * 64),
            parts = (rows() + part - 1) / part;
    Doubles partial(size_t(parts * channels), 0), out(size_t(channels), 0);
    parallel_for(parts, 1, [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo)
        f(lo * part * channels, size_t(std::min(part, rows() - lo * part)),
          partial.data() + lo * channels);
    });
    for (int64_t p = 0; p < parts; ++p)
      for (int64_t c = 0; c < channels; ++c) out[c] += partial[p * channels + c];
    return out;
  }
};

// What is known of each channel: in double, and in the dtype that elements are computed in.
template <class T>
struct Statistics {
  explicit Statistics(int64_t channels)
      : mean(size_t(channels), 0), rstd(size_t(channels), 0), var(size_t(channels), 0) {}
  Doubles mean, rstd, var;

  // From the sum of squares about the mean as T has it.
  void finish(size_t c, double squares, double count, double eps) {
    double off = mean[c] - double(T(mean[c])), v = squares / count;
    var[c] = std::isfinite(off) ? std::max(0.0, v - off * off) : v;
    if (std::isnan(v)) var[c] = v;
    rstd[c] = 1 / std::sqrt(var[c] + eps);
  }
};

template <class T>
void statistics_of_rows(const Channels& ch, const T* x, double eps, Statistics<T>& s) {
  double count = double(std::max<int64_t>(ch.rows(), 1));
  s.mean = ch.sum_rows([&](int64_t at, size_t rows, double* sums) {
    AJ_SIMD(sum_channels<T>)(x + at, rows, size_t(ch.channels), sums);
  });
  for (double& m : s.mean) m /= count;
  std::vector<T> mean = narrow<T>(s.mean);
  Doubles squares = ch.sum_rows([&](int64_t at, size_t rows, double* sums) {
    AJ_SIMD(squares_channels<T>)(x + at, rows, size_t(ch.channels), mean.data(), sums);
  });
  for (size_t c = 0; c < squares.size(); ++c) s.finish(c, squares[c], count, eps);
}

template <class T>
void statistics_of_planes(const Channels& ch, const T* x, int64_t c, double eps, Statistics<T>& s) {
  double count = double(std::max<int64_t>(ch.rows(), 1));
  size_t planes = size_t(ch.batch), n = size_t(ch.n);
  s.mean[c] = AJ_SIMD(sum_planes<T>)(x, planes, n, ch.step()) / count;
  double squares = AJ_SIMD(squares_planes<T>)(x, planes, n, ch.step(), T(s.mean[c]));
  s.finish(size_t(c), squares, count, eps);
}

void track(TensorView running, const Doubles& now, double momentum, double unbias) {
  if (!running) return;
  auto v = values<double>(running, int64_t(now.size()), 0);
  for (size_t c = 0; c < now.size(); ++c) v[c] = (1 - momentum) * v[c] + momentum * now[c] * unbias;
  store(MutView(running.get()), v);
}

template <class T>
void normalize(Args args, const Channels& ch, const T* x, T* y) {
  bool training = args.flag(5);
  double eps = args.real(7), count = double(ch.rows());
  Statistics<T> s(ch.channels);
  if (!training) {
    s.mean = values<double>(args.tensor(3), ch.channels, 0);
    s.var = values<double>(args.tensor(4), ch.channels, 1);
    for (size_t c = 0; c < s.var.size(); ++c) s.rstd[c] = 1 / std::sqrt(s.var[c] + eps);
  }
  auto w = values<double>(args.tensor(1), ch.channels, 1);
  auto shift = values<T>(args.tensor(2), ch.channels, 0);
  if (ch.last) {
    if (training) statistics_of_rows(ch, x, eps, s);
    std::vector<T> mean = narrow<T>(s.mean), scale(w.size());
    for (size_t c = 0; c < w.size(); ++c) scale[c] = T(w[c] * s.rstd[c]);
    ch.for_rows([&](int64_t at, size_t rows) {
      AJ_SIMD(affine_channels<T>)
      (x + at, y + at, rows, size_t(ch.channels), mean.data(), scale.data(), shift.data());
    });
  } else {
    ch.for_channels([&](int64_t c, int64_t at) {  // all passes while the channel is in the cache
      if (training) statistics_of_planes(ch, x + at, c, eps, s);
      AJ_SIMD(affine_planes<T>)
      (x + at, y + at, size_t(ch.batch), size_t(ch.n), ch.step(), T(s.mean[c]), T(w[c] * s.rstd[c]),
       shift[c]);
    });
  }
  if (training) {
    track(args.tensor(3), s.mean, args.real(6), 1);
    track(args.tensor(4), s.var, args.real(6), count / std::max(1.0, count - 1));
  }
  if (args.result(1).numel() == ch.channels) store(args.result(1), s.mean);
  if (args.result(2).numel() == ch.channels) store(args.result(2), s.rstd);
}

// dx = w rstd (dy - mean(dy) - xhat mean(dy xhat)) in training; w rstd dy where the statistics were
// constants.
template <class T>
struct Gradient {
  const Channels& ch;
  const T *g, *x;
  T* dx;  // NULL: not wanted
  bool training;
  Doubles mean, rstd, w, db, dw;

  void run() {
    db.assign(size_t(ch.channels), 0);
    dw.assign(size_t(ch.channels), 0);
    ch.last ? by_rows() : by_planes();
  }

 private:
  T of_grad(size_t c) const { return T(training ? db[c] / double(ch.rows()) : 0); }
  T of_hat(size_t c) const { return T(training ? dw[c] / double(ch.rows()) * rstd[c] : 0); }

  void by_rows() {
    std::vector<T> m = narrow<T>(mean), scale(w.size()), og(w.size()), oh(w.size());
    db = ch.sum_rows([&](int64_t at, size_t rows, double* sums) {
      AJ_SIMD(sum_channels<T>)(g + at, rows, size_t(ch.channels), sums);
    });
    dw = ch.sum_rows([&](int64_t at, size_t rows, double* sums) {
      AJ_SIMD(products_channels<T>)(g + at, x + at, rows, size_t(ch.channels), m.data(), sums);
    });
    for (size_t c = 0; c < w.size(); ++c) {
      dw[c] = (dw[c] + (double(m[c]) - mean[c]) * db[c]) * rstd[c];
      scale[c] = T(w[c] * rstd[c]), og[c] = of_grad(c), oh[c] = of_hat(c);
    }
    if (!dx) return;
    ch.for_rows([&](int64_t at, size_t rows) {
      AJ_SIMD(gradient_channels<T>)
      (g + at, x + at, dx + at, rows, size_t(ch.channels), m.data(), scale.data(), og.data(),
       oh.data());
    });
  }

  void by_planes() {
    size_t planes = size_t(ch.batch), n = size_t(ch.n), step = ch.step();
    ch.for_channels([&](int64_t c, int64_t at) {
      T m = T(mean[c]);
      db[c] = AJ_SIMD(sum_planes<T>)(g + at, planes, n, step);
      dw[c] = AJ_SIMD(products_planes<T>)(g + at, x + at, planes, n, step, m);
      dw[c] = (dw[c] + (double(m) - mean[c]) * db[c]) * rstd[c];
      if (dx) AJ_SIMD(gradient_planes<T>)
      (g + at, x + at, dx + at, planes, n, step, m, T(w[c] * rstd[c]), of_grad(c), of_hat(c));
    });
  }
};

void batch_norm(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  Channels ch(x);
  visit_math<floating>(x.dtype(), [&]<class T>() {
    if (channels_last(x)) {
      ChannelsLast in(x), to(out);
      Dense<T> dense(in.view()), y(to.writable());
      normalize<T>(args, ch, dense.data(), y.data());
      y.commit();
    } else {
      Dense<T> dense(x), y(out);
      normalize<T>(args, ch, dense.data(), y.data());
      y.commit();
    }
  });
}

template <class T>
void differentiate(Args args, const Channels& ch, TensorView grad, TensorView x, MutView out) {
  bool training = args.flag(7);
  Dense<T> in(x), dy(grad);
  std::unique_ptr<Dense<T>> dx;
  if (args.bit(9, 0)) dx = std::make_unique<Dense<T>>(out);
  auto mean = values<double>(args.tensor(training ? 5 : 3), ch.channels, 0),
       rstd = values<double>(args.tensor(training ? 6 : 4), ch.channels, 1);
  if (!training)
    for (double& r : rstd) r = 1 / std::sqrt(r + args.real(8));
  if (!x.numel())
    std::ranges::fill(mean, 0), std::ranges::fill(rstd, 0);  // those of nothing are NaN
  Gradient<T> d{ch,
                dy.data(),
                in.data(),
                dx ? dx->data() : nullptr,
                training,
                std::move(mean),
                std::move(rstd),
                values<double>(args.tensor(2), ch.channels, 1),
                {},
                {}};
  d.run();
  if (dx) dx->commit();
  if (args.bit(9, 1)) store(args.result(1), d.dw);
  if (args.bit(9, 2)) store(args.result(2), d.db);
}

void batch_norm_backward(Args args) {
  TensorView grad = args.tensor(0), x = args.tensor(1);
  MutView out = args.result(0);
  Channels ch(x);
  visit_math<floating>(x.dtype(), [&]<class T>() {
    if (channels_last(x)) {
      ChannelsLast g(grad), in(x);
      // A gradient that is not wanted has another shape.
      if (!args.bit(9, 0)) return differentiate<T>(args, ch, g.view(), in.view(), out);
      ChannelsLast to(out);
      return differentiate<T>(args, ch, g.view(), in.view(), to.writable());
    }
    differentiate<T>(args, ch, grad, x, out);
  });
}

}  // namespace

AJ_KERNELS(batch_norm_kernels) = {
    {"batch_norm_stats", custom<batch_norm, stored_floating>},
    {"batch_norm_backward", custom<batch_norm_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
