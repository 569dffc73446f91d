"""adjoin.fx's graphs from captured programs (adjoin.jit, adjoin.export), and programs from graphs."""

import json
import operator
import re

import adjoin

from .. import _C
from ..nn.modules.module import Module
from .graph import Graph
from .graph_module import GraphModule

_TOKEN = re.compile(
    r"""\s*(?:(?P<value>%[\w.]+)|(?P<text>"(?:\\.|[^"\\])*")|(?P<number>-?(?:inf|nan|\d[\d.]*(?:e[+-]?\d+)?))(?![\w.])
    |(?P<name>[A-Za-z_][\w.:]*)|(?P<sign>[\[\](),=*+@{}:]))""",
    re.X,
)
_LAYOUTS = ("strided", "sparse_coo", "sparse_csr", None, "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")
_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")


class _Line:
    """The tokens of a line, one after the other."""

    def __init__(self, text):
        self.kinds, at = [], 0
        while at < len(text.rstrip()):
            m = _TOKEN.match(text, at)
            if not m:
                raise ValueError(f"fx.from_program: the text has {text[at:].strip()!r}, which is not understood")
            self.kinds.append((m.lastgroup, m.group(m.lastgroup)))
            at = m.end()
        self.at = 0

    def peek(self):
        return self.kinds[self.at] if self.at < len(self.kinds) else (None, "")

    def next(self):
        self.at += 1
        return self.kinds[self.at - 1]

    def take(self, text):
        if self.peek()[1] != text:
            return False
        self.at += 1
        return True


class _Builder:
    def __init__(self, program):
        self.graph, self.values, self.sizes, self.weights = Graph(), {}, {}, program

    # Arguments

    def value(self, name):
        return self.values[name[1:]]

    def items(self, line, end="]"):
        made = []
        while not line.take(end):
            made.append(self.argument(line))
            line.take(",")
        return made

    def argument(self, line):
        kind, text = line.next()
        if kind == "value":
            return self.value(text)
        if kind == "text":
            return json.loads(text.replace("\\x", "\\u00"))
        if text == "[":
            return self.items(line)
        if kind == "number":
            number = float(text) if not text.lstrip("-").isdigit() else int(text)
            return self.size(line, number) if isinstance(number, int) else number
        if text in ("true", "false", "None"):
            return {"true": True, "false": False, "None": None}[text]
        if text in ("values", "floats", "bools") and line.take("["):
            return self.items(line)
        if text in self.sizes:
            return self.size(line, self.sizes[text])
        if text in ("dtype", "device", "layout", "format", "complex") and line.take("("):
            return self.special(text, line)
        raise ValueError(f"fx.from_program: {text!r} is no argument")

    def special(self, kind, line):
        if kind == "dtype":
            name = line.next()[1]
            line.take(")")
            return getattr(adjoin, name)
        given = self.items(line, ")")
        if kind == "complex":
            return complex(*given)
        if kind == "device":
            of = given[0]
            return adjoin.device(of) if isinstance(of, str) else self.graph.call_function(getattr, (of, "device"))
        return getattr(adjoin, (_LAYOUTS if kind == "layout" else _FORMATS)[given[0]])

    def size(self, line, first):
        """A sum of products of sizes, as b*t*2 + 1."""

        def joined(function, a, b):
            both = isinstance(a, int) and isinstance(b, int)
            return function(a, b) if both else self.graph.call_function(function, (a, b))

        def factor():
            text = line.next()[1]
            return int(text) if text.lstrip("-").isdigit() else self.sizes[text]

        term, total = first, None
        while line.peek()[1] in ("*", "+"):
            if line.next()[1] == "*":
                term = joined(operator.mul, term, factor())
            else:
                total = term if total is None else joined(operator.add, total, term)
                term = factor()
        return term if total is None else joined(operator.add, total, term)

    # Statements

    def placeholder(self, name, shape):
        node = self.values[name] = self.graph.placeholder(name)
        for dim, size in enumerate(shape.split(", ") if shape else ()):
            if size.isidentifier() and size not in self.sizes:
                self.sizes[size] = self.graph.call_method("size", (node, dim))

    def call(self, name, line):
        line.take("(")
        args, kwargs = [], {}
        while not line.take(")"):
            named = line.peek()[0] == "name" and line.kinds[line.at + 1 : line.at + 2] == [("sign", "=")]
            if named:
                key = line.next()[1]
                line.take("=")
                kwargs[key] = self.argument(line)
            else:
                args.append(self.argument(line))
            line.take(",")
        if not line.take("into"):
            return self.function(name, args, kwargs)
        target = line.next()[1]
        if name.endswith("_") or name.split(".")[0].endswith("_"):
            return self.function(name, args, kwargs)
        if args and args[0] is self.values.get(target[1:]):
            head, dot, overload = name.partition(".")
            return self.function(f"{head}_{dot}{overload}", args, kwargs)
        return self.function(name, args, {**kwargs, "out": self.value(target)})

    def function(self, name, args, kwargs):
        if name == "detach":
            return self.graph.call_method("detach", (args[0],))
        found = _C.find_op(name)
        if found is None:
            raise NotImplementedError(
                f"fx.from_program: the op {name} has no function in Python that a graph could call; the program itself runs it"
            )
        return self.graph.call_function(found, tuple(args), kwargs)

    def statement(self, text):
        text = re.sub(r" @\d+$", "", text)
        text, quiet = re.subn(r" no_grad$", "", text)
        if quiet:
            raise NotImplementedError("fx.from_program: a call inside of no_grad has no place in a graph of torch.fx's")
        if re.match(r"(.* = )?(if|while)\b", text):
            raise NotImplementedError(
                "fx.from_program: a graph of torch.fx's has no branches and loops, as jit.cond makes"
            )
        line = _Line(text)
        names = []
        if " = " in text.split("(")[0]:
            while not line.take("="):
                names.append(line.next()[1])
        node = self.call(line.next()[1], line)
        self.name(names, node)

    def name(self, names, node):
        """Gives the results their names: one value, several, or lists of them."""
        groups, group = [], None
        for text in names:
            if text == "[":
                group = []
            elif text == "]":
                groups.append(group)
                group = None
            elif text != ",":
                (groups if group is None else group).append(text)
        for i, g in enumerate(groups):
            made = node if len(groups) == 1 else self.graph.call_function(operator.getitem, (node, i))
            if not isinstance(g, list):
                if g.startswith("%"):
                    self.values[g[1:]] = made
                continue
            for j, inner in enumerate(g):
                self.values[inner[1:]] = self.graph.call_function(operator.getitem, (made, j))


