// core/ops/optim.cpp: what the lists of a fused optimizer step must have in common.
#include <cmath>

#include "core/ops/make.hpp"

namespace adjoin::ops {
namespace {

using Names = std::initializer_list<const char*>;

void check_floating(const Tensor& t) {
  want(t.dtype().code == kDLFloat || t.dtype().code == kDLBfloat,
       "tensors must have a floating dtype, one has ", t.dtype());
}

// Lists as long as the first, an optional one may be empty; the i-th tensors of one shape and
// dtype.
void check_lists(const Infer& c, Names names, uint32_t optional) {
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

}  // namespace

aj_status* fused_sgd_check(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    bool momentum = c.real(4) != 0;
    check_lists(c, {"grads", "momentum_buffers"}, momentum ? 0 : 1u << 2);
  });
}

aj_status* fused_adam_check(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    check_lists(c, {"grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"}, 1u << 4);
    Tensors steps = c.tensors(5);
    want(steps.size() == c.tensors(0).size(), "state_steps has ", int64_t(steps.size()),
         " tensors, params ", int64_t(c.tensors(0).size()));
    for (const Tensor& s : steps)
      want(s.ndim() == 0 && (s.dtype() == float32 || s.dtype() == float64),
           "state_steps must be 0-dim and float32 or float64, one has shape ", shown(s),
           " and dtype ", s.dtype());
  });
}

aj_status* fused_scale_check(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    want(c.tensor(1).ndim() == 0, "scale must be 0-dim, it has shape ", shown(c.tensor(1)));
    check_lists(c, {}, 0);
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
