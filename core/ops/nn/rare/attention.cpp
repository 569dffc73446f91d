// core/ops/nn/rare/attention.cpp: scaled dot product attention by products and a softmax.
#include <adjoin/kit/make.hpp>
#include <cmath>
#include <limits>

#include "draw.hpp"

namespace adjoin::ops {
namespace {

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

// Each head of key and value serves several of query's.
Tensor for_all_heads(const Tensor& t, int64_t heads) {
  want(t.ndim() >= 3 && t.size(-3) > 0 && heads % t.size(-3) == 0, "enable_gqa wants query's ",
       heads, " heads to be a multiple of those of key and value: ", shown(t));
  return t.size(-3) == heads ? t : repeat_interleave(t, heads / t.size(-3), -3);
}

// [..., heads, n, m] as [..., shared, each, n, m]: heads of queries that share one of keys stand in
// a dimension of their own, so that one kernel reads keys and values where they lie.
Tensor in_groups(const Tensor& t, int64_t shared) {
  Sizes shape = sizes_of(t);
  auto heads = shape.end() - 3;
  *heads /= shared;
  shape.insert(heads, shared);
  return reshape(t, shape);
}
Tensor for_each_of_group(const Tensor& t, int64_t each) {
  Tensor grouped = unsqueeze(t, -3);
  Sizes shape = sizes_of(grouped);
  *(shape.end() - 3) = each;
  return expand(grouped, shape);
}

// What is added to the scores: 0 where a key may be looked at, -inf elsewhere.
Tensor causal_bias(const Tensor& like, int64_t rows, int64_t columns) {
  Tensor seen = le(counting(like, columns), unsqueeze(counting(like, rows), 1));
  return where(seen, Tensor(number_of(like, 0)), number_of(like, kMinusInf));
}

// softmax(query key^T scale + what is hidden), the weights of the values.
Tensor weights_of(const Tensor& query, const Tensor& key, const Tensor& mask, bool causal,
                  double scale, Tensor* logsumexp = nullptr) {
  Tensor scores = matmul(query * scale, transpose(key, -2, -1));
  Tensor hidden;
  if (causal) scores = scores + causal_bias(scores, query.size(-2), key.size(-2));
  if (mask.defined()) {
    if (mask.dtype() == boolean) {
      scores = where(mask, scores, number_of(scores, kMinusInf));
      hidden = logical_not(any(mask, {-1}, true));
    } else {
      want(mask.is_floating_point(), "attn_mask must be bool or floating, it is ", mask.dtype());
      scores = scores + mask;
      hidden = all(eq(mask.detach(), kMinusInf), {-1}, true);
    }
  }
  // A row that sees no key gives zeros, and gradients of zero: its scores never reach the
  // softmax.
  if (hidden.defined()) scores = where(hidden, number_of(scores, 0), scores);
  if (logsumexp) *logsumexp = adjoin::logsumexp(scores, {-1});
  Tensor weights = softmax(scores, -1);
  return hidden.defined() ? where(hidden, number_of(weights, 0), weights) : weights;
}

// May one kernel do it all? Heads have to stand in the same leading dimensions.
bool fits_kernel(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  size_t n = size_t(query.ndim());
  if (n < 3 || key.ndim() != query.ndim() || value.ndim() != query.ndim()) return false;
  auto heads = query.shape().first(n - 2);
  if (!std::ranges::equal(heads, key.shape().first(n - 2)) ||
      !std::ranges::equal(heads, value.shape().first(n - 2)))
    return false;
  if (!query.is_floating_point() || query.numel() == 0 || key.numel() == 0 || value.numel() == 0)
    return false;
  if (!mask.defined()) return true;
  Sizes scores(heads.begin(), heads.end());
  scores.insert(scores.end(), {query.size(-2), key.size(-2)});
  return !(mask.requires_grad() && kit::env.autograd->grad_mode()) && mask.has_memory() &&
         (mask.dtype() == boolean || mask.dtype() == query.dtype()) &&
         std::ranges::equal(broadcast(scores, mask.shape()), scores);
}

// The weights that dropout leaves; each by its place among all of them.
Tensor dropped(const Tensor& weights, double p, int64_t seed, int64_t offset) {
  return p > 0 ? dropout_philox(weights, p, seed, offset) : weights;
}

// A device's kernel makes the mask again in the backward pass; the processor keeps the weights.
bool drops_in_kernel(const Tensor& query, const Tensor& key, const Tensor& value) {
  return query.device().device_type != kDLCPU && query.has_memory() && key.has_memory() &&
         value.has_memory();
}

// All in one kernel; the generator goes on as if the weights had been dropped by themselves.
Tensor in_one(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
              bool causal, double scale, double p) {
  Draw at = {0, 0};
  if (p > 0) at = draw_for(query, query.numel() / query.size(-1) * key.size(-2));
  return in_own_name([&] {
    return std::get<0>(attention(query, key, value, mask, causal, scale, p, at.seed, at.offset));
  });
}

// One kernel where heads share keys; undefined where it cannot be.
Tensor shared_attention(const Tensor& query, const Tensor& key, const Tensor& value, Tensor mask,
                        bool causal, double scale, double p) {
  if (query.ndim() < 3 || key.ndim() != query.ndim() || value.ndim() != query.ndim()) return {};
  int64_t heads = query.size(-3), shared = key.size(-3);
  if (shared < 1 || heads % shared || shared == heads || value.size(-3) != shared) return {};
  if (mask.defined() && mask.ndim() > 2) {
    if (mask.size(-3) != heads && mask.size(-3) != 1) return {};
    mask = mask.size(-3) == 1 ? unsqueeze(mask, -3) : in_groups(mask, shared);
  }
  Tensor q = in_groups(query, shared), k = for_each_of_group(key, heads / shared),
         v = for_each_of_group(value, heads / shared);
  if (!fits_kernel(q, k, v, mask)) return {};
  Sizes shape = sizes_of(query);
  shape.back() = value.size(-1);
  return reshape(in_one(q, k, v, mask, causal, scale, p), shape);
}

}  // namespace

namespace {

// Arguments from `first` on: query, key, value, mask.
void check_heads(const Infer& c, uint32_t first) {
  const Tensor &query = c.tensor(first), &key = c.tensor(first + 1), &value = c.tensor(first + 2);
  want(query.ndim() >= 2, "query must have two dimensions at least, its shape is ", shown(query));
  size_t n = size_t(query.ndim()) - 2;
  Sizes shape = sizes_of(query), scores = shape;
  shape[n] = key.ndim() == query.ndim() ? key.size(-2) : -1;
  want_shape(key, "key", shape);
  scores[n + 1] = shape[n];
  shape[n + 1] = value.ndim() == query.ndim() ? value.size(-1) : -1;
  want_shape(value, "value", shape);
  want_dtype(key, "key", query.dtype());
  want_dtype(value, "value", query.dtype());
  if (!c.given(first + 3)) return;
  const Tensor& mask = c.tensor(first + 3);
  want(mask.dtype() == boolean || mask.dtype() == query.dtype(), "mask must be bool or ",
       query.dtype(), ", it is ", mask.dtype());
  want(std::ranges::equal(broadcast(scores, mask.shape()), scores), "mask ", shown(mask),
       " does not broadcast to the scores ", shown(scores));
}

}  // namespace

aj_status* attention_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    check_heads(c, 0);
    const Tensor& query = c.tensor(0);
    Sizes out = sizes_of(query), rows(out.begin(), out.end() - 1);
    out.back() = c.tensor(2).size(-1);
    c.out(0, query.dtype(), out);
    c.out(1, statistics_dtype(query.dtype()), rows);
  });
}

