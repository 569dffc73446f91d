"""adjoin.jit._torchscript._run: an interpreter of TorchScript's code. What the code may do is what stands here."""

import ast
import collections
import keyword

import adjoin
from adjoin import Tensor

from .. import _aten_calls
from ._code import Class, ScriptError
from ._plain import METHODS, PLAIN

DEEPEST = 60  # calls in calls
_NONE = object()


class Return(Exception):
    def __init__(self, value):
        self.value = value


class Raised(RuntimeError):
    """An exception that the code raises."""


class Function:
    """A function of the code as a value."""

    def __init__(self, name):
        self.name = name


class Member:
    """A member of an enumeration."""

    def __init__(self, of, name, value):
        self.of_class, self.name, self.value = of, name, value

    def __repr__(self):
        return f"<{self.of_class}.{self.name}: {self.value!r}>"


class Bound:
    """The path of a name that is no value: torch.add, ops.prim.device, __torch__.a.b."""

    def __init__(self, path):
        self.path = path


def named_tuple(of, values):
    fields = [
        f if f.isidentifier() and not keyword.iskeyword(f) and not f.startswith("_") else f"field{i}"
        for i, f in enumerate(of.fields)
    ]
    if len(values) != len(fields):
        raise ScriptError(f"{of.name} has {len(fields)} fields, {len(values)} are given")
    return collections.namedtuple(of.name.rpartition(".")[2], fields)(*values)


_ROOTS = ("torch", "ops", "__torch__", "CONSTANTS")
_BUILTINS = ("annotate", "unchecked_cast", "uninitialized", "int", "float", "bool", "str", "range", "len", "getattr", "unwrap_optional", "isinstance", "tuple", "list", "fork", "awaitable_wait")  # fmt: skip
_RAISES = {"ValueError": ValueError, "TypeError": TypeError, "RuntimeError": RuntimeError, "IndexError": IndexError, "KeyError": KeyError, "NotImplementedError": NotImplementedError, "AssertionError": AssertionError}  # fmt: skip


