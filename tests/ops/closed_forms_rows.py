"""tests/ops/closed_forms_rows.py: closed forms of special functions, sets, joined writes, norms and pairs of tensors."""

import itertools
import math

import numpy as np
from closed_forms import FORMS, of
from closed_forms_shape import cut


def special(name):
    import scipy.special

    return getattr(scipy.special, name)


FORMS["_::sinc_slope"] = lambda input, result: (np.cos(np.pi * input) - result) / input
FORMS["special::airy_ai"] = lambda input: special("airy")(input)[0]
FORMS["special::spherical_bessel_j0"] = lambda input: np.sin(input) / input
FORMS["_::polygamma"] = FORMS["polygamma.method"] = FORMS["polygamma"] = lambda input, n: special("polygamma")(n, input)
for ours, theirs in {"chebyshev_polynomial_t": "eval_chebyt", "chebyshev_polynomial_u": "eval_chebyu",
                     "hermite_polynomial_h": "eval_hermite", "hermite_polynomial_he": "eval_hermitenorm",
                     "laguerre_polynomial_l": "eval_laguerre", "legendre_polynomial_p": "eval_legendre"}.items():  # fmt: skip
    FORMS["special::" + ours] = lambda input, n, theirs=theirs: special(theirs)(np.trunc(n).astype(np.int64), input)
third = FORMS["special::chebyshev_polynomial_v"] = lambda input, n: (
    special("eval_chebyu")(np.trunc(n), input) - special("eval_chebyu")(np.maximum(np.trunc(n) - 1, 0), input) * (n >= 1))  # fmt: skip
fourth = FORMS["special::chebyshev_polynomial_w"] = lambda input, n: (
    special("eval_chebyu")(np.trunc(n), input) + special("eval_chebyu")(np.maximum(np.trunc(n) - 1, 0), input) * (n >= 1))  # fmt: skip
FORMS["special::shifted_chebyshev_polynomial_t"] = lambda input, n: special("eval_chebyt")(np.trunc(n), 2 * input - 1)
FORMS["special::shifted_chebyshev_polynomial_u"] = lambda input, n: special("eval_chebyu")(np.trunc(n), 2 * input - 1)
FORMS["special::shifted_chebyshev_polynomial_v"] = lambda input, n: third(2 * input - 1, n)
FORMS["special::shifted_chebyshev_polynomial_w"] = lambda input, n: fourth(2 * input - 1, n)

# Pieces and pairs.
FORMS["split_with_sizes"] = FORMS["split_with_sizes_copy"] = lambda input, split_sizes, dim=0: np.split(
    input, np.cumsum(split_sizes)[:-1], dim)  # fmt: skip
FORMS["_::copies"] = lambda tensors: tensors
FORMS["alias_copy"] = lambda input: input
FORMS["cartesian_prod"] = lambda tensors: (
    tensors[0] if len(tensors) == 1 else np.array(list(itertools.product(*tensors))).reshape(-1, len(tensors)))  # fmt: skip


@of("block_diag")
def block_diag(tensors):
    from scipy.linalg import block_diag

    return block_diag(*tensors)


@of("combinations")
def combinations(input, r=2, with_replacement=False):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(input, r))
    return np.array(rows, input.dtype).reshape(-1, r) if r else np.zeros(0, input.dtype)


@of("renorm")
def renorm(input, p, dim, maxnorm):
    size = (np.abs(input) ** p).sum(1 - dim, keepdims=True) ** (1 / p)
    return np.where(size > maxnorm, input * (maxnorm / (size + 1e-7)), input)


FORMS["tril_indices"] = lambda row, col, offset=0: np.stack(np.tril_indices(row, offset, col))
FORMS["triu_indices"] = lambda row, col, offset=0: np.stack(np.triu_indices(row, offset, col))
FORMS["linalg::vander"] = lambda x, N=None: x[..., None] ** np.arange(x.shape[-1] if N is None else N)
FORMS["rot90"] = lambda input, k=1, dims=(0, 1): np.rot90(input, k, dims)