aj_status* attention_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor sums;
    Tensor weights = weights_of(b.tensor(0), b.tensor(1), b.tensor(3), b.flag(4), b.real(5), &sums);
    b.ret(0, matmul(dropped(weights, b.real(6), b.integer(7), b.integer(8)), b.tensor(2)));
    b.ret(1, to(sums, statistics_dtype(b.tensor(0).dtype())).detach());
  });
}

aj_status* attention_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    check_heads(c, 1);
    Sizes out = sizes_of(c.tensor(1)), rows(out.begin(), out.end() - 1);
    out.back() = c.tensor(3).size(-1);
    want_shape(c.tensor(0), "grad", out);
    want_shape(c.tensor(5), "out", out);
    want_shape(c.tensor(6), "logsumexp", rows);
    want_dtype(c.tensor(0), "grad", c.tensor(1).dtype());
    for (uint32_t i = 0; i < 3; ++i) c.out(i, c.tensor(1 + i).dtype(), c.tensor(1 + i).shape());
  });
}

// Runs when this derivative is itself recorded.
aj_status* attention_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &g = b.tensor(0), &query = b.tensor(1), &key = b.tensor(2), &value = b.tensor(3);
    double scale = b.real(8);
    auto drop = [&](const Tensor& t) {
      return dropped(t, b.real(9), b.integer(10), b.integer(11));
    };
    Tensor weights = weights_of(query, key, b.tensor(4), b.flag(7), scale);
    Tensor of_weights = drop(matmul(g, transpose(value, -2, -1)));
    Tensor of_scores = weights * (of_weights - sum(of_weights * weights, {-1}, true)) * scale;
    b.ret(0, matmul(of_scores, key));
    b.ret(1, matmul(transpose(of_scores, -2, -1), query));
    b.ret(2, matmul(transpose(drop(weights), -2, -1), g));
  });
}