class Interpreter:
    def __init__(self, code):
        self.code, self.depth, self.members = code, 0, {}

    # Functions
    def method(self, obj, name, args, kwargs):
        of = obj._class if hasattr(obj, "_class") else obj.of
        node = of.methods.get(name)
        if node is None:
            raise ScriptError(f"{of.name} has no method '{name}'")
        return self.function(node, f"{of.name}.{name}", (obj, *args), kwargs)

    def function(self, node, name, args, kwargs):
        params, defaults = node.args.args, node.args.defaults
        if len(args) > len(params):
            raise TypeError(f"{name} takes {len(params)} arguments, {len(args)} are given")
        env = {}
        for p, value in zip(params, args, strict=False):
            env[p.arg] = value
        for key, value in kwargs.items():
            if key in env or all(p.arg != key for p in params):
                raise TypeError(f"{name}: the argument '{key}' is not wanted, or given twice")
            env[key] = value
        first = len(params) - len(defaults)
        for i, p in enumerate(params):
            if p.arg not in env:
                if i < first:
                    raise TypeError(f"{name}: the argument '{p.arg}' is missing")
                env[p.arg] = self.value(defaults[i - first], {})
        self.depth += 1
        if self.depth > DEEPEST:
            self.depth -= 1
            raise ScriptError(f"{name}: calls lie deeper than {DEEPEST}")
        try:
            self.block(node.body, env)
        except Return as done:
            return done.value
        except RecursionError:
            raise ScriptError(f"{name}: calls lie deeper than Python's stack") from None
        finally:
            self.depth = max(0, self.depth - 1)
        return None

    def member(self, of, value):
        found = self.members.get((of.name, value))
        if found is None:
            name = next((n for n, v in of.members.items() if self.value(v, {}) == value), None)
            if name is None:
                raise ScriptError(f"{of.name} has no member of the value {value!r}")
            found = self.members[of.name, value] = Member(of.name, name, value)
        return found

    def constant(self, of, name):
        return self.value(of.constants[name], {})

    # Statements
    def block(self, body, env):
        for s in body:
            getattr(self, "do_" + type(s).__name__)(s, env)

    def do_Assign(self, s, env):
        value = self.value(s.value, env)
        for target in s.targets:
            self.assign(target, value, env)

    def do_AnnAssign(self, s, env):
        if s.value is not None:
            self.assign(s.target, self.value(s.value, env), env)

    def assign(self, target, value, env):
        if isinstance(target, ast.Name):
            env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = list(value)
            if len(values) != len(target.elts):
                raise ValueError(f"{len(values)} values are assigned to {len(target.elts)} names")
            for t, v in zip(target.elts, values, strict=True):
                self.assign(t, v, env)
        elif isinstance(target, ast.Attribute):
            obj = self.value(target.value, env)
            if not hasattr(type(obj), "put"):
                raise ScriptError(f"an attribute of a {type(obj).__name__} is set")
            obj.put(target.attr, value)
        elif isinstance(target, ast.Subscript):
            self.value(target.value, env)[self.value(target.slice, env)] = value
        else:
            raise ScriptError(f"{type(target).__name__} is assigned to")

    def do_Expr(self, s, env):
        self.value(s.value, env)

    def do_Pass(self, s, env):
        pass

    def do_If(self, s, env):
        self.block(s.body if self.value(s.test, env) else s.orelse, env)

    def do_While(self, s, env):
        while self.value(s.test, env):
            self.block(s.body, env)

    def do_For(self, s, env):
        for item in self.value(s.iter, env):
            self.assign(s.target, item, env)
            self.block(s.body, env)

    def do_Return(self, s, env):
        raise Return(None if s.value is None else self.value(s.value, env))

    def do_Assert(self, s, env):
        if not self.value(s.test, env):
            raise AssertionError(self.value(s.msg, env) if s.msg is not None else "")

    def do_With(self, s, env):
        for item in s.items:
            obj = self.value(item.context_expr, env)
            made = self.method(obj, "__enter__", (), {})
            if item.optional_vars is not None:
                self.assign(item.optional_vars, made, env)
            try:
                self.block(s.body, env)
            finally:
                self.method(obj, "__exit__", (None, None, None), {})

    def do_ClassDef(self, s, env):
        raise ScriptError("a class inside of a function is not served")

    do_FunctionDef = do_Break = do_Continue = do_Delete = do_ClassDef

    # Values
    def value(self, e, env):
        return getattr(self, "of_" + type(e).__name__)(e, env)

    def of_Constant(self, e, env):
        return e.value

    def of_Name(self, e, env):
        found = env.get(e.id, _NONE)
        if found is not _NONE:
            return found
        if e.id == "inf":
            return float("inf")
        if e.id == "nan":
            return float("nan")
        if e.id in _ROOTS or e.id in _BUILTINS:
            return Bound(e.id)
        if e.id in PLAIN:
            return Bound(f"torch.{e.id}")
        raise ScriptError(f"the code reads '{e.id}', which nothing has set")

    def of_Attribute(self, e, env):
        obj = self.value(e.value, env)
        if isinstance(obj, Bound):
            return self.path(f"{obj.path}.{e.attr}")
        if isinstance(obj, Function):
            return self.path(f"{obj.name}.{e.attr}")
        return self.attribute(obj, e.attr)

    def path(self, path):
        if path.startswith("CONSTANTS."):
            try:
                return self.code.constants[int(path.removeprefix("CONSTANTS.c"))]
            except (ValueError, IndexError):
                raise ScriptError(f"there is no constant {path}") from None
        if path.startswith("__torch__."):
            module, _, short = path.rpartition(".")
            if module in self.code.sources and short in self.code.unit(module):
                return Function(path)
            above, _, owner = module.rpartition(".")
            if (
                above in self.code.sources
                and isinstance(of := self.code.unit(above).get(owner), Class)
                and short in of.members
            ):
                return self.member(of, self.value(of.members[short], {}))
        return Bound(path)

    def attribute(self, obj, name):
        if hasattr(type(obj), "read"):
            return obj.read(name)
        if isinstance(obj, tuple) and name in getattr(obj, "_fields", ()):
            return getattr(obj, name)
        if isinstance(obj, Member) and name in ("name", "value"):
            return getattr(obj, name)
        if isinstance(obj, adjoin.device) and name in ("type", "index"):
            return getattr(obj, name)
        if isinstance(obj, Tensor) and name in _OF_TENSORS:
            return _OF_TENSORS[name](obj)
        raise ScriptError(f"the code reads '{name}' of a {type(obj).__name__}")

    def of_Subscript(self, e, env):
        obj = self.value(e.value, env)
        if not isinstance(obj, (list, tuple, dict, str)):
            if hasattr(obj, "of") and "__getitem__" in obj.of.methods:
                return self.method(obj, "__getitem__", (self.value(e.slice, env),), {})
            raise ScriptError(f"the code takes an item of a {type(obj).__name__}")
        return obj[self.value(e.slice, env)]

    def of_Slice(self, e, env):
        return slice(*(None if part is None else self.value(part, env) for part in (e.lower, e.upper, e.step)))

    def of_List(self, e, env):
        return [self.value(x, env) for x in e.elts]

    def of_Tuple(self, e, env):
        return tuple(self.value(x, env) for x in e.elts)

    def of_Dict(self, e, env):
        return {self.value(k, env): self.value(v, env) for k, v in zip(e.keys, e.values, strict=True)}

    def of_UnaryOp(self, e, env):
        value = self.value(e.operand, env)
        return not value if isinstance(e.op, ast.Not) else -value

    def of_BinOp(self, e, env):
        names = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
        return self.op(names[type(e.op)], [self.value(e.left, env), self.value(e.right, env)], {})

    def of_IfExp(self, e, env):
        return self.value(e.body if self.value(e.test, env) else e.orelse, env)

    def of_BoolOp(self, e, env):
        made = None
        for part in e.values:
            made = self.value(part, env)
            if bool(made) != isinstance(e.op, ast.And):
                return made
        return made

    def of_Compare(self, e, env):
        made = self.value(e.left, env) is self.value(e.comparators[0], env)
        return made if isinstance(e.ops[0], ast.Is) else not made

    # Calls
    def of_Call(self, e, env):
        func = e.func
        if isinstance(func, ast.Attribute):
            obj = self.value(func.value, env)
            if not isinstance(obj, Bound):
                return self.of_method(obj, func.attr, e, env)
            target = self.path(f"{obj.path}.{func.attr}")
        else:
            target = self.value(func, env)
        if isinstance(target, Bound) and target.path in _BUILTINS:
            return self.builtin(target.path, e, env)
        args, kwargs = self.arguments(e, env)
        if isinstance(target, Function):
            return self.call_function(target, args, kwargs)
        if not isinstance(target, Bound):
            if hasattr(target, "read"):
                return self.method(target, "forward" if hasattr(target, "_class") else "__call__", args, kwargs)
            raise ScriptError(f"a {type(target).__name__} is called")
        space, _, name = target.path.partition(".")
        if space == "torch":
            if name.startswith("jit."):
                raise ScriptError(f"torch.{name} is not served")
            return self.op(name, args, kwargs)
        if space == "ops":
            return self.of_space(name, args, kwargs)
        raise ScriptError(f"the code calls {target.path}, which the archive does not have")

    def arguments(self, e, env):
        return [self.value(a, env) for a in e.args], {k.arg: self.value(k.value, env) for k in e.keywords if k.arg}

    def call_function(self, target, args, kwargs):
        found = self.code.find(target.name)
        if not isinstance(found, Class):
            return self.function(found, target.name, args, kwargs)
        if found.base == "NamedTuple":
            return named_tuple(found, [*args, *kwargs.values()])
        from ._objects import ScriptObject

        made = ScriptObject(found)
        if "__init__" in found.methods:
            self.method(made, "__init__", args, kwargs)
        return made

    def of_method(self, obj, name, e, env):
        args, kwargs = self.arguments(e, env)
        if hasattr(type(obj), "read"):
            of = obj._class if hasattr(obj, "_class") else obj.of
            if name not in of.methods and hasattr(obj, "_class") and name in obj._modules:
                return self.method(obj._modules[name], "forward", args, kwargs)
            return self.method(obj, name, args, kwargs)
        for kind, known in METHODS.items():
            if isinstance(obj, kind) and name in known:
                return known[name](obj, *args, **kwargs)
        if isinstance(obj, Tensor):
            return self.op(name, [obj, *args], kwargs)
        raise ScriptError(f"the code calls '{name}' of a {type(obj).__name__}")

    def builtin(self, name, e, env):
        if name in ("annotate", "unchecked_cast"):
            return self.value(e.args[1], env)
        if name == "uninitialized":
            return None
        args, _ = self.arguments(e, env)
        if name == "getattr":
            return self.attribute(args[0], str(args[1]))
        if name == "unwrap_optional":
            if args[0] is None:
                raise ValueError("the code unwraps a value that is None")
            return args[0]
        if name in ("isinstance", "fork", "awaitable_wait"):
            raise ScriptError(f"{name}() in TorchScript is not served")
        kinds = {
            "int": int,
            "float": float,
            "bool": bool,
            "str": str,
            "range": range,
            "len": len,
            "tuple": tuple,
            "list": list,
        }
        return kinds[name](*args)

    def of_space(self, name, args, kwargs):
        space, _, short = name.partition(".")
        if space == "aten":
            return self.op(short, args, kwargs)
        if space == "prim":
            return self.prim(short, args)
        return _aten_calls.function_in(space, short)(*args, **_aten_calls.words(kwargs))

    def prim(self, name, args):
        if name == "RaiseException":
            kind = str(args[1]).rpartition(".")[2] if len(args) > 1 and args[1] else "RuntimeError"
            raise _RAISES.get(kind, Raised)(str(args[0]))
        if name in ("NumToTensor",):
            return adjoin.tensor(args[0])
        if name == "unchecked_unwrap_optional":
            return args[0]
        if name in ("TupleUnpack", "ListUnpack"):
            return args[0]
        if name in _OF_TENSORS and isinstance(args[0], Tensor):
            return _OF_TENSORS[name](args[0])
        if name in ("type", "index") and isinstance(args[0], adjoin.device):
            return getattr(args[0], name)
        if name in ("name", "value", "EnumName", "EnumValue") and isinstance(args[0], Member):
            return args[0].name if "ame" in name else args[0].value
        if name in ("max", "min", "abs"):
            return self.op(name, args, {})
        if name == "AutogradZero":
            return None
        raise ScriptError(f"the op prim::{name} is not served")

    def op(self, name, args, kwargs):
        if name in PLAIN and not any(isinstance(a, Tensor) for a in args):
            return PLAIN[name](*args)
        if name in _ANY:
            return _ANY[name](*args)
        if name == "device":
            return adjoin.device(*args)
        if name == "format":
            return str(args[0]).format(*args[1:]) if _harmless(args[0]) else args[0]
        if name == "len" and isinstance(args[0], Tensor):
            return args[0].shape[0]
        if "." in name:
            raise ScriptError(f"torch.{name} is not served")
        return _aten_calls.call(name, args, kwargs)


