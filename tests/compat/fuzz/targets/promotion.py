"""promotion.py: cases of two and more dtypes: tensors with and without dimensions, Python's and NumPy's numbers."""

from ..case import Call
from ..draw import ANY, Draw, text
from .pointwise import BINARY

DTYPES = [*ANY, "uint16", "uint32", "uint64"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>"]
AUGMENTED = ["+=", "-=", "*=", "/=", "//=", "%=", "**=", "&=", "|=", "^=", "<<=", ">>="]
SCALARS = [
    "np.float32(1.5)",
    "np.float64(2.5)",
    "np.int8(3)",
    "np.int64(2)",
    "np.bool_(True)",
    "np.complex64(1j)",
    "np.float16(0.5)",
    "np.uint8(2)",
]


def any_tensor(d, dtype=None, shape=None):
    dtype = dtype or d.pick(ANY if d.chance(0.9) else DTYPES)
    return d.tensor(dtype, d.pick([(), (), (1,), (2,), (2, 2), (0,)]) if shape is None else shape, layout=0.1)


def operand(d):
    kind = d.random()
    if kind < 0.55:
        return any_tensor(d)
    return d.scalar() if kind < 0.9 else d.pick(SCALARS)


def operators(d):
    x, y, op = any_tensor(d), operand(d), d.pick(OPERATORS)
    sides = [x, y] if d.chance(0.6) else [y, x]
    return d.case(Operator(sides, op))


class Operator(Call):
    """r = x + y, or x += y"""

    def __init__(self, args, op):
        super().__init__(op, args)

    def text(self):
        x, y = self.args
        return f"{x} {self.name} {y}" if self.name in AUGMENTED else f"r = {x} {self.name} {y}"

    def but(self, args=None, **words):
        return Operator(self.args if args is None else args, self.name)


def augmented(d):
    x = any_tensor(d)
    return d.case(Operator([x, operand(d)], d.pick(AUGMENTED)))


def functions(d):
    x, y, name = any_tensor(d), operand(d), d.pick(BINARY)
    return d.case(d.form(name, [x, y]))


def in_place(d):
    x, y, name = any_tensor(d), operand(d), d.pick(BINARY)
    return d.case(Call(name + "_", [x, y], form="x"))


def asked(d):
    name = d.pick(["result_type", "result_type", "can_cast", "promote_types"])
    if name == "result_type":
        return d.case(Call(name, [operand(d), operand(d)]))
    return d.case(Call(name, [f"t.{d.pick(DTYPES)}", f"t.{d.pick(DTYPES)}"]))


def joined(d):
    name = d.pick(["cat", "stack", "hstack", "where", "concat"])
    shape = d.pick([(1,), (2,), (0,), (2, 2)]) if name in ("cat", "concat") else d.pick([(), (2,)])
    if name == "where":
        return d.case(Call(name, [d.tensor("bool", d.pick([(), (2,)])), operand(d), operand(d)]))
    made = [any_tensor(d, shape=shape) for _ in range(d.int(1, 3))]
    return d.case(Call(name, [f"[{', '.join(made)}]"]))


def three(d):
    name = d.pick(["lerp", "addcmul", "addcdiv", "clamp", "clamp", "addmm", "addmv", "baddbmm"])
    if name in ("addmm", "addmv", "baddbmm"):
        sizes = {"addmm": [(2, 2)] * 3, "addmv": [(2,), (2, 2), (2,)], "baddbmm": [(1, 2, 2)] * 3}[name]
        kind = d.dtype()
        made = [any_tensor(d, kind if d.chance(0.9) else None, s) for s in sizes]
        return d.case(Call(name, made, {"alpha": d.scalar(), "beta": d.scalar()} if d.chance(0.4) else {}))
    made = [any_tensor(d) if d.chance(0.8) else d.scalar() for _ in "abc"]
    made[0] = any_tensor(d)
    if name == "clamp" and d.chance(0.3):
        made[d.int(1, 2)] = "None"
    return d.case(d.form(name, made, {"value": d.scalar()} if name.startswith("addc") and d.chance(0.4) else {}))


def reduced(d):
    x = any_tensor(d)
    name = d.pick(
        [
            "sum",
            "prod",
            "mean",
            "cumsum",
            "cumprod",
            "max",
            "amax",
            "any",
            "all",
            "var",
            "std",
            "norm",
            "logsumexp",
            "argmax",
            "median",
            "nansum",
        ]
    )
    dim = ["0"] if name in ("cumsum", "cumprod", "logsumexp", "amax") else []
    words = (
        {"dtype": f"t.{d.pick(DTYPES)}"}
        if name in ("sum", "prod", "mean", "cumsum", "cumprod", "norm") and d.chance(0.4)
        else {}
    )
    return d.case(d.form(name, [x, *dim], words))


def numbers(d):
    """A tensor with a Python number at the ends of its dtype."""
    x = any_tensor(d, d.pick(["int8", "uint8", "int16", "int32", "int64", "float16", "float32", "bfloat16"]))
    value = d.pick([127, 128, 255, 256, -128, -129, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64, 65504.0, 1e300, -1, 0.1])
    name = d.pick(
        [
            "add",
            "mul",
            "sub",
            "eq",
            "lt",
            "maximum",
            "pow",
            "remainder",
            "fill_",
            "add_",
            "clamp",
            "full_like",
            "masked_fill",
            "where",
            "eq_",
        ]
    )
    if name == "masked_fill":
        return d.case(Call(name, [x, d.tensor("bool", x.shape), text(value)], form="x"))
    if name == "where":
        return d.case(Call(name, [d.tensor("bool", x.shape), x, text(value)]))
    return d.case(
        Call(name, [x, text(value)], form="x" if name.endswith("_") or d.chance(0.5) and name != "full_like" else "t")
    )


MAKERS = [operators, operators, augmented, functions, functions, in_place, asked, joined, three, reduced, numbers]


def make(seed, index):
    d = Draw("promotion", seed, index)
    return d.pick(MAKERS)(d)
