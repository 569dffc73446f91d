"""core/ops/opgen_rows.py: reads FAMILY.toml: rows, their schemas, and what each type is called in C++ and Python."""

import json
import os
import pathlib
import re
import tomllib
from dataclasses import dataclass, field


def words(text):
    return text.split()


ROOT = pathlib.Path(__file__).resolve().parents[2]
KEYS = {"def", "doc", "aliases", "kind", "infer", "body", "grad", "test", "tags"}
KINDS = words(
    "unary unary_float unary_bool binary binary_float compare pointwise reduce reduce_float reduce_bool "
    "reduce_index scan view linear custom"
)
NO_INFER = set(KINDS) - {"view", "linear", "custom"}
ELEMENTWISE = {"unary", "unary_float", "binary", "binary_float", "pointwise", "scan"}  # have a form name_ without a tag
OTHER_NAME = "Another name for "
BASES = {
    "Tensor": "Tensor",
    "Operand": "Operand",
    "Scalar": "Scalar",
    "int": "int",
    "dim": "int",
    "size": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "dtype": "dtype",
    "device": "device",
    "layout": "layout",
    "memory_format": "memory_format",
    "Generator": "Generator",
}
LISTS = {"int": "ints", "float": "floats", "bool": "bools", "Tensor": "Tensor[]"}
CPP = {
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "std::string_view",
    "dtype": "DLDataType",
    "device": "DLDevice",
    "layout": "Layout",
    "memory_format": "MemoryFormat",
    "Tensor": "const Tensor&",
    "Operand": "const Operand&",
    "Scalar": "const Scalar&",
    "Generator": "const Generator&",
    "ints": "const Ints&",
    "floats": "const Floats&",
    "bools": "const Bools&",
    "Tensor[]": "const Tensors&",
}
READ = {
    "int": "integer",
    "float": "real",
    "bool": "flag",
    "str": "text",
    "memory_format": "format",
    "Tensor[]": "tensors",
    "Generator": "generator",
}
RESULT = CPP | {"Tensor": "Tensor", "Scalar": "Scalar", "Tensor[]": "std::vector<Tensor>", "str": "std::string"}
PY = {
    "Tensor": "Tensor",
    "Operand": "Tensor | Number",
    "Scalar": "Number",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "ints": "Sequence[int]",
    "floats": "Sequence[float]",
    "bools": "Sequence[bool]",
    "Tensor[]": "Sequence[Tensor]",
    "dtype": "dtype",
    "device": "device | str",
    "layout": "layout",
    "memory_format": "memory_format",
    "Generator": "Generator",
}
RESERVED = set(
    words(
        "bool char double float int long short and or not xor new delete default register signed "
        "unsigned union this template namespace operator private public class const auto switch case"
    )
)


class RowError(Exception):
    pass


@dataclass
class Param:
    name: str
    type: str  # of BASES' or LISTS' values; a trailing "?" where C++ has a std::optional
    base: str
    dtypes: str = ""
    written: bool = False
    optional: bool = False
    default: str | None = None
    keyword: bool = False
    aux: bool = False

    @property
    def tensor(self):
        return self.type in ("Tensor", "Operand", "Tensor[]")

    @property
    def differentiable(self):
        return self.tensor and not self.aux and self.dtypes not in ("int64", "bool", "integral", "int32", "uint8")

    @property
    def cpp_type(self):
        return f"std::optional<{CPP[self.type[:-1]]}>" if self.type.endswith("?") else CPP[self.type]

    @property
    def cpp_default(self):
        d = self.default
        if d == "None":
            return "std::nullopt" if self.type.endswith("?") else "{}"
        if d in ("True", "False"):
            return d.lower()
        if d.startswith("["):
            return "{" + d[1:-1] + "}"
        if self.base in ("dtype", "layout", "memory_format"):
            return {"layout": "Layout::", "memory_format": "MemoryFormat::"}.get(self.base, "") + d
        return '"' + d[1:-1] + '"' if d[0] in "'\"" else d


@dataclass
class Row:
    table: dict
    file: str
    lines: list  # of the block, the first is number `line`
    line: int
    name: str = ""
    params: list = field(default_factory=list)
    results: list = field(default_factory=list)
    alias_of: "Row | None" = None

    def line_of(self, text):
        quoted = [text, json.dumps(text)[1:-1]]
        return self.line + next((i for i, s in enumerate(self.lines) if any(q in s for q in quoted)), 0)

    def fail(self, message, text="def ="):
        raise RowError(f"{self.file}:{self.line_of(text)}: {self.name or '?'}: {message}")

    @property
    def family(self):
        return pathlib.Path(self.file).stem

    @property
    def tags(self):
        return self.table.get("tags", [])

    @property
    def space(self):
        return self.name.rpartition("::")[0]

    @property
    def ident(self):
        return self.name.rpartition("::")[2].partition(".")[0]

    @property
    def cname(self):
        return re.sub(r"\W+", "_", self.name.removeprefix("_::")) + ("_row" if self.ident in RESERVED else "")

    @property
    def cpp(self):  # spaces of C++: nn and the formulas' helpers stand in adjoin itself
        return "adjoin::" + ("" if self.space in ("", "nn", "_") else self.space + "::") + self.ident

    @property
    def hidden(self):
        return self.space == "_" or "internal" in self.tags or "hidden" in self.tags

    @property
    def has_in_place_form(self):
        """A C++ function that writes the result into the first argument."""
        tagged = "in-place" in self.tags and self.params[0].type == "Tensor" and not self.ident.endswith("_")
        return self.in_place or tagged and [r.type for r in self.results] == ["Tensor"]

    @property
    def in_place(self):  # by its kind; ops of other kinds have the tag
        return (
            self.table.get("kind") in ELEMENTWISE
            and bool(self.params)
            and self.params[0].type in ("Tensor", "Operand")
            and not self.ident.endswith("_")
            and not any(p.written for p in self.params)
            and "no-in-place" not in self.tags
        )

    def param(self, name):
        return next((p for p in self.params + self.results if p.name == name), None)


