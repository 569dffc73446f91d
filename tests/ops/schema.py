"""What a row's signature says of its parameters: enough of the grammar of abi/op.h for making sample arguments."""

import dataclasses
import re

PARAM = re.compile(
    r"(?P<base>\w+)(?:<(?P<dtypes>[^>]*)>)?(?:\((?P<alias>\w)(?P<write>!?)\))?(?P<opt>\??)(?P<list>\[\d*\])?(?P<opt2>\??)"
    r"\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.*))?$"
)


@dataclasses.dataclass
class Param:
    name: str
    base: str
    dtypes: str
    optional: bool
    list: bool
    written: bool
    default: str | None
    keyword_only: bool

    @property
    def tensor(self):
        return self.base in ("Tensor", "Operand")


def split(text):
    """Splits at commas that stand outside brackets and quotes."""
    parts, depth, start, quote = [], 0, 0, ""
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([<":
            depth += 1
        elif c in ")]>":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


def params(schema):
    """The parameters of a signature such as "sum(Tensor input, dim[]? dim=None) -> Tensor"."""
    inside = schema[schema.index("(") + 1 : schema.rindex("->")].rstrip()[:-1]
    keyword_only, found = False, []
    for part in split(inside):
        if part == "*":
            keyword_only = True
            continue
        m = PARAM.match(part)
        found.append(
            Param(
                m["name"],
                m["base"],
                m["dtypes"] or "",
                bool(m["opt"] or m["opt2"]),
                bool(m["list"]),
                bool(m["write"]),
                m["default"],
                keyword_only,
            )
        )
    return found
