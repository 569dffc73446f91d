// extensions/transform/written.cpp: which ops have a rule that is written for them, and which are
// refused.
#include "written.hpp"

#include <algorithm>

namespace adjoin::transform {
namespace {

struct Row {
  std::string_view name;
  Rule rule;
};
constexpr Row kRows[] = {
    {"mm", rule_mm},
    {"bmm", rule_bmm},
    {"addmm", rule_addmm},
    {"nn::linear", rule_linear},
    {"_::linear_weight_backward", rule_linear_weight_backward},
    {"index_at", rule_index},
    {"index_put_at", rule_index_put},
    {"index_select", rule_index_select},
    {"convolution", rule_convolution},
    {"convolution_backward", rule_convolution_backward},
    {"layer_norm_stats", rule_layer_norm},
    {"index_add", rule_index_add},
    {"batch_norm_stats", rule_batch_norm},
    {"linalg::matrix_exp", rule_lead},
    {"torchvision::roi_align", rule_regions},
    {"torchvision::_roi_align_backward", rule_regions},
    {"torchvision::roi_pool", rule_regions},
    {"torchvision::_roi_pool_backward", rule_regions},
    {"torchvision::ps_roi_align", rule_regions},
    {"torchvision::_ps_roi_align_backward", rule_regions},
    {"torchvision::ps_roi_pool", rule_regions},
    {"torchvision::_ps_roi_pool_backward", rule_regions},
    {"linalg::cholesky_ex", rule_lead},
    {"linalg::lu_factor_ex", rule_lead},
    {"linalg::ldl_factor_ex", rule_lead},
    {"_::ldl_solve_stack", rule_lead},
    {"_::pivot_order", rule_lead},
    {"_::solve_triangular_stack", rule_lead},
    {"_::solve_stack", rule_lead},
    {"linalg::inv_ex", rule_lead},
    {"linalg::det", rule_lead},
    {"linalg::slogdet", rule_lead},
    {"geqrf", rule_lead},
    {"linalg::householder_product", rule_lead},
    {"linalg::qr", rule_lead},
    {"_::eigh_stack", rule_lead},
    {"_::svd_stack", rule_lead},
    {"_::eig_stack", rule_lead},
    {"_::attention", rule_attention},
    {"_::attention_backward", rule_attention},
    {"cat_same", rule_dims},
    {"sort", rule_dims},
    {"topk", rule_dims},
    {"softmax", rule_dims},
    {"log_softmax", rule_dims},
    {"gather", rule_dims},
    {"scatter", rule_dims},
    {"scatter_add", rule_dims},
    {"flip", rule_dims},
    {"cummax", rule_dims},
    {"cummin", rule_dims},
    {"logcumsumexp", rule_dims},
    {"logsumexp", rule_dims},
    {"avg_pool2d_forward", rule_fold},
    {"avg_pool2d_backward", rule_fold},
    {"adaptive_avg_pool2d_forward", rule_fold},
    {"adaptive_avg_pool2d_backward", rule_fold},
    {"max_pool2d_with_indices", rule_fold},
    {"_::max_windows", rule_fold},
    {"clone", rule_copy_of},
    {"to", rule_copy_of},
    {"empty_like", rule_like},
    {"zeros_like", rule_like},
    {"ones_like", rule_like},
    {"full_like", rule_like},
    {"new_empty", rule_new},
    {"new_zeros", rule_new},
    {"new_ones", rule_new},
    {"new_full", rule_new},
    {"fill_", rule_fill},
    {"t", rule_t},
    {"squeeze", rule_squeeze},
    {"as_strided", rule_as_strided},
    {"arange_fill_", rule_counted},
    {"dropout_philox", rule_draw},
    {"uniform_philox_", rule_draw},
    {"normal_philox_", rule_draw},
    {"randint_philox_", rule_draw},
};

struct Refusal {
  std::string_view name;
  const char* why;
};
constexpr char kShape[] =
    "its result has another shape for each sample; use where(), or sizes that do not depend on "
    "values";
constexpr char kTruth[] =
    "its result is one number of Python's for all samples; compute with tensors, and use where()";
constexpr Refusal kRefused[] = {
    {"nonzero", kShape},
    {"masked_select", kShape},
    {"unique", kShape},
    {"unique_consecutive", kShape},
    {"repeat_interleave.places", kShape},
    {"equal", kTruth},
    {"allclose", kTruth},
    {"is_nonzero", kTruth},
    {"item", kTruth},
};

}  // namespace

std::string_view looped(std::string_view name) {
  return name == "rnn_layer_backward" ? "its body records on a tape of its own" : "";
}

Rule written_rule(std::string_view name) {
  for (const Row& r : kRows)
    if (r.name == name) return r.rule;
  return nullptr;
}

const char* refusal(std::string_view name) {
  if (name.starts_with("fused_"))
    return "a step of an optimizer over many tensors has no samples; step outside of vmap";
  for (const Refusal& r : kRefused)
    if (r.name == name) return r.why;
  return nullptr;
}

}  // namespace adjoin::transform
