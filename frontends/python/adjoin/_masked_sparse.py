"""adjoin._masked_sparse: the reductions of ``masked`` over sparse tensors: what the mask names counts, and is 0 where nothing is kept.

A place of the result is kept where the mask has one element of it at least. Nothing becomes dense but a strided mask's places.
"""

from . import _C

_op = _C.find_op


def reduces(input):
    """Is it COO or CSR, the layouts that have reductions?"""
    return input.layout in (_C.sparse_coo, _C.sparse_csr)


def _keys(places, sizes):
    """One number for each place, in the order of rows."""
    key = places.new_zeros(places.size(1))
    for line, size in zip(places.unbind(0), sizes, strict=True):
        key = key * size + line
    return key


def _places(keys, sizes):
    lines = []
    for size in reversed(sizes):
        lines.append(keys % max(size, 1))
        keys = keys.div(max(size, 1), rounding_mode="floor")
    return _op("stack")(lines[::-1]) if lines else keys.new_zeros((0, keys.numel()))


def _found(keys, among):
    """Where each key stands among rising ones, and whether it does."""
    at = _op("searchsorted")(among, keys).clamp(max=max(among.numel() - 1, 0))
    return at, among[at] == keys if among.numel() else keys.new_zeros(keys.shape, dtype=_C.bool)


def _spread(mask, shape):
    """A sparse mask repeated to a shape: dimensions of size 1, and those that it lacks in front."""
    mask = mask.to_sparse_coo() if mask.layout is not _C.sparse_coo else mask
    mask = mask.coalesce()
    if tuple(mask.shape) == tuple(shape):
        return mask.indices(), mask.values().bool()
    lead, sparse = len(shape) - mask.dim(), mask.sparse_dim()
    if lead < 0 or any(m not in (1, s) for m, s in zip(mask.shape, shape[lead:], strict=True)):
        raise RuntimeError(f"masked: a mask of {tuple(mask.shape)} is not spread to {tuple(shape)}")
    dense = shape[lead + sparse :]
    places, values = mask.indices(), mask.values().bool()
    values = values.expand(values.shape[:1] + tuple(dense))
    old = (1,) * lead + tuple(mask.shape[:sparse])
    places = _op("cat")([places.new_zeros((lead, places.size(1))), places])
    for d, (had, size) in enumerate(zip(old, shape[: lead + sparse], strict=True)):
        if had != size:
            many = places.size(1)
            places = places.repeat_interleave(size, dim=1)
            places[d] = _op("arange")(size, device=places.device).repeat(many)
            values = values.repeat_interleave(size, dim=0)
    order = _keys(places, shape[: lead + sparse]).argsort()
    return places[:, order], values[order]


def _masked_places(mask, shape, sparse):
    """The places of which the mask names an element, and which elements of each."""
    if mask.layout is _C.strided:
        mask = mask.bool().expand(shape)
        named = mask.flatten(sparse).any(sparse) if mask.dim() > sparse else mask
        places = named.nonzero().t()
        return places, mask[tuple(places)]
    places, values = _spread(mask, shape)
    if places.size(0) != sparse:
        return _masked_places(mask.to_dense(), shape, sparse)
    named = values.flatten(1).any(1) if values.dim() > 1 else values
    return places[:, named], values[named]


def _chosen(x, mask, identity):
    """The places that count, and their values."""
    x = x.to_sparse_coo() if x.layout is not _C.sparse_coo else x
    x = x.coalesce()
    had, values = x.indices(), x.values()
    if mask is None:
        return had, values
    sparse = x.sparse_dim()
    sizes = x.shape[:sparse]
    places, named = _masked_places(mask, x.shape, sparse)
    at, there = _found(_keys(places, sizes), _keys(had, sizes))
    there = there.reshape(there.shape + (1,) * (values.dim() - 1))
    values = (
        values[at].where(there, values.new_zeros(()))
        if had.size(1)
        else values.new_zeros((places.size(1), *values.shape[1:]))
    )
    return places, values.where(named, values.new_full((), identity)) if named.dim() > 1 else values


def reduce(kind, x, mask, dims, keepdim, identity):
    """``kind``: sum, prod, amax, amin or mean of the elements under the mask, in the layout of ``x``."""
    if x.layout is _C.sparse_csr and not keepdim:
        raise ValueError(
            f"masked.{kind}: a CSR tensor has two dimensions; say keepdim=True, or call to_sparse_coo() first"
        )
    places, values = _chosen(x, mask, identity)
    dims = dims if x.dim() else ()  # dimension 0 of a number is taken, and is none
    sparse, shape = places.size(0), list(x.shape)
    inner = [d - sparse + 1 for d in dims if d >= sparse]
    for d in sorted(inner, reverse=True):
        values = getattr(values, kind)(d, keepdim=keepdim)
    outer = [d for d in dims if d < sparse]
    sizes = [1 if d in outer else n for d, n in enumerate(shape[:sparse])]
    kept = places.clone()
    if outer:
        kept[outer] = 0
    keys, group = _keys(kept, sizes).unique(return_inverse=True)
    made = values.new_full((keys.numel(), *values.shape[1:]), identity)
    made = (
        made.index_add(0, group, values)
        if kind == "sum"
        else made.index_reduce(0, group, values, kind, include_self=False)
    )
    if len(outer) == sparse and not keys.numel() and identity:  # nothing counts: the result is a number, not a 0
        keys, made = keys.new_zeros(1), made.new_full((1, *made.shape[1:]), identity)
    kept = _places(keys, sizes)
    ends = [1 if d in dims else n for d, n in enumerate(shape)]
    if not keepdim:
        kept = kept[[d for d in range(sparse) if d not in outer]]
        ends = [n for d, n in enumerate(shape) if d not in dims]
    made = _op("_::sparse_coo")(kept, made, ends, True)
    return made.to_sparse_csr() if x.layout is _C.sparse_csr else made
