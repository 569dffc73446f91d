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


def attention(query, key, value, settings):
    """Attention within each sequence: query (heads, all, width), with the sequences of its Ragged; no padding is made.

    The three are pairs of values and Ragged.
    """
    attend = _op("nn::scaled_dot_product_attention")
    sides = [values.split(ragged.sizes, -2) for values, ragged in (query, key, value)]
    outs = [attend(*(t.unsqueeze(0) for t in parts), **settings).squeeze(0) for parts in zip(*sides, strict=True)]
    return _op("cat")(outs, -2)
