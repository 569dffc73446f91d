// core/ops/attention.cpp: scaled dot product attention by products and a softmax.
#include <cmath>
#include <limits>

#include "core/ops/make.hpp"

namespace adjoin::ops {
namespace {

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

// Each head of key and value serves several of query's.
Tensor for_all_heads(const Tensor& t, int64_t heads) {
  want(t.ndim() >= 3 && t.size(-3) > 0 && heads % t.size(-3) == 0, "enable_gqa wants query's ",
       heads, " heads to be a multiple of those of key and value: ", shown(t));
  return t.size(-3) == heads ? t : repeat_interleave(t, heads / t.size(-3), -3);
}

// What is added to the scores: 0 where a key may be looked at, -inf elsewhere.
Tensor causal_bias(const Tensor& like, int64_t rows, int64_t columns) {
  Tensor seen = le(counting(like, columns), unsqueeze(counting(like, rows), 1));
  return where(seen, number_of(like, 0), number_of(like, kMinusInf));
}

}  // namespace

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
    if (b.flag(7)) {
      want(query.ndim() >= 3, "enable_gqa wants a dimension of heads: ", shown(query));
      key = for_all_heads(key, query.size(-3));
      value = for_all_heads(value, query.size(-3));
    }
    double scale =
        b.given(6) ? b.real(6) : 1 / std::sqrt(double(std::max<int64_t>(query.size(-1), 1)));
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
    Tensor weights = softmax(scores, -1);
    if (hidden.defined()) weights = where(hidden, number_of(weights, 0), weights);
    if (p > 0) weights = dropout(weights, p, true);
    b.ret(0, matmul(weights, value));
  });
}

}  // namespace adjoin::ops
