"""tests/python/graph/script_test.py: scripted functions and modules give what Python gives, in Python and from C++; gradients; files; what is
not in the subset is refused at its line."""

import copy
import dataclasses
import enum
import io
import math
import random
import subprocess
import typing
from typing import Any, Optional

import adjoin
import pytest
import script_cases
import script_tensor_cases  # noqa: F401  (adds to CASES)
from adjoin import _C, jit, nn
from adjoin.jit._script.code import environment
from adjoin.nn import functional as F
from program_test import SEED
from script_cases import CASES
from trace_test import same

INPUTS = {"x": (4, 3), "v": (5,), "n": None}


def inputs():
    adjoin.manual_seed(3)
    made = {name: adjoin.randn(shape) for name, shape in INPUTS.items() if shape}
    return {**made, "n": adjoin.tensor([3, 14, 15, 92, 65, 35])}


def given(args):
    known = inputs()
    return [known[a] if isinstance(a, str) and a in known else copy.deepcopy(a) for a in args]


def told(value):
    """As a program shows it: floats and tensors to the last bit."""
    return _C.script_text(value)


@pytest.mark.parametrize("at", range(len(CASES)), ids=[f.__name__ for f, _ in CASES])
def test_a_scripted_function_gives_what_python_gives(at):
    f, args = CASES[at]
    scripted = jit.script(f)
    assert isinstance(scripted, jit.ScriptFunction)
    assert told(scripted(*given(args))) == told(f(*given(args)))
    text = scripted.graph
    assert _C.program_text(_C.program_parse(text)) == text
    names = environment()
    exec(scripted.code, names)  # the code is Python, and does the same
    assert told(names[scripted.name](*given(args))) == told(f(*given(args)))


def test_code_of_modules_is_python():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.by = nn.Linear(3, 3), 2

        def forward(self, x, more: float = 1.0):
            return self.scaled(self.inner(x)) + more

        def scaled(self, x):
            return x / self.by if x.sum() > 0 else x * self.by

    net, names = Half(), environment()
    code = jit.script(net).code
    exec(code, names)
    for x in (adjoin.ones(2, 3), -adjoin.ones(2, 3)):
        assert names["Half"].forward(net, x, 0.5).equal(net(x, 0.5))
    assert "class Half(torch.nn.Module):" in code and "%" not in code
    exec(jit.trace(net.inner, adjoin.ones(2, 3)).code, names)
    assert names["forward"](net.inner, adjoin.ones(2, 3)).equal(net.inner(adjoin.ones(2, 3)))


class AllCases(nn.Module):
    """All of them in one program, which C++ loads."""

    def __init__(self):
        super().__init__()
        for name, value in inputs().items():
            self.register_buffer("input_" + name, value)
        self.functions = {f.__name__: f for f, _ in CASES}
        self.given = {f.__name__: list(args) for f, args in CASES}

    @jit.export
    def names(self):
        return list(self.functions.keys())

    @jit.export
    def run(self, name: str):
        args = []
        for a in self.given[name]:
            if isinstance(a, str) and a in ("x", "v", "n"):
                args.append(getattr(self, "input_" + a))
            else:
                args.append(a)
        return self.functions[name](*args)


CPP = r"""
#include <adjoin/script.hpp>
#include <cstdio>
int main(int, char** argv) {
  adjoin::Script program(argv[1]);
  for (const adjoin::Value& name : program.call("names").items())
    std::printf("%s\t%s\n", name.to_string().c_str(),
                program.call("run", {name}).text(AJ_TEXT_BITS).c_str());
}
"""


