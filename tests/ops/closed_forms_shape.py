"""tests/ops/closed_forms_shape.py: closed forms of views, of indexing, and of what joins and rearranges tensors."""

import numpy as np
from closed_forms import FORMS, of

FORMS["view"] = lambda input, size: input.reshape(size)
FORMS["view.dtype"] = lambda input, dtype: np.ascontiguousarray(input).view(str(dtype).split(".")[-1])
FORMS["reshape_as"] = FORMS["view_as"] = lambda input, other: input.reshape(other.shape)
FORMS["as_strided"] = lambda input, size, stride, storage_offset=0: np.lib.stride_tricks.as_strided(
    np.ascontiguousarray(input).ravel()[storage_offset:], size, [s * input.itemsize for s in stride])  # fmt: skip
FORMS["adjoint"] = lambda input: np.conj(np.swapaxes(input, -1, -2))
FORMS["expand_as"] = lambda input, other: np.broadcast_to(input, other.shape)
FORMS["broadcast_tensors"] = lambda tensors: np.broadcast_arrays(*tensors)
FORMS["unbind"] = lambda input, dim=0: list(np.moveaxis(input, dim, 0))
FORMS["view_as_real"] = lambda input: np.stack([input.real, input.imag], -1)
FORMS["view_as_complex"] = lambda input: input[..., 0] + 1j * input[..., 1]
FORMS["permute_backward"] = lambda grad, dims: np.transpose(grad, np.argsort(dims))
FORMS["cat_same"] = FORMS["cat"] = lambda tensors, dim=0: np.concatenate(
    [t for t in tensors if t.shape != (0,)], dim)  # fmt: skip
FORMS["stack"] = lambda tensors, dim=0: np.stack(tensors, dim)
FORMS["meshgrid"] = lambda tensors, indexing="ij": np.meshgrid(*tensors, indexing=indexing)
FORMS["repeat"] = lambda input, repeats: np.tile(input, repeats)
FORMS["repeat_interleave.Tensor"] = lambda input, repeats, dim=None: np.repeat(input, repeats, dim)
FORMS["repeat_interleave.places"] = lambda repeats: np.repeat(np.arange(len(repeats)), repeats)
FORMS["nn::one_hot"] = lambda input, num_classes=-1: np.eye(num_classes, dtype=np.int64)[input]


@of("index_select")
def index_select(input, dim, index):
    return np.take(input, index, axis=dim)


@of("select")
def select(input, dim, index):
    return np.take(input, index, axis=dim)


def cut(ndim, dim, *bounds):
    at = [slice(None)] * ndim
    at[dim] = slice(*bounds)
    return tuple(at)


@of("slice")
def slice_of(input, dim=0, start=None, end=None, step=1):
    return input[cut(input.ndim, dim, start, end, step)]


@of("narrow")
def narrow(input, dim, start, length):
    start %= input.shape[dim]
    return input[cut(input.ndim, dim, start, start + length)]


@of("squeeze.dim")
def squeeze_dim(input, dim):
    return np.squeeze(input, tuple(d for d in dim if input.shape[d] == 1))


@of("expand")
def expand(input, size):
    kept = (1,) * (len(size) - input.ndim) + input.shape
    return np.broadcast_to(input, [k if s == -1 else s for s, k in zip(size, kept, strict=True)])


