"""adjoin.jit._script.check.flow: a function is followed from its begin to its end: which names have a value, and of which type."""

import ast

from .... import jit
from ....nn.modules.module import Module
from ..kinds import hints_of
from .known import FLOAT, INT, NONE, NUMBERS, Type, bare, fits, joined, may_be_none, options, said
from .values import Values


class Names:
    """What is known at a place: types of names; why those that some way lacks have none; whether this place is never reached."""

    def __init__(self, names=None, missing=None, ended=False):
        self.names, self.missing, self.ended = dict(names or {}), dict(missing or {}), ended

    def copy(self):
        return Names(self.names, self.missing, self.ended)


class Flow(Values):
    def __init__(self, unit, function, tree, place, owner, seen, local):
        self.unit, self.function, self.tree, self.place, self.owner, self.seen = (
            unit,
            function,
            tree,
            place,
            owner,
            seen,
        )
        self.locals = local
        params = [*tree.args.posonlyargs, *tree.args.args]
        self.self_name = params[0].arg if owner is not None and params else None
        self.hints = hints_of(function, seen)
        self.env, self.gives, self.said_gives = Names(), [], False
        self.declared, self.fixed = {}, None
        self.attributes = {}  # that __init__ gives to self
        self.wild = set()  # names whose first value stands in a loop
        self.depth, self.loose = 0, False  # loose: a value of any type is wanted

    def run(self):
        """Follows the function; gives the type of its result."""
        a = self.tree.args
        for p in [*a.posonlyargs, *a.args, *a.kwonlyargs]:
            if p.arg in self.hints:
                t = self.annotation(p, self.hints[p.arg])
            else:
                t = None
            self.env.names[p.arg] = t
        for p in filter(None, (a.vararg, a.kwarg)):
            self.env.names[p.arg] = None
        wanted, self.said_gives = None, "return" in self.hints
        if self.said_gives:
            wanted = self.annotation(self.tree, self.hints["return"])
        self.wanted_result = wanted
        self.block(self.tree.body)
        if not self.env.ended:
            if wanted is not None and wanted != NONE and not may_be_none(wanted) and not _is_stub(self.tree):
                self.refuse(
                    self.tree, f"the function gives a {said(wanted)}, and a way through it ends without return",
                    "return a value, or raise",
                )  # fmt: skip
            if not self.said_gives:
                self.result(NONE, self.tree)
        return wanted if self.said_gives else self.gives[0] if self.gives else NONE

    def block(self, statements):
        for s in statements:
            if self.env.ended:
                return
            method = getattr(self, "do_" + type(s).__name__, None)
            if method is not None:
                method(s)

    def do_Expr(self, node):
        self.type(node.value)

    def do_Return(self, node):
        self.loose = self.said_gives and self.wanted_result is None
        t = NONE if node.value is None else self.type(node.value, self.wanted_result)
        self.loose = False
        self.result(t, node)
        self.env.ended = True

    def result(self, t, node):
        wanted = self.wanted_result
        if self.said_gives:
            if not fits(t, wanted) and not (t in NUMBERS and wanted in NUMBERS and t.name != "complex"):
                self.refuse(node, f"the function gives a {said(wanted)}, and a {said(t)} is returned")
            return
        if self.gives:
            t, well = joined(self.gives[0], t)
            if not well:
                self.refuse(
                    node, f"a {said(self.gives[0])} is returned before, and another type here", "return one type"
                )
        self.gives = [t]

    # Assignments.
    def do_Assign(self, node):
        hint = None
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            hint = self.outer(node.targets[0].id)
        elif len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
            hint = self.attribute_hint(node.targets[0])
        t = self.type(node.value, hint)
        for target in node.targets:
            self.assign(target, t, node)

    def outer(self, name):
        """The type that a name has outside of the blocks that are being followed."""
        return self.fixed.get(name) if self.fixed else None

    def assign(self, target, t, node):
        if isinstance(target, ast.Name):
            # A name may become another type where it stands; not in a block that other ways pass by.
            wanted = self.declared.get(target.id) if isinstance(node, ast.AnnAssign) or self.fixed else None
            before = wanted if wanted is not None else self.outer(target.id)
            if before is not None and before != NONE:
                self.assigned_to(before, t, node, f"'{target.id}'")
                if t == NONE:
                    t = before
                elif t is not None and t.name in (
                    "List",
                    "Tuple",
                ):  # an empty one, or one that becomes a list, is of the type that is wanted
                    t = next((o for o in options(before) if o.name == "List"), before if t.name == "List" else t)
                elif t is not None and wanted is not None and (wanted.name != "Union" or t.name == "Union"):
                    t = wanted
            self.env.names[target.id] = t
            self.env.missing.pop(target.id, None)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.take_apart(target, t, node)
        elif isinstance(target, ast.Subscript):
            self.put_item(target, t)
        elif isinstance(target, ast.Attribute):
            wanted = self.attribute_hint(target)
            if wanted is not None:
                self.assigned_to(wanted, t, node, f"'{ast.unparse(target)}'")
            self.own(target, t)

    def own(self, target, t):
        """An attribute that self gets in __init__."""
        if isinstance(target.value, ast.Name) and target.value.id == self.self_name:
            known = self.attributes.get(target.attr, t)
            self.attributes[target.attr] = t if known == t else None

    def assigned_to(self, wanted, t, node, what):
        if t is not None and t.name == "Tuple" and any(o.name == "List" for o in options(wanted)):
            return
        if not fits(t, wanted) and not (t in (INT, FLOAT) and wanted in (INT, FLOAT) and what.startswith("'self.")):
            self.refuse(node, f"{what} is a {said(wanted)}, and a {said(t)} is given to it", "use another name")

    def take_apart(self, target, t, node):
        star = any(isinstance(e, ast.Starred) for e in target.elts)
        if t is not None and t in NUMBERS:
            self.refuse(node, f"a {said(t)} is no {len(target.elts)} values")
        if t is not None and t.name == "Tuple":
            n = len(target.elts)
            if not star and len(t.of) != n or len(t.of) < n - 1:
                self.refuse(node, f"a tuple of {len(t.of)} becomes {n} names")
        parts = t.of if t is not None and t.name == "Tuple" and not star else [self.element(t)] * len(target.elts)
        for e, p in zip(target.elts, parts, strict=True):
            self.assign(e.value if isinstance(e, ast.Starred) else e, None if isinstance(e, ast.Starred) else p, node)

    def put_item(self, target, t):
        of = self.sure(target.value, "is indexed")
        at = None if isinstance(target.slice, ast.Slice) else self.type(target.slice)
        if of is None:
            return
        if of.name in ("Tuple", "str") or of in NUMBERS:
            self.refuse(target, f"an item of a {said(of)} is set", "make a new one")
        if of.name == "Dict" and not (fits(at, of.of[0]) and fits(t, of.of[1])):
            self.refuse(target, f"a {said(at)} with a {said(t)} is put into a {said(of)}")
        if of.name == "List" and not isinstance(target.slice, ast.Slice) and not fits(t, of.of[0]):
            self.refuse(target, f"a {said(t)} is put into a {said(of)}")

    def attribute_hint(self, target):
        """The type of an attribute that is set."""
        of = target.value
        own = isinstance(of, ast.Name) and of.id == self.self_name and self.owner is not None
        if own and issubclass(self.owner, Module):
            return self.own_attribute(target)
        if own and self.function.__name__ == "__init__":
            return None
        t = Type(self.owner.__name__, (), self.owner) if own else self.type(of)
        if t is not None and t.python is not None and not hasattr(t.python, "_fields"):
            return self.of_instance(t, target)
        return None

    def do_AnnAssign(self, node):
        if isinstance(node.target, ast.Name):
            value = self.evaluated(node.annotation)
            wanted = self.annotation(node, value)
            if (
                node.target.id in self.declared
                and self.declared[node.target.id] != wanted
                or self.outer(node.target.id)
            ):
                self.refuse(node, f"'{node.target.id}' has a type already", "annotate the first assignment")
            self.declared[node.target.id] = wanted
            if node.value is not None:
                self.loose = wanted is None
                self.assign(node.target, self.type(node.value, wanted), node)
                self.loose = False
        elif isinstance(node.target, ast.Attribute):
            if bare(self.evaluated(node.annotation)):
                self.annotation(node, self.evaluated(node.annotation))
            own = isinstance(node.target.value, ast.Name) and node.target.value.id == self.self_name
            if own and self.owner is not None and self.function.__name__ != "__init__":
                self.refuse(node, "an attribute is annotated outside of __init__", "annotate it there, or in the class")
            if node.value is not None:
                wanted = self.annotation(node, self.evaluated(node.annotation))
                self.own(node.target, wanted)
                self.assigned_to(wanted, self.type(node.value, wanted), node, f"'{ast.unparse(node.target)}'")

    def do_AugAssign(self, node):
        if isinstance(node.target, ast.Name):
            a, b = self.sure(node.target, "is changed"), self.sure(node.value, "is computed with")
            if a is not None and a.name == "List" and isinstance(node.op, ast.Add):
                return
            self.assign(node.target, self.computed(node.op, a, b, node), node)
        else:
            a, b = self.type(node.target), self.type(node.value)
            if not (a is not None and a.name == "List"):
                self.computed(node.op, a, b, node)

    def do_Delete(self, node):
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.type(target)
                self.env.names.pop(target.id, None)
                self.env.missing[target.id] = f"'{target.id}' was deleted"
            elif isinstance(target, ast.Subscript):
                self.sure(target.value, "is indexed")

    # Ways.
    def nested(self, statements, test=None, holds=True, loose=False):
        """The names after a block, which other ways pass by."""
        kept, fixed = self.env, self.fixed
        if not loose:
            self.fixed = {**(fixed or {}), **{k: t for k, t in kept.names.items() if t is not None}}
        self.env = kept.copy()
        if test is not None:
            self.refine(test, holds)
        self.block(statements)
        after, self.env, self.fixed = self.env, kept, fixed
        return after

    def do_If(self, node):
        decided = self.decided(node.test)
        if decided is None and isinstance(node.test, ast.Constant):
            decided = bool(node.test.value)
        if decided is not None:
            self.block(node.body if decided else node.orelse)
            return
        self.truth(node.test)
        loose = self.asks_an_unknown(node.test)
        one = self.nested(node.body, node.test, True, loose)
        other = self.nested(node.orelse, node.test, False, loose)
        self.env = self.merged(one, other, node, loose)

    def asks_an_unknown(self, test):
        """isinstance() of what has no type here: one way is taken for each type, and the other is not there."""
        return any(
            isinstance(n, ast.Call)
            and len(n.args) == 2
            and self.outside(n.func) in (isinstance, jit.isinstance)
            and self.type(n.args[0]) is None
            for n in ast.walk(test)
        )

    def merged(self, one, other, node, loose=False):
        if one.ended:
            return other
        if other.ended:
            return one
        out = Names()
        for name in {**one.names, **other.names}:
            if name in one.names and name in other.names:
                t, well = joined(one.names[name], other.names[name])
                if well or loose:
                    out.names[name] = t if well else None
                else:
                    before = self.declared.get(name, self.env.names.get(name))
                    if before is not None and before.name == "Union":
                        out.names[name] = before
                        continue
                    both = f"a {said(one.names[name])} on one way and a {said(other.names[name])} on the other"
                    out.missing[name] = f"'{name}' is {both} of line {self.line(node)}"
            elif loose:
                out.names[name] = None
            else:
                side = "where the condition does not hold" if name in one.names else "where the condition holds"
                out.missing[name] = f"'{name}' has no value {side}, in line {self.line(node)}"
        for name, why in {**one.missing, **other.missing}.items():
            out.missing.setdefault(name, why)
            out.names.pop(name, None)
        return out

    def line(self, node):
        return self.place.line(node).partition(" ")[0].rpartition(":")[2]

    def loop(self, node, before=lambda: None):
        """A loop: its names may have no value after it, and what had one before may have another."""
        parts = [*node.body, *([node.target] if isinstance(node, ast.For) else [])]
        changed = {n.id for s in parts for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        kept, fixed = self.env, self.fixed
        self.fixed = {**(fixed or {}), **{k: t for k, t in kept.names.items() if t is not None}}
        inside = self.env = kept.copy()
        for name in changed:
            if may_be_none(kept.names.get(name)) or kept.names.get(name) == NONE:
                inside.names[name] = None  # it may be something else in the next turn
        self.wild |= changed
        before()
        self.depth += 1
        self.block(node.body)
        self.depth -= 1
        after, self.env, self.fixed = self.env, kept, fixed
        for name in changed:
            if name not in kept.names:
                kept.missing.pop(name, None)
                kept.names[name] = None
            else:
                t, well = joined(kept.names[name], after.names.get(name))
                kept.names[name] = (
                    t if well and after.names.get(name) is not None else kept.names[name] if well else None
                )
        return after

    def do_For(self, node):
        self.loop(node, lambda: self.assign_loop(node.target, node.iter))

    def assign_loop(self, target, over):
        of = self.type(over)
        if of is not None:
            if may_be_none(of) or of in NUMBERS or of == NONE:
                self.refuse(
                    over, f"a loop walks over a {said(of)}", "ask 'is not None' before" if may_be_none(of) else ""
                )
        self.bind(target, self.element(of))

    def bind(self, target, t):
        """Names of a loop, which hide those outside."""
        if isinstance(target, ast.Name):
            self.env.names[target.id] = t
            self.env.missing.pop(target.id, None)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = t.of if t is not None and t.name == "Tuple" and len(t.of) == len(target.elts) else None
            if (
                t is not None
                and t.name == "Tuple"
                and parts is None
                and not any(isinstance(e, ast.Starred) for e in target.elts)
            ):
                self.refuse(target, f"a tuple of {len(t.of)} becomes {len(target.elts)} names")
            for i, e in enumerate(target.elts):
                self.bind(e.value if isinstance(e, ast.Starred) else e, parts[i] if parts else None)

    def do_While(self, node):
        self.truth(node.test)
        self.loop(node, lambda: self.refine(node.test, True))
        if isinstance(node.test, ast.Constant) and node.test.value and not _leaves(node.body):
            self.env.ended = True

    def do_Break(self, node):
        if not self.depth:
            self.refuse(node, "'break' stands outside of a loop")
        self.env.ended = True

    def do_Continue(self, node):
        if not self.depth:
            self.refuse(node, "'continue' stands outside of a loop")
        self.env.ended = True

    def do_Raise(self, node):
        for a in getattr(node.exc, "args", ()):
            self.type(a)
        self.env.ended = True

    def do_Assert(self, node):
        self.truth(node.test)
        self.refine(node.test, True)

    def do_With(self, node):
        for item in node.items:
            found = self.type(item.context_expr)
            if isinstance(item.optional_vars, ast.Name):
                method = getattr(found.python, "__enter__", None) if found is not None and found.python else None
                t = self.unit.types_of.result(method, found.python) if method is not None else None
                self.assign(item.optional_vars, t, node)
        self.block(node.body)


def _leaves(body):
    """Is there a break of this loop?"""
    for s in body:
        if isinstance(s, ast.Break):
            return True
        if isinstance(s, (ast.For, ast.While)):
            continue
        if any(_leaves(getattr(s, part, [])) for part in ("body", "orelse")):
            return True
    return False


def _is_stub(tree):
    """A body that is a docstring, pass or ..."""
    return all(
        isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)) for s in tree.body
    )