def test_a_cpp_program_gives_what_python_gives(tmp_path):
    jit.save(jit.script(AllCases()), tmp_path / "cases.aj")
    (tmp_path / "run.cpp").write_text(CPP)
    flags = [
        subprocess.run(["adjoin", "config", w], capture_output=True, text=True, check=True).stdout.split()
        for w in ("--cflags", "--libs")
    ]
    words = ["g++", "-std=c++20", "-O0", "-Wall", "-Werror", "run.cpp", "-o", "run", *flags[0], *flags[1]]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run([tmp_path / "run", tmp_path / "cases.aj"], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    lines = dict(line.split("\t", 1) for line in shown.stdout.splitlines())
    assert len(lines) == len(CASES) >= 60
    for f, args in CASES:
        assert lines[f.__name__] == told(f(*given(args))), f.__name__


# Modules.
class Block(nn.Module):
    __constants__ = ("steps",)
    scale: adjoin.jit.Final[float]

    def __init__(self, width, steps=2):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(steps)])
        self.norm = nn.BatchNorm1d(width)
        self.heads = nn.ModuleDict({"a": nn.Linear(width, 2), "b": nn.Sequential(nn.Linear(width, 2), nn.Tanh())})
        self.act = F.gelu
        self.scale, self.steps, self.names = 0.5, steps, ["a", "b"]
        self.register_buffer("seen", adjoin.zeros(()))
        self.calls = 0

    def mixed(self, x, i: int):
        return self.act(self.layers[i](x)) * self.scale + x

    def forward(self, x, head: str = "a"):
        self.calls += 1
        self.seen += x.size(0)
        for i in range(self.steps):
            x = self.mixed(x, i)
        if self.training:
            x = F.dropout(x, 0.25, self.training)
        x = self.norm(x)
        out = {}
        for name, layer in self.heads.items():
            if name == head or head == "all":
                out[name] = layer(x)
        return out

    @jit.export
    def described(self):
        return f"{self.steps} steps, {len(self.layers)} layers, {self.calls} calls"

    @jit.ignore
    def picture(self):
        import matplotlib

        return matplotlib


def block():
    adjoin.manual_seed(0)
    return Block(4)


def test_a_scripted_module_is_the_module():
    net, x = block(), adjoin.randn(6, 4)
    other = block()
    scripted = jit.script(net)
    assert isinstance(scripted, jit.RecursiveScriptModule) and list(scripted.state_dict()) == list(net.state_dict())
    for head in ("a", "b", "all"):
        adjoin.manual_seed(1)
        wanted = other(x, head)
        adjoin.manual_seed(1)
        assert told(scripted(x, head)) == told(wanted)
    assert scripted.calls == 3 and scripted.described() == other.described() == "2 steps, 2 layers, 3 calls"
    assert same(scripted.seen, other.seen) and same(net.norm.running_mean, other.norm.running_mean)
    scripted.eval()
    other.eval()
    assert not scripted.heads["a"].training and told(scripted(x)) == told(other(x))
    assert told(scripted.heads["b"](x)) == told(other.heads["b"](x)) and len(scripted.layers) == 2
    scripted.scale = other.scale = 2.0
    assert told(scripted(x, head="b")) == told(other(x, head="b"))
    with pytest.raises(AttributeError, match="nothing"):
        scripted.nothing()


def test_gradients_go_through_scripted_code():
    net, other, x = block(), block(), adjoin.randn(6, 4)
    scripted = jit.script(net)
    for model in (scripted, other):
        adjoin.manual_seed(2)
        out = model(x, "all")
        (out["a"].sum() + out["b"].pow(2).sum()).backward()
    for (name, p), q in zip(net.named_parameters(), other.parameters(), strict=True):
        assert same(p.grad, q.grad), name

    def powers(x, n: int):
        y = x
        for i in range(n):
            if i % 2 == 0:
                y = y * x
            else:
                with adjoin.no_grad():
                    y = y + 1
        return y.sum()

    for n in (0, 1, 3):
        x = adjoin.randn(3, requires_grad=True)
        y = jit.script(powers)(x, n)
        assert y.requires_grad == powers(x, n).requires_grad
        if y.requires_grad:
            assert same(*(adjoin.autograd.grad(f, x)[0] for f in (y, powers(x, n))))


def test_a_scripted_module_is_trained():
    def train(make):
        model = make(block())
        sgd = adjoin.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            adjoin.manual_seed(step)
            loss = F.cross_entropy(model(adjoin.randn(8, 4))["a"], adjoin.arange(8) % 2)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        return [loss.item(), *model.state_dict().values()]

    assert same(train(lambda m: m), train(jit.script))


def test_a_file_has_the_program(tmp_path):
    scripted, x = jit.script(block().eval()), adjoin.randn(3, 4)
    scripted(x)
    jit.save(scripted, tmp_path / "block.aj")
    loaded = jit.load(tmp_path / "block.aj")
    assert told(loaded(x, "all")) == told(scripted(x, "all")) and loaded.described() == scripted.described()
    assert not loaded.training and same(loaded.state_dict()["layers.0.weight"], scripted.layers[0].weight.detach())
    loaded.train()
    adjoin.manual_seed(5)
    a = loaded(x)
    scripted.train()
    adjoin.manual_seed(5)
    assert told(a) == told(scripted(x))
    a["a"].sum().backward()
    assert loaded.get_parameter("layers.0.weight").grad is not None
    memory = io.BytesIO()
    jit.save(jit.script(script_cases.collatz), memory)
    memory.seek(0)
    assert jit.load(memory)(27) == script_cases.collatz(27)
    double = copy.deepcopy(scripted).double()
    assert double.layers[0].weight.dtype == adjoin.float64 and double(x.double())["a"].dtype == adjoin.float64
    assert scripted.layers[0].weight.dtype == adjoin.float32


