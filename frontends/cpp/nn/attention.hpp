// adjoin/nn/attention.hpp: multi-head attention and the encoder of Vaswani et al., 2017.
#ifndef ADJOIN_NN_ATTENTION_HPP
#define ADJOIN_NN_ATTENTION_HPP
#include <adjoin/nn/layers.hpp>
#include <adjoin/nn/norm.hpp>
#include <limits>

namespace AJ_HIDDEN adjoin {
namespace nn {

struct AttentionOptions {
  double dropout = 0;
  bool bias = true, batch_first = false;
  std::optional<int64_t> kdim = std::nullopt,
                         vdim = std::nullopt;  // widths of keys and values, if not the query's
};

struct AttentionCall {
  Tensor attn_mask =
      {};  // (L, S) or (N * heads, L, S): added to scores, or true where attention is barred
  Tensor key_padding_mask = {};  // (N, S), as above
  bool is_causal = false;        // a query sees what is not after it
  bool need_weights = false;
};

struct Attended {
  Tensor output, weights;  // weights (N, heads, L, S), if they were asked for
};

// Attention of queries over keys and values in so many heads: (L, N, E), (S, N, kdim), (S, N,
// vdim); batch first (N, L, E).
struct MultiheadAttention final : Module<MultiheadAttention> {
  Parameter in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias;
  Linear out_proj;
  int64_t width, heads;
  double dropout;
  bool batch_first, training = true;

  MultiheadAttention(int64_t embed_dim, int64_t num_heads, AttentionOptions o = {})
      : out_proj(0, 0, {false}),
        width(embed_dim),
        heads(num_heads),
        dropout(o.dropout),
        batch_first(o.batch_first) {
    if (heads <= 0 || width <= 0 || width % heads)
      kit::raise(AJ_INVALID_ARGUMENT, "MultiheadAttention: a width of ", width,
                 " cannot be cut into ", heads, " heads");
    int64_t kdim = o.kdim.value_or(width), vdim = o.vdim.value_or(width);
    bool same = kdim == width && vdim == width;
    out_proj = Linear(width, width, {o.bias});
    if (same) in_proj_weight = init::xavier_uniform_(empty({3 * width, width}));
    if (!same) {
      q_proj_weight = init::xavier_uniform_(empty({width, width}));
      k_proj_weight = init::xavier_uniform_(empty({width, kdim}));
      v_proj_weight = init::xavier_uniform_(empty({width, vdim}));
    }
    if (!o.bias) return;
    in_proj_bias = zeros({3 * width});
    init::zeros_(out_proj.bias);
  }

  Attended operator()(Tensor q, Tensor k, Tensor v, const AttentionCall& o = {},
                      Here here = Here::current()) const {
    if (q.ndim() != 3)
      kit::check(kit::fail(AJ_INVALID_ARGUMENT, "MultiheadAttention: the query has ", q.ndim(),
                           " dimensions; wanted: 3"),
                 here);
    bool self = q.get() == k.get() && k.get() == v.get();
    if (!batch_first)
      for (Tensor* t : {&q, &k, &v}) *t = transpose(*t, 0, 1, here);
    int64_t n = q.size(0), length = q.size(1), source = k.size(1);
    project(q, k, v, self, here);
    for (Tensor* t : {&q, &k, &v})
      *t = transpose(reshape(*t, {n, t->size(1), heads, width / heads}, here), 1, 2, here);
    Tensor mask = merged(o, q, n, length, source, here), weights, out;
    double p = training ? dropout : 0;
    if (o.need_weights) {
      if (o.is_causal)
        mask = plus(mask, barred(logical_not(tril(ones({length, source}, boolean, q.device()))),
                                 q.dtype()));
      Tensor scores =
          matmul(q * (1 / std::sqrt(double(width / heads))), transpose(k, -2, -1), here);
      weights = adjoin::dropout(softmax(plus(scores, mask), -1), p, p > 0, false, here);
      out = matmul(weights, v, here);
    } else {
      bool causal = o.is_causal && !mask.defined();
      if (o.is_causal && !causal)
        mask = plus(mask, barred(logical_not(tril(ones({length, source}, boolean, q.device()))),
                                 q.dtype()));
      out = scaled_dot_product_attention(q, k, v, mask, p, causal, std::nullopt, false, here);
    }
    out = out_proj(reshape(transpose(out, 1, 2, here), {n, length, width}, here), here);
    return {batch_first ? out : transpose(out, 0, 1, here), weights};
  }
  static constexpr auto fields() {
    using M = MultiheadAttention;
    return Fields<&M::in_proj_weight, &M::q_proj_weight, &M::k_proj_weight, &M::v_proj_weight,
                  &M::in_proj_bias, &M::out_proj>();
  }

