"""core/ops/opgen_formula.py: a formula of a row, a Python expression, as C++; every name in it is checked."""

import ast
import difflib
import json

from opgen_rows import CPP, RESERVED, words

DTYPES = {"bool": "boolean"} | {
    d: d
    for d in words(
        "uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
    )
}
CONSTANTS = {
    "inf": "std::numeric_limits<double>::infinity()",
    "nan": "std::numeric_limits<double>::quiet_NaN()",
    "pi": "3.141592653589793",
}
PROPS = {
    "shape": "ints",
    "ndim": "int",
    "numel": "int",
    "dtype": "dtype",
    "device": "device",
    "is_complex": "bool",
    "is_floating": "bool",
}
BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
CALLS = {
    ast.Pow: "pow",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}
COMPARE = {
    ast.Eq: ("eq", "=="),
    ast.NotEq: ("ne", "!="),
    ast.Lt: ("lt", "<"),
    ast.LtE: ("le", "<="),
    ast.Gt: ("gt", ">"),
    ast.GtE: ("ge", ">="),
}
TENSORS = ("Tensor", "Operand")


def accepts(p, given):
    want = p.type.removesuffix("?")
    if given == "none":
        return p.optional
    given_type = given.removesuffix("?") if p.type.endswith("?") else given
    return given_type in {
        "Tensor": TENSORS,
        "Operand": (*TENSORS, "Scalar", "int", "float", "bool"),
        "Scalar": ("Scalar", "int", "float", "bool"),
        "float": ("float", "int"),
        "ints": ("ints", "int", "list"),
    }.get(want, (want,)) or (want in ("Tensor[]", "bools", "floats") and given_type == "list")


