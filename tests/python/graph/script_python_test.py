"""tests/python/graph/script_python_test.py: what Python says and a scripted program says of texts, numbers and lists is the same, to the
last bit; where programs have less they raise."""

import dataclasses
import enum
import math
import os
import random
import textwrap
from typing import NamedTuple

import adjoin
import pytest
from adjoin import jit

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
SEED = int(os.environ.get("ADJOIN_TEST_SEED", "0") or 0)
TEXTS = ["", "a", "abc", "Hello World", "  x ", "a,b,,c", "aXbXc", "\t a\n b \r\n", "ababab", "é", "日本 語", "x\u00a0y\u2003", "007",
         "-42", "+-5", "A1b2", "they're", "ß", "a\x85b\u2028c\x0bd\x1ce", "q\"'\\", "\x7f\x9f\xad"]  # fmt: skip
REALS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.5,
    123.0,
    1234.5678,
    1e16,
    1e-5,
    99.95,
    2.0**53,
    2.0**63,
    1e300,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
]
WHOLES = [0, 1, -1, 2, -7, 42, 255, -1234567, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
COMPLEX = [complex(a, b) for a in (0.0, 1.0, -2.0, 0.3) for b in (-0.0, 1.5, -3.0)]
OF = {"str": TEXTS, "float": REALS, "int": WHOLES, "bool": [True, False], "complex": COMPLEX}


def both(params, expression, setup=""):
    text = f"def f({params}):\n{textwrap.indent(setup, '    ')}    return {expression}\n"
    known = {"math": math}
    exec(text, known)
    return known["f"], jit.CompilationUnit(text).f


def told(f, args):
    try:
        return repr(f(*args))
    except Exception as e:
        return e


def same(params, expression, *samples, setup=""):
    """For all combinations, or some of them: Python's value, an error where Python has one, or a word that programs have less."""
    python, program = both(params, expression, setup)
    draw = random.Random(f"{SEED} {expression}")
    columns = [list(s) for s in samples]
    count = math.prod(map(len, columns))
    chosen = range(count) if count <= 40 or FULL else draw.sample(range(count), 40)
    for k in chosen:
        args = []
        for column in columns:
            args.append(column[k % len(column)])
            k //= len(column)
        wanted, found = told(python, args), told(program, args)
        if isinstance(found, Exception):
            less = isinstance(found, (NotImplementedError, OverflowError)) or "not in the subset" in str(found)
            assert isinstance(wanted, Exception) or less, (expression, args, wanted, found)
        else:
            assert wanted == found, (expression, args, wanted, found)


def test_methods_of_texts():
    for name in ("upper lower title capitalize swapcase strip lstrip rstrip split rsplit splitlines isdigit isalpha isalnum isspace isupper "
                 "islower istitle isidentifier isprintable isdecimal isnumeric isascii casefold expandtabs").split():  # fmt: skip
        same("s: str", f"s.{name}()", TEXTS)
    places = range(-6, 8)
    for name in "find rfind index rindex count startswith endswith".split():
        same(
            "s: str, a: str, i: int, j: int",
            f"s.{name}(a, i, j), s.{name}(a, i), s.{name}(a)",
            TEXTS,
            ["", "a", "ab", "X", "é"],
            places,
            places,
        )
    for name in ("split", "rsplit"):
        for by in ("None", "','", "'ab'"):
            same("s: str, k: int", f"s.{name}({by}, k)", TEXTS, range(-1, 4))
    for name in ("ljust", "rjust", "center"):
        same("s: str, n: int", f"s.{name}(n), s.{name}(n, '*'), s.{name}(n, 'é')", TEXTS, range(-2, 14))
    for name in "partition rpartition removeprefix removesuffix strip lstrip rstrip".split():
        same("s: str, a: str", f"s.{name}(a)", TEXTS, ["a", "X", " é", "日", ", ", ""])
    same("s: str, a: str, k: int", "s.replace(a, '-+', k), s.zfill(k * 3)", TEXTS, ["", "a", "ab"], [-1, 0, 1, 2, 5])
    same("s: str", "s.splitlines(True), repr(s), str([s]), s[::-1], len(s), a.join(list(s))", TEXTS, setup="a = '--'\n")


@pytest.mark.parametrize("kind", ["float", "int", "bool", "str"])
def test_formats(kind):
    for spec in ("5 <8 >8 ^8 =8 *^9 08 + - +08 .3 .0 .1f .3f 8.2f 08.2f +.2e e E g .3g G % .1% , ,.2f 015, 012,.1f _ _d d 05d +d x X #x #010b o _b "
                 "#_x 012_x c 5c s .2s <6s 06 é>7 n =+8 0=8 +010, q 5. .2d ,d 020,d F").split():  # fmt: skip
        same(f"v: {kind}", f"f'{{v:{spec}}}', {'{:' + spec + '}'!r}.format(v)", OF[kind])
    for spec in (
        "%d %5d %-5d %05d %+d %x %#x %o %u %s %r %5s %-5s %c %e %.2e %f %8.3f %-8.3f %08.3f %g %.3g %5.3d %.2s".split()
    ):
        same(f"v: {kind}", f"{'x' + spec + 'y'!r} % (v,)", OF[kind])


def test_arithmetic_is_pythons_to_the_bit():
    for op in "+ - * / // % == != < <= > >=".split():
        for a, b in (("int", "int"), ("float", "float"), ("int", "float"), ("float", "int"), ("bool", "float")):
            same(f"a: {a}, b: {b}", f"a {op} b", OF[a], OF[b])
    for op in "+ - * / ** == !=".split():
        same("a: complex, b: complex", f"a {op} b", COMPLEX, COMPLEX)
    same("a: complex, b: int", "a ** b, b - a, a / (b + 0.5), abs(a), repr(-a)", COMPLEX, range(-6, 9))
    same("a: float, b: int", "a ** b", REALS, range(-3, 4))
    draw = random.Random(SEED)
    wide = [draw.randint(-(2**63), 2**63 - 1) >> draw.randint(0, 62) or 1 for _ in range(40)]
    same("a: int, b: int", "a / b, a < b + 0.5, a == float(b)", [*WHOLES, *wide], wide)
    for digits in (0, 2, 5, -1, -3, -23):
        same(
            "x: float",
            f"round(x, {digits})",
            [*REALS, 2.675, 0.125, -15.0, 2500.0, 5e22, 6e22, *(draw.uniform(-1e5, 1e5) for _ in range(20))],
        )
    for digits in (2, -1, -2, -18, -19, -20):
        same("x: int", f"round(x, {digits})", [*WHOLES, 15, 25, -15, 150, 250])
    same("x: int", "hex(x), bin(x), oct(x), pow(x, 5, 7), ~x, str(x)", WHOLES)
    same("s: str", "int(s)", ["12", "-12", "+12", "+-12", " 12 ", "1.5", "", "007"])
    same("s: str", "int(s, 16), int(s, base=0)", ["1f", "0x1f", "-0x1F", "0b11", "0o17", "10", "017", "z"])


def test_functions_of_math():
    for name in "pow atan2 fmod copysign remainder".split():
        same("x: float, y: float", f"math.{name}(x, y)", REALS, REALS)
    for name in "sqrt exp log log2 log10 log1p expm1 sin atan asinh acosh atanh erf erfc fabs radians degrees floor ceil trunc".split():
        same("x: float", f"math.{name}(x)", [*REALS, 0.5, -0.5, 3.7])
    same(
        "x: int, y: int", "math.gcd(x, y, 12), math.gcd(x), math.prod([x % 9, 3], start=y % 5)", WHOLES[:9], WHOLES[:9]
    )
    same("x: float", "math.log(x, 1.0)", [2.0])


def test_lists_and_their_slices():
    lists = [list(range(n)) for n in range(6)]
    places = range(-7, 8)
    same(
        "a: list[int], i: int, j: int, k: int", "a[i:j:k], a[i:], a[:j], a[::k]", lists, places, places, [-3, -1, 1, 2]
    )
    same(
        "a: list[int], i: int, j: int",
        "c, d",
        lists,
        places,
        places,
        setup="c = a.copy()\nc[i:j] = [90, 91]\nd = a.copy()\ndel d[i:j]\nd.insert(i, 9)\n",
    )
    same("a: list[int], x: int, i: int, j: int", "a.index(x, i, j)", [[0, 1, 2, 1, 0], []], range(3), places, places)
    same("a: int", "d, e", [1, 2], setup="d = {1: 2}\ne = d\nd |= {a: 5}\n")


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class Shade(enum.Enum):
    RED = 1


class Plain(NamedTuple):
    name: str
    value: int


@jit.script
class Money:
    def __init__(self, cents: int):
        self.cents = cents

    def __eq__(self, other: "Money") -> bool:
        return self.cents // 100 == other.cents // 100

    def __lt__(self, other: "Money") -> bool:
        return self.cents < other.cents


def enums(n: int):
    c = Colour.RED if n == 1 else Colour.GREEN
    plain = Plain("RED", 1)
    return (
        c is Colour.RED, c is not Colour.GREEN, c == Colour.RED, str(c), f"{c} {c!r}", repr([c]), c.name, c.value, Shade.RED == Shade.RED,
        Shade.RED in [Shade.RED], {Colour.RED: 1, Colour.GREEN: 2}[c], str(plain), plain == Plain("RED", 1),
    )  # fmt: skip


def given_back(c: Colour):
    return c, [c]


@jit.script
@dataclasses.dataclass
class ByA:
    a: int
    b: int

    def __eq__(self, other: "ByA") -> bool:
        return self.a == other.a


@jit.script
@dataclasses.dataclass(order=True)
class Ordered:
    a: int
    b: int = dataclasses.field(default=3, compare=False)
    c: dict[str, int] = dataclasses.field(default_factory=dict, compare=False)
    d: list[int] = dataclasses.field(default_factory=lambda: [1])
    e: int = dataclasses.field(init=False, default=7)


def data(n: int):
    x, y, z = Ordered(n), Ordered(n, 5), Ordered(a=n + 1, d=[9])
    x.c["k"] = n
    x.d.append(2)
    return (
        ByA(n, 1) == ByA(n, 2), ByA(n, 1) != ByA(n, 2), x == y, x < z, x <= y, z > y, z >= x, y.c, y.d, x.c, y.b, x.e, max([x, z]).a, sorted([z, x])[0].a,
    )  # fmt: skip


def test_data_classes_are_pythons():
    for n in (1, -4):
        assert jit.script(data)(n) == data(n)


def equal_inside():
    a, b = [Money(150), Money(20)], [Money(199), Money(99)]
    sorted_ones = sorted([Money(3), Money(1), Money(2)])
    return a == b, (a[0], 1) == (b[0], 1), {"k": a[0]} == {"k": b[0]}, a != b, [x.cents for x in sorted_ones]


def test_enums_and_classes_are_equal_as_in_python():
    for n in (1, 2):
        assert jit.script(enums)(n) == enums(n)
    assert jit.script(given_back)(Colour.GREEN) == (Colour.GREEN, [Colour.GREEN])
    assert jit.script(equal_inside)() == equal_inside() == (True, True, True, False, [1, 2, 3])


class Counts(adjoin.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", adjoin.zeros(2))

    def forward(self, x):
        self.total = self.total + x
        return self.total


def test_a_buffer_that_the_code_assigns_is_the_modules(tmp_path):
    class Outer(adjoin.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Counts()

        def forward(self, x):
            return self.inner(x)

    outer = jit.script(Outer())
    for _ in range(2):
        outer(adjoin.ones(2))
    assert outer.inner.total.tolist() == outer.state_dict()["inner.total"].tolist() == [2, 2]
    outer.inner.total = adjoin.full((2,), 7.0)
    assert outer(adjoin.zeros(2)).tolist() == outer.inner.total.tolist() == [7, 7]
    jit.save(outer, tmp_path / "counts.aj")
    loaded = jit.load(tmp_path / "counts.aj")
    loaded(adjoin.ones(2))
    assert loaded.inner.total.tolist() == next(loaded.buffers()).tolist() == [8, 8] and outer.inner.total.tolist() == [
        7,
        7,
    ]


class Swapped(adjoin.nn.Module):
    def __init__(self, fast):
        super().__init__()
        if fast:
            self.forward = self.forward_fast

    def forward_fast(self, x):
        return x * 2

    def forward(self, x):
        return x * 3

    @jit.export
    def __len__(self):
        return 17


def test_a_method_that_an_instance_was_given_is_called():
    for fast in (True, False):
        assert (
            jit.script(Swapped(fast))(adjoin.ones(1)).item()
            == Swapped(fast)(adjoin.ones(1)).item()
            == (2 if fast else 3)
        )
        assert len(jit.script(Swapped(fast))) == 17


def test_errors_are_of_both_classes():
    def key(d: dict[str, int]):
        return d["q"]

    with pytest.raises(jit.Error, match="'q'") as told_of:
        jit.script(key)({"a": 1})
    assert isinstance(told_of.value, KeyError) and type(told_of.value).__name__ == "KeyError"
    with pytest.raises(ValueError):
        jit.CompilationUnit("def f(n: int):\n    raise ValueError('no', n)\n").f(1)


def test_tensors_without_dimensions_are_numbers_where_those_are_asked_for():
    def f(n: int, x: float):
        return n + 1, x * 2

    assert jit.script(f)(adjoin.tensor(3), adjoin.tensor(1.5)) == (4, 3.0)
    with pytest.raises(TypeError, match="expects 'n' to be int"):
        jit.script(f)(adjoin.ones(2, dtype=adjoin.int64), 1.0)


def test_unique_gives_what_is_asked_for():
    for call in ("x.unique()", "x.unique(True, True)", "x.unique(return_counts=True)", "x.unique_consecutive(False, True)",
                 "x.unique_consecutive()", "x.unique(return_inverse=True, return_counts=True)"):  # fmt: skip
        python, program = both("x", call)
        x = adjoin.tensor([3, 1, 1, 2, 3])
        a, b = python(x), program(x)
        assert isinstance(a, adjoin.Tensor) == isinstance(b, adjoin.Tensor) and len(a) == len(b)
        assert all(p.equal(q) for p, q in zip(a, b, strict=True))


def test_ops_by_pytorchs_names():
    @jit.script
    def f(x, y):
        return adjoin.ops.aten.add.Tensor(x, y) + adjoin.ops.aten.div.Tensor_mode(x, y, rounding_mode="floor")

    assert f(adjoin.tensor([5.0, -3.0]), adjoin.tensor([2.0, 2.0])).tolist() == [9.0, -3.0]