aj_status* scaled_dot_product_attention_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& query = b.tensor(0);
    Tensor key = b.tensor(1), value = b.tensor(2), mask = b.tensor(3);
    double p = b.real(4);
    bool causal = b.flag(5);
    want(query.ndim() >= 2 && key.ndim() >= 2 && value.ndim() >= 2,
         "query, key and value must have two dimensions at least: ", shown(query), ", ", shown(key),
         ", ", shown(value));
    want(query.dtype() == key.dtype() && key.dtype() == value.dtype(),
         "query, key and value must have one dtype: ", query.dtype(), ", ", key.dtype(), ", ",
         value.dtype());
    want(query.size(-1) == key.size(-1), "query ", shown(query), " and key ", shown(key),
         " differ in their last size");
    want(key.size(-2) == value.size(-2), "key ", shown(key), " and value ", shown(value),
         " differ in their number of places");
    want(!causal || !mask.defined(), "attn_mask and is_causal cannot both be given");
    double scale =
        b.given(6) ? b.real(6) : 1 / std::sqrt(double(std::max<int64_t>(query.size(-1), 1)));
    if (!(p >= 0 && p <= 1))
      kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "dropout_p must be between 0 and 1: ", p);
    bool fused = p == 0 || drops_in_kernel(query, key, value);
    if (b.flag(7)) {
      want(query.ndim() >= 3, "enable_gqa wants a dimension of heads: ", shown(query));
      if (fused)
        if (Tensor out = shared_attention(query, key, value, mask, causal, scale, p); out.defined())
          return b.ret(0, out);
      key = for_all_heads(key, query.size(-3));
      value = for_all_heads(value, query.size(-3));
    }
    if (fused && fits_kernel(query, key, value, mask))
      return b.ret(0, in_one(query, key, value, mask, causal, scale, p));
    Tensor weights = weights_of(query, key, mask, causal, scale);
    if (p > 0) weights = dropout(weights, p, true);
    b.ret(0, matmul(weights, value));
  });
}

}  // namespace adjoin::ops
