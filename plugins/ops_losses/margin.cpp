// plugins/ops_losses/margin.cpp: losses of classes with margins.
#include <adjoin/kit/losses.hpp>

namespace adjoin::ops {
namespace {

// (N, C) of what may come without N.
Tensor rows_of(const Tensor& t) {
  want(t.ndim() == 1 || t.ndim() == 2, "input must be (N, C) or (C), its shape is ", shown(t));
  return t.ndim() == 1 ? unsqueeze(t, 0) : t;
}
Tensor classes_of(const Tensor& t, const Sizes& shape) {
  want(is_integral(t) && t.dtype() != boolean, "target classes must be int64, they are ",
       t.dtype());
  want(t.numel() == product(shape), "target must have shape ", shown(shape), ", it has ", shown(t));
  return reshape(to(t, int64), shape);
}

}  // namespace

aj_status* multi_margin_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor x = rows_of(b.tensor(0));
    int64_t rows = x.size(0), classes = x.size(1);
    Tensor target = classes_of(b.tensor(1), {rows, 1});
    double p = b.real(2);
    if (p != 1 && p != 2)
      kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "p must be 1 or 2, it is ", p);
    const Tensor& weight = b.tensor(4);
    want(!weight.defined() || (weight.ndim() == 1 && weight.size(0) == classes),
         "weight must have one element for each of the ", classes, " classes");
    Tensor own;
    try {
      own = gather(x, 1, target);
    } catch (const kit::Error& e) {
      if (e.code() != AJ_OUT_OF_RANGE) throw;
      raise_target(target, classes);
    }
    Tensor near = clamp(b.real(3) - own + x, 0);
    if (p == 2) near = near * near;
    if (weight.defined())
      near = near * unsqueeze(index_select(weight, 0, reshape(target, {-1})), 1);
    Tensor other = ne(unsqueeze(counting(x, classes), 0), target);
    Tensor each = sum(where(other, near, number_of(near, 0)), {1}) / double(classes);
    b.ret(0, reduced(b.tensor(0).ndim() == 1 ? squeeze(each, {0}) : each, b.text(5)));
  });
}

aj_status* multilabel_margin_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor x = rows_of(b.tensor(0));
    int64_t rows = x.size(0), classes = x.size(1);
    want_shape(b.tensor(1), "target", b.tensor(0).shape());
    Tensor target = classes_of(b.tensor(1), {rows, classes});
    {
      NoGradGuard off;
      if (has_values(target) && any(logical_or(lt(target, -1), ge(target, classes))).item<bool>())
        raise_target(target, classes, -1, "the end of a row");
    }
    Tensor listed = eq(cumsum(to(lt(target, 0), int64), 1), 0);  // before the first -1
    Tensor safe = where(listed, target, number_of(target, 0));
    Tensor hits = scatter_add(filled(x, {rows, classes}, 0, int64), 1, safe, to(listed, int64));
    if (has_values(target)) {  // columns where no row lists a target add nothing
      int64_t most = amax(sum(listed, {1}), {}).item<int64_t>();
      listed = slice(listed, 1, 0, most);
      safe = slice(safe, 1, 0, most);
    }
    Tensor gap = 1 - unsqueeze(gather(x, 1, safe), 2) + unsqueeze(x, 1);
    Tensor counts = logical_and(unsqueeze(listed, 2), unsqueeze(eq(hits, 0), 1));
    Tensor each = sum(where(counts, clamp(gap, 0), number_of(gap, 0)), {1, 2}) / double(classes);
    b.ret(0, reduced(b.tensor(0).ndim() == 1 ? squeeze(each, {0}) : each, b.text(2)));
  });
}

aj_status* multilabel_soft_margin_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &target = b.tensor(1);
    want(x.ndim() > 0, "input must have a dimension of classes, it is a number");
    Tensor each = bce_logits_each(x, target);
    if (b.given(2)) each = each * b.tensor(2);
    b.ret(0, reduced(mean(each, {-1}), b.text(3)));
  });
}

}  // namespace adjoin::ops
