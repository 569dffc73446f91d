"""adjoin.onnx._ops_flow: control flow, sequences, optional values, random numbers, as nodes of ONNX say them."""

import adjoin

from .. import jit
from . import _model as m
from ._ops import op

_ENDLESS = 1 << 40  # turns of a loop that says no number


@op("If")
def _if(c):
    known = c.scope.constant(c.node.input[0]) if jit.is_tracing() else c[0]
    if known is not None:
        return tuple(c.graph("then_branch" if bool(known.reshape(-1)[0]) else "else_branch"))
    made = jit.cond(c[0], lambda: tuple(c.graph("then_branch")), lambda: tuple(c.graph("else_branch")))
    return made if isinstance(made, tuple) else (made,)


@op("Loop")
def _loop(c):
    turns = int(c.number(0, _ENDLESS)) if c.has(0) else _ENDLESS
    carried = [c[i] for i in range(2, len(c))]
    if jit.is_tracing() and c.has(1) and c.scope.constant(c.node.input[1]) is None:
        return _traced_loop(c, turns, carried)
    go_on, kept, i = c[1] is None or bool(c[1]), None, 0
    outputs = len(c.node.output) - len(carried)
    while go_on and i < turns:
        made = c.graph("body", [adjoin.tensor(i), adjoin.tensor(True), *carried])
        if jit.is_tracing() and made[0] is not None and c.has(1):
            raise NotImplementedError("a loop whose end is computed is not traced; call the model itself")
        go_on = bool(made[0])
        carried, rows = made[1 : 1 + len(carried)], made[1 + len(carried) :]
        kept = [[] for _ in rows] if kept is None else kept
        for row, into in zip(rows, kept, strict=True):
            into.append(row)
        i += 1
    kept = [[] for _ in range(outputs)] if kept is None else kept
    return (*carried, *(adjoin.stack(rows) if rows else adjoin.empty(0) for rows in kept))


def _traced_loop(c, turns, carried):
    if len(c.node.output) > len(carried):
        raise NotImplementedError(
            "a loop that collects rows is not traced unless its turns are known; call the model itself"
        )

    def body(i, go_on, *values):
        made = c.graph("body", [i, go_on, *values])
        return (i + 1, made[0].reshape([]), *made[1:])

    start = (adjoin.zeros([], dtype=adjoin.int64), c[1].reshape([]), *carried)
    return jit.while_loop(lambda i, go_on, *values: adjoin.logical_and(go_on, i < turns), body, start)[2:]


@op("Scan")
def _scan(c):
    n = c.attribute("num_scan_inputs")
    given = c.every()[1:] if c.opset < 9 else c.every()
    if c.opset < 9:
        given = [g[0] for g in given]  # a batch of one
    states, inputs = given[: len(given) - n], given[len(given) - n :]
    axes = c.attribute("scan_input_axes") or [0] * n
    ways = c.attribute("scan_input_directions") or c.attribute("directions") or [0] * n
    turns, rows = inputs[0].shape[axes[0]], None
    for t in range(turns):
        parts = [x.select(a, turns - 1 - t if w else t) for x, a, w in zip(inputs, axes, ways, strict=True)]
        made = c.graph("body", [*states, *parts])
        states, out = made[: len(states)], made[len(states) :]
        rows = [[] for _ in out] if rows is None else rows
        for row, into in zip(out, rows, strict=True):
            into.append(row)
    places = c.attribute("scan_output_axes") or [0] * len(rows or [])
    turned = c.attribute("scan_output_directions") or [0] * len(rows or [])
    ends = [adjoin.stack(r[::-1] if w else r, a) for r, a, w in zip(rows or [], places, turned, strict=True)]
    made = (*states, *ends)
    return tuple(x.unsqueeze(0) for x in made) if c.opset < 9 else made


# Sequences are lists.
@op("SequenceConstruct")
def _construct(c):
    return (c.every(),)


@op("SequenceEmpty")
def _empty(c):
    return ([],)


@op("SequenceLength")
def _length(c):
    return adjoin.tensor(len(c[0]))


@op("SequenceAt")
def _at(c):
    return (c[0][int(c.number(1))],)


@op("SequenceErase")
def _erase(c):
    made = list(c[0])
    del made[int(c.number(1, -1))]
    return (made,)


@op("SequenceInsert")
def _insert(c):
    made = list(c[0])
    at = int(c.number(2, len(made)))
    made.insert(at + len(made) if at < 0 else at, c[1])
    return (made,)


@op("SplitToSequence")
def _split(c):
    x, axis = c[0], c.attribute("axis", 0)
    if not c.has(1):
        parts = x.split(1, axis)
        return ([p if c.attribute("keepdims", 1) else p.squeeze(axis) for p in parts],)
    sizes = c.list(1)
    one = c[1].dim() == 0
    return (list(x.split(int(sizes[0]) if one else [int(n) for n in sizes], axis)),)


@op("ConcatFromSequence")
def _concat(c):
    axis = c.attribute("axis")
    return adjoin.stack(c[0], axis) if c.attribute("new_axis", 0) else adjoin.cat(c[0], axis)


@op("SequenceMap")
def _map(c):
    given = c.every()
    many = len(given[0])
    rows = [c.graph("body", [g[i] if isinstance(g, list) else g for g in given]) for i in range(many)]
    return tuple([row[i] for row in rows] for i in range(len(c.node.output)))


@op("Optional")
def _optional(c):
    return (c[0],)


@op("OptionalGetElement")
def _element(c):
    if c[0] is None:
        raise ValueError("the optional value is absent")
    return (c[0],)


@op("OptionalHasElement")
def _has(c):
    return adjoin.tensor(c[0] is not None)


# Random numbers
def _dtype(c, like=None):
    return m.dtype_of(c.attribute("dtype")) if c.attribute("dtype") else adjoin.float32 if like is None else like.dtype


@op("RandomUniform", "RandomUniformLike")
def _uniform(c):
    like = c[0] if c.node.op_type.endswith("Like") else None
    low, high = c.attribute("low", 0.0), c.attribute("high", 1.0)
    shape = c.attribute("shape") if like is None else like.shape
    return adjoin.rand(list(shape), dtype=_dtype(c, like)) * (high - low) + low


@op("RandomNormal", "RandomNormalLike")
def _normal(c):
    like = c[0] if c.node.op_type.endswith("Like") else None
    shape = c.attribute("shape") if like is None else like.shape
    return adjoin.randn(list(shape), dtype=_dtype(c, like)) * c.attribute("scale", 1.0) + c.attribute("mean", 0.0)


@op("Bernoulli")
def _bernoulli(c):
    return (adjoin.rand(c[0].shape) < c[0]).to(_dtype(c, c[0]))


@op("Multinomial")
def _multinomial(c):
    dtype = m.dtype_of(c.attribute("dtype", 6))
    return adjoin.multinomial(adjoin.softmax(c[0], 1), c.attribute("sample_size", 1), True).to(dtype)
