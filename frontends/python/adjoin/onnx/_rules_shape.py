"""adjoin.onnx._rules_shape: shapes, parts, indices and new tensors, as nodes of ONNX."""

import adjoin

from . import _ir
from ._builder import plain, rule
from ._rules import axis, operand, rank, result_dtype

_LAST = (1 << 63) - 1


def first(call):
    return call.results[0] if call.results else call.into[0]


@rule(
    "view",
    "reshape",
    "flatten",
    "unflatten",
    "ravel",
    "view_as",
    "reshape_as",
    "squeeze",
    "squeeze.dim",
    "squeeze.dims",
)
def _reshape(g, a, call):
    if not call.results[0].shape and call.op.startswith("squeeze"):
        return g.reshape(a.input, [])
    return g.reshape(a.input, call.results[0].shape, a.input.shape)


@rule("view.dtype")
def _view_dtype(g, a, call):
    raise NotImplementedError("onnx.export: a view of another dtype has no rule; ONNX has no bits of numbers")


@rule("unsqueeze")
def _unsqueeze(g, a, call):
    return g.node("Unsqueeze", a.input, g.ints([a.dim % (rank(a.input) + 1)]))


@rule("transpose", "swapaxes", "t", "adjoint", "mT")
def _transpose(g, a, call):
    order = list(range(rank(a.input)))
    if len(order) < 2:
        return g.node("Identity", a.input)
    i, j = [v for k, v in vars(a).items() if k != "input"] or (-2, -1)
    order[i], order[j] = order[j], order[i]
    return g.node("Transpose", a.input, perm=order)


@rule("permute", "movedim")
def _permute(g, a, call):
    n = rank(a.input)
    if call.op == "permute":
        return g.node("Transpose", a.input, perm=[d % n for d in a.dims])
    source, destination = [d % n for d in a.source], [d % n for d in a.destination]
    rest = iter(d for d in range(n) if d not in source)
    placed = dict(zip(destination, source, strict=True))
    return g.node("Transpose", a.input, perm=[placed[i] if i in placed else next(rest) for i in range(n)])


@rule("expand", "expand_as", "broadcast_to")
def _expand(g, a, call):
    return g.node("Expand", a.input, g.ints(call.results[0].shape))


@rule("repeat", "tile")
def _repeat(g, a, call):
    repeats = a.repeats if hasattr(a, "repeats") else a.dims
    more = len(repeats) - rank(a.input)
    x = a.input
    if more > 0:
        x = g.node("Unsqueeze", x, g.ints(list(range(more))))
    return g.node("Tile", x, g.ints([1] * max(0, -more) + list(repeats)))


@rule("cat")
def _cat(g, a, call):
    dtype = result_dtype(call)
    parts = [t for t in a.tensors if t.shape != (0,)]
    return g.node("Concat", *(operand(g, t, dtype) for t in parts), axis=axis(a.dim, parts[0]))


@rule("stack")
def _stack(g, a, call):
    d = a.dim % (rank(a.tensors[0]) + 1)
    dtype = result_dtype(call)
    return g.node("Concat", *(g.node("Unsqueeze", operand(g, t, dtype), g.ints([d])) for t in a.tensors), axis=d)


@rule("split", "split.sizes", "chunk", "unbind", "tensor_split")
def _split(g, a, call):
    parts, d = call.results[0], axis(a.dim, a.input)
    if len(parts) == 1 and call.op != "unbind":
        return g.node("Identity", a.input)
    if call.op == "unbind":
        return [g.node("Gather", a.input, g.scalar(i, adjoin.int64), axis=d) for i in range(len(parts))]
    sizes = [p.shape[d] for p in parts]
    return g.node("Split", a.input, g.ints(sizes), outputs=len(parts), axis=d)


@rule("select")
def _select(g, a, call):
    return g.node("Gather", a.input, g.scalar(a.index, adjoin.int64), axis=axis(a.dim, a.input))


@rule("slice")
def _slice(g, a, call):
    start, end = a.start or 0, _LAST if a.end is None else a.end
    d = axis(a.dim, a.input)
    if start == 0 and a.step == 1 and (end == _LAST or end == a.input.shape[d]):
        return g.node("Identity", a.input)
    return g.node("Slice", a.input, g.ints([start]), g.ints([end]), g.ints([d]), g.ints([a.step]))


