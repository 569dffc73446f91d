"""adjoin.onnx._builder: an ONNX graph that grows, while a program's calls are written as nodes."""

from types import SimpleNamespace

import adjoin

from . import _ir
from . import _model as m

RULES = {}  # op of the registry -> the function that writes it


def rule(*ops):
    """Decorates a function (builder, arguments, call) that gives the names of the results."""

    def keep(function):
        for op in ops:
            RULES[op] = function
        return function

    return keep


def plain(dtype):
    """A dtype of its name in a program."""
    return getattr(adjoin, dtype) if isinstance(dtype, str) else dtype


class Builder:
    """Nodes, constants, and which name in ONNX a value of the program has now."""

    def __init__(self, opset):
        self.opset, self.count = opset, 0
        self.nodes, self.initializers, self.used = [], [], set()
        self.names = {}  # id of a value -> its name
        self.version, self.made_at = {}, {}  # of a root; of a view: when it was made
        self.view_of = {}  # id of a view -> (its base, the call)
        self.kept, self.symbols = {}, {}
        self.domains = set()  # of nodes that are not ONNX's own

    # Names
    def fresh(self, hint):
        while True:
            self.count += 1
            name = f"{hint}_{self.count}"
            if name not in self.used:
                self.used.add(name)
                return name

    def name(self, value):
        """The name of a value's newest contents."""
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        if id(value) in self.view_of and self.made_at[id(value)] != self.version.get(id(self.root(value)), 0):
            _, call = self.view_of[id(value)]
            self.call(call)
        if id(value) not in self.names:
            raise ValueError(f"onnx.export: the value %{value.name} is used before it is made")
        return self.names[id(value)]

    def root(self, value):
        while id(value) in self.view_of:
            value = self.view_of[id(value)][0]
        return value

    def put(self, value, name):
        self.names[id(value)] = name

    # Nodes
    def node(self, op, *inputs, outputs=1, domain="", **attributes):
        """The name of the result of a node; names, where it has several."""
        given = [self.name(i) for i in inputs]
        while given and given[-1] == "":
            given.pop()
        made = [self.fresh(op) for _ in range(outputs)]
        said = [_attribute(k, v) for k, v in attributes.items() if v is not None]
        self.nodes.append(m.Node(input=given, output=made, op_type=op, name=made[0], domain=domain, attribute=said))
        if domain == "":
            self.nodes[-1].__dict__.pop("domain")
        return made[0] if outputs == 1 else made

    def constant(self, t):
        """The name of a small tensor."""
        t = t.detach()
        key = (str(t.dtype), tuple(t.shape), bytes(m.bytes_of(t.contiguous())))
        if key not in self.kept:
            name = self.fresh("const")
            self.initializers.append(m.tensor_message(name, t))
            self.kept[key] = name
        return self.kept[key]

    def scalar(self, number, dtype):
        if isinstance(number, _ir.Size):
            return self.node("Squeeze", self.cast(self.size(number), adjoin.int64, dtype))
        return self.constant(adjoin.tensor(number, dtype=plain(dtype)))

    def cast(self, value, have, want):
        if plain(have) == plain(want):
            return self.name(value)
        return self.node("Cast", value, to=m.number_of(plain(want)))

    # Sizes
    def size(self, s):
        """The name of a size as one number in a list."""
        if isinstance(s, int):
            return self.constant(adjoin.tensor([s]))
        total = None
        for symbols, by in s.terms:
            product = None if symbols and by == 1 else self.constant(adjoin.tensor([by]))
            for symbol in symbols:
                named = self.symbol(symbol)
                product = named if product is None else self.node("Mul", product, named)
            total = product if total is None else self.node("Add", total, product)
        return total

    def symbol(self, name):
        kept, value, dim = self.symbols[name]
        if kept is None:
            if self.opset >= 15:
                kept = self.node("Shape", value, start=dim, end=dim + 1)
            else:
                kept = self.node("Gather", self.node("Shape", value), self.constant(adjoin.tensor([dim])), axis=0)
            self.symbols[name] = kept, value, dim
        return kept

    def ints(self, items):
        """The name of a list of whole numbers, of which some may be sizes."""
        if all(isinstance(i, int) for i in items):
            return self.constant(adjoin.tensor(list(items), dtype=adjoin.int64))
        if len(items) == 1:
            return self.size(items[0])
        return self.node("Concat", *map(self.size, items), axis=0)

    def reshape(self, value, shape, before=()):
        """`before`: the shape that it has, so that sizes which stay need no name."""
        shape = list(shape)
        if any(isinstance(n, _ir.Size) for n in shape) and 0 not in shape:
            for i, n in enumerate(shape):
                if isinstance(n, _ir.Size) and i < len(before) and before[i] == n:
                    shape[i] = 0
            left = [i for i, n in enumerate(shape) if isinstance(n, _ir.Size)]
            if len(left) == 1:
                shape[left[0]] = -1
            elif left:
                shape = [before[i] if n == 0 else n for i, n in enumerate(shape)]
        zero = (
            {"allowzero": 1}
            if shape.count(0) and not any(isinstance(n, _ir.Size) for n in before) and self.opset >= 14
            else {}
        )
        return self.node("Reshape", value, self.ints(shape), **zero)

    # Calls
    def block(self, block):
        for call in block.calls:
            self.call(call)

    def call(self, call):
        if call.op == "detach":
            self.put(call.results[0], self.name(call.args["input"]))
            return
        function = self.symbolic(call) or RULES.get(call.op)
        if function is None:
            raise NotImplementedError(
                f"onnx.export: the op '{call.op}' has no rule; onnx.register_custom_op_symbolic('aten::{call.op}', function, opset) "
                "gives it one, or leave it outside of what is exported"
            )
        made = function(self, self.arguments(call), call)
        made = [made] if isinstance(made, str) else list(made)
        results = [r for result in call.results for r in (result if isinstance(result, list) else [result])]
        writes = [v for v in call.into if v is not None]
        for value, name in zip(writes, made, strict=False):
            self.write(value, name, call)
        if writes:
            return
        viewed = _views(call)
        for value, name in zip(results, made, strict=False):
            if value is None:
                continue
            self.put(value, name)
            if viewed is not None:
                self.view_of[id(value)] = viewed, call
                self.made_at[id(value)] = self.version.get(id(self.root(value)), 0)

    def symbolic(self, call):
        """The rule that a package has registered, for the newest opset up to this one."""
        from . import registered

        known = registered.get("aten::" + call.op.rpartition("::")[2]) or registered.get(call.op)
        fitting = [n for n in known or () if n <= self.opset]
        if not fitting:
            return None
        function = known[max(fitting)]
        return lambda g, a, call: function(
            Face(g), *(g.name(v) if isinstance(v, _ir.Value) else v for v in vars(a).values())
        )

    def arguments(self, call):
        if call.blocks:
            return SimpleNamespace(**call.args)
        made = {
            name: call.args[name] if name in call.args else _ir.default_of(text)
            for name, text, _ in _ir.signature(call.op)
        }
        return SimpleNamespace(**made)

    def write(self, value, name, call):
        """Contents of a value change: what it is a view of changes, too, and other views are made anew when they are read."""
        self.put(value, name)
        root = self.root(value)
        while id(value) in self.view_of:
            base, made = self.view_of[id(value)]
            back = _BACK.get(made.op)
            if back is None:
                raise NotImplementedError(
                    f"onnx.export: a result of '{made.op}', which shares memory, is written in place; make a new tensor instead"
                )
            self.put(base, back(self, self.name(base), self.names[id(value)], self.arguments(made), base, value))
            self.made_at[id(value)] = self.version.get(id(root), 0) + 1
            value = base
        self.version[id(root)] = self.version.get(id(root), 0) + 1


