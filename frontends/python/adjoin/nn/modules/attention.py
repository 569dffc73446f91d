"""adjoin.nn.modules.attention: multi-head attention (Vaswani et al., 2017)."""

import adjoin

from .. import init
from .._functional.attention import attend, check, first_two_swapped
from ..parameter import Parameter
from .linear import Linear
from .module import Module

__all__ = ["MultiheadAttention"]


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection; a name of its own, because saved models and printed ones carry it."""


class MultiheadAttention(Module):
    """Attention of queries over keys and values, in ``num_heads`` parts of the width ``embed_dim``.

    query (L, N, E), key (S, N, kdim), value (S, N, vdim); batch first: (N, L, E) and so on;
    without a batch: (L, E). Returns the output, shaped like the query, and the attention weights,
    (N, L, S) averaged over heads or (N, heads, L, S), or None where they are not asked for.
    """

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False,
                 add_zero_attn=False, kdim=None, vdim=None, batch_first=False, device=None,
                 dtype=None):  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, "
                f"got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError(
                f"{type(self).__name__}: embed_dim must be divisible by num_heads: {embed_dim} is not by {num_heads}"
            )
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn

        def weight(*shape):
            return Parameter(adjoin.empty(shape, **factory))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = weight(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = weight(embed_dim, embed_dim)
            self.k_proj_weight = weight(embed_dim, self.kdim)
            self.v_proj_weight = weight(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", weight(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **factory)
        self.bias_k = weight(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = weight(1, 1, embed_dim) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self):
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False):  # fmt: skip
        check(query, key, value, self.embed_dim, self.num_heads, key_padding_mask, attn_mask, is_causal)
        batched = query.dim() == 3
        if not batched:
            query, key, value = (t.unsqueeze(0) for t in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = first_two_swapped(query, key, value)
        out, weights = attend(_Weights(self), query, key, value, key_padding_mask, need_weights,
                              attn_mask, average_attn_weights,
                              self.dropout if self.training else 0.0)  # fmt: skip
        if not batched:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return (out if self.batch_first else out.transpose(0, 1)), weights


class _Weights:
    """The module's weights under the names that attend() knows."""

    static_k = static_v = None

    def __init__(self, module):
        self._module = module
        self.out_weight, self.out_bias = module.out_proj.weight, module.out_proj.bias

    def __getattr__(self, name):
        return getattr(self._module, name)