TYPE = re.compile(r"^(aux )?(\w+)(?:<([^>]*)>)?(?:\((\w+)(!?)\))?(\?)?(?:\[(\d*)\])?(\?)?(?: (\w+))?(?:=(.*))?$")


def split_top(text):
    parts, depth, quote, part = [], 0, "", ""
    for c in text:
        quote = ("" if c == quote else quote) if quote else (c if c in "'\"" else "")
        depth += 0 if quote else (c in "([<") - (c in ")]>")
        if c == "," and not depth and not quote:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [p for p in parts + [part.strip()] if p]


def parse_param(row, text, keyword=False, name=None):
    m = TYPE.match(text)
    if not m or m[2] not in BASES:
        row.fail(f"cannot read '{text}' of the schema")
    kind, is_list = BASES[m[2]], m[7] is not None
    if is_list and kind not in LISTS:
        row.fail(f"there are no lists of {m[2]}")
    optional = bool(m[8] or (m[6] and not is_list))
    kind = LISTS[kind] if is_list else kind
    in_band = kind in ("Tensor", "Operand", "Scalar", "Generator") or is_list
    return Param(
        m[9] or name or "",
        kind + ("?" if optional and not in_band else ""),
        m[2],
        m[3] or "",
        m[5] == "!",
        optional,
        m[10],
        keyword,
        bool(m[1]),
    )


def parse_schema(row):
    m = re.match(r"^((?:\w+::)?\w+(?:\.\w+)?)\((.*)\) -> (.*)$", row.table["def"])
    if not m:
        row.fail("the schema is not NAME(PARAMS) -> RESULT")
    row.name, keyword = m[1], False
    for text in split_top(m[2]):
        keyword = keyword or text == "*"
        if text != "*":
            row.params.append(parse_param(row, text, keyword))
            if not row.params[-1].name:
                row.fail(f"the parameter '{text}' has no name")
    results = split_top(m[3][1:-1]) if m[3].startswith("(") else [m[3]]
    row.results = [parse_param(row, r, name="out" if len(results) == 1 else f"out{i}") for i, r in enumerate(results)]


def called_by(row, name):
    """The row of another name of an op: the same schema, and a body that calls the op with what it was given."""
    if not re.fullmatch(r"(\w+::)?[a-zA-Z]\w*", name):
        row.fail(f"the alias '{name}' is not a name", "aliases")
    if len(row.results) != 1 or row.results[0].type not in ("Tensor", "Tensor[]"):
        row.fail("an op with other results than one tensor or one list of tensors has no aliases", "aliases")
    in_place = row.in_place or row.table.get("kind") == "compare" or "in-place" in row.tags
    tags = [
        t
        for t in row.tags
        if t.startswith(("varargs:", "tensor:")) or "::" not in name and (t.endswith("-only") or t == "function:nn")
    ]
    tags += ["in-place"] * (in_place and "::" not in name)  # what stands in a space is no method
    said = row.name.removeprefix("nn::").replace("::", ".")
    given = ", ".join(f"{p.name}={p.name}" if p.keyword else p.name for p in row.params)
    table = {
        "def": name + row.table["def"][len(row.name) :],
        "doc": f"{OTHER_NAME}{row.name.replace('::', '.')}.",
        "body": f"{said}({given})",
        "test": {"same": row.name},
    }
    other = Row(table | {"tags": tags} if tags else table, row.file, row.lines, row.line_of("aliases"), alias_of=row)
    parse_schema(other)
    return other


def load(paths):
    rows = []
    for path in paths:
        path = pathlib.Path(path).resolve()
        label = os.path.relpath(path, ROOT) if path.is_relative_to(ROOT) else str(path)
        text = path.read_text(encoding="utf-8")
        try:
            tables = tomllib.loads(text).get("op", [])
        except tomllib.TOMLDecodeError as e:
            raise RowError(f"{label}: {e}") from None
        lines = text.split("\n")
        starts = [i for i, s in enumerate(lines) if s.startswith("[[op]]")] + [len(lines)]
        for table, begin, end in zip(tables, starts, starts[1:]):
            row = Row(table, label, lines[begin:end], begin + 1)
            if "def" not in table:
                row.fail("the row has no 'def'", "[[op]]")
            parse_schema(row)
            for key in table.keys() - KEYS:
                row.fail(f"'{key}' is not a key of a row; there are {', '.join(sorted(KEYS))}", key)
            if table.get("kind", "custom") not in KINDS:
                row.fail(f"no kind '{table['kind']}'", "kind =")
            if not table.get("doc"):
                row.fail("the row has no doc")
            own_shapes = table.get("kind", "custom") in NO_INFER or "alloc" in row.tags
            if "infer" not in table and "body" not in table and not own_shapes:
                row.fail("needs 'infer' or 'body': its kind does not say the shapes")
            if row.table["doc"].startswith(OTHER_NAME):
                row.fail("another name of an op stands in that op's 'aliases'", "doc =")
            rows += [row, *(called_by(row, name) for name in table.get("aliases", []))]
    seen = {}
    for row in rows:
        if row.name in seen:
            row.fail(f"is defined at {seen[row.name].file}:{seen[row.name].line} already")
        seen[row.name] = row
    return rows
