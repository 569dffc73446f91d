"""adjoin.nn.attention.bias: causal masks for scaled_dot_product_attention that are known by their sizes and take no memory."""

import enum
import warnings

import adjoin
from adjoin.nn import functional as F

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """From which corner the triangle of a mask that is not square begins."""

    UPPER_LEFT = 1  # query i sees the keys up to i
    LOWER_RIGHT = 2  # the last query sees all keys, the one before all but one


class CausalBias(adjoin.Tensor):
    """A mask of seq_len_q x seq_len_kv, as ``attn_mask`` of scaled_dot_product_attention alone."""

    def __new__(cls, variant, seq_len_q, seq_len_kv):
        return adjoin.empty(0).as_subclass(cls)

    def __init__(self, variant, seq_len_q, seq_len_kv):
        if not isinstance(variant, CausalVariant):
            raise TypeError(f"CausalBias: {variant!r} is no CausalVariant")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if variant is CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=3
            )

    def _materialize(self, device=None):
        """The mask: True where a query sees a key."""
        moved = self.seq_len_kv - self.seq_len_q if self.variant is CausalVariant.LOWER_RIGHT else 0
        return adjoin.ones(self.seq_len_q, self.seq_len_kv, dtype=adjoin.bool, device=device).tril(moved)

    def __repr__(self):
        return str(self._materialize())

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") != "scaled_dot_product_attention":
            raise NotImplementedError(
                "CausalBias only supports scaled_dot_product_attention; _materialize() makes the mask"
            )
        return _attend(*args, **kwargs or {})


def _attend(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **more):
    if is_causal:
        raise ValueError("CausalBias should not be used with causal=True: the mask is causal itself")
    shape = query.shape[-2], key.shape[-2]
    if shape != (attn_mask.seq_len_q, attn_mask.seq_len_kv):
        raise ValueError(
            f"scaled_dot_product_attention: the mask is for {attn_mask.seq_len_q} queries and {attn_mask.seq_len_kv} keys, "
            f"there are {shape[0]} and {shape[1]}"
        )
    from_the_left = attn_mask.variant is CausalVariant.UPPER_LEFT or shape[0] == shape[1]
    mask = None if from_the_left else attn_mask._materialize(query.device)
    return F.scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal=from_the_left, **more)


def causal_upper_left(*size):
    """The mask of so many queries and keys whose triangle begins at the first query and key: what ``is_causal=True`` means."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_two(size))


def causal_lower_right(*size):
    """The mask whose triangle ends at the last query and key: queries that come after what a cache of keys holds."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two(size))


def _two(size):
    if len(size) != 2:
        raise ValueError(f"a causal bias has two sizes, of the queries and of the keys, not {len(size)}")
    return size