def _program_of(program):
    from ..export import ExportedProgram
    from ..jit import ScriptFunction, ScriptModule

    if isinstance(program, ExportedProgram):
        program = program._traced
    if not isinstance(program, (ScriptFunction, ScriptModule)) or not hasattr(program, "_traced"):
        raise TypeError(f"fx.from_program: a program of jit.trace or export is wanted, not {type(program).__name__}")
    return program._traced.program


def from_program(program):
    """A GraphModule with the calls of a program of jit.trace or export.export; parameters are the program's own."""
    from ..jit._traced import CONSTANT, PARAM, put_together

    program = _program_of(program)
    root = Module()
    tensors = dict(program.weights(PARAM)) | dict(program.weights(CONSTANT))
    builder = _Builder(tensors)
    for text in _C.program_text(program.handle).splitlines():
        text = text.strip()
        if text.startswith("fn "):
            for name, shape in re.findall(r"%([\w.]+): [^\[,]*\[([^\]]*)\]", text):
                builder.placeholder(name, shape)
        elif m := re.match(r'%([\w.]+) = (?:param|const) ("(?:\\.|[^"\\])*")', text):
            name = json.loads(m[2])
            builder.values[m[1]] = builder.graph.get_attr(plant(root, name, tensors[name]))
        elif text.startswith("return"):
            results = [builder.value(v) for v in re.findall(r"%[\w.]+", text)]
            builder.graph.output(put_together(program.form_out, results))
            break
        elif text and not text.startswith(("adjoin.program", "form ", "sizes ")):
            builder.statement(text)
    return GraphModule(root, builder.graph, "Program")


def plant(root, name, tensor):
    """Puts a tensor under its dotted name, in modules that are made on the way; gives the name."""
    *path, last = name.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, Module())
        root = root._modules[part]
    if isinstance(tensor, adjoin.nn.Parameter):
        root.register_parameter(last, tensor)
    else:
        root.register_buffer(last, tensor)
    return name


def to_program(module, args, kwargs=None, *, dynamic=None):
    """The program of a graph for these inputs, as jit.trace makes it: each node that calls becomes a call.

    A program is saved by jit.save, and runs from C++; dynamic is that of jit.trace.
    """
    from ..jit import trace

    if not isinstance(module, GraphModule):
        raise TypeError(
            f"fx.to_program: a GraphModule is wanted, not {type(module).__name__}; jit.trace takes any function"
        )
    return trace(module, tuple(args), example_kwarg_inputs=kwargs or {}, dynamic=dynamic)
