// extensions/transform/jvp_written.cpp: rules that are written: for speed, and where the winners of
// a comparison are known.
#include <algorithm>

#include "jvp.hpp"

namespace adjoin::transform::jvp {
namespace {

// The call's arguments and results by place.
struct At : kit::Values {
  const Forward& f;
  explicit At(const Forward& f_) : Values(f_.args), f(f_) {}
  const Tensor& result(uint32_t i) const { return Tensor::view(f.rets[i].v.tensor); }
  const Tensor& tangent(uint32_t input) const { return f.tangents[input]; }
};

// sort, topk: the tangents of the winners.
void gathered(const Forward& f) {
  const At at(f);
  if (!at.tangent(0).defined()) return;
  aj_param p{};
  p.struct_size = sizeof p;
  int64_t dim = -1;
  for (uint32_t i = 1; i < f.nargs; i++) {
    kit::check(kit::env.op->op_param(f.op, i, &p));
    if (p.base == AJ_PARAM_DIM) dim = at.integer(i);
  }
  const Tensor& where = at.result(1);
  if (at.tangent(0).ndim() == 0)
    f.out[0] = at.tangent(0);
  else
    f.out[0] = gather(at.tangent(0), dim, where);
}

// max.dim, min.dim
void gathered_one(const Forward& f) {
  const At at(f);
  if (!at.tangent(0).defined()) return;
  if (at.tangent(0).ndim() == 0) {
    f.out[0] = at.tangent(0);
    return;
  }
  const int64_t dim = at.integer(1);
  const bool keep = at.flag(2);
  const Tensor where = keep ? at.result(1) : unsqueeze(at.result(1), dim);
  const Tensor t = gather(at.tangent(0), dim, where);
  f.out[0] = keep ? t : squeeze(t, dim);
}

// Pools give places in the last dimensions taken as one.
Tensor from_planes(const Tensor& t, const Tensor& where, int64_t planes) {
  const Tensor flat = flatten(t, t.ndim() - planes, t.ndim() - 1);
  const Tensor places = flatten(where, where.ndim() - planes, where.ndim() - 1);
  return reshape(gather(flat, flat.ndim() - 1, places), where.shape());
}
void pooled(const Forward& f) {
  const At at(f);
  if (at.tangent(0).defined()) f.out[0] = from_planes(at.tangent(0), at.result(1), 2);
}

// The Jacobian is symmetric: the gradient's formula serves.
void symmetric(const Forward& f) {
  if (!f.tangents[0].defined()) return;
  const At at(f);
  const Tensor t = kit::conj(cast(f.tangents[0], at.result(0).dtype()));
  aj_tensor* const given = t.get();
  std::vector<uint8_t> needs(f.tangents.size());
  std::vector<aj_tensor*> grads(f.tangents.size());
  needs[0] = 1;
  gradient(f, f.args, &given, needs.data(), grads.data());
  f.out[0] = kit::conj(Tensor::steal(grads[0]));
}

void log_softmax_rule(const Forward& f) {
  const At at(f);
  if (!at.tangent(0).defined()) return;
  const Tensor& y = at.result(0);
  const Tensor t = cast(at.tangent(0), y.dtype());
  if (t.ndim() == 0) {
    f.out[0] = zeros_like(t);
    return;
  }
  const int64_t dim[] = {at.integer(1)};
  f.out[0] = t - sum(exp(y) * t, Ints(dim, 1), true);
}

// copy_, fill_: the tangent of what is written, or none.
void overwritten(const Forward& f) {
  const At at(f);
  if (!f.tangents[1].defined()) return;
  Tensor t = cast(f.tangents[1], at.result(0).dtype());
  if (!(t.device() == at.result(0).device())) t = to(t, std::nullopt, at.result(0).device());
  f.out[0] = expand(t, at.result(0).shape());
}

// Linear in input and weight, one by one, and in the bias.
Tensor product(const Forward& f, uint32_t which, std::span<const uint32_t> absent) {
  std::vector<aj_value> args(f.args, f.args + f.nargs);
  args[which] = value(f.tangents[which]);
  for (uint32_t i : absent) args[i] = {};
  return call_with(f.op, args, f.nrets);
}
void convolved(const Forward& f) {  // (input, weight, bias, ...)
  constexpr uint32_t bias[] = {2};
  for (uint32_t i : {0u, 1u})
    if (f.moves(i)) f.out[0] = plus(f.out[0], product(f, i, bias));
  if (!f.moves(2)) return;
  const At at(f);
  std::vector<int64_t> shape(size_t(at.result(0).ndim()), 1);
  shape[1] = -1;
  const Tensor t = reshape(f.tangents[2], shape);
  f.out[0] = f.out[0].defined() ? f.out[0] + t : expand(t, at.result(0).shape());
}
void linear_rule(const Forward& f) {  // (input, weight, bias)
  constexpr uint32_t bias[] = {2};
  for (uint32_t i : {0u, 1u})
    if (f.moves(i)) f.out[0] = plus(f.out[0], product(f, i, bias));
  if (!f.moves(2)) return;
  const At at(f);
  f.out[0] =
      f.out[0].defined() ? f.out[0] + f.tangents[2] : expand(f.tangents[2], at.result(0).shape());
}
void addmm_rule(const Forward& f) {  // (input, mat1, mat2, beta, alpha)
  const At at(f);
  if (f.moves(1)) f.out[0] = mm(f.tangents[1], at.tensor(2));
  if (f.moves(2)) f.out[0] = plus(f.out[0], mm(at.tensor(1), f.tangents[2]));
  if (f.out[0].defined() && !(at.scalar(4) == Scalar(1))) f.out[0] = f.out[0] * at.scalar(4);
  if (!f.moves(0)) return;
  const Tensor t = at.scalar(3) == Scalar(1) ? f.tangents[0] : f.tangents[0] * at.scalar(3);
  f.out[0] = f.out[0].defined() ? f.out[0] + t : expand(t, at.result(0).shape());
}

struct Row {
  std::string_view op;
  void (*rule)(const Forward&);
};
constexpr Row kRows[] = {
    {"sort", gathered},
    {"topk", gathered},
    {"cummax", gathered},
    {"cummin", gathered},
    {"max.dim", gathered_one},
    {"min.dim", gathered_one},
    {"max_pool2d_with_indices", pooled},
    {"softmax", symmetric},
    {"log_softmax", log_softmax_rule},
    {"copy_", overwritten},
    {"fill_", overwritten},
    {"convolution", convolved},
    {"nn::linear", linear_rule},
    {"addmm", addmm_rule},
};

}  // namespace

void (*written_rule(std::string_view op))(const Forward&) {
  auto found = std::ranges::find(kRows, op, &Row::op);
  return found == std::end(kRows) ? nullptr : found->rule;
}

}  // namespace adjoin::transform::jvp
