// core/ops/nn/softmax.cpp: shapes of softmax and its derivative; cross entropy of classes by other
// ops.
#include <adjoin/kit/losses.hpp>

namespace adjoin::ops {

namespace {

void check_backward(const kit::Values& c) {
  const Tensor &g = c.tensor(0), &output = c.tensor(1);
  want(g.is_floating_point(), "floating-point numbers are wanted, grad is ", g.dtype());
  want_shape(output, "output", g.shape());
  want_dtype(output, "output", g.dtype());
}

}  // namespace

aj_status* softmax_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    check_backward(c);
    c.out(0, c.tensor(0).dtype(), c.tensor(0).shape());
  });
}

aj_status* softmax_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    check_backward(b);
    const Tensor &g = b.tensor(0), &output = b.tensor(1);
    b.ret(0, (g - sum(g * output, {b.integer(2)}, true)) * output);
  });
}

aj_status* log_softmax_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    check_backward(b);
    const Tensor &g = b.tensor(0), &output = b.tensor(1);
    b.ret(0, g - exp(output) * sum(g, {b.integer(2)}, true));
  });
}

aj_status* softmax_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    DLDataType dtype = c.given(2) ? c.dtype(2) : t.dtype();
    if (dtype.code != kDLFloat && dtype.code != kDLBfloat)
      kit::raise(AJ_UNIMPLEMENTED, "floating-point numbers are wanted, input is ", t.dtype(),
                 "; pass dtype=float32");
    c.out(0, dtype, t.shape());
  });
}

namespace {

void check_rows(const Tensor& t, const Tensor& target) {
  want(t.ndim() == 2 && t.is_floating_point(),
       "input must be a matrix of floating-point numbers, it is ", shown(t), " ", t.dtype());
  want_shape(target, "target", t.shape().first(1));
}

void check_nll_backward(const kit::Values& c) {
  const Tensor &g = c.tensor(0), &t = c.tensor(1), &sums = c.tensor(3);
  check_rows(t, c.tensor(2));
  want_shape(g, "grad", t.shape().first(c.text(5) == "none" ? 1 : 0));
  want_shape(sums, "logsumexp", t.shape().first(1));
  want_dtype(g, "grad", t.dtype());
  want_dtype(sums, "logsumexp", t.dtype());
}

}  // namespace

aj_status* softmax_nll_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(1);
    check_nll_backward(c);
    c.out(0, t.dtype(), t.shape());
  });
}

aj_status* softmax_nll_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    check_rows(t, c.tensor(1));
    Sizes rows{t.size(0)};
    c.out(0, t.dtype(), c.text(3) == "none" ? rows : Sizes());
    c.out(1, t.dtype(), rows);
  });
}

namespace {

// An ignored class may lie anywhere: class 0 stands in for it and counts nothing.
struct Kept {
  Kept(const Tensor& target, int64_t ignore)
      : kept(ne(target, ignore)), at(unsqueeze(where(kept, target, number_of(target, 0)), 1)) {}
  Tensor kept, at;
};

}  // namespace

aj_status* softmax_nll_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    std::string_view how = b.text(3);
    check_rows(t, b.tensor(1));
    Kept k(b.tensor(1), b.integer(2));
    Tensor sums = logsumexp(t, {1}), each;
    try {
      each = where(k.kept, sums - squeeze(gather(t, 1, k.at), {1}), number_of(t, 0));
    } catch (const kit::Error& e) {
      if (e.code() != AJ_OUT_OF_RANGE) throw;
      raise_target(b.tensor(1), t.size(1), b.integer(2), "ignore_index");
    }
    b.ret(0, how == "none" ? each : how == "sum" ? sum(each) : sum(each) / sum(k.kept));
    b.ret(1, sums);
  });
}

// Runs when this derivative is itself recorded; logsumexp depends on input, so it is made again.
aj_status* softmax_nll_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &g = b.tensor(0), &t = b.tensor(1);
    check_nll_backward(b);
    Kept k(b.tensor(2), b.integer(4));
    Tensor each = where(k.kept, b.text(5) == "mean" ? g / sum(k.kept) : g, number_of(t, 0));
    each = unsqueeze(each, 1);
    b.ret(0, scatter_add(softmax(t, 1) * each, 1, k.at, -each));
  });
}

}  // namespace adjoin::ops
