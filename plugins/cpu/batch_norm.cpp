// plugins/cpu/batch_norm.cpp: batch normalization and its gradient, threaded over channels.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <cmath>

#include "norm.hpp"

namespace adjoin::cpu {
namespace {

// Sum of f(i) for i < n, in eight lanes.
template <class F>
double sum_of(int64_t n, F f) {
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; ++j) lane[j] += double(f(i + j));
  for (; i < n; ++i) lane[0] += double(f(i));
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

// [outer, channels, inner]. Where inner is 1, channels are the contiguous dimension and are taken
// in blocks.
struct Channels {
  Lines l;
  int64_t each;
  explicit Channels(Span shape) : l(shape, 1), each(l.outer * l.inner) {}

  // out[c] = sum over the channel of f(i, c), i the element.
  template <class F>
  void sums(std::vector<double>& out, F f) const {
    constexpr int64_t block = 16;
    out.assign(size_t(l.size), 0);
    if (l.inner == 1) {
      parallel_for((l.size + block - 1) / block, grain_of(each * block),
                   [&](int64_t lo, int64_t hi) {
                     int64_t from = lo * block, to = std::min(l.size, hi * block);
                     for (int64_t o = 0; o < l.outer; ++o)
                       for (int64_t c = from; c < to; ++c) out[c] += double(f(o * l.size + c, c));
                   });
      return;
    }
    parallel_for(l.size, grain_of(each), [&](int64_t lo, int64_t hi) {
      for (int64_t c = lo; c < hi; ++c)
        for (int64_t o = 0; o < l.outer; ++o) {
          int64_t base = (o * l.size + c) * l.inner;
          out[c] += sum_of(l.inner, [&](int64_t i) { return f(base + i, c); });
        }
    });
  }
  template <class F>
  void each_row(F f) const {  // f(first element, n, channel); n is 1 where channels are contiguous
    parallel_for(l.outer * l.size, grain_of(l.inner), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) f(lo * l.inner, l.inner, lo % l.size);
    });
  }
};

void batch_norm(Args args) {
  TensorView x = args.tensor(0);
  Channels ch(x.shape());
  bool training = args.flag(5);
  double momentum = args.real(6), eps = args.real(7), n = double(ch.each);
  visit<stored_floating>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> in(x), out(args.result(0));
    const T* p = in.data();
    std::vector<double> mean, var;
    if (training) {
      ch.sums(mean, [&](int64_t i, int64_t) { return p[i]; });
      for (double& m : mean) m /= n;
      ch.sums(var, [&](int64_t i, int64_t c) {
        double d = double(p[i]) - mean[c];
        return d * d;
      });
      for (double& v : var) v /= n;
      auto track = [&](uint32_t arg, const std::vector<double>& now, double unbias) {
        if (!args.tensor(arg)) return;
        auto running = values<double>(args.tensor(arg), ch.l.size, 0);
        for (size_t c = 0; c < now.size(); ++c)
          running[c] = (1 - momentum) * running[c] + momentum * now[c] * unbias;
        store(MutView(args.tensor(arg).get()), running);
      };
      track(3, mean, 1);
      track(4, var, n / std::max(1.0, n - 1));
    } else {
      mean = values<double>(args.tensor(3), ch.l.size, 0);
      var = values<double>(args.tensor(4), ch.l.size, 1);
    }
    std::vector<double> rstd(var.size());
    for (size_t c = 0; c < var.size(); ++c) rstd[c] = 1 / std::sqrt(var[c] + eps);
    auto w = values<double>(args.tensor(1), ch.l.size, 1);
    auto b = values<T>(args.tensor(2), ch.l.size, 0);
    ch.each_row([&](int64_t at, int64_t count, int64_t c) {
      T m = T(mean[c]), k = T(w[c] * rstd[c]), shift = b[c];
      for (int64_t i = at; i < at + count; ++i) out[i] = (p[i] - m) * k + shift;
    });
    out.commit();
    if (args.result(1).numel() == ch.l.size) store(args.result(1), mean);
    if (args.result(2).numel() == ch.l.size) store(args.result(2), rstd);
  });
}

// dx = w rstd (dy - mean(dy) - xhat mean(dy xhat)) in training; w rstd dy where the statistics were
// constants.
void batch_norm_backward(Args args) {
  TensorView grad = args.tensor(0), x = args.tensor(1);
  Channels ch(x.shape());
  bool training = args.flag(7);
  visit<stored_floating>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> in(x), dy(grad);
    auto mean = values<double>(args.tensor(training ? 5 : 3), ch.l.size, 0),
         rstd = values<double>(args.tensor(training ? 6 : 4), ch.l.size, 1);
    if (!training)
      for (double& r : rstd) r = 1 / std::sqrt(r + args.real(8));
    auto w = values<double>(args.tensor(2), ch.l.size, 1);
    std::vector<double> db, dw;
    const T *px = in.data(), *pg = dy.data();
    ch.sums(db, [&](int64_t i, int64_t) { return pg[i]; });
    ch.sums(dw, [&](int64_t i, int64_t c) { return double(pg[i]) * (double(px[i]) - mean[c]); });
    for (size_t c = 0; c < dw.size(); ++c) dw[c] *= rstd[c];
    if (args.bit(9, 0)) {
      Dense<T> dx(args.result(0));
      double n = double(ch.each);
      ch.each_row([&](int64_t at, int64_t count, int64_t c) {
        T m = T(mean[c]), k = T(w[c] * rstd[c]), of_grad = T(training ? db[c] / n : 0),
          of_hat = T(training ? dw[c] / n * rstd[c] : 0);
        for (int64_t i = at; i < at + count; ++i)
          dx[i] = k * (pg[i] - of_grad - (px[i] - m) * of_hat);
      });
      dx.commit();
    }
    if (args.bit(9, 1)) store(args.result(1), dw);
    if (args.bit(9, 2)) store(args.result(2), db);
  });
}

}  // namespace

const Kernel batch_norm_kernels[] = {
    {"batch_norm_stats", custom<batch_norm, stored_floating>},
    {"batch_norm_backward", custom<batch_norm_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
