"""tests/python/graph/program_test.py: programs as text and as files: read back without a loss, run by C++ and the command with the same bits;
junk is an error."""

import io
import os
import random
import subprocess
import sys
import zipfile

import adjoin
import numpy
import pytest
from adjoin import _C, jit
from trace_test import mlp, same, scaled, small_gpt

SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))


def programs():
    yield jit.trace(mlp(), adjoin.randn(3, 16))
    yield jit.trace(small_gpt().eval(), adjoin.randint(0, 32, (2, 8)))
    yield jit.trace(scaled, (adjoin.randn(4, 3), adjoin.randn(2, 3)))
    yield jit.trace(
        lambda x: adjoin.full((2,), float("-inf"), dtype=x.dtype, device=x.device) * x.to(adjoin.complex64),
        adjoin.ones(2),
    )


TEXTS = {
    "if": """adjoin.program 1
fn f(%x: float32[3], %c: bool[]) {
  %y = if %c {
    %a = add(%x, 1.0) : float32[3]
    yield %a
  } else {
    yield %x
  } : float32[3]
  return %y
}
""",
    "while": """adjoin.program 1
fn f(%x: float32[3], %n: int64[]) {
  %y, %left = while (%a = %x, %k = %n) {
    %more = gt(%k, 0) : bool[]
    yield %more
  } do {
    %b = mul(%a, 2.0) : float32[3]
    %next = sub(%k, 1) : int64[]
    yield %b, %next
  } : float32[3], int64[]
  return %y, %left
}
""",
    "numbers": """adjoin.program 1
fn f(%x: float32[3], %seed: int, %skip: int, %p: float) {
  %y = dropout_philox(%x, %p, %seed, %skip) : float32[3]
  return %y
}
""",
}


def test_text_is_read_back_as_it_is():
    for traced in programs():
        text = traced.graph
        assert _C.program_text(_C.program_parse(text)) == text
    for text in TEXTS.values():
        assert _C.program_text(_C.program_parse(text)) == text


def test_branches_and_loops_run():
    branch, loop = (_C.program_parse(TEXTS[name]) for name in ("if", "while"))
    x = adjoin.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert _C.program_run(branch, [x, adjoin.tensor(True)], True)[0].tolist() == [2, 3, 4]
    assert _C.program_run(branch, [x, adjoin.tensor(False)], True)[0] is x
    y, left = _C.program_run(loop, [x, adjoin.tensor(5)], True)
    assert y.tolist() == [32, 64, 96] and left.item() == 0
    assert adjoin.autograd.grad(y.sum(), x)[0].tolist() == [32, 32, 32]


def test_numbers_are_inputs():
    program, x = _C.program_parse(TEXTS["numbers"]), adjoin.ones(3)
    for seed, skip, p in ((1, 0, 0.5), (-7, 3, 0.25), (2**62, 5, 0.9)):
        given = [adjoin.tensor(seed), adjoin.tensor(skip), adjoin.tensor(p, dtype=adjoin.float64)]
        one, other = (_C.program_run(program, [x, *given], fused)[0] for fused in (True, False))
        wanted = _C.program_parse(
            "adjoin.program 1\nfn f(%x: float32[3]) {\n"
            f"  %y = dropout_philox(%x, {p}, {seed}, {skip}) : float32[3]\n  return %y\n}}"
        )
        assert one.equal(other) and one.equal(_C.program_run(wanted, [x], True)[0])
    for wrong in (adjoin.tensor(1.0), adjoin.tensor([1]), adjoin.tensor(1, dtype=adjoin.int32)):
        with pytest.raises(RuntimeError, match="'seed'.*captured for int: give a tensor of one number"):
            _C.program_run(program, [x, wrong, *given[1:]], True)