class Face:
    """What functions of register_custom_op_symbolic write nodes with: g.op("Name", *inputs, width_i=3)."""

    def __init__(self, builder):
        self._builder, self.opset = builder, builder.opset

    def op(self, name, *inputs, outputs=1, **attributes):
        domain, _, short = name.rpartition("::")
        if domain:
            self._builder.domains.add(domain)
        given = [i if isinstance(i, str) or i is None else self._builder.constant(adjoin.as_tensor(i)) for i in inputs]
        said = {k[:-2]: v for k, v in attributes.items()}
        if wrong := [k for k in attributes if k[-2:] not in ("_i", "_f", "_s", "_t")]:
            raise ValueError(f"g.op: the attribute {wrong[0]!r} does not end with its kind: _i, _f, _s or _t")
        said = {k: m.tensor_message(k, v) if isinstance(v, adjoin.Tensor) else v for k, v in said.items()}
        return self._builder.node(short, *given, outputs=outputs, domain=domain, **said)


def _views(call):
    """The argument whose memory the results share."""
    rows = adjoin._C.op_info(call.op) or []
    row = next((r for r in rows if r["name"] == call.op), rows[0] if rows else None)
    if row is None or call.op in ("fill_", "copy_"):
        return None
    _, _, results = row["schema"].partition(" -> ")
    if "(a)" in results or call.op in ("reshape", "flatten", "contiguous"):
        return next(v for v in call.args.values() if isinstance(v, _ir.Value))
    return None


