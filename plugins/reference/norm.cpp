// plugins/reference/norm.cpp: batch norm, layer norm and softmax, in double.
#include <adjoin/kit/geometry.hpp>

#include "element.hpp"

namespace adjoin::reference {
namespace {

// Optional per-channel values, in double.
std::vector<double> values(TensorView t, int64_t n, double otherwise) {
  std::vector<double> v(size_t(n), otherwise);
  if (t) {
    Dense<double> d(t);
    std::copy_n(d.data(), n, v.begin());
  }
  return v;
}
void store(MutView to, const std::vector<double>& v) {
  Dense<double> out(to);
  std::copy_n(v.begin(), to.numel(), out.data());
  out.commit();
}

// Elements that share a mean: for batch norm those of a channel, for layer norm those of a row.
struct Groups {
  Groups(Span shape, bool of_channels, int64_t row, int64_t rows)
      : lines(shape, of_channels ? 1 : 0), channels(of_channels) {
    numel = lines.outer * lines.size * lines.inner;
    count = channels ? lines.size : rows;
    each = !channels ? row : count ? numel / count : 0;
  }
  int64_t group(int64_t i) const { return channels ? i / lines.inner % lines.size : i / each; }
  int64_t weight(int64_t i) const {
    return channels ? group(i) : i % each;
  }  // which weight and bias are applied
  int64_t weights() const { return channels ? count : each; }
  Lines lines;
  bool channels;
  int64_t count, numel, each;
};

struct Moments {
  std::vector<double> mean, var;
  Moments(const Groups& g, Dense<double>& x) : mean(size_t(g.count)), var(size_t(g.count)) {
    for (int64_t i = 0; i < g.numel; ++i) mean[g.group(i)] += x[i] / double(g.each);
    for (int64_t i = 0; i < g.numel; ++i) {
      double d = x[i] - mean[g.group(i)];
      var[g.group(i)] += d * d / double(g.each);
    }
  }
};

void normalize(const Groups& g, Args args, Dense<double>& x, const std::vector<double>& mean,
               const std::vector<double>& rstd, TensorView weight, TensorView bias) {
  auto w = values(weight, g.weights(), 1), b = values(bias, g.weights(), 0);
  std::vector<double> out(size_t(g.numel));
  for (int64_t i = 0; i < g.numel; ++i)
    out[i] = (x[i] - mean[g.group(i)]) * rstd[g.group(i)] * w[g.weight(i)] + b[g.weight(i)];
  store(args.result(0), out);
}

std::vector<double> reciprocal_root(std::vector<double> var, double eps) {
  for (double& v : var) v = 1 / std::sqrt(v + eps);
  return var;
}

void batch_norm(Args args) {
  TensorView x = args.tensor(0);
  Groups g(x.shape(), true, 0, 0);
  Dense<double> in(x);
  bool training = args.flag(5);
  double momentum = args.real(6), eps = args.real(7);
  if (!training) {
    auto mean = values(args.tensor(3), g.count, 0),
         rstd = reciprocal_root(values(args.tensor(4), g.count, 1), eps);
    normalize(g, args, in, mean, rstd, args.tensor(1), args.tensor(2));
    if (args.result(1).numel()) store(args.result(1), mean);
    if (args.result(2).numel()) store(args.result(2), rstd);
    return;
  }
  Moments m(g, in);
  auto rstd = reciprocal_root(m.var, eps);
  normalize(g, args, in, m.mean, rstd, args.tensor(1), args.tensor(2));
  store(args.result(1), m.mean);
  store(args.result(2), rstd);
  auto track = [&](uint32_t arg, const std::vector<double>& now, double unbias) {
    if (!args.tensor(arg)) return;
    auto running = values(args.tensor(arg), g.count, 0);
    for (int64_t c = 0; c < g.count; ++c)
      running[c] = (1 - momentum) * running[c] + momentum * now[c] * unbias;
    store(MutView(args.tensor(arg).get()), running);
  };
  track(3, m.mean, 1);
  track(4, m.var, double(g.each) / std::max(1.0, double(g.each) - 1));
}

// dx = w rstd (dy - mean(dy) - xhat mean(dy xhat)), the means over what shares a mean; without them
// when it is a constant.
void normalize_backward(const Groups& g, Args args, TensorView grad, TensorView x,
                        const std::vector<double>& mean, const std::vector<double>& rstd,
                        TensorView weight, bool constant, uint32_t needs) {
  Dense<double> dy(grad), in(x);
  auto w = values(weight, g.weights(), 1);
  std::vector<double> sum(size_t(g.count)), sum_hat(size_t(g.count)), dw(size_t(g.weights())),
      db(size_t(g.weights()));
  auto hat = [&](int64_t i) { return (in[i] - mean[g.group(i)]) * rstd[g.group(i)]; };
  for (int64_t i = 0; i < g.numel; ++i) {
    double scaled = dy[i] * w[g.weight(i)];
    sum[g.group(i)] += scaled / double(g.each);
    sum_hat[g.group(i)] += scaled * hat(i) / double(g.each);
    dw[g.weight(i)] += dy[i] * hat(i);
    db[g.weight(i)] += dy[i];
  }
  if (args.bit(needs, 0)) {
    std::vector<double> dx(size_t(g.numel));
    for (int64_t i = 0; i < g.numel; ++i) {
      double scaled = dy[i] * w[g.weight(i)];
      dx[i] = rstd[g.group(i)] *
              (constant ? scaled : scaled - sum[g.group(i)] - hat(i) * sum_hat[g.group(i)]);
    }
    store(args.result(0), dx);
  }
  if (args.bit(needs, 1)) store(args.result(1), dw);
  if (args.bit(needs, 2)) store(args.result(2), db);
}

void batch_norm_backward(Args args) {
  TensorView grad = args.tensor(0), x = args.tensor(1);
  Groups g(x.shape(), true, 0, 0);
  bool training = args.flag(7);
  auto mean = training ? values(args.tensor(5), g.count, 0) : values(args.tensor(3), g.count, 0);
  auto rstd = training ? values(args.tensor(6), g.count, 1)
                       : reciprocal_root(values(args.tensor(4), g.count, 1), args.real(8));
  normalize_backward(g, args, grad, x, mean, rstd, args.tensor(2), !training, 9);
}

int64_t row_length(Span normalized) {
  int64_t n = 1;
  for (int64_t s : normalized) n *= s;
  return n;
}

void layer_norm(Args args) {
  TensorView x = args.tensor(0);
  Groups g(x.shape(), false, row_length(args.ints(1)), args.result(1).numel());
  Dense<double> in(x);
  Moments m(g, in);
  auto rstd = reciprocal_root(m.var, args.real(4));
  normalize(g, args, in, m.mean, rstd, args.tensor(2), args.tensor(3));
  store(args.result(1), m.mean);
  store(args.result(2), rstd);
}

void layer_norm_backward(Args args) {
  TensorView grad = args.tensor(0), x = args.tensor(1), mean = args.tensor(3),
             rstd = args.tensor(4);
  Groups g(x.shape(), false, row_length(args.ints(2)), mean.numel());
  normalize_backward(g, args, grad, x, values(mean, g.count, 0), values(rstd, g.count, 1),
                     args.tensor(5), false, 7);
}

// f(line of size values with stride inner)
template <class F>
void for_lines(const Lines& l, F f) {
  for (int64_t o = 0; o < l.outer; ++o)
    for (int64_t i = 0; i < l.inner; ++i) f(o * l.size * l.inner + i);
}

template <bool Log>
void softmax(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  Lines l(x.shape(), args.integer(1));
  Dense<double> in(x), y(out);
  for_lines(l, [&](int64_t at) {
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < l.size; ++k) top = scalar::Maximum()(top, in[at + k * l.inner]);
    for (int64_t k = 0; k < l.size; ++k) sum += std::exp(in[at + k * l.inner] - top);
    for (int64_t k = 0; k < l.size; ++k) {
      double d = in[at + k * l.inner] - top;
      y[at + k * l.inner] = Log ? d - std::log(sum) : std::exp(d) / sum;
    }
  });
  y.commit();
}

template <bool Log>
void softmax_backward(Args args) {
  TensorView grad = args.tensor(0), output = args.tensor(1);
  MutView out = args.result(0);
  Lines l(grad.shape(), args.integer(2));
  Dense<double> dy(grad), y(output), dx(out);
  for_lines(l, [&](int64_t at) {
    double sum = 0;
    for (int64_t k = 0; k < l.size; ++k)
      sum += dy[at + k * l.inner] * (Log ? 1 : y[at + k * l.inner]);
    for (int64_t k = 0; k < l.size; ++k) {
      int64_t i = at + k * l.inner;
      dx[i] = Log ? dy[i] - std::exp(y[i]) * sum : y[i] * (dy[i] - sum);
    }
  });
  dx.commit();
}

}  // namespace

AJ_KERNELS(norm_kernels) = {
    {"batch_norm_stats", custom<batch_norm, stored_floating>},
    {"batch_norm_backward", custom<batch_norm_backward, stored_floating>},
    {"layer_norm_stats", custom<layer_norm, stored_floating>},
    {"layer_norm_backward", custom<layer_norm_backward, stored_floating>},
    {"softmax", custom<softmax<false>>},
    {"log_softmax", custom<softmax<true>>},
    {"softmax_backward", custom<softmax_backward<false>>},
    {"log_softmax_backward", custom<softmax_backward<true>>},
    {nullptr, {}},
};

}  // namespace adjoin::reference
