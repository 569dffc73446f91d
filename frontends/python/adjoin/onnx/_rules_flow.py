"""adjoin.onnx._rules_flow: recurrent networks and control flow, as nodes of ONNX."""

import adjoin

from . import _ir
from . import _model as m
from ._builder import plain, rule
from ._rules import rank

_GATES = {
    "lstm": ("LSTM", (0, 3, 1, 2)),
    "gru": ("GRU", (1, 0, 2)),
    "rnn_tanh": ("RNN", (0,)),
    "rnn_relu": ("RNN", (0,)),
}


@rule(*_GATES)
def _recurrent(g, a, call):
    op, order = _GATES[call.op]
    if a.train and a.dropout and a.num_layers > 1:
        raise NotImplementedError(
            f"onnx.export: {call.op} with dropout in training mode has no rule; call eval() on the module first"
        )
    states = a.hx if isinstance(a.hx, list) else [a.hx]
    ways, per = 2 if a.bidirectional else 1, len(a.params) // (a.num_layers * (2 if a.bidirectional else 1))
    hidden = a.params[1].shape[1]
    if len(states) == 2 and states[0].shape[-1] != hidden:
        raise NotImplementedError("onnx.export: an LSTM with projections has no rule")
    unbatched = rank(a.input) == 2
    x = g.name(a.input)
    if unbatched:
        x = g.node("Unsqueeze", x, g.ints([1]))
        states = [g.node("Unsqueeze", s, g.ints([1])) for s in states]
    elif a.batch_first:
        x = g.node("Transpose", x, perm=[1, 0, 2])
    states = [
        [g.name(s)]
        if a.num_layers == 1
        else g.node("Split", s, g.ints([ways] * a.num_layers), outputs=a.num_layers, axis=0)
        for s in states
    ]
    ends = [[] for _ in states]
    for layer in range(a.num_layers):
        params = [a.params[(layer * ways + way) * per : (layer * ways + way + 1) * per] for way in range(ways)]
        weights = [_stacked(g, [_ordered(g, p[i], order, hidden) for p in params]) for i in (0, 1)]
        bias = None
        if a.has_biases:
            bias = _stacked(
                g, [g.node("Concat", *(_ordered(g, p[i], order, hidden) for i in (2, 3)), axis=0) for p in params]
            )
        said = {"hidden_size": hidden, "direction": "bidirectional" if ways == 2 else "forward"}
        if op == "GRU":
            said["linear_before_reset"] = 1
        if op == "RNN":
            said["activations"] = ["Relu" if call.op == "rnn_relu" else "Tanh"] * ways
        made = g.node(op, x, *weights, bias, None, *(s[layer] for s in states), outputs=1 + len(states), **said)
        for kept, end in zip(ends, made[1:], strict=True):
            kept.append(end)
        x = g.node("Squeeze", made[0], g.ints([1]))
        if ways == 2:
            x = g.node("Reshape", g.node("Transpose", made[0], perm=[0, 2, 1, 3]), g.ints([0, 0, 2 * hidden]))
    ends = [e[0] if len(e) == 1 else g.node("Concat", *e, axis=0) for e in ends]
    if unbatched:
        return [g.node("Squeeze", v, g.ints([1])) for v in (x, *ends)]
    return [g.node("Transpose", x, perm=[1, 0, 2]) if a.batch_first else x, *ends]


def _ordered(g, w, order, hidden):
    """The gates of a weight in ONNX's order."""
    if len(order) == 1:
        return g.name(w)
    parts = g.node("Split", w, g.ints([hidden] * len(order)), outputs=len(order), axis=0)
    return g.node("Concat", *(parts[i] for i in order), axis=0)


def _stacked(g, parts):
    parts = [g.node("Unsqueeze", p, g.ints([0])) for p in parts]
    return parts[0] if len(parts) == 1 else g.node("Concat", *parts, axis=0)


# Blocks
def _subgraph(g, name, block, inputs=(), more=()):
    """A block as a graph of its own, which reads values from outside by their names."""
    outer, kept = (g.nodes, g.initializers), dict(g.kept)
    g.nodes, g.initializers = [], []
    before = dict(g.symbols)
    g.block(block)
    results = [*more, *(g.name(r) for r in block.results)]
    results = [g.node("Identity", r) for r in results]
    made = m.Graph(
        name=name,
        node=g.nodes,
        initializer=g.initializers,
        input=list(inputs),
        output=[m.ValueInfo(name=r) for r in results],
    )
    g.nodes, g.initializers = outer
    g.kept, g.symbols = kept, before
    return made, results


def _typed(graph, dtypes):
    for info, (dtype, shape) in zip(graph.output, dtypes, strict=True):
        info.type = m.Type(tensor_type=m.TensorType(elem_type=m.number_of(plain(dtype)), shape=shape_of(shape)))
    return graph


def shape_of(shape):
    return m.Shape(
        dim=[m.Dimension(dim_value=n) if isinstance(n, int) else m.Dimension(dim_param=str(n)) for n in shape]
    )


@rule("if")
def _if(g, a, call):
    types = [(r.dtype, r.shape) for r in call.results]
    blocks = [_typed(_subgraph(g, name, b)[0], types) for name, b in zip(("then", "else"), call.blocks, strict=True)]
    decides = g.reshape(g.cast(a.decides, a.decides.dtype, adjoin.bool), [])
    return g.node("If", decides, outputs=len(types), then_branch=blocks[0], else_branch=blocks[1])


@rule("while")
def _while(g, a, call):
    test, body = call.blocks
    for inside, outside in zip(test.inputs, a.carried, strict=True):
        g.put(inside, g.name(outside))
    g.block(test)
    first = g.reshape(g.cast(test.results[0], test.results[0].dtype, adjoin.bool), [])
    names = [g.fresh("carried") for _ in test.inputs]
    count, again = g.fresh("i"), g.fresh("again")
    types = [(v.dtype, v.shape) for v in test.inputs]
    inputs = [
        m.ValueInfo(name=n, type=m.Type(tensor_type=m.TensorType(elem_type=m.number_of(plain(d)), shape=shape_of(s))))
        for n, (d, s) in zip([count, again, *names], [("int64", ()), ("bool", ()), *types], strict=True)
    ]
    for inside, name in zip(test.inputs, names, strict=True):
        g.put(inside, name)
    joined = _ir.Block([], body.calls, body.results)
    outer, kept, symbols = (g.nodes, g.initializers), dict(g.kept), dict(g.symbols)
    g.nodes, g.initializers = [], []
    g.block(joined)
    results = [g.node("Identity", r) for r in map(g.name, body.results)]
    for inside, name in zip(test.inputs, results, strict=True):
        g.put(inside, name)
    g.block(test)
    go_on = g.node("Identity", g.reshape(g.cast(test.results[0], test.results[0].dtype, adjoin.bool), []))
    graph = m.Graph(
        name="body",
        node=g.nodes,
        initializer=g.initializers,
        input=inputs,
        output=[m.ValueInfo(name=r) for r in (go_on, *results)],
    )
    _typed(graph, [("bool", ()), *types])
    g.nodes, g.initializers = outer
    g.kept, g.symbols = kept, symbols
    made = g.node("Loop", None, first, *a.carried, outputs=len(types), body=graph)
    return [made] if isinstance(made, str) else made