@rule("narrow")
def _narrow(g, a, call):
    end = g.node("Add", g.ints([a.start]), g.ints([a.length]))
    return g.node("Slice", a.input, g.ints([a.start]), end, g.ints([axis(a.dim, a.input)]))


@rule("flip")
def _flip(g, a, call):
    dims = [axis(d, a.input) for d in a.dims]
    n = len(dims)
    return g.node("Slice", a.input, g.ints([-1] * n), g.ints([-_LAST] * n), g.ints(dims), g.ints([-1] * n))


@rule("roll")
def _roll(g, a, call):
    x, shifts, dims = a.input, a.shifts, a.dims
    if not dims:
        flat = g.node("Reshape", x, g.ints([-1]))
        return g.reshape(_rolled(g, flat, shifts[0], 0), a.input.shape)
    for shift, d in zip(shifts, dims, strict=True):
        x = _rolled(g, x, shift, axis(d, a.input))
    return x


def _rolled(g, x, shift, d):
    if shift == 0:
        return g.name(x)
    ends, where = g.ints([_LAST]), g.ints([d])
    return g.node(
        "Concat",
        g.node("Slice", x, g.ints([-shift]), ends, where),
        g.node("Slice", x, g.ints([0]), g.ints([-shift]), where),
        axis=d,
    )


@rule("index_select")
def _index_select(g, a, call):
    return g.node("Gather", a.input, a.index, axis=axis(a.dim, a.input))


@rule("gather", "take_along_dim")
def _gather(g, a, call):
    if not rank(a.input):
        return g.node("Identity", a.input)
    return g.node("GatherElements", a.input, getattr(a, "index", None) or a.indices, axis=axis(a.dim, a.input))


@rule("scatter", "scatter.value", "scatter_add", "scatter.reduce")
def _scatter(g, a, call):
    source = a.src if hasattr(a, "src") else a.value
    if not isinstance(source, _ir.Value):
        shape = g.node("Shape", a.index)
        source = g.node("Expand", g.scalar(source, a.input.dtype), shape)
    how = "add" if call.op == "scatter_add" else {"add": "add", "multiply": "mul"}.get(getattr(a, "reduce", None))
    return g.node("ScatterElements", a.input, a.index, source, axis=axis(a.dim, a.input), reduction=how)


@rule("index")
def _index(g, a, call):
    given = [(d, i) for d, i in enumerate(a.indices) if i is not None]
    if any(i.dtype == "bool" for _, i in given):
        raise NotImplementedError("onnx.export: indices that are bool have sizes that depend on values; use where()")
    if len(given) == 1:
        return g.node("Gather", a.input, given[0][1], axis=given[0][0])
    dims = [d for d, _ in given]
    if dims != list(range(dims[0], dims[0] + len(dims))):
        raise NotImplementedError("onnx.export: tensors as indices of dimensions that are no neighbours have no rule")
    x, front = a.input, dims[0]
    order = dims + [d for d in range(rank(x)) if d not in dims]
    if front:
        x = g.node("Transpose", x, perm=order)
    wide = max(rank(i) for _, i in given)
    shape = call.results[0].shape[front : front + wide]
    index = [g.node("Unsqueeze", g.node("Expand", i, g.ints(shape)), g.ints([wide])) for _, i in given]
    made = g.node("GatherND", x, g.node("Concat", *index, axis=wide))
    if not front:
        return made
    n = wide + rank(a.input) - len(dims)
    return g.node("Transpose", made, perm=[*range(wide, wide + front), *range(wide), *range(wide + front, n)])


@rule("tril", "triu")
def _tri(g, a, call):
    x = g.cast(a.input, a.input.dtype, adjoin.int64) if a.input.dtype == "bool" else g.name(a.input)
    dtype = adjoin.int64 if a.input.dtype == "bool" else plain(a.input.dtype)
    if g.opset >= 14:
        made = g.node("Trilu", x, g.scalar(a.diagonal, adjoin.int64), upper=int(call.op == "triu"))
    else:
        n, m = a.input.shape[-2:]
        rows = g.node("Unsqueeze", counted(g, n), g.ints([1]))
        columns = g.node("Sub", g.node("Unsqueeze", counted(g, m), g.ints([0])), g.scalar(a.diagonal, adjoin.int64))
        kept = g.node("LessOrEqual", rows, columns) if call.op == "triu" else g.node("GreaterOrEqual", rows, columns)
        made = g.node("Where", kept, x, g.scalar(0, dtype))
    return g.cast(made, adjoin.int64, adjoin.bool) if a.input.dtype == "bool" else made


