// plugins/cpu/norm.cpp: layer norm over rows. Sums are kept in double.
#include "norm.hpp"

#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <cmath>
#include <vector>

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

int64_t row_length(Args args, uint32_t shape) {
  int64_t n = 1;
  for (int64_t s : args.ints(shape)) n *= s;
  return n;
}

void layer_norm(Args args) {
  TensorView x = args.tensor(0);
  int64_t n = row_length(args, 1), rows = n ? x.numel() / n : 0;
  double eps = args.real(4);
  visit<stored_floating>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> in(x), out(args.result(0));
    std::vector<T> w = values<T>(args.tensor(2), n, 1), b = values<T>(args.tensor(3), n, 0);
    std::vector<double> mean(size_t(rows), 0), rstd(size_t(rows), 0);
    parallel_for(rows, grain_of(n, 8192), [&](int64_t lo, int64_t hi) {
      for (int64_t r = lo; r < hi; ++r) {
        const T* p = in.data() + r * n;
        T* to = out.data() + r * n;
        double m = sum_of(n, [&](int64_t i) { return p[i]; }) / double(n);
        double var = sum_of(n, [&](int64_t i) { return (double(p[i]) - m) * (double(p[i]) - m); }) /
                     double(n);
        mean[r] = m;
        rstd[r] = 1 / std::sqrt(var + eps);
        T shift = T(m), scale = T(rstd[r]);
        for (int64_t i = 0; i < n; ++i) to[i] = (p[i] - shift) * scale * w[i] + b[i];
      }
    });
    out.commit();
    store(args.result(1), mean);
    store(args.result(2), rstd);
  });
}

void layer_norm_backward(Args args) {
  TensorView grad = args.tensor(0), x = args.tensor(1);
  int64_t n = row_length(args, 2), rows = n ? x.numel() / n : 0;
  visit<stored_floating>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> in(x), dy(grad);
    auto mean = values<double>(args.tensor(3), rows, 0),
         rstd = values<double>(args.tensor(4), rows, 1);
    auto w = values<T>(args.tensor(5), n, 1);
    const T *px = in.data(), *pg = dy.data();
    if (args.bit(7, 0)) {
      Dense<T> dx(args.result(0));
      parallel_for(rows, grain_of(n, 8192), [&](int64_t lo, int64_t hi) {
        for (int64_t r = lo; r < hi; ++r) {
          int64_t at = r * n;
          double sum = sum_of(n, [&](int64_t i) { return pg[at + i] * w[i]; }) / double(n);
          double hat = sum_of(n,
                              [&](int64_t i) {
                                return double(pg[at + i] * w[i]) * (double(px[at + i]) - mean[r]);
                              }) *
                       rstd[r] / double(n);
          T of_grad = T(sum), of_hat = T(hat * rstd[r]), m = T(mean[r]), k = T(rstd[r]);
          for (int64_t i = 0; i < n; ++i)
            dx[at + i] = k * (pg[at + i] * w[i] - of_grad - (px[at + i] - m) * of_hat);
        }
      });
      dx.commit();
    }
    if (!args.bit(7, 1) && !args.bit(7, 2)) return;
    std::vector<double> dw(size_t(n), 0), db(size_t(n), 0);
    parallel_for(
        n, 64,
        [&](int64_t lo, int64_t hi) {  // each thread owns columns and walks all rows in order
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t i = lo; i < hi; ++i) {
              double g = double(pg[r * n + i]);
              db[i] += g;
              dw[i] += g * (double(px[r * n + i]) - mean[r]) * rstd[r];
            }
        });
    if (args.bit(7, 1)) store(args.result(1), dw);
    if (args.bit(7, 2)) store(args.result(2), db);
  });
}

}  // namespace

const Kernel norm_kernels[] = {
    {"layer_norm_stats", custom<layer_norm, stored_floating>},
    {"layer_norm_backward", custom<layer_norm_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