def test_constants_become_inputs_and_inputs_views():
    text = """adjoin.program 1
fn f(%x: float32[2, 3], %y: float32[3]) {
  %a = dropout_philox(%x, 0.5, 7, 2) : float32[2, 3]
  %b = dropout_philox(%a, 0.25, 7, 9) : float32[2, 3]
  %c = add(%b, %y) : float32[2, 3]
  return %c
}
"""
    x = adjoin.randn(4, 6)
    views = x[:, ::2][1:3], x[2, :3]
    wanted = _C.program_run(_C.program_parse(text), list(views), True)[0]
    program = _C.program_parse(text)
    assert _C.program_numbers(program, "seed") == [(0, 7, 0), (1, 7, None)]
    assert _C.program_numbers(program, "p") == [(0, 0.5, 0), (1, 0.25, None)]
    for call in (0, 1):
        _C.program_lift(program, call, "seed", 2)
    _C.program_lift(program, 1, "p", 3)
    with pytest.raises(RuntimeError, match="input 3 is float, the number 'offset' is int"):
        _C.program_lift(program, 0, "offset", 3)
    with pytest.raises(RuntimeError, match="call 5 has no number 'seed'"):
        _C.program_lift(program, 5, "seed", 2)
    _C.program_view(program, 0, 3, x, views[0])  # a new input: the last
    _C.program_view(program, 0, 2, x, views[1])
    given = [adjoin.tensor(7), adjoin.tensor(0.25, dtype=adjoin.float64), x]
    assert _C.program_run(program, given, True)[0].equal(wanted)
    other = _C.program_parse(text)
    with pytest.raises(RuntimeError, match=r"input 0 is float32\[2, 3\], which is no such view of float32\[4, 6\]"):
        _C.program_view(other, 0, 1, x, x[0, :3])
    assert _C.program_text(other) == text
    with pytest.raises(RuntimeError, match="a program that has run"):
        _C.program_lift(program, 0, "offset", 3)


