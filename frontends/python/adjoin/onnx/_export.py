"""adjoin.onnx._export: a traced program as an ONNX model."""

import os

import adjoin

from .. import _C, jit
from ..jit._traced import CONSTANT, PARAM, Function, TracedForward
from ..nn.modules.module import Module
from . import _ir, _rules_flow, _rules_nn  # noqa: F401
from . import _model as m
from ._builder import Builder, plain

OPSETS = range(13, 21)
EXTERNAL = 1024  # bytes, from which on a weight lies in the other file
IR_VERSIONS = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9}


def refuse(kind, text):
    raise kind("onnx.export: " + text)


def dynamic_sizes(dynamic_axes, dynamic_shapes, kwargs, names):
    """What jit.trace calls dynamic: {place or name of an input: {dimension: name}}."""
    by_name = {n: i for i, n in enumerate(names)} | {k: k for k in kwargs}
    made = {}
    if dynamic_axes:
        for name, dims in dynamic_axes.items():
            if name not in by_name:
                continue  # a result: its sizes follow from the inputs'
            dims = dims if isinstance(dims, dict) else {d: None for d in dims}
            made[by_name[name]] = {d: _symbol(text or f"{name}_dim_{d}") for d, text in dims.items()}
    if dynamic_shapes:
        pairs = dynamic_shapes.items() if isinstance(dynamic_shapes, dict) else enumerate(dynamic_shapes)
        for place, dims in pairs:
            if not dims:
                continue
            pairs = dims.items() if isinstance(dims, dict) else enumerate(dims)
            chosen = {
                d: _dim_name(place, d, size) for d, size in pairs if size is not None and not isinstance(size, int)
            }
            place = by_name.get(place, place) if isinstance(place, str) else place
            if chosen:
                made[place] = {d: _symbol(n) for d, n in chosen.items()}
    return made


def _dim_name(place, d, size):
    name = getattr(size, "__name__", None) or (size if isinstance(size, str) else None)
    return f"d{place}_{d}" if name is None or name in ("AUTO", "DYNAMIC") else name


def _symbol(text):
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in str(text))
    name = name if name[:1].isalpha() else f"d_{name}"
    return name


def traced(model, args, kwargs, dynamic):
    """The program of a module, a function or what is traced already."""
    inner = getattr(model, "_traced", None)  # of a program of export.export
    for found in (model, inner):
        if isinstance(found, (Function, TracedForward)):
            return found
    return jit.trace(model, args, example_kwarg_inputs=kwargs, dynamic=dynamic, constants_limit=1 << 62)


def model_of(program, opset, input_names=(), output_names=(), name="main"):
    """(the ModelProto, its weights by name) of a program."""
    text = _ir.Reader(_C.program_text(program.handle))
    g = Builder(opset)
    inputs, weights = [], {}
    tensors = [v for v in text.body.inputs if v.dtype != "draw"]
    for i, value in enumerate(tensors):
        called = input_names[i] if i < len(input_names) else value.name if value.name.isidentifier() else f"input_{i}"
        g.used.add(called)
        g.put(value, called)
        inputs.append(_info(called, value))
        for d, n in enumerate(value.shape):
            if isinstance(n, _ir.Size) and len(n.terms) == 1 and n.terms[0][1] == 1 and len(n.terms[0][0]) == 1:
                g.symbols.setdefault(n.terms[0][0][0], (None, called, d))
    known = {("param", n): t for n, t in program.weights(PARAM)} | {
        ("const", n): t for n, t in program.weights(CONSTANT)
    }
    shared = {}
    for kind, called, value in text.weights:
        t = known[kind, called]
        if t.data_ptr() and (same := shared.get(_place(t))):
            g.put(value, same)
            continue
        while called in g.used:
            called += "_"
        g.used.add(called)
        shared[_place(t)] = called
        g.put(value, called)
        weights[called] = t
    for symbol in text.symbols:
        g.symbol(symbol)
    g.block(text.body)
    outputs, ends, held = [], [], set()
    for i, value in enumerate(text.body.results):
        called = output_names[i] if i < len(output_names) else f"output_{i}" if len(text.body.results) > 1 else "output"
        while called in g.used and i >= len(output_names):
            called += "_"
        g.used.add(called)
        ends.append(m.Node(op_type="Identity", input=[g.name(value)], output=[called], name=f"{called}_end"))
        outputs.append(_info(called, value))
        held.add(called)
    nodes = _needed([*g.nodes, *ends], held)
    used = {n for node in nodes for n in _reads(node)}
    graph = m.Graph(
        name=name, node=nodes, input=inputs, output=outputs,
        initializer=[*(t for t in g.initializers if t.name in used)],
    )  # fmt: skip
    made = m.Model(
        ir_version=IR_VERSIONS[opset], producer_name="adjoin", producer_version=adjoin.__version__, graph=graph,
        opset_import=[m.OperatorSet(domain="", version=opset), *(m.OperatorSet(domain=d, version=1) for d in sorted(g.domains))],
    )  # fmt: skip
    return made, {n: t for n, t in weights.items() if n in used}


def _place(t):
    return (t.data_ptr(), str(t.dtype), tuple(t.shape), tuple(t.stride())) if t.numel() else id(t)


def _info(name, value):
    type_ = m.TensorType(elem_type=m.number_of(plain(value.dtype)), shape=_rules_flow.shape_of(value.shape))
    return m.ValueInfo(name=name, type=m.Type(tensor_type=type_))


def _reads(node):
    yield from node.input
    for a in node.attribute:
        if a.g is not None:
            for inner in a.g.node:
                yield from _reads(inner)
            yield from (o.name for o in a.g.output)


def _needed(nodes, held):
    """Nodes whose results somebody reads, in order; names that were only passed on are passed over."""
    kept = []
    held = set(held)
    for node in reversed(nodes):
        if any(o in held for o in node.output):
            kept.append(node)
            held.update(_reads(node))
    return kept[::-1]


def stored(made, weights, f, external):
    """Writes a model with its weights, which may lie in a file beside it."""
    total = sum(t.numel() * t.element_size() for t in weights.values())
    path = None if hasattr(f, "write") else os.fspath(f)
    external = external and path is not None or path is not None and total > (1 << 31) - (1 << 24)
    messages = list(made.graph.initializer)
    if not external:
        messages += [m.tensor_message(n, t) for n, t in weights.items()]
    else:
        beside = os.path.basename(path) + ".data"
        with open(os.path.join(os.path.dirname(path), beside), "wb") as file:
            for n, t in weights.items():
                if t.numel() * t.element_size() < EXTERNAL:
                    messages.append(m.tensor_message(n, t))
                    continue
                file.write(bytes(-file.tell() % 64))
                t = t.detach().cpu().contiguous()
                said = {"location": beside, "offset": str(file.tell()), "length": str(t.numel() * t.element_size())}
                messages.append(m.Tensor(name=n, dims=list(t.shape), data_type=m.number_of(t.dtype), data_location=1, external_data=[m.Entry(key=k, value=v) for k, v in said.items()]))  # fmt: skip
                file.write(m.bytes_of(t))
    made.graph.initializer = messages
    m.store(made, f)


def flags_of(model):
    """(module, was it training) of each module."""
    return [(x, x.training) for x in model.modules()] if isinstance(model, Module) else []
