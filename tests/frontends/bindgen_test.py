"""tests/frontends/bindgen_test.py: what `adjoin bindgen` writes for Lua and Rust works: every op, errors, memory, training."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import adjoin
import pytest
from adjoin import safetensors
from building import ROOT, check_descent, config, run

BINDINGS = ROOT / "frontends/cli/templates/bindings"
LUAJIT = shutil.which("luajit")
CARGO = shutil.which("cargo") or shutil.which("cargo", path=str(Path.home() / ".cargo/bin"))
needs_lua = pytest.mark.skipif(not LUAJIT, reason="there is no luajit here")
needs_rust = pytest.mark.skipif(not CARGO, reason="there is no cargo here")


def bindgen(*words):
    return subprocess.run(["adjoin", "bindgen", *map(str, words)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def lua(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lua")
    assert bindgen("--lang", "lua", "--out", folder / "adjoin.lua").returncode == 0
    return folder


def run_lua(folder, *words):
    return run(LUAJIT, *words, cwd=folder, env={"ADJOIN_LIB": config("--libdir"), "LUA_PATH": f"{folder}/?.lua;;"})


def test_every_op_has_its_function():
    listed = subprocess.run(["adjoin", "ops"], capture_output=True, text=True, check=True).stdout
    count = int(re.search(r"^(\d+) ops$", listed, re.M)[1])
    for lang, pattern in (("lua", r"^  return call\(.*\d\)$"), ("rust", r"static OP: Op = ")):
        text = bindgen("--lang", lang).stdout
        assert len(re.findall(pattern, text, re.M)) >= count, lang
        assert "@OPS@" not in text


def test_wrong_use():
    for words, told in (([], "which language"), (["--lang", "cobol"], "no binding for 'cobol'"),
                        (["--lang", "lua", "--load", "none.so"], "none.so")):  # fmt: skip
        got = bindgen(*words)
        assert got.returncode in (1, 2) and told in got.stderr


@needs_lua
def test_lua_keeps_its_promises(lua):
    assert "everything holds" in run_lua(lua, Path(__file__).parent / "check.lua")


@needs_lua
def test_lua_without_the_library_tells_what_to_set(lua):
    env = {"PATH": os.environ["PATH"], "ADJOIN_LIB": "/nowhere", "LUA_PATH": f"{lua}/?.lua;;"}
    got = subprocess.run([LUAJIT, "-e", "require 'adjoin'"], capture_output=True, text=True, env=env)
    assert got.returncode == 1 and "export ADJOIN_LIB=$(adjoin config --libdir)" in got.stderr, got


@needs_lua
def test_lua_reads_the_digits_as_python_does(lua, digits):
    from adjoin.demo import digits as demo

    told = run_lua(lua, BINDINGS / "lua/digits.lua", digits, 2, 5)
    data = safetensors.load_file(digits)
    model, _, means, _ = demo.train(data["pictures"], data["labels"], seed=5, epochs=2, device=adjoin.device("cpu"))
    assert [float(x) for x in re.findall(r"loss (\S+)", told)] == pytest.approx(means, rel=1e-6)
    answers = demo.predict(model, data["held_pictures"], adjoin.device("cpu"))
    assert f"accuracy: {demo.accuracy(answers, data['held_labels'].tolist()):.4f}" in told


def build_rust(folder, *words, main=BINDINGS / "rust/src/main.rs"):
    """A program over the binding that `bindgen` writes with these words."""
    shutil.copytree(BINDINGS / "rust", folder / "rust")
    shutil.copy(main, folder / "rust/src/main.rs")
    assert bindgen("--lang", "rust", *words, "--out", folder / "rust/src/adjoin.rs").returncode == 0
    environment = {**os.environ, "RUSTFLAGS": "-D warnings", "PATH": f"{Path(CARGO).parent}:{os.environ['PATH']}"}
    built = subprocess.run(
        [CARGO, "build", "--offline", "-q"], cwd=folder / "rust", env=environment, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    return folder / "rust/target/debug/train"


@needs_rust
def test_rust_defines_an_op_and_trains(tmp_path, defines):
    told = run(build_rust(tmp_path)).splitlines()
    check_descent(told, lambda line: [float(n) for n in re.findall(r"-?\d+\.\d+", line)])
    assert "error matmul: a is [3] and b is [4]: the inner sizes 3 and 4 differ" in told[6]
    assert told[7] == "error scaled_square: plugin 'rust' on cpu: a callback in Rust panicked: by is negative"
    adjoin.manual_seed(0)
    points, weight = adjoin.randn(64, 4), adjoin.zeros(2, 4, requires_grad=True)
    for _ in range(20):
        labels = (points.sum(1) > 0).long()
        loss = adjoin.nn.functional.cross_entropy(points @ weight.T, labels)
        (grad,) = adjoin.autograd.grad(loss, weight)
        with adjoin.no_grad():
            weight -= grad
    assert float(re.search(r"step 19: loss Float\((.*)\)", "\n".join(told))[1]) == pytest.approx(loss.item(), rel=1e-5)


PLANS = "plan 3 dies\nplan 2 dies\neverything holds\n"


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """A plugin whose ops take and give objects, functions and streams."""
    out = tmp_path_factory.mktemp("objects") / "libaj_objects.so"
    words = ["-shared", "-fPIC", "-fvisibility=hidden", f"-I{config('--includedir')}", ROOT / "tests/abi/objects.c"]
    run("gcc", "-std=c11", *words, "-o", out)
    return out


@needs_lua
def test_lua_passes_objects_on(tmp_path, objects):
    assert bindgen("--lang", "lua", "--load", objects, "--out", tmp_path / "adjoin.lua").returncode == 0
    assert run_lua(tmp_path, Path(__file__).parent / "objects.lua", objects) == PLANS


@needs_rust
def test_rust_passes_objects_on(tmp_path, objects):
    program = build_rust(tmp_path, "--load", objects, main=Path(__file__).parent / "objects.rs")
    assert run(program, objects) == PLANS


@pytest.fixture
def captured(tmp_path):
    """(a program in a file, what it gives for [[1, -1], [2, 0.5]])."""
    net = adjoin.nn.Sequential(adjoin.nn.Linear(2, 1), adjoin.nn.Tanh())
    x = adjoin.tensor([[1, -1], [2, 0.5]])
    with adjoin.no_grad():
        adjoin.jit.save(adjoin.jit.trace(net, x), tmp_path / "model.aj")
        return tmp_path / "model.aj", net(x).reshape(-1).tolist()


@needs_lua
def test_lua_runs_a_captured_program(lua, captured):
    told = run_lua(lua, Path(__file__).parent / "program.lua", captured[0])
    assert [
        float(n) for n in re.findall(r"-?\d\.?\d*(?:e-?\d+)?", told.partition("tensor(")[2].partition(", shape")[0])
    ] == pytest.approx(captured[1], rel=1e-3)


@needs_rust
def test_rust_runs_a_captured_program(tmp_path, captured):
    told = run(build_rust(tmp_path, main=Path(__file__).parent / "program.rs"), captured[0])
    assert [float(n) for n in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", told)] == pytest.approx(captured[1], rel=1e-5)
