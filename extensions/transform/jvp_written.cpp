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
  if (!f.moves(0)) return;
  const At at(f);
  const DLDataType dtype = at.result(0).dtype();
  f.out[0] = cast(kit::conj(pulled(f, f.args, 0, kit::conj(cast(f.tangents[0], dtype)))), dtype);
}

// What is normalized moves by a symmetric Jacobian, then by the weight; weight and bias are linear
// together. `per_channel`: they lie along dimension 1, else along the last ones.
void normalized(const Forward& f, uint32_t weight, bool per_channel,
                std::span<const uint32_t> kept) {
  const At at(f);
  const uint32_t bias = weight + 1;
  std::vector<aj_value> args(f.args, f.args + f.nargs);
  args[weight] = args[bias] = {};
  if (f.moves(0)) {
    f.out[0] = pulled(f, args.data(), 0, f.tangents[0]);
    if (at.given(weight)) {
      Tensor w = at.tensor(weight);
      if (per_channel) {
        std::vector<int64_t> shape(size_t(at.result(0).ndim()), 1);
        shape[1] = -1;
        w = reshape(w, shape);
      }
      f.out[0] = f.out[0] * w;
    }
  }
  if (!f.moves(1) && !f.moves(2)) return;
  for (uint32_t i : kept) args[i] = {};  // statistics are written once
  const Tensor none = f.moves(1) || !at.given(weight) ? Tensor() : zeros_like(at.tensor(weight));
  args[weight] = value(f.moves(1) ? f.tangents[1] : none);
  if (f.moves(2)) args[bias] = value(f.tangents[2]);
  f.out[0] = plus(f.out[0], call_with(f.op, args, f.nrets));
}

// The mean of each row, and one over its deviation, which gradients keep: d mean = mean(t),
// d rstd = -rstd^3 mean((x - mean) t).
void statistics_move(const Forward& f) {
  if (!f.moves(0)) return;
  const At at(f);
  const Tensor &mean = at.result(1), &rstd = at.result(2);
  const std::vector<int64_t> rows = {mean.numel(), -1};
  auto row_means = [&](const Tensor& t) { return reshape(adjoin::mean(t, {1}), mean.shape()); };
  if (mean.numel() == 0) return;
  const Tensor t = reshape(cast(f.tangents[0], mean.dtype()), rows);
  const Tensor x = reshape(cast(at.tensor(0), mean.dtype()), rows);
  const Tensor centred = x - reshape(mean, {mean.numel(), 1});
  f.out[1] = row_means(t);
  f.out[2] = -(rstd * rstd * rstd) * row_means(centred * t);
}
void layer_norm_rule(const Forward& f) {
  normalized(f, 2, false, {});
  statistics_move(f);
}
void group_norm_rule(const Forward& f) {
  normalized(f, 2, true, {});
  statistics_move(f);
}
void batch_norm_rule(const Forward& f) {  // (input, weight, bias, mean, variance, training, ...)
  constexpr uint32_t statistics[] = {3, 4};
  if (At(f).flag(5))
    normalized(f, 1, true, statistics);
  else
    derivative_twice(rule_of(f.op), f);
}

// The op on the tangents; a number that is written moves nothing.
void scattered(const Forward& f) {  // (input, dim, index, src)
  const At at(f);
  std::vector<aj_value> args(f.args, f.args + f.nargs);
  const Tensor t = f.moves(0) ? f.tangents[0] : zeros_like(at.tensor(0));
  Tensor src;
  args[0] = value(t);
  if (args[3].tag != AJ_TENSOR)
    args[3] = value(0);
  else
    args[3] = value(src = f.moves(2) ? f.tangents[2] : zeros_like(at.tensor(3)));
  f.out[0] = call_with(f.op, args);
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

void product_rule(const Forward& f) {  // mul(input, other): promotion is that of the values
  const At at(f);
  auto times = [&](uint32_t i) {  // the tangent of one, by the other
    const Tensor& t = f.tangents[i];
    return f.args[1 - i].tag == AJ_TENSOR ? t * at.tensor(1 - i) : t * at.scalar(1 - i);
  };
  if (f.moves(0)) f.out[0] = times(0);
  if (!f.moves(1)) return;
  if (!f.out[0].defined())
    f.out[0] = times(1);
  else if (at.tensor(0).dtype() == at.tensor(1).dtype())
    f.out[0] = addcmul(f.out[0], at.tensor(0), f.tangents[1]);
  else
    f.out[0] = f.out[0] + times(1);
}

constexpr Written kRows[] = {
    {"sort", How::written, gathered},
    {"topk", How::written, gathered},
    {"cummax", How::written, gathered},
    {"cummin", How::written, gathered},
    {"max.dim", How::written, gathered_one},
    {"min.dim", How::written, gathered_one},
    {"max_pool2d_with_indices", How::written, pooled},
    {"softmax", How::written, symmetric},
    {"log_softmax", How::written, log_softmax_rule},
    {"layer_norm_stats", How::written, layer_norm_rule},
    {"group_norm_stats", How::written, group_norm_rule},
    {"batch_norm_stats", How::written, batch_norm_rule},
    {"copy_", How::written, overwritten},
    {"fill_", How::written, overwritten},
    {"convolution", How::written, convolved},
    {"nn::linear", How::written, linear_rule},
    {"addmm", How::written, addmm_rule},
    {"scatter", How::written, scattered},
    {"logsumexp", How::reduced, nullptr},
    // Linear in all tensors together.
    {"cumsum", How::joint, nullptr},
    {"clone", How::joint, nullptr},
    {"_::to_copy", How::joint, nullptr},
    {"flip", How::joint, nullptr},
    {"roll", How::joint, nullptr},
    {"index_add", How::joint, nullptr},
    {"index_put_at", How::joint, nullptr},
    {"scatter_add", How::joint, nullptr},
    {"block_diag", How::joint, nullptr},
    {"_::pad_edges", How::joint, nullptr},
    {"_::pad_edges_backward", How::joint, nullptr},
    {"_::fft_c2c", How::joint, nullptr},
    {"_::fft_r2c", How::joint, nullptr},
    {"_::fft_c2r", How::joint, nullptr},
    // Elementwise, though their kind does not say so.
    {"nn::logsigmoid", How::elementwise, nullptr},
    {"nn::selu", How::elementwise, nullptr},
    {"nn::celu", How::elementwise, nullptr},
    {"logit", How::elementwise, nullptr},
    {"nan_to_num", How::elementwise, nullptr},
    {"_::bce_each", How::elementwise, nullptr},
    // Holomorphic.
    {"add", How::elementwise, nullptr},
    {"sub", How::elementwise, nullptr},
    {"mul", How::elementwise, product_rule},
    {"div", How::elementwise, nullptr},
    {"neg", How::elementwise, nullptr},
    {"exp", How::elementwise, nullptr},
    {"log", How::elementwise, nullptr},
    {"sin", How::elementwise, nullptr},
    {"cos", How::elementwise, nullptr},
    {"sqrt", How::elementwise, nullptr},
    {"square", How::elementwise, nullptr},
    {"reciprocal", How::elementwise, nullptr},
};

}  // namespace

const Written* written_rule(std::string_view op) {
  auto found = std::ranges::find(kRows, op, &Written::op);
  return found == std::end(kRows) ? nullptr : found;
}

}  // namespace adjoin::transform::jvp
