"""adjoin.fx._codegen: the Python text of a graph."""

import builtins
import dataclasses
import enum
import math
import operator
from typing import Any, NamedTuple

import adjoin

from ..utils import _pytree as pytree
from . import _pytree as fx_pytree
from ._naming import is_own, qualified_name, root
from .node import Node

__all__ = ["CodeGen", "PythonCode"]


def _signs(text, form):
    """{function of the module operator: how its call is written}"""
    words = text.split()
    return {name: form.format(sign) for name, sign in zip(words[::2], words[1::2], strict=True)}


reflectable_magic_methods = {
    **_signs(
        "add + sub - mul * floordiv // truediv / div / mod % pow ** lshift << rshift >> and_ & or_ | xor ^ matmul @",
        "{{}} {} {{}}",
    ),
    "getitem": "{}[{}]",
}
magic_methods = {
    **_signs("eq == ne != lt < gt > le <= ge >=", "{{}} {} {{}}"),
    **_signs("pos + neg - invert ~", "{}{{}}"),
    **reflectable_magic_methods,
}
inplace_methods = {
    **_signs(
        "iadd += iand &= ifloordiv //= ilshift <<= imod %= imul *= imatmul @= ior |= ipow **= irshift >>= isub -= "
        "itruediv /= ixor ^=",
        "{{}} {} {{}}",
    ),
    "setitem": "{}[{}] = {}",
}


@dataclasses.dataclass
class PythonCode:
    """Generated text, and what its names stand for."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict | None = None


class _PyTreeInfo(NamedTuple):
    """The shape of a graph's arguments and result, where they are nested."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class Names:
    """The names that generated code uses, and the objects behind them."""

    def __init__(self, namespace, given):
        self.namespace, self.globals, self.wrapped = namespace, {}, []
        for name, obj in given.items():
            self.globals[name] = obj
            namespace.claim(name)

    def of(self, obj, hint=None):
        """An expression that gives the object."""
        hint = hint or qualified_name(obj)
        if is_own(obj) and _stands_at(hint, obj):
            self.globals.setdefault(root(), adjoin)
            return hint
        if "." not in hint and getattr(builtins, hint, None) is obj:
            return hint
        name = self.namespace.create_name(hint.replace(".", "_"), obj)
        self.globals[name] = obj
        return name


def _stands_at(path, obj):
    found = adjoin
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found is obj


def _is_plain(value):
    return value is None or isinstance(value, str | int | bool | complex | bytes) or value is Ellipsis


class CodeGen:
    """Writes the ``forward`` of a graph. Subclasses change its head, and what goes in and comes out."""

    def __init__(self):
        self._body_transformer = None

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        """The first lines: the signature, and what else comes before the nodes."""
        free_vars = [v for v in free_vars if v.split(":")[0].split("=")[0].strip() != "self"]
        return f"def forward({', '.join(['self', *free_vars])}){maybe_return_annotation}:"

    def generate_output(self, output_args, *, descs=None):
        """The last line."""
        return f"return {output_args}" if isinstance(output_args, str) else f"return {output_args!r}"

    def process_inputs(self, *args):
        """The values of the placeholders from a call's arguments."""
        return args

    def process_outputs(self, outputs):
        """What a call gives from the values in the output node."""
        return outputs

    def additional_globals(self):
        """[(name, object)] that the text of a subclass needs."""
        return []

    def _gen_python_code(self, nodes, root_module, namespace, *, verbose=False, **_):
        given = {} if type(self).__module__ == __name__ else {"torch": adjoin}  # the text of others may name it
        names = Names(namespace, {**given, **dict(self.additional_globals())})
        writer = _Writer(names, root_module, verbose)
        nodes = list(nodes)
        dying = _last_uses(nodes)
        body, free, stars = [], [], []
        returns = ""
        for node in nodes:
            if node.op == "placeholder":
                text, rename = writer.placeholder(node)
                free.append(text)
                stars += [rename] if rename else []
                continue
            if verbose and node.stack_trace:
                body.append(f"# {node.stack_trace.strip().splitlines()[-1].strip()}")
            if node.op == "output":
                if node.type is not None:
                    returns = f" -> {writer.annotation(node.type)}"
                body.append(self.generate_output(writer.argument(node.args[0]) if node.args else "None"))
                continue
            gone = dying.get(node, [])
            body.append(writer.statement(node) + (f";  {' = '.join(map(repr, gone))} = None" if gone else ""))
        if not any(node.op == "output" for node in nodes):
            body.append("pass")
        if self._body_transformer:
            body = [line.rstrip("\n") for line in self._body_transformer([line + "\n" for line in body])]
        head = self.gen_fn_def(_in_order(free), returns)
        first = f"{root()}.fx._symbolic_trace.wrap"
        wraps = "".join(f'{first}("{name}")\n' for name in writer.wrapped)
        if wraps:
            names.of(adjoin.fx._symbolic_trace.wrap, first)
        lines = "\n".join("    " + line for line in "\n".join([*stars, *body]).split("\n"))
        return PythonCode(f"{wraps}\n{head}\n{lines}\n", names.globals)


def _in_order(free):
    """Parameters as Python wants them: plain ones, with defaults, ``*args``, ``**kwargs``."""

    def rank(text):
        return 3 if text.startswith("**") else 2 if text.startswith("*") else int("=" in text.split(":")[-1])

    return sorted(free, key=rank)


def _last_uses(nodes):
    """{node: the nodes whose results nobody needs after it}"""
    seen, dying = set(), {}
    for node in reversed(nodes):
        gone = []
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                gone.append(used)
        if not node.users and node.op not in ("placeholder", "output"):
            gone.append(node)
        if node.op != "output":
            dying[node] = gone
    return dying


