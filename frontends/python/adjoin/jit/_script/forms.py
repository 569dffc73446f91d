"""adjoin.jit._script.forms: layers of the package whose code uses more of Python than programs have, in the subset. Each does
what the layer does, with the same bits."""

import adjoin

from ... import _C, _functions, _sparse
from ...nn._functional import attention
from ...nn.modules import attention as attention_modules
from ...nn.modules import container, rnn, sparse, transformer


def _sequential(self, input):
    for layer in self:
        input = layer(input)
    return input


def _renormalize(self, input):
    with adjoin.no_grad():
        seen = {i: True for i in input.flatten().tolist()}
        index = adjoin.tensor(sorted(seen.keys()), device=self.weight.device)
        used = self.weight[index]
        norms = used.abs().pow(self.norm_type).sum(1, keepdim=True).pow(1 / self.norm_type)
        scale = (self.max_norm / (norms + 1e-7)).clamp(max=1.0)
        self.weight[index] = used * scale


def _run(self, row, arguments, states):
    hx = states if self.mode == "LSTM" else states[0]
    weights = [getattr(self, name) for names in self._all_weights for name in names]
    last = [] if len(arguments) == 2 else [self.batch_first]
    output, *states = row(
        *arguments, hx, weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, *last
    )
    return output, tuple(states)


def _swapped(query, key, value):
    q = query.transpose(0, 1)
    k = q if key is query else key.transpose(0, 1)
    if value is query:
        return q, k, q
    return q, k, k if value is key else value.transpose(0, 1)


class AttentionWeights:
    def __init__(
        self,
        num_heads,
        in_proj,
        q_proj,
        k_proj,
        v_proj,
        bias,
        bias_k,
        bias_v,
        add_zero,
        out,
        out_bias,
        static_k,
        static_v,
    ):
        self.num_heads, self.add_zero_attn = num_heads, add_zero
        self.in_proj_weight, self.in_proj_bias = in_proj, bias
        self.q_proj_weight, self.k_proj_weight, self.v_proj_weight = q_proj, k_proj, v_proj
        self.bias_k, self.bias_v, self.static_k, self.static_v = bias_k, bias_v, static_k, static_v
        self.out_weight, self.out_bias = out, out_bias


def _attend(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
            average_attn_weights=True, is_causal=False):  # fmt: skip
    attention.check(query, key, value, self.embed_dim, self.num_heads, key_padding_mask, attn_mask, is_causal)
    batched = query.dim() == 3
    if not batched:
        query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    elif not self.batch_first:
        query, key, value = _swapped(query, key, value)
    dropout = self.dropout if self.training else 0.0
    given = AttentionWeights(
        self.num_heads, self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight, self.in_proj_bias,
        self.bias_k, self.bias_v, self.add_zero_attn, self.out_proj.weight, self.out_proj.bias, None, None,
    )  # fmt: skip
    out, weights = attention.attend(
        given,
        query,
        key,
        value,
        key_padding_mask,
        need_weights,
        attn_mask,
        average_attn_weights,
        dropout,
    )
    if not batched:
        return out.squeeze(0), None if weights is None else weights.squeeze(0)
    return out if self.batch_first else out.transpose(0, 1), weights


def _multi_head_attention(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
    add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None,
    need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None,
    k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
    average_attn_weights=True, is_causal=False,
):  # fmt: skip
    if static_k is not None and bias_k is not None:
        raise AssertionError("multi_head_attention_forward: bias cannot be added to static key.")
    if static_v is not None and bias_v is not None:
        raise AssertionError("multi_head_attention_forward: bias cannot be added to static value.")
    attention.check(
        query, key, value, embed_dim_to_check, num_heads, key_padding_mask, attn_mask, is_causal, static_k is None
    )
    batched = query.dim() == 3
    if batched:
        query, key, value = _swapped(query, key, value)
    else:
        query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    weights = AttentionWeights(
        num_heads, None if use_separate_proj_weight else in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight,
        in_proj_bias, bias_k, bias_v, add_zero_attn, out_proj_weight, out_proj_bias, static_k, static_v,
    )  # fmt: skip
    dropout = dropout_p if training else 0.0
    out, of = attention.attend(
        weights, query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, dropout
    )
    if not batched:
        return out.squeeze(0), None if of is None else of.squeeze(0)
    return out.transpose(0, 1), of


def _encode(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
    """With padding: where the layer runs on the sequences alone, it gives zeros for padding, and this does not."""
    causal = bool(is_causal) and mask is not None
    for layer in self.layers:
        src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal)
    return src if self.norm is None else self.norm(src)


_contracted = _C.find_op("tensordot")


def _tensordot(a, b, dims=2):
    if isinstance(dims, int):
        return _contracted(a, b, dims)
    of_a, of_b = dims
    of_a = [d % a.dim() for d in ([of_a] if isinstance(of_a, int) else of_a)]
    of_b = [d % b.dim() for d in ([of_b] if isinstance(of_b, int) else of_b)]
    rest_a = [d for d in range(a.dim()) if d not in of_a]
    rest_b = [d for d in range(b.dim()) if d not in of_b]
    return _contracted(a.permute(rest_a + of_a), b.permute(of_b + rest_b), len(of_a))


_coo = _C.find_op("_::sparse_coo")


def _sparse_coo_tensor(indices, values, size=None, *, dtype=None, layout=None, device=None, requires_grad=False,
                       is_coalesced=None) -> adjoin.Tensor:  # fmt: skip
    values = adjoin.as_tensor(values, dtype=dtype, device=device)
    indices = adjoin.as_tensor(indices, device=values.device)
    if indices.numel() > 0 and (indices.is_floating_point() or indices.dtype == adjoin.bool):
        raise TypeError("sparse_coo_tensor: indices must be integers; use .long()")
    indices = indices.detach().long()
    if values.dim() == 0 and indices.dim() == 2:
        values = values.expand(indices.shape[1])
    if size is None:
        rows = (indices.amax(1) + 1).tolist() if indices.shape[1] > 0 else [0] * indices.shape[0]
        size = rows + list(values.shape[1:])
    made = _coo(indices, values, tuple(size), bool(is_coalesced))
    return made.detach().requires_grad_() if requires_grad else made


_dense = _C.find_op("_::sparse_to_dense")


def _to_dense(self, dtype=None, *, masked_grad=None):
    if self.layout != adjoin.strided:
        self = _dense(self, masked_grad is None or bool(masked_grad))
    return self if dtype is None else self.to(dtype)


FORMS = {
    container.Sequential: {"forward": _sequential},
    sparse.Embedding: {"_renormalize": _renormalize},
    rnn.RNNBase: {"_run": _run},
    attention_modules.MultiheadAttention: {"forward": _attend},
    transformer.TransformerEncoder: {"forward": _encode},
}
FUNCTIONS = {
    _sparse.sparse_coo_tensor: _sparse_coo_tensor,
    adjoin.Tensor.to_dense: _to_dense,
    attention.first_two_swapped: _swapped,
    attention.multi_head_attention_forward: _multi_head_attention,
    _functions.tensordot: _tensordot,
}
