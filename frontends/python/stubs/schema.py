"""frontends/python/stubs/schema.py: from the schema of an op to the signature that a type checker reads."""

import keyword
import re

NUMBER = "_Number"
TYPES = {
    "Tensor": "Tensor", "Operand": f"Tensor | {NUMBER}", "Scalar": NUMBER, "int": "builtins.int",
    "float": "builtins.float", "bool": "builtins.bool", "str": "builtins.str", "dim": "builtins.int", "size": "builtins.int",
    "dtype": "_dtype", "device": "_Device", "layout": "_layout", "memory_format": "_memory_format", "Generator": "Generator",
}  # fmt: skip
RESULT = re.compile(r"^(.*?)\((.*)\) -> (.*)$", re.S)


def split_top(text):
    """At commas outside brackets and quotes."""
    parts, depth, quoted, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quoted:
            quoted = "" if c == quoted else quoted
        elif c in "'\"":
            quoted = c
        elif c in "([<{":
            depth += 1
        elif c in ")]>}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [p for p in parts if p]


def type_of(text, result=False):
    """`Tensor<int64>(a!)[]?`, `int[2]`, `size[]`."""
    base = re.match(r"\w+", text)[0]
    rest = re.sub(r"<[^>]*>|\([^)]*\)", "", text[len(base) :])
    optional = rest.endswith("?")
    plain = TYPES.get(base, "Any")
    listed = re.search(r"\[(\d*)\]", rest)
    if listed:
        inner = f"{plain} | None" if rest.startswith("?") else plain
        many = f"tuple[{inner}, ...]" if result else f"Sequence[{inner}]"
        single = base in ("int", "dim", "size", "float", "bool") and not result
        plain = f"{plain} | {many}" if single else many
    return f"{plain} | None" if optional else plain


class Param:
    def __init__(self, text):
        declared, _, self.default = text.partition("=")
        kind, _, name = declared.strip().rpartition(" ")
        self.name = name + "_" * keyword.iskeyword(name)
        self.sizes = re.match(r"(int|dim|size)\[\]", kind) is not None
        self.tensor = kind.startswith(("Tensor", "Operand")) and "[]" not in kind
        self.type = type_of(kind)

    def __str__(self):
        simple = re.fullmatch(r"-?[\d.]+(e-?\d+)?|True|False|None|'[^']*'", self.default)
        return f"{self.name}: {self.type}" + (f" = {self.default if simple else '...'}" if self.default else "")


def result_of(text, names):
    """names: makes a class for results that have names, and returns what it is called."""
    if not text.startswith("("):
        return type_of(text, result=True)
    parts = [p for p in split_top(text[1:-1]) if not p.startswith("aux ")]
    if not parts:
        return "None"
    types = [type_of(p.rpartition(" ")[0] or p, result=True) for p in parts]
    fields = [p.rpartition(" ")[2] for p in parts]
    if len(parts) == 1:
        return types[0]
    return names(tuple(zip(fields, types)))


def signatures(schemas, names, method=False, out=False, spread=()):
    """The heads "(self, ...) -> Tensor", one for each way to call."""
    heads = []
    for schema in schemas:
        _, arguments, result = RESULT.match(schema).groups()
        before, star, params = [], False, []
        for part in split_top(arguments):
            if part == "*":
                star = True
                continue
            (params if star else before).append(Param(part))
        if method:  # the tensor that it is called on may stand anywhere
            own = next((p for p in before if p.tensor), None)
            if own is None:
                continue
            before.remove(own)
        for i, p in enumerate(before):  # what follows a default has one
            p.default = p.default or ("..." if any(q.default for q in before[:i]) else "")
        if out and result_of(result, names) == "Tensor":
            params.append(Param("Tensor? out=None"))
        selves = ["self"] * method
        tail = ["*", *map(str, params)] if params else []
        returned = result_of(result, names)
        heads.append(f"({', '.join([*selves, *map(str, before), *tail])}) -> {returned}")
        few = len(before) + method <= 2  # nothing but the tensor stands before: the binder's rule
        if before and (few and before[-1].sizes or before[-1].name in spread):  # ones(2, 3)
            loose = [*selves, *map(str, before[:-1]), f"*{before[-1].name}: builtins.int", *map(str, params)]
            heads.append(f"({', '.join(loose)}) -> {returned}")
    return list(dict.fromkeys(heads))
