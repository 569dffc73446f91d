"""adjoin.onnx._import: a model that was read, as a module whose call computes the nodes."""

import contextlib
from collections.abc import Sequence

import adjoin

from .. import _C, jit
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from . import _model as m
from . import _ops_flow, _ops_image, _ops_nn, _ops_recurrent, _ops_shape, _ops_small  # noqa: F401
from ._ops import FUNCTIONS

DEEPEST = 64  # graphs in graphs, functions in functions
NEWEST = 28
_ELEMENTS = 1 << 16  # what a program keeps of numbers that are known while it is traced


def load(f):
    data, folder = m.file_bytes(f)
    return OnnxModule(m.parse(data), folder)


def refuse(kind, text):
    raise kind(f"onnx.load: {text}") from None


@contextlib.contextmanager
def outside():
    """What is computed here is no part of a program that is traced."""
    before = _C.include_key("capture", False) if jit.is_tracing() else False
    try:
        yield
    finally:
        if before:
            _C.include_key("capture", True)


class OnnxModule(Module):
    """An ONNX model. Its inputs and outputs go by place or by name; what it was told to train are its initializers."""

    def __init__(self, model, folder=None):
        super().__init__()
        self.opsets = {o.domain: o.version for o in model.opset_import}
        version = self.opsets.get("", self.opsets.get("ai.onnx", 0))
        if version > NEWEST:
            refuse(
                NotImplementedError,
                f"the model is of opset {version}, up to {NEWEST} is read; export it for an older one",
            )
        self.functions = {}
        for f in model.functions:
            self.functions[f.domain, f.name] = f
        graph = model.graph
        self.graph, self.initial = graph, {}
        for t in graph.initializer:
            self._keep(t.name, m.tensor_of(t, folder))
        for t in graph.sparse_initializer:
            self._keep(t.values.name if t.values is not None else "", dense(t, folder))
        self.input_names = [i.name for i in graph.input if i.name not in self.initial]
        self.output_names = [o.name for o in graph.output]
        self._dtypes = {
            i.name: i.type.tensor_type.elem_type
            for i in graph.input
            if i.type is not None and i.type.tensor_type is not None
        }
        check(graph, self)

    def _keep(self, name, tensor):
        at = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "_"
        while hasattr(self, at):
            at += "_"
        if tensor.dtype.is_floating_point and tensor.dtype.itemsize > 1:
            self.register_parameter(at, Parameter(tensor))
        else:
            self.register_buffer(at, tensor)
        self.initial[name] = at

    def forward(self, *args, **named):
        if len(args) > len(self.input_names):
            raise TypeError(
                f"the model has {len(self.input_names)} inputs, {', '.join(self.input_names)}; {len(args)} are given"
            )
        given = dict(zip(self.input_names, args, strict=False)) | named
        if unknown := [n for n in named if n not in self.input_names]:
            raise TypeError(f"the model has no input {unknown[0]!r}; it has {', '.join(self.input_names)}")
        if absent := [n for n in self.input_names if n not in given]:
            raise TypeError(f"the input {absent[0]!r} is missing")
        for name, value in given.items():
            if (
                isinstance(value, adjoin.Tensor)
                and self._dtypes.get(name)
                and m.dtype_of(self._dtypes[name]) != value.dtype
            ):
                raise TypeError(
                    f"the input {name!r} is {m.dtype_of(self._dtypes[name])} in the model, given is {value.dtype}"
                )
        scope = Scope(self, given)
        if jit.is_tracing():  # an input that is not traced is what the program knows
            scope.fixed.update(
                n for n, v in given.items() if isinstance(v, adjoin.Tensor) and _C.wrapper_text(v) is None
            )
        for name, at in self.initial.items():
            scope.values[name] = getattr(self, at)
            scope.fixed.add(name)
        results = scope.run(self.graph, self.opsets)
        return results[0] if len(results) == 1 else tuple(results)