def counted(g, n):
    """0 to n."""
    if isinstance(n, int):
        return g.constant(adjoin.arange(n))
    return g.node("Range", g.scalar(0, adjoin.int64), g.scalar(n, adjoin.int64), g.scalar(1, adjoin.int64))


# New tensors
def _filled(g, shape, number, dtype):
    if all(isinstance(n, int) for n in shape) and adjoin.Size(shape).numel() <= 1024:
        return g.constant(adjoin.full(tuple(shape), number, dtype=plain(dtype)))
    return g.node("Expand", g.scalar(number, dtype), g.ints(shape))


_NUMBERS = {
    "zeros": 0,
    "ones": 1,
    "zeros_like": 0,
    "ones_like": 1,
    "new_zeros": 0,
    "new_ones": 1,
    "empty": 0,
    "empty_like": 0,
    "new_empty": 0,
}


@rule(*_NUMBERS, "full", "full_like", "new_full")
def _new(g, a, call):
    number = _NUMBERS[call.op] if call.op in _NUMBERS else a.fill_value
    return _filled(g, call.results[0].shape, number, result_dtype(call))


@rule("arange", "arange.start")
def _arange(g, a, call):
    dtype, start, step = result_dtype(call), getattr(a, "start", 0), getattr(a, "step", 1)
    if all(isinstance(n, (int, float)) for n in (start, a.end, step)) and call.results[0].shape[0] <= 1024:
        return g.constant(adjoin.arange(start, a.end, step, dtype=dtype))
    wide = adjoin.float32 if dtype == adjoin.float16 else dtype
    return g.cast(g.node("Range", *(g.scalar(n, wide) for n in (start, a.end, step))), wide, dtype)


@rule("fill_", "fill", "zero_", "copy_")
def _fill(g, a, call):
    into = call.into[0] if call.into else call.results[0]
    if call.op == "zero_":
        return _filled(g, into.shape, 0, into.dtype)
    value = a.value if hasattr(a, "value") else getattr(a, "src", None) or getattr(a, "other", None)
    if not isinstance(value, _ir.Value):
        return _filled(g, into.shape, value, into.dtype)
    return g.node("Expand", g.cast(value, value.dtype, into.dtype), g.ints(into.shape))


@rule(
    "to", "float", "double", "half", "bfloat16", "int", "long", "bool", "type_as", "short", "char", "byte", "_::to_copy"
)
def _to(g, a, call):
    have, want = plain(a.input.dtype), result_dtype(call)
    return g.node("Identity", a.input) if have == want else g.cast(a.input, have, want)


@rule("meshgrid")
def _meshgrid(g, a, call):
    n, made = len(a.tensors), []
    order = list(range(n))
    if a.indexing == "xy" and n > 1:
        order[0], order[1] = 1, 0
    for i, t in enumerate(a.tensors):
        at = order.index(i)
        wide = g.node("Unsqueeze", g.reshape(t, [-1]), g.ints([d for d in range(n) if d != at]))
        made.append(g.node("Expand", wide, g.ints(call.results[0][i].shape)))
    return made


@rule("diff")
def _diff(g, a, call):
    d, dtype = axis(a.dim, a.input), a.input.dtype
    parts = [x for x in (a.prepend, a.input, a.append) if x is not None]
    x = g.node("Concat", *parts, axis=d) if len(parts) > 1 else g.name(a.input)
    zero, one, last, end, where = g.ints([0]), g.ints([1]), g.ints([-1]), g.ints([_LAST]), g.ints([d])
    for _ in range(a.n):
        after, before = g.node("Slice", x, one, end, where), g.node("Slice", x, zero, last, where)
        x = g.node("Xor", after, before) if dtype == "bool" else g.node("Sub", after, before)
    return x
