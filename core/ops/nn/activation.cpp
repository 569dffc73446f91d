// core/ops/nn/activation.cpp: what activation.toml cannot say in a formula.
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/infer.hpp>
#include <adjoin/kit/ops.hpp>

namespace adjoin::ops {

aj_status* gelu_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &g = b.tensor(0), &x = b.tensor(1);
    if (b.text(2) == "none") {
      Tensor cdf = erf(x * 0.7071067811865476) * 0.5 + 0.5;
      return b.ret(0, g * (cdf + x * exp(x * x * -0.5) * 0.3989422804014327));
    }
    const double k = 0.7978845608028654, c = 0.044715;  // sqrt(2 / pi), and the cubic term's weight
    Tensor xx = x * x, t = tanh((x + x * xx * c) * k);
    Tensor slope = x * (1 - t * t) * (xx * (3 * c * k) + k);
    b.ret(0, g * ((t + slope) * 0.5 + 0.5));
  });
}

aj_status* celu_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& x = b.tensor(0);
    double alpha = b.real(1);
    want(alpha != 0, "alpha must not be 0");
    if (alpha == 1) return b.ret(0, elu(x, 1.0));
    b.ret(0, where(gt(x, 0), x, expm1(clamp_max(x, 0) / alpha) * alpha));
  });
}

aj_status* glu_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& x = b.tensor(0);
    int64_t dim = b.integer(1), n = x.size(dim);
    want(n % 2 == 0, "dimension ", dim, " must have an even size: ", shown(x));
    b.ret(0, glu_each(slice(x, dim, 0, n / 2), slice(x, dim, n / 2, n)));
  });
}

// saved: input, dim
aj_status* glu_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor x = kit::conj(d.tensor(0)), &g = d.grad(0);
    int64_t dim = d.integer(1), n = x.size(dim) / 2;
    Tensor gate = slice(x, dim, n, 2 * n);
    d.set(0, cat({glu_each(g, gate), glu_gate_backward(g, slice(x, dim, 0, n), gate)}, dim));
  });
}

aj_status* prelu_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &weight = b.tensor(1);
    want(weight.ndim() < 2, "weight must have one dimension or none, its shape is ", shown(weight));
    Tensor w = weight;
    if (w.numel() == 1) {
      w = reshape(w, Ints(nullptr, 0));
    } else {
      int64_t channels = x.ndim() > 1 ? x.size(1) : 1;
      want(w.numel() == channels, "weight has ", w.numel(), " elements, input has ", channels,
           " channels: ", shown(x));
      Sizes shape(size_t(x.ndim()), 1);
      shape[1] = channels;
      w = reshape(w, shape);
    }
    b.ret(0, prelu_each(x, w));
  });
}

}  // namespace adjoin::ops
