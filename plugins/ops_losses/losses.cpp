// plugins/ops_losses/losses.cpp: losses of pairs, triples and distributions.
#include <adjoin/kit/losses.hpp>
#include <cmath>

namespace adjoin::ops {

aj_status* poisson_nll_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &target = b.tensor(1);
    Tensor each = b.flag(2) ? exp(x) - target * x : x - target * log(x + b.real(4));
    if (b.flag(3)) {  // Stirling's approximation, where it holds
      Tensor stirling = target * log(target) - target + 0.5 * log(target * (2 * 3.141592653589793));
      each = each + where(gt(target, 1), stirling, number_of(stirling, 0));
    }
    b.ret(0, reduced(each, b.text(5)));
  });
}

aj_status* gaussian_nll_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &target = b.tensor(1);
    Tensor var = b.tensor(2), lift;
    const int64_t n = x.ndim();
    if (var.ndim() == n - 1 && std::ranges::equal(var.shape(), x.shape().first(size_t(n - 1))))
      var = unsqueeze(var, -1);
    int64_t shared = 0, others = 0;  // dimensions along which one variance serves
    for (int64_t i = 0; i < n && var.ndim() == n; ++i)
      if (var.size(i) != x.size(i)) ++(var.size(i) == 1 ? shared : others);
    if (var.ndim() != n || others || shared > 1)
      kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "var must have the shape of input, ",
                    shown(x), ", which may lack the last dimension or have one of size 1, it has ",
                    shown(b.tensor(2)));
    {
      NoGradGuard off;
      bool looks = var.has_memory() && has_values(var) && !(b.call()->flags & AJ_CALL_CAPTURING);
      if (looks && any(lt(var, 0)).item<bool>())
        kit::raise_as("ValueError", AJ_INVALID_ARGUMENT,
                      "var has negative entry/entries; a variance is not negative");
      lift = clamp(b.real(4) - var, 0);
    }
    Tensor held = var + lift,
           d = x - target;  // eps at least; the derivative passes as if nothing were lifted
    Tensor each = (log(held) + d * d / held) * 0.5;
    if (b.flag(3)) each = each + 0.5 * std::log(2 * 3.141592653589793);
    b.ret(0, reduced(each, b.text(5)));
  });
}

aj_status* soft_margin_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, reduced(log1p(exp(-(b.tensor(1) * b.tensor(0)))), b.text(2)));
  });
}

aj_status* hinge_embedding_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &target = b.tensor(1);
    Tensor zero = number_of(x, 0);
    Tensor apart = where(ne(target, 1), clamp(b.real(2) - x, 0), zero),
           close = where(ne(target, -1), x, zero);
    b.ret(0, reduced(apart + close, b.text(3)));
  });
}

aj_status* margin_ranking_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0,
          reduced(clamp(-(b.tensor(2) * (b.tensor(0) - b.tensor(1))) + b.real(3), 0), b.text(4)));
  });
}

aj_status* cosine_embedding_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &y = b.tensor(1), &target = b.tensor(2);
    int64_t d = x.ndim() - 1;
    Tensor cosine = sum(x * y, {d}) / sqrt((sum(x * x, {d}) + 1e-12) * (sum(y * y, {d}) + 1e-12));
    Tensor zero = number_of(cosine, 0);
    Tensor each = where(eq(target, 1), 1 - cosine, zero) +
                  where(eq(target, -1), clamp(cosine - b.real(3), 0), zero);
    b.ret(0, reduced(each, b.text(4)));
  });
}

aj_status* triplet_margin_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &anchor = b.tensor(0), &positive = b.tensor(1), &negative = b.tensor(2);
    double p = b.real(4), eps = b.real(5);
    if (!(b.real(3) > 0))
      kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "margin must be above 0: ", b.real(3));
    Tensor near = pairwise_distance(anchor, positive, p, eps),
           far = pairwise_distance(anchor, negative, p, eps);
    if (b.flag(6)) far = minimum(far, pairwise_distance(positive, negative, p, eps));
    b.ret(0, reduced(clamp(near - far + b.real(3), 0), b.text(7)));
  });
}

}  // namespace adjoin::ops
