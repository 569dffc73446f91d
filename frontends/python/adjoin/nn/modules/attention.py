"""adjoin.nn.modules.attention: multi-head attention (Vaswani et al., 2017)."""

import math

import adjoin

from .. import functional as F
from .. import init
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
            raise AssertionError("embed_dim must be divisible by num_heads")
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
        batched = query.dim() == 3
        if query.dim() not in (2, 3):
            raise AssertionError(
                "query should be unbatched 2D or batched 3D tensor but received "
                f"{query.dim()}-D tensor"
            )
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        if not batched:
            query, key, value = (t.unsqueeze(0) for t in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))

        q, k, v = self._project(query, key, value)
        q, k, v, attn_mask, key_padding_mask = self._extend(q, k, v, attn_mask, key_padding_mask)
        n, length, source = q.size(0), q.size(1), k.size(1)
        q, k, v = (
            t.reshape(n, t.size(1), self.num_heads, self.head_dim).transpose(1, 2)
            for t in (q, k, v)
        )
        mask = self._mask(attn_mask, key_padding_mask, q, n, length, source)
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            scores = (q * (1 / math.sqrt(self.head_dim))) @ k.transpose(-2, -1)
            weights = F.softmax(scores if mask is None else scores + mask, -1)
            if dropout > 0:
                weights = F.dropout(weights, dropout, True)
            out = weights @ v
        else:
            weights = None
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        out = self.out_proj(out.transpose(1, 2).reshape(n, length, self.embed_dim))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return (out if self.batch_first else out.transpose(0, 1)), weights

    def _project(self, query, key, value):
        bias = self.in_proj_bias
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        if self._qkv_same_embed_dim:
            if query is key and key is value:
                return F.linear(query, self.in_proj_weight, bias).chunk(3, -1)
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        inputs = (query, key, value)
        return tuple(F.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True))

    def _extend(self, q, k, v, attn_mask, key_padding_mask):
        """Appends the learned key and value, and the zero ones, and lets the masks pass them."""
        extra = []
        if self.bias_k is not None and self.bias_v is not None:
            extra.append((self.bias_k, self.bias_v))
        if self.add_zero_attn:
            zero = adjoin.zeros(1, 1, self.embed_dim, dtype=k.dtype, device=k.device)
            extra.append((zero, zero))
        for more_k, more_v in extra:
            shape = (k.size(0), 1, self.embed_dim)
            k = adjoin.cat([k, more_k.expand(shape)], 1)
            v = adjoin.cat([v, more_v.expand(shape)], 1)
            if attn_mask is not None:
                attn_mask = F.pad(attn_mask, (0, 1))
            if key_padding_mask is not None:
                key_padding_mask = F.pad(key_padding_mask, (0, 1))
        return q, k, v, attn_mask, key_padding_mask

    def _mask(self, attn_mask, key_padding_mask, q, n, length, source):
        """Both masks as one that is added to the scores, broadcastable to (N, heads, L, S); or
        None."""
        mask = None
        if attn_mask is not None:
            mask = _additive(attn_mask, q.dtype)
            if mask.dim() == 3:
                wanted = (n * self.num_heads, length, source)
                if tuple(mask.shape) != wanted:
                    raise RuntimeError(
                        f"The shape of the 3D attn_mask is {tuple(mask.shape)}, but should be "
                        f"{wanted}."
                    )
                mask = mask.view(n, self.num_heads, length, source)
            elif tuple(mask.shape) != (length, source):
                raise RuntimeError(
                    f"The shape of the 2D attn_mask is {tuple(mask.shape)}, "
                    f"but should be {(length, source)}."
                )
        if key_padding_mask is not None:
            padding = _additive(key_padding_mask, q.dtype).view(n, 1, 1, source)
            mask = padding if mask is None else mask + padding
        return mask


def _additive(mask, dtype):
    """A boolean mask, True where attention is barred, as zeros and minus infinities."""
    if mask.dtype != adjoin.bool:
        return mask
    zeros = adjoin.zeros(mask.shape, dtype=dtype, device=mask.device)
    return zeros.masked_fill(mask, float("-inf"))
