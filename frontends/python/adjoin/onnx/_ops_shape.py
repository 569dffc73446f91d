"""adjoin.onnx._ops_shape: shapes, parts, indices and new tensors, as nodes of ONNX say them."""

import math

import adjoin

from . import _model as m
from ._ops import op


# Shapes
@op("Shape")
def _shape(c):
    shape = list(c[0].shape)
    start, end = c.attribute("start", 0), c.attribute("end")
    return numbers(c, shape[start : len(shape) if end is None else end])


@op("Size")
def _size(c):
    count = 1
    for n in c[0].shape:
        count = count * n
    return numbers(c, [count]).reshape([])


def numbers(c, items):
    """Sizes as a tensor. In a program each is a call, so that a size that differs is seen as one."""
    from .. import jit

    if not items or c.beside or not jit.is_tracing():
        return adjoin.tensor([int(n) for n in items], dtype=adjoin.int64)
    return adjoin.cat([adjoin.full((1,), n, dtype=adjoin.int64) for n in items])


@op("Reshape")
def _reshape(c):
    x, shape = c[0], [int(n) for n in c.list(1)]
    if not c.attribute("allowzero", 0):
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    return x.reshape(shape)


@op("Flatten")
def _flatten(c):
    x, axis = c[0], c.attribute("axis", 1)
    axis = axis + x.dim() if axis < 0 else axis
    first = math.prod(x.shape[:axis])
    return x.reshape(first, math.prod(x.shape[axis:]))


def _axes(c):
    return [int(a) for a in c.list(1)] if c.has(1) else c.attribute("axes")


@op("Squeeze")
def _squeeze(c):
    x, axes = c[0], _axes(c)
    if axes is None:
        return x.squeeze()
    return x.reshape([n for i, n in enumerate(x.shape) if i not in {a % x.dim() for a in axes}])


@op("Unsqueeze")
def _unsqueeze(c):
    x, axes = c[0], _axes(c)
    rank = x.dim() + len(axes)
    for a in sorted(a % rank for a in axes):
        x = x.unsqueeze(a)
    return x


@op("Transpose")
def _transpose(c):
    x = c[0]
    return x.permute(c.attribute("perm") or list(range(x.dim()))[::-1])


@op("Expand")
def _expand(c):
    x, shape = c[0], [int(n) for n in c.list(1)]
    return x.expand(adjoin.broadcast_shapes(tuple(x.shape), tuple(shape)))


@op("Tile")
def _tile(c):
    return c[0].repeat([int(n) for n in c.list(1)])


@op("Concat")
def _concat(c):
    return adjoin.cat(c.every(), c.attribute("axis", 0))


@op("Split")
def _split(c):
    x, axis = c[0], c.attribute("axis", 0)
    sizes = c.list(1) if c.has(1) else c.attribute("split")
    if sizes is None:
        n = c.attribute("num_outputs") or len(c.node.output)
        step = -(-x.shape[axis] // n)
        sizes = [max(0, min(step, x.shape[axis] - i * step)) for i in range(n)]
    return tuple(adjoin.split(x, [int(n) for n in sizes], axis))


@op("Slice")
def _slice(c):
    x = c[0]
    if c.opset < 10:
        starts, ends, axes, steps = c.attribute("starts"), c.attribute("ends"), c.attribute("axes"), None
    else:
        starts, ends, axes, steps = (c.list(i) for i in (1, 2, 3, 4))
    axes = range(len(starts)) if axes is None else axes
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts), strict=True):
        axis, n = int(axis) % x.dim(), x.shape[int(axis)]
        if step > 0:
            x = x[(slice(None),) * axis + (slice(int(start), int(end), int(step)),)]
            continue
        start = min(int(start) + n if start < 0 else int(start), n - 1)
        end = max(int(end) + n, -1) if end < 0 else int(end)
        if len(range(start, end, int(step))):
            x = x.index_select(axis, adjoin.arange(start, end, int(step), device=x.device))
        else:
            x = x.narrow(axis, 0, 0)
    return x


@op("Gather")
def _gather(c):
    x, index, axis = c[0], c[1].long(), c.attribute("axis", 0)
    axis %= max(1, x.dim())
    n = x.shape[axis]
    index = adjoin.where(index < 0, index + n, index)
    made = x.index_select(axis, index.reshape(-1))
    return made.reshape([*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]])