WRONG = {
    "adjoin.program 2\n": "the format is 2",
    "adjoin.program 1\nfn f() {\n  return %x\n}": "line 3.*no value %x",
    "adjoin.program 1\nfn f(%x: float32[2]) {\n  %y = nothing(%x) : float32[2]\n  return %y\n}": "no op 'nothing'",
    "adjoin.program 1\nfn f(%x: float32[2]) {\n  %y = add(%x) : float32[2]\n  return %y\n}": "'other' is missing",
    "adjoin.program 1\nfn f(%x: float32[2]) {\n  %y = add(%x, 1, beta=2) : float32[2]\n  return %y\n}": "no 'beta'",
    "adjoin.program 1\nfn f(%x: float99[2]) {\n  return %x\n}": "no dtype 'float99'",
    "adjoin.program 1\nfn f(%x: float32[2]) {\n  return %x\n} more": "has ended",
    "adjoin.program 1\nfn f(%x: float32[2]) {\n  %x = neg(%x) : float32[2]\n  return %x\n}": "there already",
    TEXTS["numbers"].replace("return %y", "return %p"): "%p is a number, a tensor is wanted",
    TEXTS["numbers"].replace("%p, %seed", "%seed, %p"): "'p' does not take %seed",
    TEXTS["numbers"].replace("philox(%x", "philox(%p"): "'input' does not take %p",
    TEXTS["numbers"].replace(" : float32[3]\n", " : float\n"): "a number is an input alone",
    TEXTS["if"].replace("yield %x", "yield %c"): "block yields %c of type bool",
    TEXTS["while"].replace("yield %more", "yield %a"): "more than one element",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_its_place(text):
    with pytest.raises(RuntimeError, match=WRONG[text]):
        _C.program_parse(text)


def test_junk_is_an_error_or_a_program():
    rng = random.Random(SEED)
    corpus = [t.graph for t in programs()] + list(TEXTS.values())
    words = [
        "%",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        "@",
        "into",
        "if",
        "while",
        "9" * 30,
        "-1",
        "nan",
        "draw",
        '"',
        "\\",
        "\0",
        "é",
        "_",
        "None",
    ]
    good = 0
    for _ in range(1500):
        text = rng.choice(corpus)
        for _ in range(rng.randint(1, 4)):
            at, n = rng.randrange(len(text) + 1), rng.choice([0, 0, 1, 1, 3, 20])
            text = text[:at] + rng.choice([*words, "", text[at : at + 9]]) + text[at + n :]
        try:
            read = _C.program_parse(text)
        except (ValueError, RuntimeError, IndexError, TypeError) as e:
            assert "program" in str(e), (SEED, text)
            continue
        good += 1
        assert _C.program_text(_C.program_parse(_C.program_text(read))) == _C.program_text(read), (SEED, text)
    assert good > 10, SEED
    deep = "adjoin.program 1\nfn f(%c: bool[]) {\n" + "if %c {\n" * 100_000
    with pytest.raises(RuntimeError, match="deeper"):
        _C.program_parse(deep)


def test_a_file_holds_text_and_tensors_and_is_loaded_with_the_same_bits(tmp_path):
    net, x = mlp().eval(), adjoin.randn(3, 16)
    jit.save(jit.trace(net, x), tmp_path / "mlp.aj")
    with zipfile.ZipFile(tmp_path / "mlp.aj") as z:
        assert sorted(z.namelist()) == [
            f"program/{n}" for n in ("meta.json", "program.ajir", "source.map", "weights.safetensors")
        ]
        assert z.read("program/program.ajir").startswith(b"adjoin.program 1\n") and b"program_test.py" in z.read(
            "program/source.map"
        )
    loaded = jit.load(tmp_path / "mlp.aj")
    assert same(loaded(x), net(x)) and same(loaded.state_dict()["0.weight"], net[0].weight.detach())
    assert [p.requires_grad for p in loaded.parameters()] == [True] * 6
    loaded(x).sum().backward()
    net(x).sum().backward()
    assert same(loaded.get_parameter("0.weight").grad, net[0].weight.grad)
    with pytest.raises(RuntimeError, match=r"input 0 \('x'\) is float32\[4, 16\].*captured for float32\[3, 16\]"):
        loaded(adjoin.randn(4, 16))
    with pytest.raises(TypeError, match="form"):
        loaded(x, x)
    memory = io.BytesIO()
    jit.save(jit.trace(small_gpt().eval(), adjoin.randint(0, 32, (1, 4))), memory)
    idx = adjoin.randint(0, 32, (1, 4))
    assert same(jit.load(io.BytesIO(memory.getvalue()))(idx), small_gpt().eval()(idx))


def test_a_damaged_file_is_an_error(tmp_path):
    rng = random.Random(SEED)
    jit.save(jit.trace(mlp().eval(), adjoin.randn(3, 16)), tmp_path / "good.aj")
    good = (tmp_path / "good.aj").read_bytes()
    for _ in range(60):
        bad = bytearray(good)
        at = rng.randrange(len(bad))
        if rng.random() < 0.3:
            bad = bad[:at]
        else:
            bad[at] ^= 1 << rng.randrange(8)
        (tmp_path / "bad.aj").write_bytes(bad)
        try:
            jit.load(tmp_path / "bad.aj")
        except (ValueError, RuntimeError, IndexError, TypeError, MemoryError):
            continue
    (tmp_path / "text.aj").write_text("hello")
    with pytest.raises((RuntimeError, ValueError), match="no archive"):
        jit.load(tmp_path / "text.aj")
    with pytest.raises(FileNotFoundError):
        jit.load(tmp_path / "none.aj")
    adjoin.save(mlp().state_dict(), tmp_path / "state.pt")
    with pytest.raises((RuntimeError, ValueError), match="state_dict"):
        jit.load(tmp_path / "state.pt")
    with pytest.raises(RuntimeError, match="jit.trace"):
        jit.save(mlp(), tmp_path / "no.aj")


CPP = r"""
#include <adjoin/program.hpp>
#include <adjoin/kit/ops.hpp>
#include <cstdio>
int main(int, char** argv) {
  adjoin::Program model(argv[1]);
  adjoin::Tensor x = adjoin::remainder(adjoin::arange(16), 7.0);
  x = adjoin::to(adjoin::reshape(x, {2, 8}), adjoin::int64);
  adjoin::Tensor y = model(x);
  for (int64_t i = 0; i < y.numel(); ++i) std::printf("%a\n", y.data<float>()[i]);
}
"""


def test_cpp_and_the_command_run_it_without_python(tmp_path):
    model = small_gpt().eval()
    x = (adjoin.arange(16) % 7).reshape(2, 8)
    jit.save(jit.trace(model, x), tmp_path / "gpt.aj")
    with adjoin.no_grad():
        wanted = model(x)[0]
    (tmp_path / "run.cpp").write_text(CPP)
    flags = [
        subprocess.run(["adjoin", "config", w], capture_output=True, text=True, check=True).stdout.split()
        for w in ("--cflags", "--libs")
    ]
    done = subprocess.run(
        ["g++", "-std=c++20", "-O0", "-Wall", "-Werror", "run.cpp", "-o", "run", *flags[0], *flags[1]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told = subprocess.run(
        [tmp_path / "run", tmp_path / "gpt.aj"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert [float.fromhex(word) for word in told] == wanted.flatten().tolist()

    numpy.save(tmp_path / "x.npy", x.numpy())
    words = ["adjoin", "run", tmp_path / "gpt.aj", "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy"]
    subprocess.run(words, check=True, env={**os.environ, "ADJOIN_PYTHON": "/nowhere"})
    assert numpy.load(tmp_path / "y.npy").tobytes() == wanted.numpy().tobytes()
    shown = subprocess.run(
        ["adjoin", "graph", "show", tmp_path / "gpt.aj"], capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "gpt.ajir").write_text(shown)
    for name in ("gpt.aj", "gpt.ajir"):
        told = subprocess.run(
            ["adjoin", "graph", "check", tmp_path / name], capture_output=True, text=True, check=True
        ).stdout
        assert "sound: 1 inputs, 1 results" in told
    (tmp_path / "gpt.ajir").write_text(shown.replace("return %", "return %none"))
    bad = subprocess.run(["adjoin", "graph", "check", tmp_path / "gpt.ajir"], capture_output=True, text=True)
    assert bad.returncode == 1 and "no value %none" in bad.stderr
    bad = subprocess.run(["adjoin", "run", tmp_path / "gpt.aj"], capture_output=True, text=True)
    assert bad.returncode == 2 and "x: int64[2, 8]" in bad.stderr


def test_a_program_file_is_no_code(tmp_path):
    jit.save(jit.trace(mlp().eval(), adjoin.randn(3, 16)), tmp_path / "m.aj")
    program = f"import sys, adjoin\nadjoin.jit.load({str(tmp_path / 'm.aj')!r})\nassert 'pickle' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_sizes_with_a_name_are_any(tmp_path):
    model = small_gpt().eval()
    traced = jit.trace(model, adjoin.randint(0, 32, (3, 8)), dynamic={0: {0: "batch", 1: "length"}})
    assert "sizes batch, length\n" in traced.graph and "int64[batch, length]" in traced.graph
    assert _C.program_text(_C.program_parse(traced.graph)) == traced.graph
    jit.save(traced, tmp_path / "gpt.aj")
    loaded = jit.load(tmp_path / "gpt.aj")
    for shape in ((1, 1), (2, 5), (5, 32), (3, 8)):
        idx = adjoin.randint(0, 32, shape)
        assert same(loaded(idx), model(idx)) and same(traced(idx), model(idx)), shape
    assert len(traced._traced.known) == 0
    with pytest.raises(RuntimeError, match=r"int64\[4\].*int64\[batch, length\]"):
        loaded(adjoin.ones(4, dtype=adjoin.int64))

    def mixed(x, y):
        both = x.reshape(x.shape[0] * x.shape[1], 1) + y.reshape(1, -1)
        return both.reshape(-1)[: 2 * x.shape[0] * y.shape[0] + 1], adjoin.zeros(y.shape[0] + 3)[3:] + y

    traced = jit.trace(mixed, (adjoin.randn(3, 20), adjoin.randn(4)), dynamic={0: {0: "b", 1: "n"}, 1: ["m"]})
    for b, n, m in ((3, 20, 4), (5, 6, 3), (1, 2, 2)):
        inputs = adjoin.randn(b, n), adjoin.randn(m)
        assert same(traced(*inputs), mixed(*inputs)), (b, n, m)


def test_what_sizes_decide_is_refused():
    for f, told in (
        (lambda x: x * (1.0 / x.shape[0]), "an argument"),
        (lambda x: x * 2 if x.shape[0] > 5 else x + 1, "call"),
        (lambda x: x[: x.shape[0] // 2], "no sum of products"),
        (lambda x: x + adjoin.tensor(list(range(x.shape[0]))), "constant"),
        (lambda x: adjoin.cat([x] * x.shape[0]), "argument|sum"),
    ):
        with pytest.raises(NotImplementedError, match=told):
            jit.trace(f, adjoin.ones(6), dynamic={0: ["n"]})
    with pytest.raises(ValueError, match="2 or more"):
        jit.trace(lambda x: x, adjoin.ones(1), dynamic={0: ["n"]})
