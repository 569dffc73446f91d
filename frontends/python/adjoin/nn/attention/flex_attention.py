"""adjoin.nn.attention.flex_attention: attention whose scores and mask are functions of the places, by its definition.

Dong et al., "Flex Attention: a programming model for generating optimized attention kernels" (2024). Here the scores of all
pairs are made, whole, and the functions see them at once: an index is a tensor that broadcasts, of the shape (batch, 1, 1, 1),
(1, heads, 1, 1), (1, 1, queries, 1) or (1, 1, 1, keys). So a function may compare, compute and index with them; an ``if`` on
one of them raises.
"""

import math
from typing import NamedTuple, TypedDict

import adjoin
from adjoin import Tensor

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxOutput(NamedTuple):
    """What flex_attention gives beside the result."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class AuxRequest(NamedTuple):
    """Which of them are wanted."""

    lse: bool = False
    max_scores: bool = False


class FlexKernelOptions(TypedDict, total=False):
    """Settings of a generated kernel; none is generated here, so they are not read."""


def _identity(score, batch, head, q_idx, kv_idx):
    return score


def noop_mask(batch, head, q_idx, kv_idx):
    """A mask that lets everything through."""
    return batch.new_ones((), dtype=adjoin.bool)


def and_masks(*mask_mods):
    """The mask that all of them let through."""
    _want_functions("and_masks", mask_mods)

    def and_mask(b, h, q_idx, kv_idx):
        result = b.new_ones((), dtype=adjoin.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods):
    """The mask that one of them lets through."""
    _want_functions("or_masks", mask_mods)

    def or_mask(b, h, q_idx, kv_idx):
        result = b.new_zeros((), dtype=adjoin.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def _want_functions(who, mask_mods):
    if not all(callable(m) for m in mask_mods):
        raise RuntimeError(f"{who}: all inputs should be callable mask_mods: {mask_mods}")


def _places(b, h, q, kv, device):
    """The four index tensors."""
    sizes = (b, h, q, kv)
    return [
        adjoin.arange(n, device=device).reshape([-1 if k == d else 1 for k in range(4)]) for d, n in enumerate(sizes)
    ]


def _takes_score(mod):
    import inspect

    try:
        return len([p for p in inspect.signature(mod).parameters.values() if p.default is p.empty]) == 5
    except (TypeError, ValueError):
        return False


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """A mask function's truth at each place, bool of (B, H, Q_LEN, KV_LEN); of a score function, what it makes of zeros."""
    b, h = B or 1, H or 1
    places = _places(b, h, Q_LEN, KV_LEN, device)
    if _takes_score(mod_fn):
        made = mod_fn(adjoin.zeros(b, h, Q_LEN, KV_LEN, device=device), *places)
    else:
        made = mod_fn(*places)
        made = made if isinstance(made, Tensor) else adjoin.tensor(made, device=device)
    return made.expand(b, h, Q_LEN, KV_LEN).contiguous()


def _padded(mask, q_block, kv_block):
    q, kv = mask.shape[-2:]
    return adjoin.nn.functional.pad(mask, (0, -kv % kv_block, 0, -q % q_block))


