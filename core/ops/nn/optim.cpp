// core/ops/nn/optim.cpp: what the lists of a fused optimizer step must have in common.
#include <adjoin/kit/make.hpp>
#include <cmath>

namespace adjoin::ops {
namespace {

using Names = std::initializer_list<const char*>;

void check_floating(const Tensor& t) {
  want(t.dtype().code == kDLFloat || t.dtype().code == kDLBfloat,
       "tensors must have a floating dtype, one has ", t.dtype());
}

// Lists as long as the first, an optional one may be empty; the i-th tensors of one shape and
// dtype.
void check_lists(const kit::Values& c, Names names, uint32_t optional) {
  Tensors params = c.tensors(0);
  for (const Tensor& p : params) check_floating(p);
  uint32_t list = 0;
  for (const char* name : names) {
    uint32_t at = ++list;
    Tensors given = c.tensors(at);
    if (given.size() == 0 && (optional >> at & 1)) continue;
    want(given.size() == params.size(), name, " has ", int64_t(given.size()), " tensors, params ",
         int64_t(params.size()));
    for (size_t i = 0; i < given.size(); ++i)
      want(std::ranges::equal(given[i].shape(), params[i].shape()) &&
               given[i].dtype() == params[0].dtype() && params[i].dtype() == params[0].dtype(),
           name, " must be like their parameters and of one dtype: number ", int64_t(i),
           " has shape ", shown(given[i]), " and dtype ", given[i].dtype(), ", its parameter ",
           shown(params[i]), " and ", params[i].dtype());
  }
}

void check_sgd(const kit::Values& c) {
  check_lists(c, {"grads", "momentum_buffers"}, c.real(4) != 0 ? 0 : 1u << 2);
}

void check_adam(const kit::Values& c) {
  check_lists(c, {"grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"}, 1u << 4);
  Tensors steps = c.tensors(5);
  want(steps.size() == c.tensors(0).size(), "state_steps has ", int64_t(steps.size()),
       " tensors, params ", int64_t(c.tensors(0).size()));
  for (const Tensor& s : steps)
    want(s.ndim() == 0 && (s.dtype() == float32 || s.dtype() == float64),
         "state_steps must be 0-dim and float32 or float64, one has shape ", shown(s),
         " and dtype ", s.dtype());
}

void check_scale(const kit::Values& c) {
  want(c.tensor(1).ndim() == 0, "scale must be 0-dim, it has shape ", shown(c.tensor(1)));
  check_lists(c, {}, 0);
}

void check_unscale(const kit::Values& c) {
  Tensors tensors = c.tensors(0);
  for (const Tensor& t : tensors) {
    check_floating(t);
    want(t.dtype() == tensors[0].dtype(), "tensors must have one dtype, there are ",
         tensors[0].dtype(), " and ", t.dtype());
  }
  for (uint32_t i : {1, 2}) {
    check_floating(c.tensor(i));
    want(c.tensor(i).numel() == 1, i == 1 ? "found_inf" : "inv_scale",
         " must have one element, it has shape ", shown(c.tensor(i)));
  }
}

void check_update_scale(const kit::Values& c) {
  for (uint32_t i : {0, 1, 2})
    want(c.tensor(i).numel() == 1,
         "scale, growth_tracker and found_inf must have one element, number ", int64_t(i),
         " has shape ", shown(c.tensor(i)));
}

}  // namespace

aj_status* fused_sgd_check(void*, aj_call* call) {
  return infer(call, [](const Infer& c) { check_sgd(c); });
}
aj_status* fused_adam_check(void*, aj_call* call) {
  return infer(call, [](const Infer& c) { check_adam(c); });
}
aj_status* fused_scale_check(void*, aj_call* call) {
  return infer(call, [](const Infer& c) { check_scale(c); });
}

aj_status* amp_unscale_check(void*, aj_call* call) {
  return infer(call, [](const Infer& c) { check_unscale(c); });
}
aj_status* amp_update_scale_check(void*, aj_call* call) {
  return infer(call, [](const Infer& c) { check_update_scale(c); });
}

namespace {

// What is added to the parameter's gradient, or 0: then the decay is a factor of the parameter.
Tensor with_decay(const Tensor& param, const Tensor& grad, bool maximize, double decay) {
  Tensor g = maximize ? neg(grad) : grad;
  return decay == 0 ? g : add(g, param, decay);
}

}  // namespace

// Tensor by tensor, for a device without the kernel.
aj_status* fused_sgd_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    NoGradGuard off;
    check_sgd(b);
    Tensors params = b.tensors(0), grads = b.tensors(1), buffers = b.tensors(2);
    double rate = b.real(3), momentum = b.real(4), dampening = b.real(5);
    bool nesterov = b.flag(7), first = b.flag(9);
    for (size_t i = 0; i < params.size(); ++i) {
      Tensor g = with_decay(params[i], grads[i], b.flag(8), b.real(6));
      if (momentum != 0) {
        Tensor m = first ? g : add(mul(buffers[i], momentum), g, 1 - dampening);
        copy_(buffers[i], m);
        g = nesterov ? add(g, m, momentum) : m;
      }
      copy_(params[i], add(params[i], g, -rate));
    }
  });
}

