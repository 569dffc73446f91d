// plugins/cpu/softmax.cpp: softmax and log_softmax along any dimension, with their derivatives.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>

#include "tables.hpp"

namespace adjoin::cpu {
namespace {

constexpr int64_t kWidth = 64;  // neighbouring lines that are walked together

// f(first element, width): `width` neighbouring lines of l.size values with step l.inner.
template <class F>
void for_lines(const Lines& l, F f) {
  int64_t blocks = (l.inner + kWidth - 1) / kWidth;
  parallel_for(l.outer * blocks, grain_of(l.size * std::min(l.inner, kWidth), 8192), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {
      int64_t from = lo % blocks * kWidth;
      f(lo / blocks * l.size * l.inner + from, std::min(kWidth, l.inner - from));
    }
  });
}

template <bool Log>
void softmax(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  Lines l(x.shape(), args.integer(1));
  visit<stored_floating>(out.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> in(x), y(out);
    for_lines(l, [&](int64_t at, int64_t width) {
      T top[kWidth];
      double sum[kWidth];
      std::fill_n(top, width, -std::numeric_limits<T>::infinity());
      std::fill_n(sum, width, 0.0);
      for (int64_t k = 0; k < l.size; ++k)
        for (int64_t j = 0; j < width; ++j) top[j] = scalar::Maximum()(top[j], in[at + k * l.inner + j]);
      for (int64_t k = 0; k < l.size; ++k)
        for (int64_t j = 0; j < width; ++j) {
          T d = in[at + k * l.inner + j] - top[j], e = std::exp(d);
          y[at + k * l.inner + j] = Log ? d : e;
          sum[j] += double(e);
        }
      for (int64_t j = 0; j < width; ++j) sum[j] = Log ? std::log(sum[j]) : 1 / sum[j];
      for (int64_t k = 0; k < l.size; ++k)
        for (int64_t j = 0; j < width; ++j) {
          T& v = y[at + k * l.inner + j];
          v = Log ? v - T(sum[j]) : T(double(v) * sum[j]);
        }
    });
    y.commit();
  });
}

template <bool Log>
void softmax_backward(Args args) {
  TensorView grad = args.tensor(0), output = args.tensor(1);
  MutView out = args.result(0);
  Lines l(grad.shape(), args.integer(2));
  visit<stored_floating>(out.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> dy(grad), y(output), dx(out);
    for_lines(l, [&](int64_t at, int64_t width) {
      double sum[kWidth] = {};
      for (int64_t k = 0; k < l.size; ++k)
        for (int64_t j = 0; j < width; ++j) {
          int64_t i = at + k * l.inner + j;
          sum[j] += Log ? double(dy[i]) : double(dy[i]) * double(y[i]);
        }
      for (int64_t k = 0; k < l.size; ++k)
        for (int64_t j = 0; j < width; ++j) {
          int64_t i = at + k * l.inner + j;
          dx[i] = Log ? dy[i] - std::exp(y[i]) * T(sum[j]) : y[i] * (dy[i] - T(sum[j]));
        }
    });
    dx.commit();
  });
}

}  // namespace

const Kernel softmax_kernels[] = {
    {"softmax", custom<softmax<false>>},
    {"log_softmax", custom<softmax<true>>},
    {"softmax_backward", custom<softmax_backward<false>>},
    {"log_softmax_backward", custom<softmax_backward<true>>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
