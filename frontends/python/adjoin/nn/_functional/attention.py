"""adjoin.nn._functional.attention: multi-head attention (Vaswani et al., 2017) on given weights."""

import math
from types import SimpleNamespace

import adjoin

from ..._overridden import handed_over, overridden
from . import op

__all__ = ["multi_head_attention_forward"]


def multi_head_attention_forward(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
    add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None,
    need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None,
    k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
    average_attn_weights=True, is_causal=False,
):  # fmt: skip
    """Attention of queries (L, N, E) over keys and values (S, N, ...), or without N.

    ``static_k`` and ``static_v`` (N heads, S, E / heads) stand for projected keys and values.
    """
    if overridden(query, key, value, in_proj_weight, in_proj_bias, bias_k, bias_v, out_proj_weight, out_proj_bias):
        return handed_over(
            multi_head_attention_forward,
            (query, key, value, in_proj_weight, in_proj_bias, bias_k, bias_v, out_proj_weight, out_proj_bias),
            locals(),
        )
    for static, bias, name in ((static_k, bias_k, "key"), (static_v, bias_v, "value")):
        if static is not None and bias is not None:
            raise AssertionError(f"multi_head_attention_forward: bias cannot be added to static {name}.")
    check(query, key, value, embed_dim_to_check, num_heads, key_padding_mask, attn_mask, is_causal, static_k is None)
    batched = query.dim() == 3
    if batched:
        query, key, value = first_two_swapped(query, key, value)
    else:
        query, key, value = (t.unsqueeze(0) for t in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    weights = SimpleNamespace(
        num_heads=num_heads, in_proj_weight=None if use_separate_proj_weight else in_proj_weight,
        in_proj_bias=in_proj_bias, q_proj_weight=q_proj_weight, k_proj_weight=k_proj_weight,
        v_proj_weight=v_proj_weight, bias_k=bias_k, bias_v=bias_v, add_zero_attn=add_zero_attn,
        out_weight=out_proj_weight, out_bias=out_proj_bias, static_k=static_k, static_v=static_v,
    )  # fmt: skip
    out, attention = attend(
        weights, query, key, value, key_padding_mask, need_weights, attn_mask,
        average_attn_weights, dropout_p if training else 0.0,
    )  # fmt: skip
    if not batched:
        return out.squeeze(0), None if attention is None else attention.squeeze(0)
    return out.transpose(0, 1), attention


def check(query, key, value, embed_dim, num_heads, key_padding_mask, attn_mask, is_causal, alike=True):
    """Refuses shapes that do not belong together."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    dims = query.dim()
    of = f"For {'batched (3-D)' if dims == 3 else 'unbatched (2-D)'} `query`, expected"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"{of} `key` and `value` to be {dims}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"{of} `key_padding_mask` to be `None` or {dims - 1}-D but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(f"{of} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead")
    if dims == 2 and attn_mask is not None and attn_mask.dim() == 3:
        wanted = (num_heads, query.size(0), key.size(0))
        if tuple(attn_mask.shape) != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {tuple(attn_mask.shape)}")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if query.size(-1) != embed_dim:
        raise AssertionError(
            f"multi_head_attention_forward: was expecting embedding dimension of {embed_dim}, but got {query.size(-1)}: "
            "the last size of the query must be embed_dim"
        )
    if alike and not key.is_nested and key.shape[:-1] != value.shape[:-1]:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    if attn_mask is not None and not (attn_mask.dtype.is_floating_point or attn_mask.dtype == adjoin.bool):
        raise AssertionError(f"only bool and floating types of attn_mask are supported, not {attn_mask.dtype}")
    if embed_dim % num_heads:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")


def first_two_swapped(query, key, value):
    """Each transposed, and those that were one tensor still are."""
    done = {}
    for t in (query, key, value):
        if id(t) not in done:
            done[id(t)] = t.transpose(0, 1)
    return tuple(done[id(t)] for t in (query, key, value))


def attend(w, query, key, value, key_padding_mask, need_weights, attn_mask, average, dropout):
    """Attention of (N, L, E) with the weights that ``w`` has; with its own weights or None."""
    if query.is_nested:
        return _attend_ragged(w, query, key, value, key_padding_mask, need_weights, attn_mask, dropout)
    q, k, v = _project(w, query, key, value)
    q, k, v, attn_mask, key_padding_mask = _extend(w, q, k, v, attn_mask, key_padding_mask)
    n, length, width = q.shape
    source, head = k.size(1), width // w.num_heads
    q, k, v = (t.reshape(n, t.size(1), w.num_heads, head).transpose(1, 2) for t in (q, k, v))
    mask = _mask(attn_mask, key_padding_mask, q, n, length, source)
    if need_weights:
        scores = (q * (1 / math.sqrt(head))) @ k.transpose(-2, -1)
        weights = op("softmax")(scores if mask is None else scores + mask, -1)
        if dropout > 0:
            weights = op("dropout")(weights, dropout, True)
        out = weights @ v
    else:
        weights = None
        out = op("scaled_dot_product_attention")(q, k, v, attn_mask=mask, dropout_p=dropout)
    out = op("linear")(out.transpose(1, 2).reshape(n, length, width), w.out_weight, w.out_bias)
    if weights is not None and average:
        weights = weights.mean(1)
    return out, weights


def _attend_ragged(w, query, key, value, key_padding_mask, need_weights, attn_mask, dropout):
    """attend() of nested tensors: each sequence within itself, so there is nothing to mask."""
    if attn_mask is not None or key_padding_mask is not None:
        raise RuntimeError("MultiheadAttention: a nested tensor takes no mask: its sequences have no padding")
    if need_weights:
        raise RuntimeError(
            "MultiheadAttention: the weights of a nested tensor have two ragged sizes; give need_weights=False"
        )
    if w.bias_k is not None or w.bias_v is not None or w.add_zero_attn:
        raise RuntimeError("MultiheadAttention: add_bias_kv and add_zero_attn are not there for nested tensors")
    sides = (t.unflatten(-1, (w.num_heads, -1)).transpose(1, 2) for t in _project(w, query, key, value))
    out = op("scaled_dot_product_attention")(*sides, dropout_p=dropout)
    return op("linear")(out.transpose(1, 2).flatten(-2), w.out_weight, w.out_bias), None


def _heads_last(t, n, width):
    """(N heads, S, E / heads) as (N, S, E)."""
    heads = width // t.size(2)
    return t.reshape(n, heads, t.size(1), t.size(2)).transpose(1, 2).reshape(n, t.size(1), width)


def _project(w, query, key, value):
    linear, bias = op("linear"), w.in_proj_bias
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    if w.in_proj_weight is not None:
        if query is key and key is value and w.static_k is None and w.static_v is None:
            return linear(query, w.in_proj_weight, bias).chunk(3, -1)
        weights = w.in_proj_weight.chunk(3)
    else:
        weights = (w.q_proj_weight, w.k_proj_weight, w.v_proj_weight)
    n, width = query.size(0), query.size(-1)
    q, k, v = (
        None if static is not None else linear(x, a, b)
        for x, a, b, static in zip((query, key, value), weights, biases, (None, w.static_k, w.static_v), strict=True)
    )
    k = _heads_last(w.static_k, n, width) if k is None else k
    v = _heads_last(w.static_v, n, width) if v is None else v
    return q, k, v


def _extend(w, q, k, v, attn_mask, key_padding_mask):
    """Appends the learned key and value, and the zero ones, and lets the masks pass them."""
    extra = []
    if w.bias_k is not None and w.bias_v is not None:
        extra.append((w.bias_k, w.bias_v))
    if w.add_zero_attn:
        zero = adjoin.zeros(1, 1, k.size(-1), dtype=k.dtype, device=k.device)
        extra.append((zero, zero))
    for more_k, more_v in extra:
        shape = (k.size(0), 1, k.size(-1))
        k = adjoin.cat([k, more_k.expand(shape)], 1)
        v = adjoin.cat([v, more_v.expand(shape)], 1)
        if attn_mask is not None:
            attn_mask = op("pad")(attn_mask, (0, 1))
        if key_padding_mask is not None:
            key_padding_mask = op("pad")(key_padding_mask, (0, 1))
    return q, k, v, attn_mask, key_padding_mask


def _mask(attn_mask, key_padding_mask, q, n, length, source):
    """Both masks as one that is added to the scores, broadcastable to (N, heads, L, S); or
    None."""
    mask = None
    if attn_mask is not None:
        mask = _additive(attn_mask, q.dtype)
        heads = q.size(1)
        if mask.dim() == 3:
            wanted = (n * heads, length, source)
            if tuple(mask.shape) != wanted:
                raise RuntimeError(f"The shape of the 3D attn_mask is {tuple(mask.shape)}, but should be {wanted}.")
            mask = mask.view(n, heads, length, source)
        elif tuple(mask.shape) != (length, source):
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {tuple(mask.shape)}, but should be {(length, source)}."
            )
    if key_padding_mask is not None:
        if tuple(key_padding_mask.shape) != (n, source):
            raise AssertionError(
                f"The shape of key_padding_mask is {tuple(key_padding_mask.shape)}, but should be {(n, source)}: "
                "a row for each batch, an element for each key"
            )
        padding = _additive(key_padding_mask, q.dtype).view(n, 1, 1, source)
        mask = padding if mask is None else mask + padding
    return mask


def _additive(mask, dtype):
    """A boolean mask, True where attention is barred, as zeros and minus infinities."""
    if mask.dtype != adjoin.bool:
        if not mask.dtype.is_floating_point:
            raise AssertionError(f"only bool and floating types of key_padding_mask are supported, not {mask.dtype}")
        return mask
    zeros = adjoin.zeros(mask.shape, dtype=dtype, device=mask.device)
    return zeros.masked_fill(mask, float("-inf"))
