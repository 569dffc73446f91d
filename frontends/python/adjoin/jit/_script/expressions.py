"""adjoin.jit._script.expressions: an expression of Python becomes calls whose results stand in variables."""

import ast
import enum
import functools
import inspect
import types

from . import kinds, names
from .errors import refuse
from .literals import NoLiteral, literal, quoted

BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not"}
COMPARE = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Is: "is",
    ast.IsNot: "isnot", ast.In: "in", ast.NotIn: "notin",
}  # fmt: skip


class Static:
    """What is known when the function is compiled: a module, a function, a class, a constant."""

    def __init__(self, value):
        self.value = value


class Pending(str):
    """A call that is not written yet: who asks says where its result goes."""


class Expressions:
    """Needs from the class that writes functions: unit, place, seen, locals, emit, temp, block."""

    def operand(self, node):
        """A variable or a literal."""
        made = self.visit(node)
        return self.settle(made, node)

    def settle(self, made, node):
        if isinstance(made, Static):
            return self.text_of(made.value, node)
        if isinstance(made, Pending):
            to = self.temp()
            self.emit(f"{to} = {made}", node)
            return to
        return made

    def into(self, to, node):
        """The expression's value in the variable of this name."""
        made = self.visit(node)
        if not isinstance(made, Pending):
            made = f"$copy({self.settle(made, node)})"
        self.emit(f"{to} = {made}", node)

    def text_of(self, value, node):
        """A value that is known, as an operand."""
        try:
            return literal(value, lambda o: self.unit.known(o, self, node))
        except NoLiteral as e:
            refuse(self.place, node, str(e), "give it as an argument, or keep it an attribute of the module")

    def visit(self, node):
        method = getattr(self, "on_" + type(node).__name__, None)
        if method is None:
            refuse(
                self.place, node, f"{_said(node)} is not in the subset that is scripted", _INSTEAD.get(type(node), "")
            )
        return method(node)

    def on_Constant(self, node):
        if isinstance(node.value, bytes):
            refuse(self.place, node, "bytes are not in the subset that is scripted", "use a str or a list of ints")
        return literal(node.value)

    def on_Name(self, node):
        if node.id in self.scopes:
            return self.scopes[node.id]
        if node.id in self.locals:
            return self.variable(node.id, node)
        if node.id not in self.seen:
            refuse(self.place, node, f"the name '{node.id}' is not known")
        return Static(self.seen[node.id])

    def on_Attribute(self, node):
        of = self.visit(node.value)
        if isinstance(of, Static) and self.looks_into(of.value):
            if not hasattr(of.value, node.attr):
                refuse(self.place, node, f"'{getattr(of.value, '__name__', of.value)}' has no attribute '{node.attr}'")
            return Static(getattr(of.value, node.attr))
        if node.attr == "__name__" and isinstance(of, Pending) and of.startswith("$type_name"):
            return of
        if node.attr == "__class__":
            return Pending(f"$type_name({self.settle(of, node)})")
        self.unit.ask(node.attr)
        return Pending(f"$getattr({self.settle(of, node)}, {quoted(node.attr)})")

    def looks_into(self, value):
        """Is an attribute of it a constant?"""
        return names.is_namespace(value) or isinstance(value, type) or type(value) in self.unit.opaque

    def on_Call(self, node):
        made = self.special(node)
        if made is not None:
            return made
        if isinstance(node.func, ast.Attribute):
            of = self.visit(node.func.value)
            if not (isinstance(of, Static) and self.looks_into(of.value)):
                if (static := self.static_method(node.func)) is not None:
                    return self.call_known(static, node)
                if (function := self.unit.form_of(getattr(node, "function", None))) is not None:
                    called = self.unit.function(function, None, self.place, node)
                    return Pending(f"fn:{called}({self.arguments(node, self.settle(of, node))})")
                self.unit.ask(node.func.attr, self.own_method(node.func))
                return Pending(f".{node.func.attr}({self.arguments(node, self.settle(of, node))})")
            callee = self.on_Attribute(node.func)
        else:
            callee = self.visit(node.func)
        if isinstance(callee, Static):
            return self.call_known(callee.value, node)
        return Pending(f"$call({self.arguments(node, self.settle(callee, node))})")

    def own_method(self, func):
        """Is it a method of self? Then what is wrong in it is wrong here."""
        return isinstance(func.value, ast.Name) and func.value.id == self.self_name

    def static_method(self, func):
        """The function that self.f is where f is a static method."""
        held = inspect.getattr_static(self.owner, func.attr, None) if self.own_method(func) and self.owner else None
        return held.__func__ if isinstance(held, staticmethod) else None

    def arguments(self, node, first=None):
        parts = [] if first is None else [first]
        for a in node.args:
            if isinstance(a, ast.Starred):
                parts.append("*" + self.operand(a.value))
            else:
                parts.append(self.operand(a))
        for k in node.keywords:
            parts.append("**" + self.operand(k.value) if k.arg is None else f"{k.arg}={self.operand(k.value)}")
        return ", ".join(parts)

    def call_known(self, f, node):
        """A call of what is known by its name."""
        unit = self.unit
        if isinstance(f, functools.partial):
            return self.call_known(f.func, self.filled(f, node))
        if (op := names.op_of(f)) is not None:
            return Pending(f"{op}({self.arguments(node)})")
        if (builtin := names.builtin_of(f)) is not None:
            if builtin == "len":
                unit.ask("__len__")
            if builtin == "hasattr" and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
                unit.ask(node.args[1].value)
            return Pending(f"${builtin}({self.arguments(node)})")
        if (method := names.method_of(f)) is not None:
            return Pending(f".{method}({self.arguments(node)})")
        if isinstance(f, type):
            return self.make(f, node)
        if isinstance(f, names.METHOD):
            return Pending(f".{f.__name__}({self.arguments(node)})")
        if hasattr(f, "_traced") and not isinstance(f, type):
            from .mixed import traced_function

            return Pending(f"fn:{traced_function(unit, f, getattr(f, '__name__', 'traced'))}({self.arguments(node)})")
        function = unit.python_of(f)
        if function is not None:
            called = unit.function(function, None, self.place, node)
            return Pending(f"fn:{called}({self.arguments(node)})")
        name = getattr(f, "__qualname__", None) or type(f).__name__
        refuse(
            self.place,
            node,
            f"'{name}' cannot be called in a scripted program",
            "it is neither an op, nor a builtin that is known, nor a function with Python source",
        )

    def filled(self, f, node):
        """The call with the arguments that a partial function brings."""
        for value in (*f.args, *f.keywords.values()):
            if not isinstance(value, (int, float, complex, str, type(None))):
                kind = type(value).__name__
                refuse(self.place, node, f"a partial function brings a {kind}", "give it as an argument of the call")
        own = {k.arg for k in node.keywords}
        more = [ast.keyword(k, ast.Constant(v)) for k, v in f.keywords.items() if k not in own]
        made = ast.Call(node.func, [*map(ast.Constant, f.args), *node.args], [*more, *node.keywords])
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def make(self, cls, node):
        if issubclass(cls, BaseException):
            refuse(self.place, node, "an exception is made and not raised", "raise it where it is made")
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return self.make_named(cls, node)
        if cls is self.unit.size_type:
            return Pending(f"$to_tuple({self.arguments(node)})")
        if cls is set or cls is frozenset:
            refuse(self.place, node, "sets are not in the subset that is scripted", "use a list, or the keys of a dict")
        if cls is slice and node.keywords:
            refuse(self.place, node, "slice() takes no names", "give start, stop and step by their places")
        if cls is slice:
            parts = [self.operand(a) for a in node.args]
            parts = ["None", *parts] if len(parts) == 1 else parts
            return Pending(f"$slice({', '.join([*parts, 'None', 'None'][:3])})")
        called = self.unit.klass(cls, self.place, node)
        return Pending(f"$call(type({quoted(called)}){self.more(node)})")

    def more(self, node):
        text = self.arguments(node)
        return ", " + text if text else ""

    def make_named(self, cls, node):
        given = dict(zip(cls._fields, node.args, strict=False))
        if len(node.args) > len(cls._fields) or any(isinstance(a, ast.Starred) for a in node.args):
            refuse(self.place, node, f"{cls.__name__} is made of {len(cls._fields)} fields")
        for k in node.keywords:
            if k.arg not in cls._fields or k.arg in given:
                refuse(self.place, node, f"{cls.__name__} has no field '{k.arg}', or it is given twice")
            given[k.arg] = k.value
        values = []
        for field in cls._fields:
            if field in given:
                values.append(self.operand(given[field]))
            elif field in cls._field_defaults:
                values.append(self.text_of(cls._field_defaults[field], node))
            else:
                refuse(self.place, node, f"{cls.__name__}: the field '{field}' is missing")
        self.unit.types[cls.__name__] = cls
        fields = "tuple(" + ", ".join(quoted(f) for f in cls._fields) + ")"
        return Pending(f"$named({quoted(cls.__name__)}, {', '.join([fields, *values])})")

    def on_BinOp(self, node):
        return Pending(f"${BINARY[type(node.op)]}({self.operand(node.left)}, {self.operand(node.right)})")

    def on_UnaryOp(self, node):
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            if type(value) in (int, float, complex):
                return literal(-value)
        return Pending(f"${UNARY[type(node.op)]}({self.operand(node.operand)})")

    def on_BoolOp(self, node):
        to = self.temp()
        self.into(to, node.values[0])
        for value in node.values[1:]:
            decides = to
            if isinstance(node.op, ast.Or):
                decides = self.temp()
                self.emit(f"{decides} = $not({to})", node)
            with self.block(f"if {decides}", node):
                self.into(to, value)
        return to

    def on_Compare(self, node):
        if len(node.ops) == 1:
            return Pending(self.compare(node.ops[0], self.operand(node.left), self.operand(node.comparators[0])))
        to = self.temp()
        left, right = self.operand(node.left), self.operand(node.comparators[0])
        self.emit(f"{to} = {self.compare(node.ops[0], left, right)}", node)
        self.chain(node, 1, right, to)
        return to

    def chain(self, node, i, left, to):
        """a < b < c: what stands on the right is asked only if the left is true."""
        if i == len(node.ops):
            return
        with self.block(f"if {to}", node):
            right = self.operand(node.comparators[i])
            self.emit(f"{to} = {self.compare(node.ops[i], left, right)}", node)
            self.chain(node, i + 1, right, to)

    def compare(self, op, left, right):
        return f"${COMPARE[type(op)]}({left}, {right})"

    def on_IfExp(self, node):
        decided = self.decided(node.test)
        if decided is not None:
            return self.visit(node.body if decided else node.orelse)
        to = self.temp()
        test = self.operand(node.test)
        with self.block(f"if {test}", node):
            self.into(to, node.body)
        with self.block("else", node):
            self.into(to, node.orelse)
        return to

    def display(self, name, node):
        parts = []
        for e in node.elts:
            parts.append("*" + self.operand(e.value) if isinstance(e, ast.Starred) else self.operand(e))
        return Pending(f"${name}({', '.join(parts)})")

    def on_List(self, node):
        return self.display("list", node)

    def on_Tuple(self, node):
        return self.display("tuple", node)

    def on_Dict(self, node):
        if None not in node.keys:
            parts = [self.operand(x) for pair in zip(node.keys, node.values, strict=True) for x in pair]
            return Pending(f"$dict({', '.join(parts)})")
        to = self.temp()
        self.emit(f"{to} = $dict()", node)
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                self.emit(f".update({to}, {self.operand(value)})", node)
            else:
                self.emit(f"$entry({to}, {self.operand(key)}, {self.operand(value)})", node)
        return to

    def on_Subscript(self, node):
        of = self.visit(node.value)
        if isinstance(of, Static) and (isinstance(of.value, type) or hasattr(of.value, "__origin__")):
            refuse(self.place, node, "a type stands where a value is wanted")
        return Pending(f"$getitem({self.settle(of, node)}, {self.operand(node.slice)})")

    def on_Slice(self, node):
        parts = [None if p is None else self.operand(p) for p in (node.lower, node.upper, node.step)]
        text = ", ".join("None" if p is None else p for p in parts)
        plain = all(p is None or p.lstrip("-").isdigit() for p in parts)
        return f"slice({text})" if plain else Pending(f"$slice({text})")

    def on_JoinedStr(self, node):
        parts = []
        for v in node.values:
            if isinstance(v, ast.Constant):
                parts.append(literal(v.value))
                continue
            value = self.operand(v.value)
            how = {-1: "", 115: "s", 114: "r"}.get(v.conversion)
            if how is None:
                refuse(self.place, node, "'!a' of an f-string is not in the subset that is scripted", "use !r")
            spec = '""' if v.format_spec is None else self.operand(v.format_spec)
            to = self.temp()
            self.emit(f"{to} = $format({value}, {quoted(how)}, {spec})", node)
            parts.append(to)
        return Pending(f"$join({', '.join(parts)})")

    def comprehension(self, node, start, put):
        to = self.temp()
        self.emit(f"{to} = {start}", node)
        kept = dict(self.scopes)
        self.walk(node, 0, lambda: put(to))
        self.scopes = kept
        return to

    def walk(self, node, i, put):
        if i == len(node.generators):
            return put()
        g = node.generators[i]
        over = self.walked(g.iter)
        for n in ast.walk(g.target):
            if isinstance(n, ast.Name):
                self.scopes[n.id] = self.temp()
        plain = self.plain_target(g.target)
        to = self.targets(g.target) if plain else self.temp()
        with self.block(f"for {to} in {over}", node):
            if not plain:
                self.put(g.target, to)
            self.filtered(g.ifs, node, lambda: self.walk(node, i + 1, put))
        return None

    def walked(self, node):
        """What a loop walks over; the members of an enum are a list."""
        made = self.visit(node)
        if isinstance(made, Static) and isinstance(made.value, enum.EnumMeta):
            made = Static(list(made.value))
        return self.settle(made, node)

    def filtered(self, tests, node, put):
        if not tests:
            return put()
        with self.block(f"if {self.operand(tests[0])}", node):
            self.filtered(tests[1:], node, put)
        return None

    def on_ListComp(self, node):
        return self.comprehension(
            node, "$list()", lambda to: self.emit(f"$append({to}, {self.operand(node.elt)})", node)
        )

    on_GeneratorExp = on_ListComp

    def on_DictComp(self, node):
        return self.comprehension(
            node,
            "$dict()",
            lambda to: self.emit(f"$entry({to}, {self.operand(node.key)}, {self.operand(node.value)})", node),
        )

    def targets(self, node):
        """The names of a target, as `for` and an assignment write them; nested ones are not in it."""
        if isinstance(node, ast.Name):
            return self.on_Name(node)
        if isinstance(node, (ast.Tuple, ast.List)):
            out = []
            for e in node.elts:
                star = isinstance(e, ast.Starred)
                inner = e.value if star else e
                if not isinstance(inner, ast.Name):
                    refuse(self.place, node, "targets of a loop are names", "take the parts apart in the loop")
                out.append(("*" if star else "") + self.on_Name(inner))
            return ", ".join(out) + ("," if len(out) == 1 else "")
        refuse(self.place, node, f"{_said(node)} is no target of a loop", "use a name")

    def special(self, node):
        """Calls that are decided while the function is compiled; None: this is none."""
        from .special import special

        return special(self, node)

    def types(self, node):
        """The names of the types that isinstance asks for."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return [name for e in node.elts for name in self.types(e)]
        wanted = self.static(node)
        wanted = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
        out = []
        for w in wanted:
            if isinstance(w, type) and w in self.unit.classes:
                out.append(self.unit.classes[w].name)
                continue
            found = kinds.type_names(w)
            if found is None and isinstance(w, type):
                found = [w.__name__]  # nothing in the program is of it
            if found is None:
                refuse(self.place, node, f"isinstance: {w!r} is no type that programs know")
            out += found
        return out

    def static(self, node):
        """The value of an expression that must be known now."""
        expression = ast.Expression(body=node)
        local = sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & self.locals)
        if local:
            refuse(self.place, node, f"'{local[0]}' must be known when the function is compiled", "use a constant")
        try:
            return eval(compile(ast.fix_missing_locations(expression), self.place.file, "eval"), dict(self.seen))
        except Exception as e:
            refuse(self.place, node, f"this must be known when the function is compiled: {e}")


_INSTEAD = {
    ast.Lambda: "write a function with def, at the top of the file",
    ast.Set: "use a list, or a dict",
    ast.SetComp: "use a list, or a dict",
    ast.NamedExpr: "assign on a line of its own",
    ast.Await: "programs run one call after the other",
    ast.Yield: "append to a list and return it",
    ast.YieldFrom: "append to a list and return it",
}


def _said(node):
    return {
        ast.Lambda: "a lambda", ast.Set: "a set", ast.SetComp: "a set", ast.NamedExpr: "an assignment inside an expression (:=)",
        ast.Yield: "a generator", ast.YieldFrom: "a generator", ast.Await: "await", ast.Starred: "a * here",
    }.get(type(node), f"'{type(node).__name__}'")  # fmt: skip


def is_function(o):
    return isinstance(o, types.FunctionType)
