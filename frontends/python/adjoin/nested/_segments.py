"""adjoin.nested._segments: reductions, softmax and attention, sequence by sequence, on values that lie one after the other.

Sums, means, extrema and softmax run over all sequences at once. What is in LOOPS is computed for one sequence after the other.
"""

from .. import _C

_op = _C.find_op
# Reductions that have no pass over all sequences at once, and attention.
LOOPS = frozenset(
    ("argmax", "argmin", "max", "min", "median", "prod", "std", "var", "matmul", "scaled_dot_product_attention")
)


def _column(ids, like):
    return ids.reshape(-1, *(1,) * (like.dim() - 1)).expand(like.shape)


def total(values, ragged):
    """The sum of each sequence along the first dimension."""
    shape = (len(ragged), *values.shape[1:])
    return values.new_zeros(shape).index_add(0, ragged.ids(), values)


def _extreme(values, ragged, word):
    if 0 in ragged.sizes:
        raise IndexError(f"{word}: sequence {ragged.sizes.index(0)} is empty and has no {word}; leave it out")
    start = values.new_zeros((len(ragged), *values.shape[1:]))
    return start.scatter_reduce(0, _column(ragged.ids(), values), values, word, include_self=False)


def reduce(name, func, values, ragged, settings):
    """A reduction of each sequence along the first dimension of values: (sequences, rest)."""
    if name in ("sum", "mean"):
        dtype = settings.get("dtype")
        if dtype is not None:
            values = values.to(dtype)
        elif name == "sum" and not (values.is_floating_point() or values.is_complex()):
            values = values.long()
        made = total(values, ragged)
        if name == "sum":
            return made
        counts = ragged.offsets.diff().to(made.dtype)
        return made / counts.reshape(-1, *(1,) * (made.dim() - 1))
    if name in ("amax", "amin") and values.dtype is not _C.bool:
        return _extreme(values, ragged, name)
    if name in ("any", "all"):
        hits = values.bool() if name == "any" else ~values.bool()
        found = total(hits.long(), ragged) > 0
        return found if name == "any" else ~found
    if name == "logsumexp":
        high = _extreme(values.detach(), ragged, "amax")
        high = high.where(high.isfinite(), high.new_zeros(()))
        return total((values - high[ragged.ids()]).exp(), ragged).log() + high
    parts = [func(part, 0, **settings) for part in values.split(ragged.sizes)]
    if parts and isinstance(parts[0], tuple):
        return type(parts[0])([_op("stack")(list(column)) for column in zip(*parts, strict=True)])
    return _op("stack")(parts)


def softmax(values, ragged, log):
    """softmax, or its logarithm, of each sequence along the first dimension."""
    ids = ragged.ids()
    if not values.shape[0]:
        return values
    start = values.new_full((len(ragged), *values.shape[1:]), float("-inf"))
    high = start.scatter_reduce(0, _column(ids, values), values.detach(), "amax")
    away = values - high[ids]
    powers = away.exp()
    sums = total(powers, ragged)
    return away - sums.log()[ids] if log else powers / sums[ids]


def places(ragged, most):
    """Where each element stands when every sequence is given room for `most`."""
    ids = ragged.ids()
    return ids * most + (_op("arange")(ragged.total, device=ids.device) - ragged.offsets[:-1].long()[ids])


def with_room(values, ragged, at, most, padding):
    """(sequences, rest): values with `padding` after the end of each sequence, which runs along their dimension `at`."""
    rows = values.movedim(at, 0)
    room = rows.new_full((len(ragged) * most, *rows.shape[1:]), padding)
    return room.index_copy(0, places(ragged, most), rows).unflatten(0, (len(ragged), most)).movedim(1, at + 1)


WASTE = 4  # so many times the scores that are wanted are made at most to have them in one call


def attention(query, key, value, settings):
    """Attention within each sequence: query (heads, all, width), with the sequences of its Ragged.

    The three are pairs of values and Ragged. A processor takes one sequence after the other; a device all of them in one call,
    with room after the shorter ones, unless most of it would be room.
    """
    sizes = [ragged.sizes for _, ragged in (query, key)]
    wanted = sum(a * b for a, b in zip(*sizes, strict=True))
    made = len(sizes[0]) * max(sizes[0], default=0) * max(sizes[1], default=0)
    if query[0].device.type != "cpu" and 0 < made <= WASTE * wanted:
        return _at_once(query, key, value, settings)
    attend = _op("nn::scaled_dot_product_attention")
    sides = [values.split(ragged.sizes, -2) for values, ragged in (query, key, value)]
    outs = [attend(*(t.unsqueeze(0) for t in parts), **settings).squeeze(0) for parts in zip(*sides, strict=True)]
    return _op("cat")(outs, -2)


def _at_once(query, key, value, settings):
    rows, columns = query[1].longest, key[1].longest
    at = query[0].dim() - 2
    sides = [
        with_room(values, ragged, at, most, 0)
        for (values, ragged), most in zip((query, key, value), (rows, columns, columns), strict=True)
    ]
    # A key that is room is seen by nobody; behind a causal mask queries that are wanted see none of them anyway where there are as
    # many keys. What a query that is room sees is not read.
    behind = settings.get("is_causal") and all(b >= a for a, b in zip(query[1].sizes, key[1].sizes, strict=True))
    if not behind:
        counts = key[1].offsets.diff().reshape(-1, *(1,) * (at + 2))
        column = _op("arange")(columns, device=counts.device)
        seen = column < counts
        if settings.get("is_causal"):
            seen = seen & (column <= _op("arange")(rows, device=counts.device).unsqueeze(1))
        settings = settings | {"attn_mask": seen, "is_causal": False}
    out = _op("nn::scaled_dot_product_attention")(*sides, **settings)
    picked = out.movedim(at + 1, 1).flatten(0, 1).index_select(0, places(query[1], rows))
    return picked.movedim(0, at)