@op("GatherElements")
def _gather_elements(c):
    x, index, axis = c[0], c[1].long(), c.attribute("axis", 0)
    return x.gather(axis, adjoin.where(index < 0, index + x.shape[axis], index))


def _places(x, index, batch):
    """The index of ND forms as tensors of one dimension each."""
    parts = []
    for i in range(index.shape[-1]):
        part = index[..., i]
        parts.append(adjoin.where(part < 0, part + x.shape[batch + i], part))
    return parts


@op("GatherND")
def _gather_nd(c):
    x, index, batch = c[0], c[1].long(), c.attribute("batch_dims", 0)
    if not batch:
        return x[tuple(_places(x, index, 0))]
    lead = list(x.shape[:batch])
    many = math.prod(lead)
    flat, at = x.reshape([many, *x.shape[batch:]]), index.reshape([many, *index.shape[batch:]])
    parts = _places(flat, at, 1)
    rows = adjoin.arange(many).reshape([many] + [1] * (parts[0].dim() - 1)).expand(parts[0].shape)
    made = flat[(rows, *parts)]
    return made.reshape([*lead, *made.shape[1:]])


_HOW = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@op("ScatterElements", "Scatter")
def _scatter(c):
    x, index, source, axis = c[0], c[1].long(), c[2], c.attribute("axis", 0)
    index = adjoin.where(index < 0, index + x.shape[axis], index)
    how = c.attribute("reduction", "none")
    return x.scatter(axis, index, source) if how == "none" else x.scatter_reduce(axis, index, source, reduce=_HOW[how])


@op("ScatterND")
def _scatter_nd(c):
    x, index, source = c[0], c[1].long(), c[2]
    how, n = c.attribute("reduction", "none"), index.shape[-1]
    lead, rest = list(x.shape[:n]), list(x.shape[n:])
    place = adjoin.zeros(index.shape[:-1], dtype=adjoin.int64)
    for part, size in zip(_places(x, index, 0), lead, strict=True):
        place = place * size + part
    width = math.prod(rest)
    flat = x.reshape(math.prod(lead), width)
    at = place.reshape(-1, 1).expand(place.numel(), width)
    source = source.reshape(place.numel(), width)
    made = flat.scatter(0, at, source) if how == "none" else flat.scatter_reduce(0, at, source, reduce=_HOW[how])
    return made.reshape(x.shape)


@op("Trilu")
def _trilu(c):
    x, k = c[0], int(c.number(1, 0))
    return adjoin.triu(x, k) if c.attribute("upper", 1) else adjoin.tril(x, k)


# New tensors
@op("Constant")
def _constant(c):
    for name in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        value = c.attribute(name)
        if value is not None:
            return (
                value
                if isinstance(value, adjoin.Tensor)
                else adjoin.tensor(value, dtype=adjoin.int64 if "int" in name else adjoin.float32)
            )
    raise NotImplementedError("a constant of strings, or a sparse one, is not served")


@op("ConstantOfShape")
def _constant_of_shape(c):
    shape, value = [int(n) for n in c.list(0)], c.attribute("value")
    if value is None:
        return adjoin.zeros(shape)
    return adjoin.full(shape, value.reshape(-1).tolist()[0], dtype=value.dtype)


@op("Range")
def _range(c):
    dtype = c[0].dtype
    start, end, step = c.number(0), c.number(1), c.number(2)
    n = max(0, math.ceil((end - start) / step)) if dtype.is_floating_point else len(range(start, end, step))
    if dtype.is_floating_point:
        return adjoin.arange(n).to(dtype) * step + start
    return adjoin.arange(start, start + n * step, step, dtype=dtype) if n else adjoin.empty(0, dtype=dtype)


@op("EyeLike")
def _eye(c):
    rows, columns = c[0].shape
    dtype = m.dtype_of(c.attribute("dtype")) if c.attribute("dtype") else c[0].dtype
    i, j = adjoin.arange(rows).reshape(-1, 1), adjoin.arange(columns).reshape(1, -1)
    return (j - i == c.attribute("k", 0)).to(dtype)


@op("OneHot")
def _one_hot(c):
    index, depth, axis = c[0], int(c.number(1)), c.attribute("axis", -1)
    values = c[2]
    index = index.long()
    index = adjoin.where(index < 0, index + depth, index)
    axis %= index.dim() + 1
    shape = [1] * (index.dim() + 1)
    shape[axis] = depth
    hot = index.unsqueeze(axis) == adjoin.arange(depth).reshape(shape)
    return adjoin.where(hot, values[1], values[0])
