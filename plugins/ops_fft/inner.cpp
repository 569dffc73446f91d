// plugins/ops_fft/inner.cpp: shapes and derivatives of the rows that compute. The derivative of a
// transform is a transform in the other direction, so it has derivatives of every order.
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {

namespace {

void want_dims(const Tensor& t, const Ints& dim, bool one) {
  want(!one || !dim.empty(), "at least one dimension is wanted");
  for (size_t i = 0; i < dim.size(); ++i) {
    want(t.size(dim[i]) > 0, "a transform has at least one element, dimension ", dim[i],
         " has none: the shape is ", shown(t));
    for (size_t j = 0; j < i; ++j)
      want(dim[i] != dim[j], "dim has a dimension twice: ", shown(dim));
  }
}

void want_complex(const Tensor& t) {
  want(t.dtype() == complex64 || t.dtype() == complex128,
       "complex64 or complex128 is wanted, the tensor is ", t.dtype());
}

}  // namespace

aj_status* fft_c2c_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    want_complex(t);
    want_dims(t, c.ints(1), false);
    c.out(0, t.dtype(), t.shape());
  });
}

aj_status* fft_r2c_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    Ints dim = c.ints(1);
    want(t.dtype() == float32 || t.dtype() == float64,
         "float32 or float64 is wanted, the tensor is ", t.dtype());
    want_dims(t, dim, true);
    Sizes shape(t.shape().begin(), t.shape().end());
    int64_t& last = shape[size_t(dim[dim.size() - 1])];
    if (c.flag(2)) last = last / 2 + 1;
    c.out(0, t.dtype() == float32 ? complex64 : complex128, shape);
  });
}

aj_status* fft_c2r_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    Ints dim = c.ints(1);
    want_complex(t);
    want_dims(t, dim, true);
    const int64_t last = c.integer(2), at = dim[dim.size() - 1];
    want(last >= 1 && t.size(at) == last / 2 + 1, "of ", last, " elements the half spectrum has ",
         last / 2 + 1, ", dimension ", at, " has ", t.size(at));
    Sizes shape(t.shape().begin(), t.shape().end());
    shape[size_t(at)] = last;
    c.out(0, t.dtype() == complex64 ? float32 : float64, shape);
  });
}

namespace {

// Along dimension d of a half spectrum of n elements: what stands for itself and its mirror image
// times `factor`. The first element has no mirror image; of an even n the last one has none either.
Tensor weighted(const Tensor& t, int64_t d, int64_t n, double factor) {
  Sizes shape(size_t(t.ndim()), 1);
  shape[size_t(d)] = n / 2 + 1;
  Tensor w = filled(t, shape, 1, real_of(t.dtype()));
  if (n > 2) fill_(slice(w, d, 1, (n + 1) / 2), factor);
  return t * w;
}

}  // namespace

aj_status* fft_c2c_vjp(void*, aj_grad_call* call) {
  return kit::derive(
      call, [](kit::Grad& d) { d.set(0, fft_c2c(d.grad(0), d.ints(0), !d.flag(1), d.real(2))); });
}

aj_status* fft_r2c_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    Ints dim = d.ints(1);
    const bool onesided = d.flag(2), back = !d.flag(3);
    const double scale = d.real(4);
    if (!onesided) return d.set(0, real(fft_c2c(g, dim, back, scale)));
    const int64_t last = dim[dim.size() - 1], n = d.ints(0)[size_t(last)];
    d.set(0, fft_c2r(weighted(g, last, n, 0.5), dim, n, back, scale));
  });
}

aj_status* fft_c2r_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    Ints dim = d.ints(0);
    const int64_t last = dim[dim.size() - 1];
    Tensor half = fft_r2c(g, dim, true, !d.flag(1), d.real(2));
    d.set(0, weighted(half, last, g.size(last), 2));
  });
}

}  // namespace adjoin::ops