def _part(g, base, new, dim, start, end, rank):
    """base with new in the place of [start:end] of a dimension."""
    axis, zero, last = g.ints([dim]), g.ints([0]), g.ints([(1 << 63) - 1])
    parts = []
    if start != 0:
        parts.append(g.node("Slice", base, zero, g.ints([start]), axis))
    parts.append(new)
    if end is not None:
        parts.append(g.node("Slice", base, g.ints([end]), last, axis))
    return g.node("Concat", *parts, axis=dim) if len(parts) > 1 else parts[0]


def _rank(value):
    return len(value.shape)


def _after(i, size, by=1):
    if isinstance(i, int) and i < 0:
        return i + by if i + by < 0 else None
    return None if isinstance(i, int) and isinstance(size, int) and i + by >= size else i + by


def _back_select(g, base, new, a, of, view):
    dim = a.dim % _rank(of)
    return _part(
        g, base, g.node("Unsqueeze", new, g.ints([dim])), dim, a.index, _after(a.index, of.shape[dim]), _rank(of)
    )


def _back_slice(g, base, new, a, of, view):
    dim = a.dim % _rank(of)
    if a.step != 1:
        raise NotImplementedError("onnx.export: x[a:b:step] is written in place with a step; make a new tensor instead")
    end = None if a.end is None or a.end == of.shape[dim] or isinstance(a.end, int) and a.end >= (1 << 62) else a.end
    return _part(g, base, new, dim, a.start or 0, end, _rank(of))


def _back_shape(g, base, new, a, of, view):
    return g.reshape(new, of.shape, view.shape)


def _back_transpose(g, base, new, a, of, view):
    order = list(range(_rank(of)))
    i, j = (a.dim0 % len(order), a.dim1 % len(order)) if hasattr(a, "dim0") else (0, 1)
    order[i], order[j] = order[j], order[i]
    return g.node("Transpose", new, perm=order)


_BACK = {
    "select": _back_select, "slice": _back_slice, "view": _back_shape, "unsqueeze": _back_shape, "squeeze": _back_shape,
    "squeeze.dim": _back_shape, "transpose": _back_transpose, "t": _back_transpose,
}  # fmt: skip


def _attribute(name, value):
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, int):
        return m.Attribute(name=name, i=value, type=2)
    if isinstance(value, float):
        return m.Attribute(name=name, f=value, type=1)
    if isinstance(value, str):
        return m.Attribute(name=name, s=value.encode(), type=3)
    if isinstance(value, m.Message):
        return (
            m.Attribute(name=name, g=value, type=5)
            if value._kind is m.Graph
            else m.Attribute(name=name, t=value, type=4)
        )
    value = list(value)
    if value and isinstance(value[0], str):
        return m.Attribute(name=name, strings=[v.encode() for v in value], type=8)
    if value and isinstance(value[0], float):
        return m.Attribute(name=name, floats=value, type=6)
    return m.Attribute(name=name, ints=value, type=7)