@of("split", "split.sizes", "chunk")
def split(input, split_size=None, dim=0, chunks=None):
    n = input.shape[dim]
    step = -(-n // chunks) if chunks else split_size
    at = np.cumsum(step)[:-1] if isinstance(step, list) else range(step, n, step)
    return np.split(input, list(at), dim)


@of("unfold")
def unfold(input, dimension, size, step):
    return np.moveaxis(np.lib.stride_tricks.sliding_window_view(input, size, dimension), dimension, dimension)[
        cut(input.ndim + 1, dimension, None, None, step)]  # fmt: skip


@of("flatten")
def flatten(input, start_dim=0, end_dim=-1):
    shape = input.shape or (1,)
    start, end = start_dim % len(shape), end_dim % len(shape)
    return input.reshape(*shape[:start], -1, *shape[end + 1 :])


@of("unflatten")
def unflatten(input, dim, sizes):
    dim %= input.ndim
    return input.reshape(*input.shape[:dim], *sizes, *input.shape[dim + 1 :])


@of("diag_embed")
def diag_embed(input, offset=0):
    n = input.shape[-1]
    out = np.zeros((*input.shape[:-1], n + abs(offset), n + abs(offset)), input.dtype)
    i = np.arange(n)
    out[..., i + max(0, -offset), i + max(0, offset)] = input
    return out


@of("nn::pad", "constant_pad_nd")
def pad(input, pad, mode="constant", value=0):
    width = [(0, 0)] * (input.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    for d, (before, after) in enumerate(width):
        input = input[cut(input.ndim, d, max(0, -before), input.shape[d] - max(0, -after))]
    return np.pad(input, [(max(0, b), max(0, a)) for b, a in width], constant_values=value)


@of("constant_pad_nd_backward")
def pad_backward(grad, pad):
    return FORMS["constant_pad_nd"](grad, [-p for p in pad])


EDGES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def with_edges(x, pad, mode):
    pairs = list(zip(pad[::2], pad[1::2], strict=True))
    return np.pad(x, [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1], mode=EDGES[mode])


FORMS["pad_edges"] = with_edges


@of("pad_edges_backward")
def pad_edges_backward(grad, pad, mode):
    shape = list(grad.shape)
    for i in range(len(pad) // 2):
        shape[-1 - i] -= pad[2 * i] + pad[2 * i + 1]
    out = np.zeros(shape, grad.dtype)
    np.add.at(out.reshape(-1), with_edges(np.arange(out.size).reshape(shape), pad, mode), grad)
    return out


# Gradients of views: zeros with the gradient where it came from.
def scattered(grad, shape, at):
    out = np.zeros(shape, grad.dtype)
    out[at] += grad
    return out


FORMS["select_backward"] = lambda grad, input_shape, dim, index: scattered(
    np.expand_dims(grad, dim), input_shape, cut(len(input_shape), dim, index % input_shape[dim], index % input_shape[dim] + 1))  # fmt: skip
FORMS["slice_backward"] = lambda grad, input_shape, dim, start, end, step: scattered(
    grad, input_shape, cut(len(input_shape), dim, start, end, step))  # fmt: skip
FORMS["diagonal_backward"] = lambda grad, input_shape, offset, dim1, dim2: scattered(
    grad, input_shape, (np.arange(len(grad)), np.arange(len(grad)) + offset))  # fmt: skip


@of("unfold_backward")
def unfold_backward(grad, input_shape, dimension, size, step):
    out = np.zeros(input_shape, grad.dtype)
    for i in range(grad.shape[dimension]):
        window = np.moveaxis(np.take(grad, i, axis=dimension), -1, dimension)
        out[cut(out.ndim, dimension, i * step, i * step + size)] += window
    return out


def joined(pieces, shape, sizes, dim):
    blank = [[*shape[:dim], n, *shape[dim + 1 :]] for n in sizes]
    return np.concatenate([np.zeros(b) if p is None else p for p, b in zip(pieces, blank, strict=True)], dim)


FORMS["split_backward"] = lambda grads, input_shape, split_size, dim: joined(
    grads, input_shape, [min(split_size, input_shape[dim] - i) for i in range(0, input_shape[dim], split_size)], dim)  # fmt: skip
FORMS["split_sizes_backward"] = lambda grads, input_shape, split_size, dim: joined(grads, input_shape, split_size, dim)
FORMS["unbind_backward"] = lambda grads, input_shape, dim: joined(
    [None if g is None else np.expand_dims(g, dim) for g in grads], input_shape, [1] * len(grads), dim)  # fmt: skip
FORMS["cat_backward"] = lambda grad, tensors, dim: np.split(grad, np.cumsum([t.shape[dim] for t in tensors])[:-1], dim)


# Indexing.
def place(indices, ndim):
    return tuple(slice(None) if i is None else i for i in indices)


FORMS["index"] = FORMS["index_at"] = lambda input, indices: input[place(indices, input.ndim)]
FORMS["gather"] = lambda input, dim, index: np.take_along_axis(
    input[cut(input.ndim, 1 - dim % 2, index.shape[1 - dim % 2])], index, dim)  # fmt: skip
FORMS["masked_fill"] = lambda input, mask, value: np.where(mask, value, input)
FORMS["masked_select"] = lambda input, mask: input[np.broadcast_to(mask, input.shape)]
FORMS["sort"] = lambda input, dim=-1, descending=False, stable=False: (
    (at := np.argsort(-input if descending else input, axis=dim, kind="stable")) is None or np.take_along_axis(input, at, dim), at)  # fmt: skip
FORMS["msort"] = lambda input: np.sort(input, axis=0)


@of("index_put", "index_put_", "index_put_at")
def index_put(input, indices, values, accumulate=False):
    out = input.copy()
    if accumulate:
        np.add.at(out, place(indices, input.ndim), values)
    else:
        out[place(indices, input.ndim)] = values
    return out


@of("index_add", "index_copy", "index_fill")
def index_write(input, dim, index, source=None, alpha=1, value=None, add=False):
    out = input.copy()
    if value is not None:
        out[place([None] * (dim % input.ndim) + [index], input.ndim)] = value
        return out
    for i, k in enumerate(index):
        at = cut(input.ndim, dim, k, k + 1)
        out[at] = out[at] * add + alpha * np.take(source, [i], axis=dim)
    return out


FORMS["index_add"] = lambda **given: index_write(add=True, **given)


@of("scatter", "scatter.value", "scatter_add")
def scatter(input, dim, index, src=None, value=None, add=False):
    out = input.copy()
    for at in np.ndindex(*index.shape):
        to = (*at[:dim], index[at], *at[dim + 1 :])
        out[to] = (out[to] if add else 0) + (src[at] if value is None else value)
    return out


FORMS["scatter_add"] = lambda **given: scatter(add=True, **given)


@of("gather_backward")
def gather_backward(grad, dim, index, shape):
    out = np.zeros(shape, grad.dtype)
    where = list(np.indices(index.shape))
    where[dim] = index
    np.add.at(out, tuple(where), grad)
    return out


@of("scatter_src_backward")
def scatter_src_backward(grad, dim, index, src_shape):
    out = np.zeros(src_shape, grad.dtype)
    for at in np.ndindex(*index.shape):
        out[at] = grad[(*at[:dim], index[at], *at[dim + 1 :])]
    return out


@of("masked_scatter", "_::masked_put")
def masked_scatter(input, mask, source):
    out = input.copy()
    out[mask] = source.ravel()[: mask.sum()]
    return out


@of("topk")
def topk(input, k, dim=-1, largest=True):
    at = np.argsort(-input if largest else input, axis=dim, kind="stable")[cut(input.ndim, dim, k)]
    return np.take_along_axis(input, at, dim), at