LAYERS = [
    (lambda: nn.Conv2d(2, 3, 3, padding=1), (1, 2, 5, 5)), (lambda: nn.MaxPool2d(2), (1, 2, 6, 6)),
    (lambda: nn.LSTM(3, 4, 2, bidirectional=True), (5, 2, 3)), (lambda: nn.GRU(3, 4, batch_first=True), (2, 5, 3)),
    (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (5, 2, 8)), (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    (lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5), nn.LayerNorm(4)), (2, 3)),
    (lambda: nn.AdaptiveAvgPool2d(1), (1, 2, 6, 6)), (lambda: nn.Upsample(scale_factor=2), (1, 2, 3, 3)),
    (lambda: nn.PReLU(), (3,)), (lambda: nn.Softmax(1), (2, 3)), (lambda: nn.Hardtanh(), (3,)),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(LAYERS)))
def test_layers_of_the_package(at):
    make, shape = LAYERS[at]
    adjoin.manual_seed(0)
    layer, x = make().eval(), adjoin.randn(shape)
    assert told(jit.script(layer)(x)) == told(layer(x))


# What is refused.
def uses_try(x):
    try:
        return x
    except ValueError:
        return None


def uses_lambda(x):
    return (lambda y: y)(x)


def uses_yield(x):
    yield x


def uses_set(x):
    return {1, 2}


def uses_with(x):
    with open(x) as f:
        return f


def uses_open(x):
    return open(x)


def uses_inner(x):
    def inner():
        return x

    return inner()


def uses_global(x):
    global SEED
    SEED = x


def uses_unknown(x):
    return nothing_at_all(x)  # noqa: F821


def uses_import(x):
    import os

    return os


REFUSED = {
    uses_try: (1, "try"), uses_lambda: (1, "lambda.*def"), uses_yield: (1, "generator.*list"), uses_set: (1, "set.*list"),
    uses_with: (1, "with open.*no_grad"), uses_open: (1, "open.*cannot be called"), uses_inner: (1, "function.*top of the file"),
    uses_global: (1, "global"), uses_unknown: (1, "nothing_at_all.*not known"), uses_import: (1, "import.*top"),
}  # fmt: skip


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_what_is_not_in_the_subset_is_refused_at_its_line(f):
    line, what = REFUSED[f]
    at = f.__code__.co_firstlineno + line
    with pytest.raises(RuntimeError, match=rf"script_test.py:{at} in {f.__name__}: .*{what}"):
        jit.script(f)


def fails_deep(x, n: int):
    if n > 0:
        return fails_deep(x, n - 1)
    return x.reshape(7)


def test_an_error_while_it_runs_has_the_line():
    at = fails_deep.__code__.co_firstlineno + 3
    with pytest.raises(RuntimeError, match=rf"reshape.*\(scripted at script_test.py:{at} in fails_deep\)"):
        jit.script(fails_deep)(adjoin.ones(3), 2)
    for f, args, error in (
        (script_cases.guarded, (7,), AssertionError),
        (script_cases.calculator, ("1 2 !",), ValueError),
        (script_cases.stacks, (0,), IndexError),
        (script_cases.nested, ({"q": 1.0}, 1), KeyError),
        (script_cases.arithmetic, (1, 0), ZeroDivisionError),
        (script_cases.collatz, ("a",), TypeError),
    ):
        with pytest.raises(error):
            f(*copy.deepcopy(args)) if error is not TypeError else 1 / "a"
        with pytest.raises(error):
            jit.script(f)(*args)
    with pytest.raises(OverflowError, match="64 bits"):
        jit.script(script_cases.arithmetic)(2**62, 5)
    with pytest.raises(RecursionError):
        jit.script(fails_deep)(adjoin.ones(3), 10_000)
    with pytest.raises(RuntimeError, match="ignore.*cannot call"):
        jit.script(Ignores())(adjoin.ones(1))