 private:
  void project(Tensor& q, Tensor& k, Tensor& v, bool self, Here here) const {
    if (self && in_proj_weight.defined()) {
      std::vector<Tensor> all = chunk(linear(q, in_proj_weight, in_proj_bias, here), 3, -1);
      q = all[0], k = all[1], v = all[2];
      return;
    }
    std::vector<Tensor> weights{q_proj_weight, k_proj_weight, v_proj_weight}, biases(3);
    if (in_proj_weight.defined()) weights = chunk(in_proj_weight, 3);
    if (in_proj_bias.defined()) biases = chunk(in_proj_bias, 3);
    size_t i = 0;
    for (Tensor* t : {&q, &k, &v}) *t = linear(*t, weights[i], biases[i], here), ++i;
  }
  static Tensor barred(const Tensor& mask, DLDataType dtype) {
    if (mask.dtype() != boolean) return mask;
    return masked_fill(zeros(mask.shape(), dtype, mask.device()), mask,
                       -std::numeric_limits<double>::infinity());
  }
  static Tensor plus(const Tensor& a, const Tensor& b) {
    return !b.defined() ? a : !a.defined() ? b : a + b;
  }
  // Both masks as one that is added to the scores, broadcastable to (N, heads, L, S).
  Tensor merged(const AttentionCall& o, const Tensor& q, int64_t n, int64_t length, int64_t source,
                Here here) const {
    Tensor mask, padding;
    if (o.attn_mask.defined()) {
      mask = barred(o.attn_mask, q.dtype());
      if (mask.ndim() == 3) mask = reshape(mask, {n, heads, length, source}, here);
    }
    if (o.key_padding_mask.defined())
      padding = reshape(barred(o.key_padding_mask, q.dtype()), {n, 1, 1, source}, here);
    return plus(mask, padding);
  }
};

struct TransformerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1, layer_norm_eps = 1e-5;
  bool gelu = false, batch_first = false, norm_first = false, bias = true;
};

// Self-attention and a two-layer network, each with dropout, a residual and a LayerNorm.
struct TransformerEncoderLayer final : Module<TransformerEncoderLayer> {
  MultiheadAttention self_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2;
  Dropout dropout1, dropout2;
  bool gelu, norm_first;

  TransformerEncoderLayer(int64_t width, int64_t heads, TransformerOptions o = {})
      : self_attn(width, heads,
                  {.dropout = o.dropout, .bias = o.bias, .batch_first = o.batch_first}),
        linear1(width, o.dim_feedforward, {o.bias}),
        dropout(o.dropout),
        linear2(o.dim_feedforward, width, {o.bias}),
        norm1(width, {.eps = o.layer_norm_eps, .bias = o.bias}),
        norm2(width, {.eps = o.layer_norm_eps, .bias = o.bias}),
        dropout1(o.dropout),
        dropout2(o.dropout),
        gelu(o.gelu),
        norm_first(o.norm_first) {}

  Tensor operator()(const Tensor& x, const AttentionCall& masks = {},
                    Here here = Here::current()) const {
    if (norm_first) {
      Tensor seen = x + attend(norm1(x, here), masks, here);
      return seen + feed(norm2(seen, here), here);
    }
    Tensor seen = norm1(x + attend(x, masks, here), here);
    return norm2(seen + feed(seen, here), here);
  }
  static constexpr auto fields() {
    using T = TransformerEncoderLayer;
    return Fields<&T::self_attn, &T::linear1, &T::dropout, &T::linear2, &T::norm1, &T::norm2,
                  &T::dropout1, &T::dropout2>();
  }

 private:
  Tensor attend(const Tensor& x, const AttentionCall& masks, Here here) const {
    return dropout1(self_attn(x, x, x, masks, here).output, here);
  }
  Tensor feed(const Tensor& x, Here here) const {
    Tensor h = linear1(x, here);
    return dropout2(
        linear2(dropout(gelu ? adjoin::gelu(h, "none", here) : relu(h, here), here), here), here);
  }
};

// So many layers, each with weights of its own, one after the other.
struct TransformerEncoder final : Module<TransformerEncoder> {
  std::vector<TransformerEncoderLayer> layers;
  std::optional<LayerNorm> norm;

  TransformerEncoder(const TransformerEncoderLayer& layer, int64_t count,
                     std::optional<LayerNorm> last = std::nullopt)
      : norm(std::move(last)) {
    for (int64_t i = 0; i < count; ++i) layers.push_back(layer.clone());
  }
  Tensor operator()(Tensor x, const AttentionCall& masks = {}, Here here = Here::current()) const {
    for (const TransformerEncoderLayer& layer : layers) x = layer(x, masks, here);
    return norm ? (*norm)(x, here) : x;
  }
  static constexpr auto fields() {
    return Fields<&TransformerEncoder::layers, &TransformerEncoder::norm>();
  }
};

}  // namespace nn
}  // namespace adjoin
#endif
