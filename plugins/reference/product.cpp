// plugins/reference/product.cpp: matrix products by three loops; floats are summed in double.
#include <adjoin/kit/linear.hpp>

#include "element.hpp"

namespace adjoin::reference {
namespace {

template <class T>
using Wider = std::conditional_t<std::is_same_v<T, float>, double,
                                 std::conditional_t<std::is_same_v<T, Complex64>, Complex128, T>>;
using products = Join<stored_numeric, Types<>>;

template <class T>
Wider<T> dot(const T* a, int64_t a_step, const T* b, int64_t b_step, int64_t k) {
  Wider<T> sum(0);
  for (int64_t i = 0; i < k; ++i)
    sum = scalar::Add()(sum, scalar::Mul()(Wider<T>(a[i * a_step]), Wider<T>(b[i * b_step])));
  return sum;
}

void bmm(Args args) {
  TensorView a = args.tensor(0), b = args.tensor(1);
  MutView out = args.result(0);
  int64_t batch = a.ndim() == 3 ? a.size(0) : 1, m = a.size(-2), k = a.size(-1), n = b.size(-1);
  visit_math<products>(a.dtype(), [&]<class T>() {
    Dense<T> x(a), y(b), z(out);
    for (int64_t i = 0; i < batch * m; ++i)
      for (int64_t j = 0; j < n; ++j)
        z[i * n + j] = cast<T>(dot(&x[i * k], 1, &y[i / m * k * n + j], n, k));
    z.commit();
  });
}

void addmm(Args args) {
  TensorView c = args.tensor(0), a = args.tensor(1), b = args.tensor(2);
  MutView out = args.result(0);
  int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  visit_math<products>(a.dtype(), [&]<class T>() {
    Dense<T> x(a), y(b), add(c), z(out);
    using W = Wider<T>;
    W beta = number<W>(args[3]), alpha = number<W>(args[4]);
    int64_t rows = c.ndim() == 2 ? c.size(0) : 1, columns = c.ndim() ? c.size(-1) : 1;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        W sum = scalar::Mul()(alpha, dot(&x[i * k], 1, &y[j], n, k));
        if (!(beta == W(0)))  // what is multiplied by zero may be uninitialised
          sum = scalar::Add()(sum, scalar::Mul()(beta, W(add[i % rows * columns + j % columns])));
        z[i * n + j] = cast<T>(sum);
      }
    z.commit();
  });
}

void linear(Args args) {
  TensorView x = args.tensor(0), w = args.tensor(1), bias = args.tensor(2);
  MutView out = args.result(0);
  int64_t n = w.ndim() == 2 ? w.size(0) : 1, k = w.size(-1),
          m = k ? x.numel() / k : out.numel() / std::max<int64_t>(n, 1);
  want_row(bias, n);
  visit_math<products>(x.dtype(), [&]<class T>() {
    Dense<T> a(x), b(w), z(out);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) z[i * n + j] = cast<T>(dot(&a[i * k], 1, &b[j * k], 1, k));
    if (bias) {
      Dense<T> add(bias);
      for (int64_t i = 0; i < m * n; ++i)
        z[i] = scalar::Add()(z[i], add[bias.numel() == 1 ? 0 : i % n]);
    }
    z.commit();
  });
}

}  // namespace

AJ_KERNELS(product_kernels) = {
    {"mm", custom<bmm, products>},
    {"bmm", custom<bmm, products>},
    {"addmm", custom<addmm, products>},
    {"nn::linear", custom<linear, products>},
    {nullptr, {}},
};

}  // namespace adjoin::reference