class Ignores(nn.Module):
    @jit.ignore
    def python(self, x):
        return x

    def forward(self, x):
        return self.python(x)


def test_junk_is_an_error_or_a_program():
    rng = random.Random(SEED)
    corpus = [jit.script(f).graph for f, _ in rng.sample(CASES, 6)] + [jit.script(block()).graph]
    words = [
        "%",
        "(",
        "{",
        "}",
        "@",
        "$",
        "fn",
        "if",
        "9" * 30,
        "-1",
        "nan",
        '"',
        "\\",
        "\0",
        "é",
        "None",
        "[",
        "#",
        "#9",
        "weight",
        "*",
    ]
    good = 0
    for _ in range(500):
        text = rng.choice(corpus)
        for _ in range(rng.randint(1, 4)):
            at, n = rng.randrange(len(text) + 1), rng.choice([0, 0, 1, 1, 3, 20])
            text = text[:at] + rng.choice([*words, "", text[at : at + 9]]) + text[at + n :]
        try:
            read = _C.program_parse(text)
        except (ValueError, RuntimeError, IndexError, TypeError) as e:
            assert str(e), (SEED, text)
            continue
        good += 1
        assert _C.program_text(_C.program_parse(_C.program_text(read))) == _C.program_text(read), (SEED, text)
    assert good > 5, SEED


def test_the_decorators():
    @jit.script
    def twice(x):
        return x * 2

    @jit.script_if_tracing
    def chosen(x):
        return x + 1

    def both(x):
        return twice(chosen(x))

    assert jit.script(both)(adjoin.ones(2)).tolist() == [4, 4] and twice(3) == 6 and twice.__name__ == "twice"
    assert jit.script(twice) is twice and math.pi > 3
    with pytest.raises(RuntimeError, match="make a module"):
        jit.script(Block)
    with pytest.raises(TypeError, match="takes no"):
        twice(object())


def test_the_command_runs_it(tmp_path):
    import numpy

    def steps(x, n: int, how: str = "sum"):
        out = {"y": x * n}
        if how == "sum":
            out["total"] = out["y"].sum()
        return out

    jit.save(jit.script(steps), tmp_path / "steps.aj")
    x = adjoin.randn(2, 3)
    numpy.save(tmp_path / "x.npy", x.numpy())
    words = ["adjoin", "run", tmp_path / "steps.aj", "--input", tmp_path / "x.npy", "--input", "3"]
    subprocess.run([*words, "--output", tmp_path / "y.npy"], check=True)
    assert numpy.load(tmp_path / "y.npy").tobytes() == (x * 3).numpy().tobytes()
    shown = subprocess.run([*words, "--input", "none"], check=True, capture_output=True, text=True).stdout
    assert shown.startswith("{'y': tensor(float32[2, 3] ") and "total" not in shown
    told = subprocess.run(["adjoin", "graph", "check", tmp_path / "steps.aj"], capture_output=True, text=True)
    assert told.returncode == 0 and "sound" in told.stdout, told.stderr


@dataclasses.dataclass
class Options:
    width: int
    names: list = dataclasses.field(default_factory=list)
    scale: float = 2.0

    def __post_init__(self):
        self.area = self.width * self.width


def uses_options(n: int):
    a = Options(n)
    a.names.append("a")
    b = Options(n, scale=3.0, names=["a"])
    return a.area, a == b, a == Options(n, ["a"]), a.names + b.names, Options(1).names


class Statics(nn.Module):
    @staticmethod
    def twice(x):
        return x * 2

    @property
    def by(self):
        return 1 if self.training else 3

    def forward(self, x):
        return self.twice(x) + Statics.twice(x) * self.by


def test_dataclasses_and_static_methods():
    assert jit.script(uses_options)(3) == uses_options(3)
    scripted = jit.script(Statics())
    assert scripted(adjoin.ones(2)).tolist() == [4, 4] and scripted.eval()(adjoin.ones(2)).tolist() == [8, 8]
    assert scripted.by == 3


@jit.script
class Pair:
    def __init__(self, a: int, b: int):
        self.a = a
        self.b = b

    def sum(self) -> int:
        return self.a + self.b


