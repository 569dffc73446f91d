"""adjoin._segments: reductions of neighbouring rows, and the borders of equal indices."""

import math

import adjoin

from . import _C

__all__ = ["segment_reduce"]

_EMPTY = {"sum": 0.0, "mean": math.nan, "max": -math.inf, "min": math.inf, "prod": 1.0}


def _lengths(data, lengths, offsets, axis, unsafe):
    """How many rows each segment has: (batch..., segments)."""
    if (lengths is None) == (offsets is None):
        raise RuntimeError("segment_reduce: either lengths or offsets must be defined, and not both")
    name, given = ("lengths", lengths) if offsets is None else ("offsets", offsets)
    if given.dtype not in (adjoin.int32, adjoin.int64):
        raise RuntimeError(f"segment_reduce: {name} must be int32 or int64, not {given.dtype}")
    if given.dim() != axis + 1 or given.shape[:axis] != data.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce: {name} of shape {tuple(given.shape)} for data of shape {tuple(data.shape)} and axis {axis}; "
            f"the first {axis} sizes must be those of data, and one more dimension counts the segments"
        )
    if offsets is not None:
        if given.shape[-1] == 0:
            raise RuntimeError("segment_reduce: offsets has a border more than there are segments; it is empty")
        lengths = given.diff()
    rows = data.shape[axis]
    if not unsafe and lengths.numel():
        if bool((lengths < 0).any()):
            raise RuntimeError("segment_reduce: lengths contains negative value!")
        if bool((lengths.sum(-1) != rows).any()):
            raise RuntimeError(
                f"segment_reduce: Expected all rows of lengths along axis to sum to data.size(axis) = {rows}"
            )
    return lengths.long()


class _Best(adjoin.autograd.Function):
    """The largest or smallest row of each segment: those that are it share the gradient, and NaN is it where there is one."""

    @staticmethod
    def forward(ctx, used, index, made, kind):
        made = made.scatter_reduce(0, index, used, kind, include_self=True)
        hit = (used == made.gather(0, index)) | used.isnan()
        ctx.save_for_backward(index, hit, made.new_zeros(made.shape).scatter_add(0, index, hit.to(made.dtype)))
        return made

    @staticmethod
    def backward(ctx, grad):
        index, hit, count = ctx.saved_tensors
        return (grad / count).gather(0, index).where(hit, 0.0), None, None, None


def _product(used, index, made):
    """The product of each segment. The derivative by the only NaN is the product of the others, as by a zero."""
    bad = used.isnan()
    if _C.transform_level(bad) <= 0 and not bool(bad.any()):  # inside of vmap each sample has its own answer
        return made.scatter_reduce(0, index, used, "prod", include_self=True)
    count = made.new_zeros(made.shape).scatter_add(0, index, bad.to(made.dtype))
    alone = made.new_zeros(made.shape).scatter_add(0, index, used.where(bad, 0.0)) + (count == 0).to(made.dtype)
    alone = alone * made.new_ones(made.shape).masked_fill(count > 1, math.nan)
    return made.scatter_reduce(0, index, used.masked_fill(bad, 1.0), "prod", include_self=True) * alone


def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Neighbouring rows along ``axis`` as one: their sum, mean, max, min or prod.

    ``lengths`` says how many rows each segment has, or ``offsets`` where each begins and the last one ends; both have a row for
    each place in front of ``axis``. ``initial`` takes part in each segment; without it an empty one has the sum 0, the product
    1, the mean nan, the maximum -inf and the minimum inf. ``unsafe``: lengths are not looked at, rows behind the last segment
    take no part.
    """
    if reduce not in _EMPTY:
        raise RuntimeError(f"segment_reduce: unsupported reduction {reduce!r}; it is one of {', '.join(_EMPTY)}")
    if indices is not None:
        raise RuntimeError("segment_reduce: indices are not supported yet; give lengths or offsets")
    if not data.is_floating_point():
        raise RuntimeError(f"segment_reduce: data is {data.dtype}; a floating one is wanted")
    if not -data.dim() <= axis < data.dim():
        raise RuntimeError(f"segment_reduce: axis {axis} of data of {data.dim()} dimensions")
    axis %= data.dim()
    counts = _lengths(data, lengths, offsets, axis, unsafe)
    front, tail, n, rows = data.shape[:axis], data.shape[axis + 1 :], counts.shape[-1], data.shape[axis]
    groups = math.prod(front)
    flat, counts = data.reshape(groups * rows, *tail), counts.reshape(groups, n)
    begins = 0 if offsets is None else offsets.long().reshape(groups, n + 1)[:, :1]
    ends = counts.cumsum(-1) + begins
    places = adjoin.arange(rows, device=data.device).expand(groups, rows).contiguous()
    segment = adjoin.searchsorted(ends.contiguous(), places, right=True)
    inside = (segment < n) & (places >= begins)
    target = (segment + n * adjoin.arange(groups, device=data.device).unsqueeze(-1))[inside]
    used = flat if bool(inside.all()) else flat[inside.reshape(-1)]
    start = _EMPTY[reduce] if initial is None else float(initial)
    made = data.new_full((groups * n, *tail), 0.0 if reduce == "mean" and initial is None else start)
    index = target.reshape(-1, *[1] * len(tail)).expand(used.shape)
    if reduce in ("max", "min"):
        made = _Best.apply(used, index, made, "a" + reduce)
    elif reduce == "prod":
        made = _product(used, index, made)
    else:
        made = made.scatter_reduce(0, index, used, "sum", include_self=True)
    if reduce == "mean":
        several = (counts if initial is None else counts.clamp(min=1)).reshape(-1, *[1] * len(tail))
        made = made / several.to(made.dtype)
    return made.reshape(*front, n, *tail)


_segment_reduce = segment_reduce  # the name that libraries call


def _convert_indices_from_coo_to_csr(input, size, *, out_int32=False, out=None):
    """Where each row begins among sorted row indices, and where the last one ends."""
    made = adjoin.searchsorted(input, adjoin.arange(size + 1, dtype=input.dtype, device=input.device))
    made = made.to(adjoin.int32 if out_int32 else adjoin.int64)
    return made if out is None else out.resize_(made.shape).copy_(made)


def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False, out=None):
    """(row, column) of each element of a compressed matrix, or of a batch of them; ``transpose``: columns first."""
    batch, rows, count = crow_indices.shape[:-1], crow_indices.shape[-1] - 1, col_indices.shape[-1]
    dtype = adjoin.int32 if out_int32 else adjoin.int64
    each = adjoin.arange(rows, dtype=dtype, device=crow_indices.device).repeat(math.prod(batch))
    row = each.repeat_interleave(crow_indices.diff().reshape(-1).long())
    parts = [row, col_indices.reshape(-1).to(dtype)]
    parts = parts[::-1] if transpose else parts
    if batch:
        grid = adjoin.ones(batch, device=crow_indices.device).nonzero().t().to(dtype)
        parts = [*(g.repeat_interleave(count) for g in grid), *parts]
    made = adjoin.stack(parts)
    return made if out is None else out.resize_(made.shape).copy_(made)
