"""draw.py: random dtypes, shapes, values, layouts and tensors as text; every choice comes from one seeded generator."""

import random

from .case import Call, Case

BOOL, SIGNED, UNSIGNED = ["bool"], ["int8", "int16", "int32", "int64"], ["uint8"]
FLOATS, HALVES, COMPLEX = ["float32", "float64"], ["float16", "bfloat16"], ["complex64", "complex128"]
WHOLE = SIGNED + UNSIGNED
REAL = BOOL + WHOLE + FLOATS + HALVES
ANY = REAL + COMPLEX
COMMON = ["float32"] * 5 + ["float64"] * 3 + ["int64"] * 3 + ANY

LOW = {"int8": -128, "int16": -(2**15), "int32": -(2**31), "int64": -(2**63)}
HIGH = {"int8": 127, "int16": 2**15 - 1, "int32": 2**31 - 1, "int64": 2**63 - 1, "uint8": 255, "uint16": 2**16 - 1,
        "uint32": 2**32 - 1, "uint64": 2**64 - 1}  # fmt: skip


class Name(str):
    """The name of a tensor in a case, with what is known of it."""

    def __new__(cls, text, dtype, shape):
        self = super().__new__(cls, text)
        self.dtype, self.shape, self.rank = dtype, tuple(shape), len(shape)
        return self


class Draw:
    def __init__(self, target, seed, index):
        self.rng = random.Random(f"{target} {seed} {index}")
        self.target, self.setup, self.special = target, [], False
        self.special = self.chance(0.15)
        self.random, self.pick, self.int = self.rng.random, self.rng.choice, self.rng.randint

    def chance(self, p):
        return self.rng.random() < p

    # Shapes and dimensions

    def size(self):
        return self.pick([0, 1, 1, 2, 2, 2, 3, 3, 4, 5])

    def shape(self, low=0, high=4, zero=True):
        rank = min(max(self.pick([0, 1, 1, 1, 2, 2, 2, 3, 3, 4]), low), high)
        sizes = [self.size() for _ in range(rank)]
        if sizes and self.chance(0.03):
            sizes[self.int(0, rank - 1)] = self.pick([9, 17, 33])
        return tuple(s or (0 if zero and self.chance(0.5) else 1) for s in sizes)

    def dim(self, rank, wrong=0.03):
        if self.chance(wrong):
            return self.pick([rank, -rank - 1, rank + 3])
        return self.int(-rank, rank - 1) if rank else self.pick([0, -1])

    def dims(self, rank):
        """None, a dimension or several, as text."""
        kind = self.random()
        if kind < 0.2:
            return "None"
        if kind < 0.6 or not rank:
            return str(self.dim(rank))
        count = self.int(0, rank)
        found = self.rng.sample(range(rank), count)
        found = [d - rank if self.chance(0.3) else d for d in found]
        if found and self.chance(0.03):
            found.append(found[0])
        return str(self.pick([tuple, list])(found))

    def near(self, shape):
        """A shape that broadcasts with another one, mostly."""
        kind = self.random()
        if kind < 0.4:
            return tuple(shape)
        if kind < 0.46:
            return self.shape()
        found = [1 if self.chance(0.25) else s for s in shape]
        return tuple(found[self.int(0, len(found)) :] if self.chance(0.5) else found)

    # Numbers and dtypes

    def dtype(self, among=COMMON):
        return self.pick(among)

    def number(self, dtype, special=None):
        special = self.special if special is None else special
        if dtype == "bool":
            return self.chance(0.5)
        if dtype in HIGH:
            low = LOW.get(dtype, 0)
            if special and self.chance(0.3):
                return self.pick([low, HIGH[dtype], HIGH[dtype] - 1])
            return max(low, self.int(-5, 7))
        if dtype.startswith("complex"):
            return complex(self.number("float32"), self.number("float32"))
        if special and self.chance(0.35):
            return self.pick([float("inf"), float("-inf"), float("nan"), -0.0, 0.0])
        return self.pick([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0, -0.5, -2.0, 0.25, 4.0, -3.0, 0.75, 7.0])

    def scalar(self, kinds=None):
        """A Python number as text."""
        kind = self.pick(kinds or ["bool", "int64", "int64", "float64", "float64", "complex128"])
        if kind == "int64":
            return str(self.pick([0, 1, 2, 3, -1, -2, 5, 100, 300] if self.chance(0.95) else [2**31, -(2**40), 2**62]))
        value = self.number(kind, special=kind != "complex128" and self.chance(0.1))
        return text(value)

    # Tensors

    def tensor(
        self, dtype=None, shape=None, name=None, layout=0.25, values=None, among=COMMON, grad=False, low=0, high=4
    ):
        dtype = dtype or self.dtype(among)
        shape = self.shape(low, high) if shape is None else tuple(shape)
        name = Name(name or "xyzuvwabcdefgh"[len(self.setup)], dtype, shape)
        inner, after = shape, ""
        if self.chance(layout):
            inner, after = self.layout(shape)
        count = 1
        for s in inner:
            count *= s
        values = values or (lambda: self.number(dtype))
        numbers = [values() for _ in range(min(count, 300))]
        made = f"t.tensor([{', '.join(map(text, numbers))}], dtype=t.{dtype})"
        if count > 300:
            made += f".repeat({-(-count // 300)})[:{count}]"
        if len(inner) != 1 or count > 300:
            made += f".reshape({inner})"
        self.setup.append(f"{name} = {made}{after}{'.requires_grad_()' if grad else ''}")
        return name

    def layout(self, shape):
        """A shape and what makes a view of the wanted one from it."""
        rank = len(shape)
        if not rank:
            return (2,), "[1]"
        kind, d = self.pick(["order", "step", "part", "expand", "select"]), self.int(0, rank - 1)
        inner, key = list(shape), [":"] * rank
        if kind == "order":
            order = self.rng.sample(range(rank), rank)
            return tuple(shape[order.index(k)] for k in range(rank)), f".permute({tuple(order)})"
        if kind == "step" and shape[d]:
            inner[d], key[d] = shape[d] * 2, "::2"
        elif kind == "part":
            inner[d], key[d] = shape[d] + 2, f"1:{shape[d] + 1}"
        elif kind == "expand" and self.chance(0.4):
            inner[d] = 1
            return tuple(inner), f".expand({shape})"
        else:
            return (2, *shape), "[1]"
        return tuple(inner), f"[{', '.join(key)}]"

    def index(self, size, shape=None, dtype=None, wrong=0.02):
        """A tensor of places in a dimension of that size."""
        dtype = dtype or self.pick(["int64"] * 8 + ["int32", "int16", "int8", "uint8"])
        low = 0 if dtype == "uint8" or self.chance(0.7) else -size
        bad = self.chance(wrong)
        top = size if bad else size - 1
        shape = self.shape(1, 2) if shape is None else shape
        if top < low:
            shape = (0,) if len(shape) == 1 else (*shape[:-1], 0)
        return self.tensor(dtype, shape, values=lambda: self.int(low, max(top, low)))

    # Cases

    def case(self, call, *after, values=True):
        return Case(self.target, call.name, self.setup, [call, *after], call, values)

    def lines(self, name, *steps):
        return Case(self.target, name, self.setup, steps)

    def form(self, name, args, words=None, method=0.4):
        """A call as a function or as a method."""
        return Call(name, args, words, "x" if isinstance(args[0], Name) and self.chance(method) else "t")


def text(value):
    """A number as Python reads it."""
    if isinstance(value, complex):
        parts = [repr(value.real), repr(value.imag)]
        return f"complex({parts[0]}, {parts[1]})"
    return repr(value)
