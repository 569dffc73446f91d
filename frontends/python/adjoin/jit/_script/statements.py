"""adjoin.jit._script.statements: a function of Python's as the text of a function of a program."""

import ast
import contextlib
import inspect
import os

import adjoin

from ..._names import is_ours
from . import names
from .errors import Place, refuse
from .expressions import BINARY, Expressions, Pending, Static
from .kinds import hints_of, kind_of
from .literals import quoted

_GRAD = {adjoin.no_grad: "false", adjoin.enable_grad: "true", adjoin.inference_mode: "false"}
_INSTEAD = {
    ast.Try: "test the condition before the call",
    ast.FunctionDef: "define it at the top of the file and give it what it needs",
    ast.ClassDef: "define it at the top of the file",
    ast.Import: "import at the top of the file",
    ast.ImportFrom: "import at the top of the file",
    ast.Global: "return the value, or keep it an attribute of the module",
    ast.Nonlocal: "return the value",
    ast.Match: "write if and elif",
}


_LIBRARY = ("contextlib", "builtins", "threading", "warnings")


class Writer(Expressions):
    """Writes one function. owner: the class whose method it is; defined_in: the class that has it."""

    def __init__(self, unit, function, name, tree, place, owner=None, defined_in=None):
        self.unit, self.function, self.name, self.tree, self.place = unit, function, name, tree, place
        self.owner, self.defined_in = owner, defined_in
        self.seen = names.seen_by(function, owner)
        self.lines, self.indent, self.temps = [], "  ", 0
        self.scopes = {}
        self.inside, self.loops = [], []  # what was entered by `with`; how much of it stands outside of each loop
        self.params = [*tree.args.posonlyargs, *tree.args.args]
        self.self_name = self.params[0].arg if owner is not None and self.params else None
        self.locals = assigned(tree)

    def variable(self, name, node):
        if not name.isascii():
            refuse(self.place, node, f"the name '{name}' has letters beyond ASCII", "rename it")
        return "%" + name

    def temp(self):
        self.temps += 1
        return f"%{self.temps}"

    def emit(self, text, node):
        self.lines.append(f"{self.indent}{text} @{self.unit.line(self.place.line(node))}")

    @contextlib.contextmanager
    def block(self, head, node):
        if head == "else" and self.lines[-1].strip() == "}":
            self.lines[-1] = f"{self.indent}}} else {{"
        else:
            self.lines.append(f"{self.indent}{head} {{")
        self.indent += "  "
        yield
        self.indent = self.indent[:-2]
        self.lines.append(f"{self.indent}}}")

    def text(self):
        hints = hints_of(self.function, self.seen)
        for hint in hints.values():
            self.unit.note_type(hint, self.function.__module__)
        self.tensors = []  # parameters whose default is a tensor
        head = f"fn {self.name}({self.parameters(hints)})"
        if gives := kind_of(hints.get("return", "")):
            head += f" -> {quoted(gives)}"
        for p, value in self.tensors:
            left_out = self.temp()
            self.emit(f"{left_out} = $is(%{p.arg}, ...)", p)
            with self.block(f"if {left_out}", p):
                self.emit(f"%{p.arg} = $copy({self.text_of(value, p)})", p)
        self.body(self.tree.body)
        return "\n".join([head + " {", *self.lines, "}"])

    def parameters(self, hints):
        a, out = self.tree.args, []
        defaults = dict(
            zip(reversed([p.arg for p in self.params]), reversed(self.function.__defaults__ or ()), strict=False)
        )
        defaults.update(self.function.__kwdefaults__ or {})

        def one(p, how=""):
            text = f"{how}{self.variable(p.arg, p)}"
            tensor = isinstance(defaults.get(p.arg), adjoin.Tensor)
            if tensor:
                self.tensors.append((p, defaults[p.arg]))
            elif (kind := kind_of(hints.get(p.arg, ""))) and "*" not in how and p.arg != self.self_name:
                text += f": {quoted(kind)}"
            if tensor:
                text += " = ..."
            elif p.arg in defaults:
                text += f" = {self.text_of(defaults[p.arg], p)}"
            out.append(text)

        for p in self.params:
            one(p)
        if a.vararg:
            one(a.vararg, "*")
        for p in a.kwonlyargs:
            one(p, "only ")
        if a.kwarg:
            one(a.kwarg, "**")
        return ", ".join(out)

    def body(self, statements):
        """Writes statements up to one after which nothing is reached; was there one?"""
        return any(self.statement(s) for s in statements)

    def statement(self, node):
        method = getattr(self, "do_" + type(node).__name__, None)
        if method is None:
            name = type(node).__name__.removesuffix("Def").lower()
            refuse(self.place, node, f"'{name}' is not in the subset that is scripted", _INSTEAD.get(type(node), ""))
        return method(node) is True  # nothing behind it is reached

    def do_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if self.is_warning(node.value):
            return
        made = self.visit(node.value)
        if isinstance(made, Pending):
            self.emit(made, node)

    def is_warning(self, node):
        """warnings.warn(...) says nothing in a program."""
        return isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "warn")

    def do_Pass(self, node):
        pass

    def do_Assign(self, node):
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            return self.into(self.on_Name(node.targets[0]), node.value)
        value = self.operand(node.value)
        for target in node.targets:
            self.put(target, value)
        return None

    def do_AnnAssign(self, node):
        if node.value is None:
            return None
        if isinstance(node.target, ast.Name):
            return self.into(self.on_Name(node.target), node.value)
        return self.put(node.target, self.operand(node.value))

    def put(self, target, value):
        if isinstance(target, ast.Name):
            self.emit(f"{self.on_Name(target)} = $copy({value})", target)
        elif isinstance(target, ast.Attribute):
            self.emit(f"$setattr({self.operand(target.value)}, {quoted(target.attr)}, {value})", target)
            self.unit.written.add(target.attr)
        elif isinstance(target, ast.Subscript):
            self.emit(f"$setitem({self.operand(target.value)}, {self.operand(target.slice)}, {value})", target)
        elif isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 1:
            self.put_only(target.elts[0], value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts, later = [], []
            for e in target.elts:
                star = isinstance(e, ast.Starred)
                inner = e.value if star else e
                if isinstance(inner, ast.Name):
                    to = self.on_Name(inner)
                else:
                    to = self.temp()
                    later.append((inner, to))
                parts.append(("*" if star else "") + to)
            self.emit(f"{', '.join(parts)} = $copy({value})", target)
            for inner, to in later:
                self.put(inner, to)
        else:
            refuse(self.place, target, f"'{type(target).__name__}' cannot be assigned to")

    def put_only(self, target, value):
        """``a, = value`` and ``*a, = value``."""
        items, n, wrong, item = (self.temp() for _ in range(4))
        self.emit(f"{items} = $to_list({value})", target)
        if isinstance(target, ast.Starred):
            return self.put(target.value, items)
        self.emit(f"{n} = $len({items})", target)
        self.emit(f"{wrong} = $ne({n}, 1)", target)
        with self.block(f"if {wrong}", target):
            self.emit('$raise("ValueError", "one value is wanted, there are more or none")', target)
        self.emit(f"{item} = $getitem({items}, 0)", target)
        return self.put(target, item)

    def do_AugAssign(self, node):
        op, target = "i" + BINARY[type(node.op)], node.target
        if isinstance(target, ast.Name):
            to = self.on_Name(target)
            if isinstance(to, Static):
                refuse(self.place, node, f"'{target.id}' stands outside of the function")
            return self.emit(f"{to} = ${op}({to}, {self.operand(node.value)})", node)
        of = self.operand(target.value)
        if isinstance(target, ast.Attribute):
            self.unit.ask(target.attr)
            self.unit.written.add(target.attr)
            key, get, put = quoted(target.attr), "getattr", "setattr"
        else:
            key, get, put = self.operand(target.slice), "getitem", "setitem"
        old, new = self.temp(), self.temp()
        self.emit(f"{old} = ${get}({of}, {key})", node)
        self.emit(f"{new} = ${op}({old}, {self.operand(node.value)})", node)
        return self.emit(f"${put}({of}, {key}, {new})", node)

    def decided(self, test):
        """Is a condition known now? jit.is_scripting() is; so is what an `and` or `or` makes of it. None: it is not."""
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.decided(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            parts = [self.decided(v) for v in test.values]
            stops = isinstance(test.op, ast.Or)
            if stops in parts:
                return stops
            return None if None in parts else not stops
        if isinstance(test, ast.Name) and test.id == "TYPE_CHECKING":
            return False
        if isinstance(test, ast.Name) and test.id not in self.locals and test.id not in self.scopes:
            value = self.seen.get(test.id)  # a constant outside of the function
            return value if isinstance(value, bool) else None
        if isinstance(test, ast.Call) and not isinstance(test.func, ast.Call):
            from .special import special

            if ast.unparse(test.func).split(".")[-1] in _DECIDED:
                return {"true": True, "false": False}.get(special(self, test))
        return None

    def do_If(self, node):
        decided = self.decided(node.test)
        if decided is not None:
            return self.body(node.body if decided else node.orelse)
        test, other = self.operand(node.test), False
        with self.block(f"if {test}", node):
            one = self.body(node.body)
        if node.orelse:
            with self.block("else", node):
                other = self.body(node.orelse)
        return one and other

    def do_While(self, node):
        if node.orelse:
            refuse(self.place, node, "an else of a loop is not in the subset", "keep a bool")
        with self.block("while", node):
            test = self.operand(node.test)
        self.lines[-1] += f" {test} do {{"
        self.indent += "  "
        self.loop_body(node.body)
        self.indent = self.indent[:-2]
        self.lines.append(f"{self.indent}}}")

    def do_For(self, node):
        if node.orelse:
            refuse(self.place, node, "an else of a loop is not in the subset", "keep a bool")
        over, later = self.walked(node.iter), None
        if self.plain_target(node.target):
            to = self.targets(node.target)
        else:
            to = later = self.temp()
        with self.block(f"for {to} in {over}", node):
            if later:
                self.put(node.target, later)
            self.loop_body(node.body)

    def plain_target(self, node):
        """Is it a name, or two names and more?"""
        parts = getattr(node, "elts", ())
        return isinstance(node, ast.Name) or len(parts) > 1 and all(isinstance(e, ast.Name) for e in parts)

    def do_Break(self, node):
        self.leave(self.loops[-1], node)
        self.emit("break", node)
        return True

    def do_Continue(self, node):
        self.leave(self.loops[-1], node)
        self.emit("continue", node)
        return True

    def loop_body(self, statements):
        self.loops.append(len(self.inside))
        self.body(statements)
        self.loops.pop()

    def do_Return(self, node):
        value = "None" if node.value is None else self.operand(node.value)
        self.leave(0, node)
        self.emit(f"return {value}", node)
        return True

    def do_Delete(self, node):
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.emit(f"$delitem({self.operand(target.value)}, {self.operand(target.slice)})", node)
            elif not isinstance(target, ast.Name):
                refuse(self.place, node, "del of an attribute is not in the subset", "assign None")

    def do_Raise(self, node):
        if node.exc is None:
            refuse(self.place, node, "raise without an exception is not in the subset")
        exc, args = node.exc, []
        if isinstance(exc, ast.Call):
            args = [self.operand(a) for a in exc.args]
            exc = exc.func
        made = self.visit(exc) if isinstance(exc, (ast.Name, ast.Attribute)) else None
        if isinstance(made, Static) and isinstance(made.value, type):
            kind = made.value.__name__
        elif isinstance(node.exc, ast.Call):  # a function that makes it
            kind, args = "RuntimeError", [quoted(f"{self.name}: an error that {ast.unparse(exc)} describes")]
        else:
            refuse(self.place, node, "an exception's class is raised, or a call of it")
        self.emit(f"$raise({', '.join([quoted(kind), *args])})", node)
        return True

    def do_Assert(self, node):
        test, fails = self.operand(node.test), self.temp()
        self.emit(f"{fails} = $not({test})", node)
        with self.block(f"if {fails}", node):
            message = '""' if node.msg is None else self.operand(node.msg)
            self.emit(f'$raise("AssertionError", {message})', node)

    def do_With(self, node):
        blocks, before = 0, len(self.inside)
        for item in node.items:
            if (manager := self.manager(item)) is not None:
                entered = self.temp()
                self.emit(f"{entered} = .__enter__({manager})", node)
                self.unit.ask("__enter__")
                self.unit.ask("__exit__")
                if item.optional_vars is not None:
                    self.put(item.optional_vars, entered)
                self.inside.append(manager)
            elif (head := self.mode(item, node)) is not None:
                self.lines.append(f"{self.indent}{head} {{")
                self.indent += "  "
                blocks += 1
        self.body(node.body)
        if node.body and not isinstance(node.body[-1], (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            self.leave(before, node)
        del self.inside[before:]
        for _ in range(blocks):
            self.indent = self.indent[:-2]
            self.lines.append(f"{self.indent}}}")

    def forks(self):
        """Does the function work with what jit.fork() gives?"""
        text = ast.dump(self.tree)
        return "fork" in text or "Future" in text

    def manager(self, item):
        """The value whose class in the program says what happens around the block; None: it is none of those."""
        call = item.context_expr
        known = (
            self.visit(call.func)
            if isinstance(call, ast.Call) and isinstance(call.func, (ast.Name, ast.Attribute))
            else None
        )
        if isinstance(known, Static):
            cls = known.value
            scripted = isinstance(cls, type) and "__enter__" in vars(cls) and not is_ours(cls.__module__)
            return self.operand(call) if scripted and cls.__module__ not in _LIBRARY else None
        return (
            self.operand(call)
            if isinstance(call, (ast.Name, ast.Attribute)) and not isinstance(self.visit(call), Static)
            else None
        )

    def leave(self, since, node):
        """What was entered is left, the last first."""
        for manager in reversed(self.inside[since:]):
            self.emit(f".__exit__({manager}, None, None, None)", node)

    def mode(self, item, node):
        """The head of a block in which calls are recorded or not, or autocast; None: the statement changes nothing in a program."""
        call = item.context_expr
        made = self.visit(call.func) if isinstance(call, ast.Call) else None
        f = made.value if isinstance(made, Static) else None
        if f is adjoin.set_grad_enabled and call.args:
            return f"grad {self.operand(call.args[0])}"
        if isinstance(f, type) and f in _GRAD and not call.args:
            return f"grad {_GRAD[f]}"
        if isinstance(f, type) and issubclass(f, adjoin.autocast):
            return self.autocast(f, call)
        if getattr(f, "__name__", "") == "record_function":
            return None
        return refuse(
            self.place, node, f"'with {ast.unparse(call)}' is not in the subset that is scripted",
            "no_grad(), enable_grad(), set_grad_enabled(...), autocast(...) and scripted classes with __enter__ and __exit__ are",
        )  # fmt: skip

    def autocast(self, cls, call):
        """The head of a block under autocast; classes of one kind of device take no device."""
        params = list(inspect.signature(cls).parameters)
        given = {k: self.operand(v) for k, v in zip(params, call.args, strict=False)}
        given.update((k.arg, self.operand(k.value)) for k in call.keywords)
        if wrong := [k for k in given if k not in params] or (len(call.args) > len(params) and ["more"]):
            refuse(self.place, call, f"autocast takes {', '.join(params)}, not {wrong[0]}")
        device = given.get("device_type") if "device_type" in params else quoted(cls.__module__.split(".")[1])
        if device is None:
            refuse(self.place, call, "autocast wants the kind of device", 'write autocast("cpu")')
        rest = given.get("enabled", "true"), given.get("dtype", "None"), given.get("cache_enabled", "None")
        return f"autocast {', '.join([device, *rest])}"

    def constant_text(self, node):
        """A str that is known now: a literal, or an attribute of self that its class says."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self.self_name
        if own and self.owner is not None:
            value = getattr(self.owner, node.attr, None)
            return value if isinstance(value, str) and not self.unit.varies(self.owner, node.attr) else None
        return None


_DECIDED = ("is_scripting", "overridden", *names.FALSE)


def assigned(tree):
    """The names that are a function's own."""
    a = tree.args
    found = {p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]}
    inner = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)):
            inner |= {n for g in node.generators for n in ast.walk(g.target)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in inner:
            found.add(node.id)
    return found


def place_of(function, first):
    return Place(os.path.basename(function.__code__.co_filename), first, function.__name__)
