"""adjoin.jit._torchscript._plain: what TorchScript's ops do with numbers, texts, lists and dictionaries."""

import math

LONGEST = 1 << 28  # items of a list or characters of a text that are made by repetition
BITS = 1 << 12  # of whole numbers that are raised to a power or shifted


def _mul(a, b):
    for items, n in ((a, b), (b, a)):
        if isinstance(items, (list, str)) and len(items) * max(0, n) > LONGEST:
            raise ValueError(f"a list or text of more than {LONGEST} items is made")
    return a * b


def _pow(a, b):
    if isinstance(a, int) and isinstance(b, int) and b >= 0 and a.bit_length() * b > BITS:
        raise ValueError("a power of whole numbers is too large")
    return a**b


def _shift(a, b):
    if b > BITS:
        raise ValueError("a number is shifted too far")
    return a << b


def _slice(items, start=None, end=None, step=1):
    return items[slice(start, end, step)]


def _sorted(items, reverse=False):
    return sorted(items, reverse=bool(reverse))


def _max(a, b=None):
    return max(a) if b is None else max(a, b)


def _min(a, b=None):
    return min(a) if b is None else min(a, b)


def _derive(i, start, step):
    return start + i * step


def _length(start, end, step):
    return len(range(start, end, step))


def _join(text, items):
    return text.join(items)


PLAIN = {
    "add": lambda a, b, alpha=1: a + b, "add_": lambda a, b: a.extend(b) or a if isinstance(a, list) else a + b, "sub": lambda a, b, alpha=1: a - b, "mul": _mul, "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b, "floor_divide": lambda a, b: a // b, "remainder": lambda a, b: a % b,
    "fmod": math.fmod, "neg": lambda a: -a, "pow": _pow, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "__and__": lambda a, b: a & b,
    "__or__": lambda a, b: a | b, "__xor__": lambda a, b: a ^ b, "__lshift__": _shift, "__rshift__": lambda a, b: a >> b,
    "logical_not": lambda a: not a, "len": len, "abs": abs, "max": _max, "min": _min, "sum": sum, "all": all, "any": any,
    "floor": math.floor, "ceil": math.ceil, "round": round, "trunc": math.trunc, "sqrt": math.sqrt, "exp": math.exp, "log": math.log,
    "log2": math.log2, "log10": math.log10, "log1p": math.log1p, "sin": math.sin, "cos": math.cos, "tan": math.tan, "tanh": math.tanh,
    "sinh": math.sinh, "cosh": math.cosh, "asin": math.asin, "acos": math.acos, "atan": math.atan, "atan2": math.atan2,
    "gcd": math.gcd, "isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite, "degrees": math.degrees,
    "radians": math.radians, "copysign": math.copysign, "gamma": math.gamma, "lgamma": math.lgamma, "erf": math.erf,
    "factorial": lambda n: math.factorial(min(n, 1000)), "mathremainder": math.remainder, "modf": math.modf, "divmod": divmod,
    "Int": int, "Float": float, "Bool": bool, "str": str, "ord": ord, "chr": chr, "hex": hex, "oct": oct, "bin": bin,
    "__getitem__": lambda items, i: items[i], "slice": _slice, "list": list, "dict": dict, "copy": lambda items: items.copy(),
    "clear": lambda items: items.clear(), "pop": lambda items, *at: items.pop(*at), "remove": lambda items, x: items.remove(x),
    "reverse": lambda items: items.reverse(), "sort": lambda items, reverse=False: items.sort(reverse=bool(reverse)),
    "sorted": _sorted, "count": lambda items, *x: items.count(*x), "index": lambda items, x: items.index(x),
    "keys": lambda d: list(d), "values": lambda d: list(d.values()), "items": lambda d: list(d.items()),
    "get": lambda d, k, other=None: d.get(k, other), "setdefault": lambda d, k, v: d.setdefault(k, v), "update": lambda d, more: d.update(more),
    "popitem": lambda d: d.popitem(), "Delete": lambda d, k: d.__delitem__(k), "__derive_index": _derive, "__range_length": _length,
    "join": _join, "_unwrap_optional": lambda a: a, "numel": lambda a: 1,
}  # fmt: skip
_TEXT = (
    "upper lower strip lstrip rstrip split rsplit splitlines startswith endswith find rfind replace isdigit isalpha isalnum isspace "
    "isupper islower istitle title capitalize swapcase partition rpartition rindex isidentifier isdecimal isnumeric isprintable"
)


def _of_text(name):
    return lambda text, *args: getattr(text, name)(*args)


for _name in _TEXT.split():
    PLAIN.setdefault(_name, _of_text(_name))
# Methods of values, where the code writes them so.
METHODS = {
    str: {name: PLAIN[name] for name in _TEXT.split()} | {"join": _join},
    list: {name: PLAIN[name] for name in ("pop", "clear", "copy", "remove", "reverse", "sort", "count", "index")},
    dict: {
        name: PLAIN[name] for name in ("keys", "values", "items", "get", "pop", "setdefault", "update", "clear", "copy")
    },
}