class Formula:
    """One expression of a row as C++. `whole` names tensors that are at hand; of others only properties are."""

    def __init__(self, rows, row, text, scope, whole, like):
        self.rows, self.row, self.text, self.scope, self.whole, self.like = rows, row, text, scope, whole, like
        self.used, self.props, self.temps = set(), set(), {}
        try:
            self.tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as e:
            self.fail(f"cannot read the formula: {e.msg}")

    def fail(self, message):
        self.row.fail(message, self.text)

    def compile(self, node):
        """Code and type of a node."""
        key = ast.dump(node)
        if key in self.temps:
            return self.temps[key]
        method = getattr(self, "do_" + type(node).__name__, None)
        if not method:
            self.fail(f"a formula cannot have '{ast.unparse(node)}'")
        return method(node)

    def do_Constant(self, node):
        v = node.value
        if v is None:
            return "{}", "none"
        if isinstance(v, bool):
            return str(v).lower(), "bool"
        if isinstance(v, complex):
            return f"std::complex<double>(0, {v.imag!r})", "Scalar"
        return (json.dumps(v), "str") if isinstance(v, str) else (repr(v), type(v).__name__)

    def do_Name(self, node):
        name = node.id
        if name in self.scope:
            self.used.add(name)
            return name + "_" * (name in RESERVED), self.scope[name]
        if name in DTYPES:
            return "adjoin::" + DTYPES[name], "dtype"
        if name in CONSTANTS:
            return CONSTANTS[name], "float"
        close = difflib.get_close_matches(name, self.scope, n=1)
        self.fail(
            f"the formula names '{name}', which is neither an argument nor a result"
            + (f"; did you mean '{close[0]}'?" if close else "")
        )

    def do_Attribute(self, node):
        prop = node.attr
        if prop not in PROPS:
            self.fail(f"no property '{prop}'; there are {', '.join(PROPS)}, size(d)")
        if isinstance(node.value, ast.Name) and node.value.id in self.scope and node.value.id not in self.whole:
            name = node.value.id
            if self.scope[name] not in TENSORS:
                self.fail(f"'{name}' is no tensor, it has no {prop}")
            what = {"ndim": "shape", "numel": "shape", "is_complex": "dtype", "is_floating": "dtype"}.get(prop, prop)
            self.props.add((name, what))
            var = f"{name}_{what}"
            code = {
                "ndim": f"int64_t({var}.size())",
                "numel": f"kit::count({var})",
                "is_complex": f"kit::is_complex_dtype({var})",
                "is_floating": f"kit::is_floating_dtype({var})",
            }
            return code.get(prop, var), PROPS[prop]
        code, kind = self.compile(node.value)
        if kind not in TENSORS:
            self.fail(f"'{ast.unparse(node.value)}' is no tensor, it has no {prop}")
        if kind == "Operand" and prop != "shape":
            code += ".tensor()"
        return f"{code}.{'is_floating_point' if prop == 'is_floating' else prop}()", PROPS[prop]

    def do_Subscript(self, node):
        code, kind = self.compile(node.value)
        index, index_type = self.compile(node.slice)
        if kind == "ints" and index_type == "int":
            return f"kit::size_at({code}, {index})", "int"
        if isinstance(kind, tuple) and isinstance(node.slice, ast.Constant):
            return f"std::get<{index}>({code})", kind[node.slice.value]
        self.fail(f"cannot index '{ast.unparse(node.value)}' in a formula")

    def do_List(self, node):
        return "{" + ", ".join(self.compile(e)[0] for e in node.elts) + "}", "list"

    def do_UnaryOp(self, node):
        code, kind = self.compile(node.operand)
        if isinstance(node.op, ast.Not):
            if kind in TENSORS:
                self.fail("'not' is for arguments that are no tensors; use logical_not")
            return f"!{code}", "bool"
        if not isinstance(node.op, ast.USub):
            self.fail(f"a formula cannot have '{ast.unparse(node)}'")
        return f"-{code}", kind

    def do_BinOp(self, node):
        (a, ta), (b, tb) = self.compile(node.left), self.compile(node.right)
        op = type(node.op)
        if ta in TENSORS or tb in TENSORS:
            for side, kind in ((node.left, ta), (node.right, tb)):
                if kind not in (*TENSORS, "Scalar", "int", "float", "bool"):
                    self.fail(f"'{ast.unparse(side)}' is no operand")
            if "Tensor" not in (ta, tb) and ({ta, tb} != {"Operand"} or ast.dump(node.left) == ast.dump(node.right)):
                self.fail(f"'{ast.unparse(node)}' may be one of two numbers; begin with a tensor, such as g")
            return (f"({a} {BINARY[op]} {b})" if op in BINARY else f"adjoin::{CALLS[op]}({a}, {b})"), "Tensor"
        numbers = ("Scalar", "float", "int", "bool")
        if ta not in numbers or tb not in numbers or op not in (*BINARY, ast.FloorDiv):
            self.fail(f"'{ast.unparse(node)}' is no arithmetic of numbers")
        kind = numbers[min(numbers.index(ta), numbers.index(tb), 1 if op is ast.Div else 2)]
        if kind == "Scalar":
            return f"(Scalar({a}) {BINARY[op]} Scalar({b}))", kind
        return f"({f'double({a})' if op is ast.Div else a} {BINARY.get(op, '/')} {b})", kind

    def do_Compare(self, node):
        if len(node.ops) != 1:
            self.fail("a comparison has two sides in a formula")
        (a, ta), op, right = self.compile(node.left), node.ops[0], node.comparators[0]
        if isinstance(op, (ast.Is, ast.IsNot)):
            given = "defined()" if ta == "Tensor" else "has_value()" if ta.endswith("?") else None
            test = f"{a}.{given}" if given else f"!{a}.is_none()"
            return (test if isinstance(op, ast.IsNot) else f"!{test}".replace("!!", "")), "bool"
        b, tb = self.compile(right)
        name, native = COMPARE[type(op)]
        if ta in TENSORS or tb in TENSORS:
            return f"adjoin::{name}({a}, {b})", "Tensor"
        return f"({a} {native} {b})", "bool"

    def do_BoolOp(self, node):
        word = " && " if isinstance(node.op, ast.And) else " || "
        return "(" + word.join(self.compile(v)[0] for v in node.values) + ")", "bool"

    def do_IfExp(self, node):
        test, kind = self.compile(node.test)
        if kind in TENSORS:
            self.fail("the test of 'A if test else B' may look only at arguments that are no tensors; use where()")
        (a, ta), (b, tb) = self.compile(node.body), self.compile(node.orelse)
        a, ta = ("Tensor()", tb) if ta == "none" and tb == "Tensor" else (a, ta)
        b, tb = ("Tensor()", ta) if tb == "none" and ta == "Tensor" else (b, tb)
        if ta != tb and {ta, tb} != {"int", "float"}:
            self.fail(f"both sides of 'A if test else B' must be of one type, not {ta} and {tb}")
        return f"({test} ? {a} : {b})", ta

    def do_Tuple(self, node):
        done = [self.compile(e) for e in node.elts]
        return f"std::make_tuple({', '.join(c for c, _ in done)})", tuple(t for _, t in done)

    def do_Call(self, node):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "size" and len(node.args) == 1:
            shape, _ = self.do_Attribute(ast.Attribute(node.func.value, "shape"))
            return f"kit::size_at({shape}, {self.compile(node.args[0])[0]})", "int"
        name = ast.unparse(node.func).replace(".", "::")
        if name == "conj" and len(node.args) == 1:
            code, kind = self.compile(node.args[0])
            return (f"kit::conj({code})", kind) if kind in (*TENSORS, "Scalar") else (code, kind)
        found = [r for s in ("", "nn::", "_::") for r in self.rows.get(s + name, []) if "python-only" not in r.tags]
        if not found:
            close = difflib.get_close_matches(name, [n.rpartition("::")[2] for n in self.rows], n=1)
            self.fail(
                f"the formula calls '{name}', which is not an op" + (f"; did you mean '{close[0]}'?" if close else "")
            )
        args = [(ast.unparse(a), *self.compile(a)) for a in node.args]
        named = {k.arg: (ast.unparse(k.value), *self.compile(k.value)) for k in node.keywords}
        if "like" in named:
            text, code, kind = named.pop("like")
            for prop in ("dtype", "device"):
                at = ast.parse(f"({text}).{prop}", mode="eval").body
                named[prop] = (text, *self.do_Attribute(at))
        why = ""
        for row in found:
            bound, why = self.bind(row, args, named)
            if bound is not None:
                return f"{row.cpp}{'_' * self.fresh(row, node)}({', '.join(bound)})", result_type(row)
        self.fail(f"{name}: {why}")

    def fresh(self, row, node):
        """Is the first argument made by the call itself, of zeros? Then it is written in place, not copied."""
        made = node.args[0] if node.args else None
        written = row.has_in_place_form and row.name + "_" not in self.rows
        return written and isinstance(made, ast.Call) and ast.unparse(made.func) == "zeros"

    def bind(self, row, args, named):
        """C++ arguments of a call, or None and the reason."""
        places = [p for p in row.params if not p.keyword]
        if len(args) > len(places):
            return None, f"{len(args)} arguments are given, it takes {len(places)}"
        given = {p.name: a for p, a in zip(places, args)}
        for key, value in named.items():
            if key in given or not any(p.name == key for p in row.params):
                return None, f"'{key}' is given twice or is no parameter of it"
            given[key] = value
        bound, last = [], 0
        for i, p in enumerate(row.params):
            if p.name not in given:
                if p.default is None:
                    return None, f"'{p.name}' is missing"
                bound.append(p.cpp_type[6:-1] + "()" if p.cpp_default == "{}" else p.cpp_default)
                continue
            text, code, kind = given[p.name]
            if not accepts(p, kind):
                return None, f"'{text}' is {kind}, '{p.name}' wants {p.type}"
            if p.type == "Tensor" and kind == "Operand":
                code = f"kit::as_tensor({code}, {self.like})"
            if (p.type == "Operand" and kind not in TENSORS) or (p.type == "Scalar" and kind != "Scalar"):
                code = f"{p.type}({code})"  # so that C++ finds the overload that was meant
            if kind == "list":
                code = f"{CPP[p.type][6:-1]}{'(nullptr, 0)' if code == '{}' else code}"  # {} would be None
            if kind == "none":
                code = "std::nullopt" if p.type.endswith("?") else f"{CPP[p.type.removesuffix('?')][6:-1]}()"
            bound.append(code)
            last = i + 1
        return bound[:last], ""


def result_type(row):
    types = tuple(r.type for r in row.results)
    return types[0] if len(types) == 1 else types


def repeated(trees):
    """Calls and operators that occur twice outside of branches: evaluated once, inner ones first."""
    count, order = {}, []

    def walk(node, parent):
        key = ast.dump(node)
        if isinstance(node, (ast.Call, ast.BinOp)):
            count[key] = count.get(key, 0) + 1
            if count[key] == 1:
                for child in ast.iter_child_nodes(node):
                    walk(child, node)
                order.append((key, node))
            return
        if isinstance(node, ast.IfExp):
            return
        for child in ast.iter_child_nodes(node):
            walk(child, node)

    for tree in trees:
        walk(tree, None)
    return [(k, n) for k, n in order if count[k] > 1]