@of("sum_to_size")
def sum_to_size(input, size):
    out = input.sum(tuple(range(input.ndim - len(size))))
    return out.sum(tuple(i for i, n in enumerate(size) if n == 1), keepdims=True)


@of("fill_diagonal_")
def fill_diagonal(input, fill_value, wrap=False):
    out = np.array(input)
    np.fill_diagonal(out, fill_value, wrap)
    return out


def written(input, src, at):
    out = input.copy()
    out[at] = src
    return out


FORMS["select_scatter"] = lambda input, src, dim, index: written(input, src, index)
FORMS["slice_scatter"] = lambda input, src, dim, start, end, step: written(input, src, slice(start, end, step))


@of("diagonal_scatter")
def diagonal_scatter(input, src, offset=0):
    n = np.arange(len(src))
    return written(input, src, (n, n))


@of("as_strided_scatter")
def as_strided_scatter(input, src, size, stride, storage_offset):
    out = input.copy().ravel()
    for at in np.ndindex(*size):
        out[storage_offset + np.dot(at, stride)] = src[at]
    return out.reshape(input.shape)


# Statistics.
@of("trapezoid")
def trapezoid(y, x=None, dx=None, dim=-1):
    if x is not None and dim == 0:
        return np.trapezoid(y, x, axis=0) if hasattr(np, "trapezoid") else np.trapz(y, x, axis=0)
    left, right = y[cut(y.ndim, dim, 0, -1)], y[cut(y.ndim, dim, 1, None)]
    return ((left + right) / 2 * (dx if x is None else np.diff(x))).sum(dim)


@of("cumulative_trapezoid")
def cumulative_trapezoid(y, x=None, dx=None, dim=-1):
    from scipy.integrate import cumulative_trapezoid

    return cumulative_trapezoid(y, x, dx or 1.0, dim)


FORMS["cov"] = lambda input, correction=1: np.cov(input, ddof=correction)


# Order.
def places(sorted_sequence, input, right=False):
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, input, "right" if right else "left")
    rows = [np.searchsorted(s, v, "right" if right else "left") for s, v in zip(sorted_sequence, input, strict=True)]
    return np.stack(rows)


FORMS["_::search"] = lambda sequence, values, right: places(sequence, values, right)
FORMS["searchsorted"] = lambda sorted_sequence, input, right=False, out_int32=False: places(
    sorted_sequence, input, right
)
FORMS["bucketize"] = lambda input, boundaries, right=False, out_int32=False: places(boundaries, input, right)
FORMS["_::row_order"] = lambda rows: np.lexsort(rows.T[::-1])


@of("unique")
def unique(input, return_inverse=True, return_counts=True, dim=None):
    out, inverse, counts = np.unique(input, return_inverse=True, return_counts=True, axis=dim)
    return out, inverse.reshape(input.shape if dim is None else -1), counts


@of("unique_consecutive")
def unique_consecutive(input, return_inverse=True, return_counts=True, dim=None):
    items = input.ravel() if dim is None else input
    runs = [list(run) for _, run in itertools.groupby(range(len(items)), lambda i: items[i].tolist())]
    inverse = np.concatenate([np.full(len(run), i) for i, run in enumerate(runs)])
    return (items[[run[0] for run in runs]], inverse.reshape(input.shape) if dim is None else inverse,
            np.array([len(run) for run in runs]))  # fmt: skip


@of("mode")
def mode(input, dim=-1, keepdim=False):
    def one(line):
        values, counts = np.unique(line, return_counts=True)
        return values[counts.argmax()]

    best = np.apply_along_axis(one, dim, input)
    at = input.shape[dim] - 1 - (np.flip(input, dim) == np.expand_dims(best, dim)).argmax(dim)
    return (np.expand_dims(best, dim), np.expand_dims(at, dim)) if keepdim else (best, at)


