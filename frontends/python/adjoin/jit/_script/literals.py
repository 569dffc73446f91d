"""adjoin.jit._script.literals: Python's values as the text of a program writes them."""

import enum
import math

import adjoin

SIMPLE = (bool, int, float, str, complex, type(None))


class NoLiteral(TypeError):
    """A value that a program's text has no form for."""


def quoted(text):
    out = []
    for c in text:
        if c in '"\\':
            out.append("\\" + c)
        elif c == "\n":
            out.append("\\n")
        elif ord(c) < 32 or ord(c) == 127:
            out.append(f"\\x{ord(c):02x}")
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def real(x):
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    return repr(float(x)).replace("e+", "e")


def is_named_tuple(o):
    return isinstance(o, tuple) and hasattr(type(o), "_fields")


def literal(o, other=None):
    """The text of a value; other(o), if it gives a text, knows what only the program has: modules, tensors, functions."""
    if other is not None and (text := other(o)) is not None:
        return text
    if o is None:
        return "None"
    if o is ...:
        return "..."
    if isinstance(o, enum.Enum):
        return f'tuple {quoted("enum " + type(o).__name__)} "name" "value"({quoted(o.name)}, {literal(o.value, other)})'
    if isinstance(o, bool):
        return "true" if o else "false"
    if isinstance(o, int):
        if not -(2**63) <= o < 2**63:
            raise NoLiteral(f"the number {o} has more than 64 bits")
        return str(int(o))
    if isinstance(o, float):
        return real(o)
    if isinstance(o, complex):
        return f"complex({real(o.real)}, {real(o.imag)})"
    if isinstance(o, str):
        return quoted(o)
    if isinstance(o, slice):
        return "slice(" + ", ".join(literal(x) for x in (o.start, o.stop, o.step)) + ")"
    if isinstance(o, range):
        return f"range({o.start}, {o.stop}, {o.step})"
    if is_named_tuple(o):
        names = " ".join(quoted(f) for f in o._fields)
        return f"tuple {quoted(type(o).__name__)} {names}({', '.join(literal(x, other) for x in o)})"
    if isinstance(o, tuple):
        return "tuple(" + ", ".join(literal(x, other) for x in o) + ")"
    if isinstance(o, list):
        return "[" + ", ".join(literal(x, other) for x in o) + "]"
    if isinstance(o, dict):
        return "{" + ", ".join(f"{literal(k, other)}: {literal(v, other)}" for k, v in o.items()) + "}"
    if isinstance(o, adjoin.dtype):
        return f"dtype({str(o).split('.')[-1]})"
    if isinstance(o, adjoin.device):
        return f"device({quoted(str(o))})"
    raise NoLiteral(f"a {type(o).__name__} has no place in a program")
