"""adjoin.jit._script.check.values: the types of expressions; what no value of them can do is refused."""

import ast
import types as python
import typing

import adjoin

from .... import jit
from ...._names import is_ours
from ....nn.modules.module import Module
from .. import names
from ..errors import refuse
from ..kinds import COMMON
from . import members
from .calls import Calls
from .known import (
    BOOL, COMPLEX, FLOAT, INT, NONE, NUMBERS, PYTHON, STR, TENSOR, Bad, Type, alike, dict_of, fits, joined, list_of, may_be_none,
    of_value, options, said, tuple_of, typed, union, without_none,
)  # fmt: skip


class Known:
    """What a name outside of the function stands for."""

    def __init__(self, value):
        self.value = value


_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)


class Values(Calls):
    """Needs from the class that follows the flow: env, seen, locals, place, unit, owner, self_name."""

    def refuse(self, node, what, instead=""):
        refuse(self.place, node, what, instead)

    def type(self, node, hint=None):
        """The type of an expression; None: not known."""
        found = self.look(node, hint)
        return of_value(found.value) if isinstance(found, Known) else found

    def look(self, node, hint=None):
        """A Known, or a type."""
        method = getattr(self, "of_" + type(node).__name__, None)
        if method is None:
            return None
        return method(node, hint) if method.__name__ in _HINTED else method(node)

    def annotation(self, node, value):
        """The type that an annotation in a text says."""
        try:
            return typed(value)
        except Bad as e:
            self.refuse(node, str(e))

    def evaluated(self, node):
        """What an annotation in the source is."""
        try:
            return eval(compile(ast.Expression(node), self.place.file, "eval"), {**COMMON, **self.seen})
        except Exception:  # only a type checker can read it
            return None

    def of_Constant(self, node):
        return of_value(node.value)

    def of_JoinedStr(self, node):
        for v in node.values:
            if isinstance(v, ast.FormattedValue):
                self.type(v.value)
        return STR

    def of_Name(self, node):
        if node.id in self.env.names:
            return self.env.names[node.id]
        if node.id in self.locals:
            if self.env.ended:
                return None
            if (why := self.env.missing.get(node.id)) is not None:
                self.refuse(node, why)
            if node.id in self.wild:
                return None
            self.refuse(node, f"'{node.id}' has no value here")
        return Known(self.seen[node.id]) if node.id in self.seen else None

    def of_Attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id == self.self_name and self.owner is not None:
            return self.own_attribute(node)
        of = self.look(node.value)
        if isinstance(of, Known):
            if (isinstance(of.value, type) or names.is_namespace(of.value)) and hasattr(of.value, node.attr):
                return Known(getattr(of.value, node.attr))
            return None if not isinstance(of.value, adjoin.Tensor) else self.attribute_of(TENSOR, node)
        return self.attribute_of(of, node)

    def attribute_of(self, of, node):
        if of is None:
            return None
        if may_be_none(of):
            self.refuse(node, *maybe(of, node.value, f"has '{node.attr}' read"))
        if of == TENSOR:
            if not hasattr(adjoin.Tensor, node.attr):
                self.refuse(node, f"a Tensor has no attribute '{node.attr}'")
            return members.TENSOR_ATTRIBUTES.get(node.attr)
        if of.name == "enum":
            if node.attr not in ("name", "value") and not hasattr(of.python, node.attr):
                self.refuse(node, f"{of.python.__name__} has no attribute '{node.attr}'")
            return (
                STR if node.attr == "name" else of_value(next(iter(of.python)).value) if node.attr == "value" else None
            )
        if of.python is not None:
            return self.of_instance(of, node)
        if of in NUMBERS or of == STR or of.name in ("List", "Dict", "Tuple"):
            if node.attr not in ("real", "imag", "__class__"):
                self.refuse(node, f"{said(of)} has no attribute '{node.attr}'")
            return FLOAT if of == COMPLEX else None
        return None

    def of_instance(self, of, node):
        cls = of.python
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            if node.attr in cls._fields:
                return self.annotation(node, typing.get_type_hints(cls).get(node.attr, "")) if _has_hints(cls) else None
            if not hasattr(cls, node.attr):
                self.refuse(node, f"the named tuple {cls.__name__} has no field '{node.attr}'")
            return None
        fields = self.unit.types_of.fields(cls)
        if fields is not None and node.attr in fields:
            return fields[node.attr]
        if fields is not None and not hasattr(cls, node.attr):
            self.refuse(node, f"a {cls.__name__} has no attribute '{node.attr}'", "give it one in __init__")
        return None

    def own_attribute(self, node):
        """An attribute of self."""
        if not issubclass(self.owner, Module):
            return self.of_instance(Type(self.owner.__name__, (), self.owner), node)
        hint = members.class_hints(self.owner).get(node.attr)
        instances = [m for m in self.unit.modules if type(m) is self.owner]
        if not instances:
            return None
        held = [members.held(m, node.attr) for m in instances]
        if not all(held):
            if not hasattr(self.owner, node.attr) and hint is None and not self.guarded(node):
                self.refuse(node, f"the module {self.owner.__name__} has no attribute '{node.attr}'")
            return None
        if hint is not None:
            return self.annotation(node, hint)
        found = {of_value(h[0]) for h in held}
        return found.pop() if len(found) == 1 and found != {NONE} else None

    def guarded(self, node):
        """Does the function ask whether the attribute is there, or the class make attributes up?"""
        asks = any(
            isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ("hasattr", "getattr")
            for n in ast.walk(self.tree)
        )
        finds = getattr(self.owner, "__getattr__", None)
        return asks or isinstance(finds, python.FunctionType) and not is_ours(finds.__module__)

    def sure(self, node, what):
        """The type of an expression that must not be None."""
        found = self.type(node)
        if may_be_none(found):
            self.refuse(node, *maybe(found, node, what))
        return found

    def of_BinOp(self, node):
        a, b = self.sure(node.left, "is computed with"), self.sure(node.right, "is computed with")
        return self.computed(node.op, a, b, node)

    def computed(self, op, a, b, node):
        if a is None or b is None:
            return TENSOR if TENSOR in (a, b) and not isinstance(op, ast.Mod) else None
        if a.python is not None or b.python is not None:
            return None
        if TENSOR in (a, b):
            other = b if a == TENSOR else a
            if other == TENSOR or other in NUMBERS or other.name == "Union":
                return TENSOR
            return STR if isinstance(op, ast.Mod) and a == STR else self.wrong(op, a, b, node)
        if isinstance(op, ast.MatMult):
            return self.wrong(op, a, b, node)
        if a in NUMBERS and b in NUMBERS:
            if isinstance(op, ast.Div):
                return COMPLEX if COMPLEX in (a, b) else FLOAT
            if isinstance(op, _BITS) and a == b == BOOL:
                return BOOL
            for t in (COMPLEX, FLOAT):
                if t in (a, b):
                    return t
            return None if isinstance(op, ast.Pow) else INT
        if a == STR and isinstance(op, ast.Mod):
            return STR
        if isinstance(op, ast.Mult):
            for x, y in ((a, b), (b, a)):
                if x in (INT, BOOL) and (y == STR or y.name == "List"):
                    return y
                if x in (INT, BOOL) and y.name == "Tuple":
                    return None
        if isinstance(op, ast.Add) and a.name == b.name and a.name in ("str", "List", "Tuple"):
            if a.name == "Tuple":
                return tuple_of(*a.of, *b.of)
            if alike(a, b):
                return a if None not in a.of else b
        if isinstance(op, ast.BitOr) and a.name == b.name == "Dict" and alike(a, b):
            return a
        if isinstance(op, ast.Add) and {a.name, b.name} == {"List", "Tuple"}:
            return a if a.name == "List" else b
        if "Union" in (a.name, b.name):
            return None
        return self.wrong(op, a, b, node)

    def wrong(self, op, a, b, node):
        self.refuse(node, f"{type(op).__name__.lower()} takes no {said(a)} and {said(b)}")

    def of_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            self.truth(node.operand)
            return BOOL
        of = self.sure(node.operand, "is computed with")
        if of is None or of == TENSOR or of.python is not None:
            return of
        if of not in NUMBERS:
            return None if of.name == "Union" else self.wrong(node.op, of, of, node)
        return INT if of == BOOL else of

    def of_Compare(self, node):
        sides = [self.type(x) for x in (node.left, *node.comparators)]
        for op, a, b in zip(node.ops, sides, sides[1:], strict=False):
            if isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) or a is None or b is None:
                continue
            if isinstance(op, (ast.In, ast.NotIn)):
                if b.name in ("List", "Dict") and not (fits(a, b.of[0]) or fits(b.of[0], a)):
                    self.refuse(node, f"'in' looks for a {said(a)} in a {said(b)}")
                if b in NUMBERS:
                    self.refuse(node, f"'in' looks into a {said(b)}")
                continue
            for t, side in ((a, node.left), (b, node.comparators[0])):
                if may_be_none(t):
                    self.refuse(node, *maybe(t, side, "is compared"))
            if (a == STR) != (b == STR) and all(t in (*NUMBERS, STR, TENSOR) for t in (a, b)):
                self.wrong(op, a, b, node)
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops) or len(sides) > 2:
            return BOOL
        if TENSOR in sides:
            return TENSOR
        if None in sides or any(t.python is not None or t.name == "Union" for t in sides):
            return None
        return BOOL

    def truth(self, node):
        """A condition; what has no truth is refused."""
        of = self.type(node)
        if of is not None and of.name in ("enum", "device", "dtype"):
            self.refuse(node, f"a {said(of)} decides nothing", "compare it, or ask 'is not None'")
        return of

    def of_BoolOp(self, node):
        kept, parts = self.env, []
        for value in node.values:
            parts.append(self.truth(value))
            self.env = self.env.copy()
            self.refine(value, isinstance(node.op, ast.And))
        self.env = kept
        return parts[0] if all(p == parts[0] for p in parts) else None

    def of_IfExp(self, node, hint=None):
        kept = self.env
        decided = self.decided(node.test)
        self.truth(node.test)
        parts = []
        for yes, value in ((True, node.body), (False, node.orelse)):
            if decided is None or decided == yes:
                self.env = kept.copy()
                self.refine(node.test, yes)
                parts.append(self.type(value, hint))
        self.env = kept
        if len(parts) == 1:
            return parts[0]
        found, well = joined(*parts)
        if hint is not None and all(fits(p, hint) for p in parts):
            plain = well and found is not None and found.name not in ("List", "Dict", "Tuple")
            return found if plain else hint  # one that may be empty is what is wanted
        if not well and not self.loose:
            self.refuse(node, f"the value is a {said(parts[0])} or a {said(parts[1])}", "let both be of one type")
        return found

    def of_List(self, node, hint=None):
        inner = members.part_of(hint, "List")
        parts = [None if isinstance(e, ast.Starred) else self.type(e, inner) for e in node.elts]
        if not parts:
            return next((t for t in options(hint) if t.name == "List"), list_of())
        if inner is not None:
            for p, e in zip(parts, node.elts, strict=True):
                if not fits(p, inner) and not (p == INT and inner == FLOAT):
                    self.refuse(e, f"a {said(p)} stands in a List of {said(inner)}")
            return next((t for t in options(hint) if t.name == "List"), hint)
        found = parts[0]
        for p in parts[1:]:
            found, well = joined(found, p)
            if not well:
                return list_of()
        return list_of(found)

    def of_Tuple(self, node, hint=None):
        if any(isinstance(e, ast.Starred) for e in node.elts):
            return None
        inner = [t for t in options(hint) if t.name == "Tuple" and len(t.of) == len(node.elts)]
        hints = inner[0].of if len(inner) == 1 else [None] * len(node.elts)
        return tuple_of(*(self.type(e, h) for e, h in zip(node.elts, hints, strict=True)))

    def of_Dict(self, node, hint=None):
        inner = [t for t in options(hint) if t.name == "Dict"]
        want = inner[0].of if len(inner) == 1 else (None, None)
        if None in node.keys:
            return hint
        keys = [self.type(k, want[0]) for k in node.keys]
        values = [self.type(v, want[1]) for v in node.values]
        for parts, wanted, nodes, what in (
            (keys, want[0], node.keys, "keys"),
            (values, want[1], node.values, "values"),
        ):
            for p, n in zip(parts, nodes, strict=True):
                if not fits(p, wanted) and not (p == INT and wanted == FLOAT):
                    self.refuse(n, f"a {said(p)} stands among {what} of {said(wanted)}")
        if len(inner) == 1:
            return inner[0]
        return dict_of(*(ts[0] if ts and all(t == ts[0] for t in ts) else None for ts in (keys, values)))

    def of_Subscript(self, node):
        of = self.sure(node.value, "is indexed")
        if of is None:
            self.type(node.slice)
            return None
        if isinstance(node.slice, ast.Slice):
            return of if of.name != "Tuple" else self.slice_of(of, node.slice)
        at = self.type(node.slice)
        if of == TENSOR:
            return TENSOR
        if of in (INT, FLOAT, BOOL, COMPLEX):
            self.refuse(node, f"a {said(of)} has no items")
        if of.name in ("List", "str") and at is not None and at not in (INT, BOOL, TENSOR):
            self.refuse(node, f"a {of.name} is indexed by a {said(at)}", "an int is wanted")
        if of.name == "Dict" and not fits(at, of.of[0]):
            self.refuse(node, f"a {said(of)} is asked for a {said(at)}")
        if of.name == "List":
            return of.of[0]
        if of.name == "Dict":
            return of.of[1]
        if of.name == "Tuple":
            return self.item_of(of, node)
        return STR if of == STR else None

    def item_of(self, of, node):
        try:
            n = ast.literal_eval(node.slice)
        except ValueError:
            return of.of[0] if of.of and all(t == of.of[0] for t in of.of) else None
        if not isinstance(n, int):
            self.refuse(node, f"a tuple is indexed by a {type(n).__name__}", "an int is wanted")
        if not -len(of.of) <= n < len(of.of):
            self.refuse(node, f"item {n} of a tuple of {len(of.of)} is asked for")
        return of.of[n]

    def slice_of(self, of, node):
        try:
            return Type(
                "Tuple", of.of[slice(*(p and ast.literal_eval(p) for p in (node.lower, node.upper, node.step)))]
            )
        except (ValueError, TypeError):
            return None

    def inside(self, node, value):
        """The type of value(), with the names of a comprehension."""
        kept = self.env
        self.env = self.env.copy()
        for g in node.generators:
            self.assign_loop(g.target, g.iter)
            for test in g.ifs:
                self.truth(test)
                self.refine(test, True)
        try:
            return value()
        finally:
            self.env = kept

    def of_ListComp(self, node, hint=None):
        inner = members.part_of(hint, "List")
        found = self.inside(node, lambda: self.type(node.elt, inner))
        if not fits(found, inner):
            self.refuse(node.elt, f"a {said(found)} stands in a List of {said(inner)}")
        return list_of(inner or found)

    of_GeneratorExp = of_ListComp

    def of_DictComp(self, node, hint=None):
        inner = [t for t in options(hint) if t.name == "Dict"]
        key, value = self.inside(node, lambda: (self.type(node.key), self.type(node.value)))
        if inner and not (fits(key, inner[0].of[0]) and fits(value, inner[0].of[1])):
            self.refuse(node, f"a Dict of {said(key)} and {said(value)} stands where {said(inner[0])} is said")
        return inner[0] if inner else dict_of(key, value)

    def outside(self, node):
        """What stands outside of the function, if the expression is that."""
        at = node
        while isinstance(at, ast.Attribute):
            at = at.value
        if not isinstance(at, ast.Name) or at.id in self.env.names or at.id in self.locals:
            return None
        found = self.look(node)
        return found.value if isinstance(found, Known) else None

    # What a condition says of the names in it.
    def decided(self, test):
        """Is the condition known now?"""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.decided(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            stops = isinstance(test.op, ast.Or)
            parts = [self.decided(v) for v in test.values]
            return stops if stops in parts else None if None in parts else not stops
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
            if isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None:
                of = self.none_of(test.left)
                return None if of is None else of == isinstance(test.ops[0], ast.Is)
            return None
        if isinstance(test, ast.Attribute):
            return self.constant(test)
        if isinstance(test, ast.Name):
            value = self.outside(test)
            return value if isinstance(value, bool) else None
        if isinstance(test, ast.Call):
            f = self.outside(test.func)
            if f is jit.is_scripting:
                return True
            if f is jit.is_tracing:
                return False
            if f in (isinstance, jit.isinstance) and len(test.args) == 2:
                return self.is_of(test)
        return None

    def constant(self, node):
        """A bool that the class says to be constant: True, False, or None where it is none of that."""
        own = isinstance(node.value, ast.Name) and node.value.id == self.self_name and self.owner is not None
        if not own or not issubclass(self.owner, Module):
            return None
        final = typing.get_origin(members.class_hints(self.owner).get(node.attr)) is typing.Final
        if not final and node.attr not in getattr(self.owner, "__constants__", ()):
            return None
        found = {members.held(m, node.attr) for m in self.unit.modules if type(m) is self.owner}
        value = found.pop() if len(found) == 1 else ()
        return value[0] if value and isinstance(value[0], bool) else None

    def none_of(self, node):
        """Is it None? True, False, or None where that is not known."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self.self_name:
            if self.owner is not None and issubclass(self.owner, Module):
                held = [members.held(m, node.attr) for m in self.unit.modules if type(m) is self.owner]
                if held and all(held) and members.class_hints(self.owner).get(node.attr) is None:
                    none = {h[0] is None for h in held}
                    return none.pop() if len(none) == 1 else None
            return None
        of = self.type(node)
        return True if of == NONE else None if of is None or may_be_none(of) or of.name == "Any" else False

    def wanted(self, node):
        """The type that isinstance asks for."""
        if isinstance(node, ast.Tuple):
            return union(self.wanted(e) for e in node.elts)
        value = self.evaluated(node)
        if isinstance(value, tuple):
            parts = [typed(v) if not _plain_bare(v) else None for v in value]
            return union(parts)
        return None if value is None and not _is_none(node) or _plain_bare(value) else self.annotation(node, value)

    def is_of(self, call):
        of, wanted = self.type(call.args[0]), self.wanted(call.args[1])
        if of is None or wanted is None:
            return None
        each = []
        for o in options(of):
            answers = {_is_one(o, w) for w in options(wanted)}
            each.append(True if True in answers else None if None in answers else False)
        return each[0] if len({*each}) == 1 else None

    def refine(self, test, holds):
        """What is known of names where the condition holds, or does not."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.refine(test.operand, not holds)
        elif isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) == holds:
                for v in test.values:
                    self.refine(v, holds)
        elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name):
            op, right = test.ops[0], test.comparators[0]
            of = self.env.names.get(test.left.id)
            if _is_none(right) and isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) and of is not None:
                none = isinstance(op, (ast.Is, ast.Eq)) == holds
                self.env.names[test.left.id] = NONE if none and may_be_none(of) else without_none(of)
        elif isinstance(test, ast.Name) and holds and may_be_none(self.env.names.get(test.id)):
            self.env.names[test.id] = without_none(self.env.names[test.id])
        elif isinstance(test, ast.Call) and len(test.args) == 2 and isinstance(test.args[0], ast.Name):
            if self.outside(test.func) in (isinstance, jit.isinstance) and test.args[0].id in self.env.names:
                self.narrow(test.args[0].id, self.wanted(test.args[1]), holds)

    def narrow(self, name, wanted, holds):
        of = self.env.names[name]
        if holds:
            self.env.names[name] = wanted
        elif of is not None and wanted is not None and of.name == "Union":
            rest = [t for t in of.of if not fits(t, wanted)]
            self.env.names[name] = union(rest) if rest else None


_HINTED = ("of_List", "of_Tuple", "of_Dict", "of_ListComp", "of_DictComp", "of_IfExp", "of_Call")


def _is_one(of, wanted):
    """Is a value of the first type one of the second? None: some are, or it is not known."""
    if wanted.python is not None:
        cls = adjoin.Tensor if of == TENSOR else PYTHON.get(of.name, of.python)
        return None if cls is None else issubclass(cls, wanted.python)
    if of.python is not None or (of == BOOL and wanted == INT):
        return None
    return True if fits(of, wanted) else None if fits(wanted, of) or of.name == wanted.name else False


def _plain_bare(value):
    return value in (list, tuple, dict) if isinstance(value, typing.Hashable) else False


def _is_none(node):
    return isinstance(node, ast.Constant) and node.value is None


def _has_hints(cls):
    try:
        return bool(typing.get_type_hints(cls))
    except Exception:
        return False


def maybe(of, node, what):
    return f"'{ast.unparse(node)}' {what}, and it may be None: it is {said(of)}", "ask 'is not None' before"