aj_status* fused_adam_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    NoGradGuard off;
    check_adam(b);
    Tensors params = b.tensors(0), grads = b.tensors(1), means = b.tensors(2),
            squares = b.tensors(3), largest = b.tensors(4), steps = b.tensors(5);
    double rate = b.real(6), beta1 = b.real(7), beta2 = b.real(8), eps = b.real(9),
           decay = b.real(10);
    bool decoupled = b.flag(11);
    for (size_t i = 0; i < params.size(); ++i) {
      copy_(steps[i], add(steps[i], 1));
      double step = steps[i].item<double>();
      Tensor g = with_decay(params[i], grads[i], b.flag(12), decoupled ? 0 : decay);
      Tensor p = decoupled ? mul(params[i], 1 - rate * decay) : params[i];
      copy_(means[i], add(mul(means[i], beta1), g, 1 - beta1));
      copy_(squares[i], add(mul(squares[i], beta2), mul(g, g), 1 - beta2));
      if (largest.size()) copy_(largest[i], maximum(largest[i], squares[i]));
      Tensor root = sqrt(largest.size() ? largest[i] : squares[i]);
      root = add(div(root, std::sqrt(1 - std::pow(beta2, step))), eps);
      copy_(params[i], add(p, div(means[i], root), -rate / (1 - std::pow(beta1, step))));
    }
  });
}

aj_status* fused_scale_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    NoGradGuard off;
    check_scale(b);
    for (const Tensor& t : b.tensors(0)) copy_(t, mul(t, b.tensor(1)));
  });
}

aj_status* amp_unscale_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    NoGradGuard off;
    check_unscale(b);
    const Tensor& found = b.tensor(1);
    for (const Tensor& t : b.tensors(0)) {
      Tensor bad = any(logical_not(isfinite(t)));
      copy_(found, where(reshape(bad, found.shape()), 1, found));
      copy_(t, mul(t, reshape(b.tensor(2), Sizes{})));
    }
  });
}

// No number comes to the host: the step may still be on its way.
aj_status* amp_update_scale_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    NoGradGuard off;
    check_update_scale(b);
    const Tensor &scale = b.tensor(0), &tracker = b.tensor(1);
    Tensor found = ne(reshape(b.tensor(2), scale.shape()), 0);
    Tensor steps = add(tracker, 1), full = reshape(eq(steps, b.integer(5)), scale.shape());
    Tensor larger = mul(scale, b.real(3));
    Tensor grown = where(logical_and(full, isfinite(larger)), larger, scale);
    copy_(scale, where(found, mul(scale, b.real(4)), grown));
    Tensor again = reshape(logical_or(found, full), tracker.shape());
    copy_(tracker, where(again, 0, steps));
  });
}

namespace {

void check_normed(const kit::Values& c) {
  double order = c.real(1);
  want(order == 1 || order == 2 || (std::isinf(order) && order > 0), "ord is ", order,
       "; 1, 2 and inf are possible");
  Tensors tensors = c.tensors(0);
  want(tensors.size() > 0, "there is no tensor in the list");
  for (const Tensor& t : tensors) {
    check_floating(t);
    want(t.dtype() == tensors[0].dtype(), "tensors must have one dtype, there are ",
         tensors[0].dtype(), " and ", t.dtype());
  }
}

}  // namespace

aj_status* total_norm_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    check_normed(c);
    c.out(0, c.tensors(0)[0].dtype(), Sizes{});
  });
}

aj_status* total_norm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    check_normed(b);
    std::vector<Tensor> norms;
    for (const Tensor& t : b.tensors(0)) norms.push_back(vector_norm(t, b.scalar(1)));
    b.ret(0, vector_norm(stack(norms), b.scalar(1)));
  });
}

}  // namespace adjoin::ops