FORMS["_::mode_place"] = lambda input, dim: mode(input, dim, True)[1]
FORMS["nanmedian"], FORMS["nanmedian.dim"] = FORMS["median"], FORMS["median.dim"]
FORMS["histc"] = lambda input, bins=100, min=0, max=0: np.histogram(
    input, bins, None if min == max else (min, max))[0].astype(input.dtype)  # fmt: skip
FORMS["histogram"] = lambda input, bins=100, density=False: np.histogram(
    input, bins, density=density)  # fmt: skip


def running(better):
    def scan(input, dim):
        lines, shape = np.moveaxis(input, dim, -1), np.moveaxis(input, dim, -1).shape
        values, places = lines.copy().reshape(-1, shape[-1]), np.zeros(shape, np.int64).reshape(-1, shape[-1])
        for line, place in zip(values, places, strict=True):
            for k in range(1, shape[-1]):
                place[k] = k if better(line[k], line[k - 1]) or np.isnan(line[k]) else place[k - 1]
                line[k] = line[k] if place[k] == k else line[k - 1]
        return tuple(np.moveaxis(t.reshape(shape), -1, dim) for t in (values, places))

    return scan


FORMS["cummax"] = running(lambda a, b: a >= b)
FORMS["cummin"] = running(lambda a, b: a <= b)
FORMS["_::log_sums"] = FORMS["logcumsumexp"] = lambda input, dim: np.logaddexp.accumulate(input, dim)


# Joined writes.
JOINS = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}


@of("scatter_reduce")
def scatter_reduce(input, dim, index, src, reduce, include_self=True):
    parts = {}
    for at in np.ndindex(*index.shape):
        parts.setdefault((*at[:dim], int(index[at]), *at[dim + 1 :]), []).append(src[at])
    out = input.copy()
    for at, given in parts.items():
        out[at] = JOINS[reduce]([input[at], *given] if include_self else given)
    return out


@of("index_reduce")
def index_reduce(input, dim, index, source, reduce, include_self=True):
    wide = np.broadcast_to(np.expand_dims(index, tuple(d for d in range(input.ndim) if d != dim)), source.shape)
    return scatter_reduce(input, dim, wide, source, reduce, include_self)


@of("put")
def put(input, index, source, accumulate=False):
    out = input.copy()
    if accumulate:
        np.add.at(out.reshape(-1), index, source)
    else:
        out.reshape(-1)[index] = source
    return out


@of("nonzero_static")
def nonzero_static(input, size, fill_value=-1):
    found = np.argwhere(input)[:size]
    return np.concatenate([found, np.full((size - len(found), input.ndim), fill_value)])


# Vectors and matrices.
FORMS["linalg::vecdot"] = lambda x, y, dim=-1: (np.conj(x) * y).sum(dim)
FORMS["linalg::diagonal"] = lambda A, offset=0: np.diagonal(A, offset, -2, -1)
FORMS["cross"] = lambda input, other: np.cross(input, other, axis=input.shape.index(3))


@of("linalg::matrix_norm", "linalg::matrix_norm.ord", "linalg::norm", "linalg::norm.name")
def matrix_norm(input, ord=None, dim=None, keepdim=False):
    ord = "fro" if ord is None and dim is not None and len(dim) == 2 else ord
    if dim is None and ord is None:
        return np.linalg.norm(input.ravel()).reshape((1,) * input.ndim if keepdim else ())
    return np.linalg.norm(input, ord, tuple(dim) if dim and len(dim) == 2 else dim and dim[0], keepdim)


@of("_::cdist", "cdist")
def distances(x1, x2, p=2.0, product=False):
    d = np.abs(x1[..., :, None, :] - x2[..., None, :, :])
    if math.isinf(p):
        return d.max(-1)
    return (d != 0).sum(-1).astype(d.dtype) if p == 0 else (d**p).sum(-1) ** (1 / p)


FORMS["nn::pdist"] = lambda input, p=2.0: distances(input, input, p)[np.triu_indices(len(input), 1)]
