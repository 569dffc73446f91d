"""adjoin._histograms: histograms of points, and hashes of tensors."""

import builtins
import collections
import math
import numbers

import adjoin

from ._out import put

histogramdd_result = collections.namedtuple("histogramdd", ["hist", "bin_edges"], module="adjoin.return_types")
# As the results of ops are printed.
histogramdd_result.__repr__ = lambda self: (
    f"{adjoin.__name__}.return_types.histogramdd(\nhist={self.hist},\nbin_edges={self.bin_edges})"
)


def _edges(points, bins, range):
    """The edges of the bins of each dimension."""
    size = points.shape[1]
    bins = [bins] * size if isinstance(bins, numbers.Integral) else list(bins)
    if len(bins) != size:
        raise RuntimeError(
            f"histogramdd: points have {size} coordinates and bins has {len(bins)} items; one for each is wanted"
        )
    if any(isinstance(one, adjoin.Tensor) for one in bins):
        for dim, one in enumerate(bins):
            if not isinstance(one, adjoin.Tensor) or one.dim() != 1 or not one.numel() or one.dtype is not points.dtype:
                raise RuntimeError(
                    f"histogramdd: the edges of dimension {dim} must be a tensor of {points.dtype} with one dimension, not {one!r}"
                )
        return bins
    if range is not None and len(range) != 2 * size:
        raise RuntimeError(
            f"histogramdd: range has {len(range)} elements; {2 * size} are wanted, the least and greatest of each dimension"
        )
    made = []
    for dim, count in enumerate(bins):
        if count <= 0:
            raise RuntimeError(f"histogramdd: bins must be positive, {count} are asked for in dimension {dim}")
        if range is not None:
            low, high = map(float, range[2 * dim : 2 * dim + 2])
        else:
            low, high = (points[:, dim].min().item(), points[:, dim].max().item()) if len(points) else (0.0, 1.0)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"histogramdd: dimension {dim}'s range [{low}, {high}] is not finite")
        if low > high:
            raise RuntimeError(
                f"histogramdd: min should not exceed max, but got min {low} max {high} for dimension {dim}"
            )
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
        made.append(adjoin.linspace(low, high, count + 1, dtype=points.dtype, device=points.device))
    return made


def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """How many of the points, whose coordinates stand along the last dimension, or which weight, fall into each box of a grid.

    ``bins``: how many in each dimension, or tensors of edges that rise. A bin has its left edge, the last one its right edge too.
    ``range``: the least and the greatest of each dimension, in one list. ``density``: so that the integral is 1.
    """
    if input.dim() < 2:
        raise RuntimeError(f"histogramdd: input tensor should have at least 2 dimensions, it has {input.dim()}")
    if input.dtype not in (adjoin.float32, adjoin.float64):
        raise NotImplementedError(
            f"histogramdd: input is {input.dtype}; float32 and float64 are counted, so use input.float()"
        )
    if weight is not None and (weight.shape != input.shape[:-1] or weight.dtype is not input.dtype):
        raise RuntimeError(
            f"histogramdd: weight must be {input.dtype} of shape {tuple(input.shape[:-1])}, it is {weight.dtype} of {tuple(weight.shape)}"
        )
    points = input.detach().reshape(-1, input.shape[-1])
    weights = adjoin.ones_like(points[:, 0]) if weight is None else weight.detach().reshape(-1)
    edges = _edges(points, bins, range)
    place, inside = adjoin.zeros_like(weights, dtype=adjoin.int64), adjoin.ones_like(weights, dtype=adjoin.bool)
    for dim, edge in enumerate(edges):
        x, count = points[:, dim].contiguous(), len(edge) - 1
        at = adjoin.searchsorted(edge, x, right=True) - 1
        at = adjoin.where(x == edge[-1], count - 1, at)
        inside = inside & (x >= edge[0]) & (x <= edge[-1])
        place = place * count + at.clamp(0, max(count - 1, 0))
    shape = [len(edge) - 1 for edge in edges]
    hist = points.new_zeros(math.prod(shape))
    if hist.numel():
        hist.index_add_(0, place[inside], weights[inside])
    hist = hist.reshape(shape)
    if density:
        for dim, edge in enumerate(edges):
            hist = hist / (edge[1:] - edge[:-1]).reshape([-1 if d == dim else 1 for d in builtins.range(len(edges))])
        hist = hist / weights[inside].sum()
    return histogramdd_result(hist, tuple(edges))


def hash_tensor(input, dim=None, *, keepdim=False, mode=0, out=None):
    """The exclusive or of the elements' bits, of all or along dimensions: of int64 or float64, to which they are converted."""
    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown hash_tensor mode: {mode}; 0 is there, the exclusive or")
    if input.is_complex():
        raise NotImplementedError(f"hash_tensor: input is {input.dtype}; hash adjoin.view_as_real(input)")
    dims = [dim] if isinstance(dim, int) else list(dim or range(input.dim()))
    dims = [d % max(input.dim(), 1) for d in dims] if input.dim() else []
    if any(input.shape[d] == 0 for d in dims):
        raise RuntimeError(
            f"hash_tensor: Expected reduction dim to have non-zero size, the shape is {tuple(input.shape)}, dim {dim}"
        )
    bits = input.detach()
    if bits.dtype is not adjoin.uint64:
        bits = bits.to(adjoin.float64 if bits.is_floating_point() else adjoin.int64)
    bits = bits.contiguous().view(adjoin.int64)
    kept = [d for d in range(input.dim()) if d not in dims]
    bits = bits.permute([*kept, *dims]).reshape([*(input.shape[d] for d in kept), -1])
    while (count := bits.shape[-1]) > 1:
        half, rest = count // 2, bits[..., count - count % 2 :]
        bits = adjoin.cat([bits[..., :half] ^ bits[..., half : 2 * half], rest], -1)
    bits = bits.squeeze(-1).view(adjoin.uint64)
    bits = bits.reshape([1 if d in dims else n for d, n in enumerate(input.shape)]) if keepdim else bits
    if out is not None:
        return put("hash_tensor", bits, out)
    return bits.clone() if bits.untyped_storage().data_ptr() == input.untyped_storage().data_ptr() else bits