class _Writer:
    """Writes single nodes."""

    def __init__(self, names, root_module, verbose):
        self.names, self.root, self.verbose, self.wrapped = names, root_module, verbose, []

    def argument(self, a):
        """The text of one argument."""
        if isinstance(a, Node):
            return repr(a)
        if isinstance(a, enum.Enum):
            return f"{self.names.of(type(a))}.{a.name}"
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return f"{self.names.of(type(a))}({', '.join(map(self.argument, a))})"
        if isinstance(a, tuple):
            return "(" + ", ".join(map(self.argument, a)) + (",)" if len(a) == 1 else ")")
        if isinstance(a, list):
            return "[" + ", ".join(map(self.argument, a)) + "]"
        if isinstance(a, dict):
            return "{" + ", ".join(f"{self.argument(k)}: {self.argument(v)}" for k, v in a.items()) + "}"
        if isinstance(a, slice):
            return f"slice({', '.join(map(self.argument, (a.start, a.stop, a.step)))})"
        if isinstance(a, float):
            if math.isfinite(a):
                return repr(a)
            return f"float({str(a)!r})"
        if _is_plain(a):
            return repr(a)
        if isinstance(a, adjoin.dtype | adjoin.layout | adjoin.memory_format):
            self.names.globals.setdefault(root(), adjoin)
            return f"{root()}.{str(a).rpartition('.')[2]}"
        if isinstance(a, adjoin.device):
            return f"{self.names.of(adjoin.device)}({str(a)!r})"
        if isinstance(a, type) or callable(a) and hasattr(a, "__name__"):
            return self.names.of(a)
        return self.names.of(a, f"_object_{type(a).__name__}")

    def annotation(self, kind):
        """The text of a type; what is no class becomes a name."""
        if kind is None or kind is type(None):
            return "None"
        if isinstance(kind, str):
            return repr(kind)
        if isinstance(kind, type) and not hasattr(kind, "__args__"):
            return self.names.of(kind)
        return self.names.of(kind, "_type_" + getattr(kind, "__name__", "of_argument"))

    def placeholder(self, node):
        """(the parameter, a line that gives it the node's name if it has another)"""
        typed = f" : {self.annotation(node.type)}" if node.type is not None else ""
        default = f" = {self.argument(node.args[0])}" if node.args else ""
        bare = node.target.replace("*", "")
        return f"{node.target}{typed}{default}", "" if bare == repr(node) else f"{node!r} = {bare}"

    def statement(self, node):
        """The line that computes a node."""
        value = self.value(node)
        if value is None:  # in place
            x, *rest = map(self.argument, node.args)
            return f"{inplace_methods[node.target.__name__].format(x, *rest)};  {node!r} = {x}"
        typed = f" : {self.annotation(node.type)}" if node.type is not None else ""
        return f"{node!r}{typed} = {value}"

    def value(self, node):
        if node.op == "get_attr":
            return _path("self", node.target)
        if node.op == "call_module":
            return f"{_path('self', node.target)}({self.arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            owner = self.argument(node.args[0])
            owner = owner if isinstance(node.args[0], Node) else f"({owner})"
            return f"{_path(owner, node.target)}({self.arguments(node.args[1:], node.kwargs)})"
        return self.call(node)

    def call(self, node):
        target, args = node.target, node.args
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", None) == "_operator" and getattr(operator, name, None) is target:
            if name in magic_methods and not node.kwargs and len(args) == magic_methods[name].count("{}"):
                return magic_methods[name].format(*map(self.operand, args))
            if name in inplace_methods and isinstance(args[0], Node):
                return None
        if target is getattr and len(args) == 2 and isinstance(args[0], Node) and str(args[1]).isidentifier():
            return f"{args[0]!r}.{args[1]}"
        path = self.names.of(target)
        if node.meta.get("is_wrapped") and "." not in path and path not in self.wrapped:
            self.wrapped.append(path)
        return f"{path}({self.arguments(args, node.kwargs)})"

    def operand(self, a):
        text = self.argument(a)
        return f"({text})" if isinstance(a, int | float | complex) and text.startswith("-") else text

    def arguments(self, args, kwargs):
        return ", ".join([*map(self.argument, args), *(f"{k} = {self.argument(v)}" for k, v in kwargs.items())])


def _path(owner, target):
    for part in target.split("."):
        owner = f"{owner}.{part}" if part.isidentifier() else f'getattr({owner}, "{part}")'
    return owner


class _PyTreeCodeGen(CodeGen):
    """For graphs whose arguments or result are nested: takes apart what comes in, puts together what goes out."""

    def __init__(self, pytree_info):
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *args):
        return pytree.arg_tree_leaves(*args)

    def process_outputs(self, outputs):
        out = self.pytree_info.out_spec
        if not isinstance(outputs, list | tuple):
            outputs = [outputs]
        return pytree.tree_unflatten(list(outputs), out) if out is not None else outputs

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        info = self.pytree_info
        names = [a for a in info.orig_args if a != "self"]
        head = super().gen_fn_def(names, maybe_return_annotation)
        if not free_vars:
            return head
        flat = ", ".join(v.split(":")[0].split("=")[0].strip() for v in free_vars)
        return f"{head}\n    {flat}, = fx_pytree.tree_flatten_spec([{', '.join(names)}], self._in_spec)"

    def generate_output(self, output_args, *, descs=None):
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        return f"return pytree.tree_unflatten({output_args}, self._out_spec)"

    def additional_globals(self):
        return [("pytree", pytree), ("fx_pytree", fx_pytree), ("Any", Any)]