def _harmless(text):
    """A format of {} alone: others reach into objects."""
    return "{" not in text.replace("{}", "").replace("{{", "").replace("}}", "")


_ANY = {
    "__is__": lambda a, b: a is b,
    "__isnot__": lambda a, b: a is not b,
    "__not__": lambda a: not a,
    "append": lambda items, x: items.append(x) or items,
    "_set_item": lambda items, k, v: items.__setitem__(k, v),
    "extend": lambda items, more: items.extend(more),
    "insert": lambda items, at, x: items.insert(at, x),
    "__contains__": lambda items, x: any(y is x or (not isinstance(y, Tensor) and y == x) for y in items),
}
_OF_TENSORS = {
    "shape": lambda t: list(t.shape), "dtype": lambda t: _aten_calls.NUMBERS[t.dtype], "device": lambda t: t.device, "is_cuda": lambda t: t.is_cuda,
    "requires_grad": lambda t: t.requires_grad, "data": lambda t: t.detach(), "grad": lambda t: t.grad, "ndim": lambda t: t.dim(),
    "T": lambda t: t.T, "mT": lambda t: t.mT, "H": lambda t: t.H, "layout": lambda t: 0, "is_sparse": lambda t: t.is_sparse,
    "is_quantized": lambda t: False, "is_mkldnn": lambda t: False, "is_mps": lambda t: False, "is_xla": lambda t: False,
    "is_cpu": lambda t: t.device.type == "cpu", "real": lambda t: t.real, "imag": lambda t: t.imag, "itemsize": lambda t: t.element_size(),
    "type": lambda t: t.device.type, "is_nested": lambda t: False, "is_meta": lambda t: t.device.type == "meta", "is_vulkan": lambda t: False, "is_ipu": lambda t: False,
}  # fmt: skip