def _blocks(mask, q_block, kv_block):
    """(blocks where some places are let through, blocks where all are), each (B, H, rows, columns)."""
    whole = _padded(mask, q_block, kv_block)
    b, h, q, kv = whole.shape
    counts = whole.view(b, h, q // q_block, q_block, kv // kv_block, kv_block).sum((-3, -1))
    full = counts == q_block * kv_block
    return (counts > 0) & ~full, full


def _ordered(dense):
    """(how many of a row are set, their columns first, then the others), as int32."""
    counts = dense.sum(-1).to(adjoin.int32)
    order = adjoin.argsort(dense.to(adjoin.int32), dim=-1, descending=True, stable=True)
    return counts, order.to(adjoin.int32).contiguous()


def _dense(counts, indices, columns):
    """The blocks that counts and columns name, as bool of (..., rows, columns)."""
    first = adjoin.arange(indices.shape[-1], device=indices.device) < counts.unsqueeze(-1)
    flat = adjoin.zeros(*indices.shape[:-1], max(columns, indices.shape[-1]), dtype=adjoin.bool, device=indices.device)
    flat = flat.scatter(-1, indices.long(), first)
    return flat[..., :columns]


def _sizes(block):
    return (block, block) if isinstance(block, int) else tuple(block)


class BlockMask:
    """A mask as a function and the blocks of places that it lets through, in part or whole."""

    _TENSORS = (
        "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
        "full_q_num_blocks", "full_q_indices",
    )  # fmt: skip

    def __init__(
        self,
        seq_lengths,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks=None,
        full_kv_indices=None,
        q_num_blocks=None,
        q_indices=None,
        full_q_num_blocks=None,
        full_q_indices=None,
        BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod=noop_mask,
    ):
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise RuntimeError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = tuple(seq_lengths), _sizes(BLOCK_SIZE), mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks=None,
        full_kv_indices=None,
        BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod=None,
        seq_lengths=None,
        compute_q_blocks=True,
    ):
        """From the blocks of each row of blocks; those of each column follow from them."""
        q_block, kv_block = _sizes(BLOCK_SIZE)
        rows, columns = kv_indices.shape[-2:]
        seq_lengths = seq_lengths or (rows * q_block, columns * kv_block)
        turned = [None] * 4
        if compute_q_blocks:
            columns = max(columns, -(-seq_lengths[1] // kv_block))
            turned[:2] = _ordered(_dense(kv_num_blocks, kv_indices, columns).transpose(-1, -2))
            if full_kv_indices is not None:
                turned[2:] = _ordered(_dense(full_kv_num_blocks, full_kv_indices, columns).transpose(-1, -2))
        kv = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices)
        return cls(seq_lengths, *kv, *turned, BLOCK_SIZE=BLOCK_SIZE, mask_mod=mask_mod or noop_mask)

    def as_tuple(self, flatten=True):
        """All parts, in the order of the constructor."""
        sizes = (*self.seq_lengths,) if flatten else (self.seq_lengths,)
        blocks = (*self.BLOCK_SIZE,) if flatten else (self.BLOCK_SIZE,)
        return (*sizes, *(getattr(self, n) for n in self._TENSORS), *blocks, self.mask_mod)

    @property
    def shape(self):
        """(batch, heads, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self):
        """The number of places."""
        return math.prod(self.shape)

    def to_dense(self):
        """1 for each block of which places are let through, as int32 of (batch, heads, rows, columns)."""
        columns = self.kv_indices.shape[-1]
        dense = _dense(self.kv_num_blocks, self.kv_indices, columns)
        if self.full_kv_indices is not None:
            dense = dense | _dense(self.full_kv_num_blocks, self.full_kv_indices, columns)
        return dense.to(adjoin.int32)

    def sparsity(self):
        """Percents of the blocks of which no place is let through."""
        blocks = self.to_dense()
        return 100 * (1 - blocks.sum().item() / blocks.numel()) if blocks.numel() else 0.0

    def to(self, device):
        """The same on a device."""
        moved = [None if t is None else t.to(device) for t in (getattr(self, n) for n in self._TENSORS)]
        return BlockMask(self.seq_lengths, *moved, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)

    def __getitem__(self, index):
        """Some of the batch, the heads or the rows of blocks."""
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)
        parts = [None if t is None else t[index] for t in (getattr(self, n) for n in self._TENSORS[:4])]
        rows = parts[1].shape[-2]
        q = self.seq_lengths[0] if len(index) < 3 else rows * self.BLOCK_SIZE[0]
        return BlockMask.from_kv_blocks(
            *parts,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(q, self.seq_lengths[1]),
            compute_q_blocks=self.q_indices is not None,
        )

    def to_string(self, grid_size=(20, 20), limit=4):
        """A drawing: a full block, a part of one, or a space, for each of some batches and heads."""
        full = None
        columns = self.kv_indices.shape[-1]
        if self.full_kv_indices is not None:
            full = _dense(self.full_kv_num_blocks, self.full_kv_indices, columns)
        part = _dense(self.kv_num_blocks, self.kv_indices, columns)
        lead = math.prod(part.shape[:-2])
        rows = []
        for k in range(min(lead, limit)):
            place = tuple(int(i) for i in adjoin.unravel_index(adjoin.tensor(k), part.shape[:-2]))
            rows.append(str(place))
            for r in range(0, part.shape[-2], max(1, part.shape[-2] // grid_size[0])):
                steps = range(0, columns, max(1, columns // grid_size[1]))
                rows.append("".join(_cell(part[place], full if full is None else full[place], r, c) for c in steps))
        return "\n".join(rows + (["..."] if lead > limit else []))

    def __repr__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()}\n)"

    __str__ = __repr__


def _cell(part, full, r, c):
    if full is not None and bool(full[r, c]):
        return "██"
    return "░░" if bool(part[r, c]) else "  "


def create_block_mask(
    mask_mod,
    B,
    H,
    Q_LEN,
    KV_LEN,
    device=None,
    BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
    _compile=False,
    separate_full_blocks=True,
):
    """The BlockMask of ``mask_mod(batch, head, q_idx, kv_idx) -> bool``; B or H of None: it is the same for all."""
    q_block, kv_block = _sizes(BLOCK_SIZE)
    partial, full = _blocks(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), q_block, kv_block)
    whole = _ordered(full) if separate_full_blocks else (None, None)
    if not separate_full_blocks:
        partial = partial | full
    return BlockMask.from_kv_blocks(
        *_ordered(partial), *whole, BLOCK_SIZE=(q_block, kv_block), mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN)
    )


def _lets_through(block_mask, places, scores):
    """Where a place counts: its block does, and the function says so unless the block is full."""
    q, kv = scores.shape[-2:]
    if block_mask.seq_lengths[0] < q or block_mask.seq_lengths[1] < kv:
        raise ValueError(
            f"flex_attention: the block_mask is for {block_mask.seq_lengths[0]} queries and {block_mask.seq_lengths[1]} keys, "
            f"there are {q} and {kv}; make it anew with create_block_mask"
        )
    mask = block_mask.mask_mod(*places)
    mask = mask if isinstance(mask, Tensor) else adjoin.tensor(mask, device=scores.device)
    blocks = block_mask.to_dense().bool()
    blocks = blocks.repeat_interleave(block_mask.BLOCK_SIZE[0], -2).repeat_interleave(block_mask.BLOCK_SIZE[1], -1)
    return mask & blocks[..., :q, :kv]


def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa=False,
    return_lse=False,
    kernel_options=None,
    *,
    return_aux=None,
):
    """softmax(score_mod(query @ key.T * scale)) @ value over the places that block_mask lets through.

    query (batch, heads, queries, E), key and value (batch, heads, keys, E or Ev); with ``enable_gqa`` several heads of queries
    share one of keys. A query that is let nowhere gives zeros. ``score_mod(score, batch, head, q_idx, kv_idx)``.
    With ``return_lse`` also the logarithm of the sum of exp(scores); with ``return_aux`` an AuxOutput.
    """
    for name, t in (("query", query), ("key", key), ("value", value)):
        if t.dim() != 4:
            raise ValueError(f"Expected {name} to be a 4D tensor, but got {t.dim()}D.")
    heads, of_keys = query.shape[1], key.shape[1]
    if heads != of_keys:
        if not enable_gqa or heads % of_keys:
            raise ValueError(
                f"flex_attention: query has {heads} heads, key and value have {of_keys}; "
                + ("the one must be a multiple of the other" if enable_gqa else "enable_gqa=True lets heads share keys")
            )
        key, value = (t.repeat_interleave(heads // of_keys, 1) for t in (key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    digits = query.dtype if query.dtype == adjoin.float64 else adjoin.float32
    scores = (query.to(digits) @ key.to(digits).transpose(-2, -1)) * scale
    places = _places(*scores.shape, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *places).to(digits)
    if block_mask is not None:
        scores = scores.masked_fill(~_lets_through(block_mask, places, scores), -math.inf)
    largest = scores.amax(-1) if scores.shape[-1] else scores.new_full(scores.shape[:-1], -math.inf)
    lse = adjoin.logsumexp(scores, -1)
    nowhere = (largest == -math.inf).unsqueeze(-1)
    weights = adjoin.where(nowhere, 0.0, adjoin.softmax(scores.masked_fill(nowhere, 0.0), -1))
    out = (weights.to(value.dtype) @ value).to(query.dtype)
    if return_aux is not None:
        return out, AuxOutput(lse if return_aux.lse else None, largest if return_aux.max_scores else None)
    return (out, lse) if return_lse else out
