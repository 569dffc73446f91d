// plugins/cpu/softmax.cpp: softmax and log_softmax along any dimension, with their derivatives.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar_math.hpp>

#include "tables.hpp"

namespace adjoin::cpu {
namespace {

constexpr int64_t kWidth = 64;  // neighbouring lines that are walked together

// f(first element, width): `width` neighbouring lines of l.size values with step l.inner.
template <class F>
void for_lines(const Lines& l, F f) {
  int64_t blocks = (l.inner + kWidth - 1) / kWidth;
  parallel_for(l.outer * blocks, grain_of(l.size * std::min(l.inner, kWidth), 8192),
               [&](int64_t lo, int64_t hi) {
                 for (; lo < hi; ++lo) {
                   int64_t from = lo % blocks * kWidth;
                   f(lo / blocks * l.size * l.inner + from, std::min(kWidth, l.inner - from));
                 }
               });
}

// Eight lanes, so that the loop is vector code; the order is fixed.
template <class T>
double sum_of(const T* x, int64_t n) {
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; ++j) lane[j] += double(x[i + j]);
  for (; i < n; ++i) lane[0] += double(x[i]);
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}
template <class T>
T largest(const T* x, int64_t n) {  // a NaN is largest
  T lane[8];
  std::fill_n(lane, 8, -std::numeric_limits<T>::infinity());
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; ++j) lane[j] = scalar::Maximum()(lane[j], x[i + j]);
  for (; i < n; ++i) lane[0] = scalar::Maximum()(lane[0], x[i]);
  for (int j = 1; j < 8; ++j) lane[0] = scalar::Maximum()(lane[0], lane[j]);
  return lane[0];
}

// A contiguous line: exponentials are made in blocks, which are summed while they are at hand.
template <bool Log, class T>
void softmax_row(const T* x, T* y, int64_t n) {
  constexpr int64_t block = 256;
  T top = largest(x, n), e[block];
  double sum = 0;
  for (int64_t at = 0; at < n; at += block) {
    int64_t m = std::min(block, n - at);
    for (int64_t i = 0; i < m; ++i) e[i] = scalar::Exp()(x[at + i] - top);
    sum += sum_of(e, m);
    for (int64_t i = 0; i < m; ++i) y[at + i] = Log ? x[at + i] - top : e[i];
  }
  double by = Log ? std::log(sum) : 1 / sum;
  for (int64_t i = 0; i < n; ++i) y[i] = Log ? y[i] - T(by) : T(double(y[i]) * by);
}

template <bool Log, class T>
void softmax_columns(const Lines& l, const T* x, T* y, int64_t width) {
  T top[kWidth];
  double sum[kWidth] = {};
  std::fill_n(top, width, -std::numeric_limits<T>::infinity());
  for (int64_t k = 0; k < l.size; ++k)
    for (int64_t j = 0; j < width; ++j) top[j] = scalar::Maximum()(top[j], x[k * l.inner + j]);
  for (int64_t k = 0; k < l.size; ++k)
    for (int64_t j = 0; j < width; ++j) {
      T d = x[k * l.inner + j] - top[j], e = scalar::Exp()(d);
      y[k * l.inner + j] = Log ? d : e;
      sum[j] += double(e);
    }
  for (int64_t j = 0; j < width; ++j) sum[j] = Log ? std::log(sum[j]) : 1 / sum[j];
  for (int64_t k = 0; k < l.size; ++k)
    for (int64_t j = 0; j < width; ++j) {
      T& v = y[k * l.inner + j];
      v = Log ? v - T(sum[j]) : T(double(v) * sum[j]);
    }
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
      if (l.inner == 1)
        softmax_row<Log>(in.data() + at, y.data() + at, l.size);
      else
        softmax_columns<Log>(l, in.data() + at, y.data() + at, width);
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
          dx[i] = Log ? dy[i] - scalar::Exp()(y[i]) * T(sum[j]) : y[i] * (dy[i] - T(sum[j]));
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