def dense(sparse, folder):
    """A sparse initializer, whose size the file's own limits."""
    if sparse.values is None or sparse.indices is None:
        refuse(ValueError, "a sparse initializer has no values or no indices")
    values, indices = m.tensor_of(sparse.values, folder), m.tensor_of(sparse.indices, folder)
    dims, count = list(sparse.dims), 1
    for n in dims:
        count *= n
    if any(n < 0 for n in dims) or count > max(1 << 20, 64 * values.numel()):
        refuse(
            NotImplementedError,
            f"a sparse initializer of shape {dims} with {values.numel()} values would be large as a dense one",
        )
    if indices.dim() == 2:
        strides = [1]
        for n in reversed(dims[1:]):
            strides.insert(0, strides[0] * n)
        indices = (indices * adjoin.tensor(strides)).sum(1)
    return adjoin.zeros(count, dtype=values.dtype).index_put((indices,), values).reshape(dims)


def check(graph, model):
    """Raises where a node has no function here: all of them are named at once."""
    missing = sorted(set(unserved(graph.node, model, 0, (), set())))
    if missing:
        refuse(NotImplementedError, f"no function computes {', '.join(missing)} here")


def unserved(nodes, model, depth, above, looked):
    """above: the functions that these nodes are inside of; looked: those that were looked at."""
    if depth > DEEPEST:
        refuse(ValueError, f"graphs and functions lie deeper than {DEEPEST}")
    for n in nodes:
        domain = "" if n.domain == "ai.onnx" else n.domain
        key = (n.domain, n.op_type)
        if key in model.functions:
            if key in above:
                refuse(ValueError, f"the function '{n.op_type}' calls itself")
            if key not in looked:
                yield from unserved(model.functions[key].node, model, depth + 1, (*above, key), looked)
                looked.add(key)
        elif domain or n.op_type not in FUNCTIONS:
            yield f"{domain}.{n.op_type}" if domain else n.op_type
        for a in n.attribute:
            for g in [a.g] if a.g is not None else a.graphs:
                yield from unserved(g.node, model, depth + 1, above, looked)


class Scope:
    """Names and their values while a graph is computed. While a program is traced, numbers that are known (sizes, constants)
    are computed beside it: `known` has them; a tensor is made of them when a node wants one."""

    def __init__(self, model, values, outer=None):
        self.model, self.values, self.outer = model, dict(values), outer
        self.fixed = set()  # names whose values are constants
        self.known, self.sized, self.made = {}, set(), {}
        self.depth = 0 if outer is None else outer.depth + 1
        if self.depth > DEEPEST:
            refuse(ValueError, f"graphs and functions lie deeper than {DEEPEST}")

    def find(self, name):
        scope = self
        while scope is not None:
            if name in scope.values or name in scope.known:
                return scope
            scope = scope.outer
        refuse(ValueError, f"a node reads '{name}', which nothing has made before")

    def value(self, name):
        """The tensor (sequence, None) of a name."""
        if not name:
            return None
        scope = self.find(name)
        if name not in scope.values:
            if name in scope.sized:
                call = scope.made[name]
                for out, made in zip(call.node.output, call.compute(), strict=False):
                    scope.values[out] = made
            else:
                scope.values[name] = scope.known[name]
        return scope.values[name]

    def constant(self, name):
        """The value of a name if it is known without running the program, else None."""
        scope = self.find(name)
        if name in scope.known:
            return scope.known[name]
        return scope.values[name] if name in scope.fixed or not jit.is_tracing() else None

    def depends_on_sizes(self, name):
        return bool(name) and name in self.find(name).sized

    def run(self, graph, opsets):
        for node in graph.node:
            self.node(node, opsets)
        return [self.value(o.name if isinstance(o, m.Message) else o) for o in graph.output]

    def node(self, node, opsets, given=None):
        call = Call(self, node, opsets, given)
        if jit.is_tracing() and call.is_known():
            with outside():
                results = call.compute(beside=True)
            if all(isinstance(r, adjoin.Tensor) and r.numel() <= _ELEMENTS for r in results):
                sized = node.op_type in ("Shape", "Size") or any(map(self.depends_on_sizes, node.input))
                for name, made in zip(node.output, results, strict=False):
                    self.known[name] = made
                    if sized:
                        self.sized.add(name)
                        self.made[name] = call
                return
        for name, made in zip(node.output, call.compute(), strict=False):
            if name:
                self.values[name] = made