def test_instances_of_scripted_classes_are_arguments():
    """An annotation names the class, nothing else in the function does."""

    @jit.script
    def one(pair: Pair) -> int:
        pair.a = 10
        return pair.sum()

    @jit.script
    def many(pairs: list[Pair], by_name: dict[str, Pair]) -> int:
        total = 0
        for pair in pairs:
            total += pair.sum()
        return total + by_name["it"].sum()

    pair = Pair(1, 2)
    assert one(pair) == 12 and pair.a == 1  # a copy
    assert many([pair, Pair(3, 4)], {"it": pair}) == 13 and many([], {"it": Pair(0, 1)}) == 1

    @jit.script
    def nested(pairs: list[list[Pair]]) -> list[Pair]:
        return [pairs[0][1]]

    (made,) = nested([[pair, Pair(3, 4)]])
    assert type(made) is Pair and made.sum() == 7


class Halves(jit.ScriptModule):
    """A class of the older form: it is compiled when it is saved."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(adjoin.tensor([1.0, 2.0]))

    @jit.script_method
    def forward(self, x):
        if x.sum() > 0:
            return x * self.w
        return x + self.w


def test_a_class_of_script_modules_is_saved():
    made = Halves()
    for save in (made.save, lambda file: jit.save(made, file)):
        file = io.BytesIO()
        save(file)
        file.seek(0)
        again = jit.load(file)
        for x in (adjoin.ones(2), -adjoin.ones(2)):
            assert same(again(x), made(x))


class Bare(nn.Module):
    pass


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.p = Bare(), nn.Parameter(adjoin.ones(2))
        self.layers = nn.Sequential(nn.Identity(), nn.ReLU())
        self.layers.add_module("empty", nn.Sequential())

    def forward(self, x):
        return self.layers(x) * self.p


def test_a_file_keeps_modules_without_code_and_files_of_ones_own(tmp_path):
    net = Plain()
    scripted = jit.script(net)
    kept = {"a.json": b"\x00\xff{}", "b/c.txt": "text"}
    in_memory = io.BytesIO()
    jit.save(scripted, in_memory, kept)
    scripted.save(tmp_path / "net.aj", kept)
    for file in (in_memory, tmp_path / "net.aj", io.BytesIO(Halves().save_to_buffer(kept))):
        if hasattr(file, "seek"):
            file.seek(0)
        asked = {"b/c.txt": None, "a.json": ""}
        again = jit.load(file, _extra_files=asked)
        assert asked == {"a.json": b"\x00\xff{}", "b/c.txt": b"text"}
        if "layers" in again._modules:
            assert [n for n, _ in again.named_modules()] == [n for n, _ in net.named_modules()]
            assert same(again(adjoin.ones(2)), net(adjoin.ones(2))) and not again.eval().layers[2].training
    with pytest.raises(RuntimeError, match=r"no extra file 'd'.*it has a.json, b/c.txt"):
        jit.load(tmp_path / "net.aj", _extra_files={"d": ""})


class Color(enum.Enum):
    RED = 1
    GREEN = 2


def test_members_of_enumerations_come_back():
    @jit.script
    def choose(first: bool):
        if first:
            return Color.RED
        return Color.GREEN

    @jit.script
    def same_of(color: Color) -> Color:
        return color

    assert choose(True) is Color.RED and choose(False) is Color.GREEN and same_of(Color.GREEN) is Color.GREEN


def test_types_of_elements():
    is_of = jit.isinstance

    def kind(x: Any):
        if is_of(x, list[int]):
            return "ints"
        if is_of(x, dict[str, float]):
            return "floats by name"
        if is_of(x, (tuple[int, int], Optional[str])):  # noqa: UP045
            return "a pair, a text or None"
        if is_of(x, list[list[float]]):
            return "rows"
        return "else"

    scripted = jit.script(kind)
    cases = ([1], ["a"], {"a": 1}, {"a": 1.0}, (1, 2), (1,), (1, "a"), None, "s", 2.0, [1.0], [[1.0]], [[1]], [])
    for x in cases:
        assert scripted(x) == kind(x), x
    told = [kind(x) for x in cases]
    assert told == ["ints", "else", "else", "floats by name", *["a pair, a text or None"], "else", "else",
                    *["a pair, a text or None"] * 2, "else", "else", "rows", "else", "ints"]  # fmt: skip
    for bare in (list, typing.Dict, typing.Optional):  # noqa: UP006
        with pytest.raises(RuntimeError, match="without a contained type"):
            is_of([1], bare)

    @jit.script
    def unchanged(x: list[Any]):
        if is_of(x, list[float]):
            return "floats", x
        return "else", x

    made = unchanged([1, 2])
    assert made == ("else", [1, 2]) and type(made[1][0]) is int