class Call:
    """A node that is computed: what its function asks."""

    def __init__(self, scope, node, opsets, given=None):
        self.scope, self.node, self.opsets = scope, node, opsets
        self.opset = opsets.get(node.domain or "", opsets.get("", opsets.get("ai.onnx", 1)))
        self.given = {a.name: (given or {}).get(a.ref_attr_name) if a.ref_attr_name else a for a in node.attribute}
        self.beside = False

    def is_known(self):
        op = self.node.op_type
        if op in ("Shape", "Size", "Constant"):
            return True
        if (
            op.startswith("Random")
            or op in ("Bernoulli", "Multinomial", "Dropout", "If", "Loop", "Scan", "SequenceMap")
            or not self.node.input
        ):
            return False
        if any(isinstance(v, Sequence) for v in (self.scope.find(i).values.get(i) for i in self.node.input if i)):
            return False
        known = [self.scope.constant(i) for i in self.node.input if i]
        return all(isinstance(v, adjoin.Tensor) and v.numel() <= _ELEMENTS for v in known) and not any(
            isinstance(v, Parameter) for v in known
        )

    def compute(self, beside=False):
        self.beside = beside
        function = self.scope.model.functions.get((self.node.domain, self.node.op_type))
        try:
            made = self.of_function(function) if function is not None else FUNCTIONS[self.node.op_type](self)
        except (NotImplementedError, ValueError, TypeError, RuntimeError, IndexError) as error:
            if getattr(error, "_told", False):
                raise
            name = self.node.name or (self.node.output[0] if self.node.output else "")
            error._told = True
            error.args = (f"{error} (in the node {self.node.op_type} '{name}')",)
            raise
        finally:
            self.beside = False
        return list(made) if isinstance(made, tuple) else [made]

    def of_function(self, function):
        given = {a.name: a for a in function.attribute_proto} | {k: v for k, v in self.given.items() if v is not None}
        inner = Scope(self.scope.model, {})  # which sees nothing of the caller's names
        inner.depth = self.scope.depth + 1
        for i, name in enumerate(function.input):
            inner.values[name] = self[i]
            if jit.is_tracing() and self.has(i) and (known := self.scope.constant(self.node.input[i])) is not None:
                inner.known[name] = known
                if self.scope.depends_on_sizes(self.node.input[i]):
                    inner.sized.add(name)
        opsets = {o.domain: o.version for o in function.opset_import} or self.opsets
        for node in function.node:
            inner.node(node, opsets, given)
        return tuple(inner.value(o) for o in function.output)

    # Inputs
    def __len__(self):
        return len(self.node.input)

    def has(self, i):
        return i < len(self.node.input) and bool(self.node.input[i])

    def __getitem__(self, i):
        """The value of an input; None if it is absent."""
        if not self.has(i):
            return None
        name = self.node.input[i]
        if self.beside and (made := self.scope.constant(name)) is not None:
            return made
        return self.scope.value(name)

    def every(self):
        return [self[i] for i in range(len(self.node.input))]

    def list(self, i, default=None):
        """An input as numbers, which decide shapes and parts."""
        if not self.has(i):
            return default
        made = self.scope.constant(self.node.input[i])
        if made is None:
            raise NotImplementedError(
                f"'{self.node.input[i]}' decides a shape and is computed from the inputs' values; a trace keeps no such decision: call the model itself"
            )
        with outside():
            return made.reshape(-1).tolist()

    def number(self, i, default=None):
        made = self.list(i)
        return default if made is None or not made else made[0]

    # Attributes
    def attribute(self, name, default=None):
        a = self.given.get(name)
        if a is None:
            return default
        field = m.FIELDS.get(a.type) or next((f for f in m.FIELDS.values() if a.has(f)), None)
        if field is None:
            raise NotImplementedError(f"the attribute '{name}' is of type {a.type}, which is not served")
        value = getattr(a, field)
        if field == "s":
            return bytes(value).decode("utf-8", "replace")
        if field == "strings":
            return [bytes(v).decode("utf-8", "replace") for v in value]
        if field in ("ints", "floats"):
            return list(value)
        if field == "t":
            return m.tensor_of(value)
        return value

    def graph(self, name, inputs=()):
        """The results of a graph that is an attribute, for inputs by place."""
        graph = self.attribute(name)
        if graph is None or graph._kind is not m.Graph:
            raise ValueError(f"the graph '{name}' is missing")
        inner = Scope(self.scope.model, dict(zip((i.name for i in graph.input), inputs, strict=False)), self.scope)
        for t in graph.initializer:
            inner.values[t.name] = m.tensor_of(t)
            inner.fixed.add(t.name)
        return inner.run(graph, self.opsets)
