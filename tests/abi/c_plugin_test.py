"""tests/abi/c_plugin_test.py: one C file, compiled against what is installed, brings an op."""

import os
import subprocess
import sys

import pytest

from abi_tools import HERE, PREFIX, adjoin, clean_environment, compile_plugin

CUBE = (HERE / "cube.c").read_text()


@pytest.fixture(scope="module")
def cube(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cube")
    compile_plugin(folder, CUBE, name="cube", flags=["-std=c99", "-Wpedantic", "-Werror"])
    return folder


def test_check(cube):
    got = adjoin("plugins", "check", cube / "libaj_cube.so")
    assert got.returncode == 0, got.stdout
    assert "registers 1 op" in got.stdout and "verdict   ok" in got.stdout


def test_values_and_derivatives_from_c(cube, host):
    got = host("call", "cube::cube", "grad", "cube::cube", "grad2", "cube::cube", ADJOIN_PLUGIN_PATH=cube)
    assert got.stdout.splitlines() == [
        "ok cube::cube 1 8 27 64 125 216 343 512",
        "ok grad 3 12 27 48 75 108 147 192",
        "ok grad2 6 12 18 24 30 36 42 48",
    ], got.stdout + got.stderr


def test_first_use_from_many_threads(cube, host):
    got = host("threads", "cube::cube", ADJOIN_PLUGIN_PATH=cube)
    assert got.stdout.splitlines() == ["ok cube::cube 1 8 27 64 125 216 343 512"] * 8, got.stderr


def test_after_a_fork(cube, host):
    got = host("call", "cube::cube", "fork", "cube::cube", "call", "cube::cube", ADJOIN_PLUGIN_PATH=cube)
    assert got.stdout.splitlines() == ["ok cube::cube 1 8 27 64 125 216 343 512"] * 3, got.stdout + got.stderr


def test_loading_after_a_fork(cube, host):
    got = host("fork", "cube::cube", "call", "cube::cube", ADJOIN_PLUGIN_PATH=cube)
    assert got.stdout.splitlines() == ["ok cube::cube 1 8 27 64 125 216 343 512"] * 2, got.stdout + got.stderr


def test_ops_command(cube):
    got = adjoin("ops", "cube::cube", "--device", "cpu", ADJOIN_PLUGIN_PATH=cube)
    assert got.returncode == 0, got.stderr
    assert "cube::cube(Tensor x) -> Tensor" in got.stdout and "x * x * x" in got.stdout and "plugin cube" in got.stdout
    assert "more in plugin cube, not loaded yet" in adjoin("ops", ADJOIN_PLUGIN_PATH=cube).stdout


PYTHON = """
import adjoin
x = adjoin.tensor([1.0, 2.0, 3.0], dtype=adjoin.float64, requires_grad=True)
y = adjoin.ops.cube.cube(x)
(g,) = adjoin.autograd.grad(y.sum(), x, create_graph=True)
(gg,) = adjoin.autograd.grad(g.sum(), x, create_graph=True)
print(y.tolist(), g.tolist(), gg.tolist())
assert adjoin.autograd.gradcheck(adjoin.ops.cube.cube, (x,))
assert adjoin.autograd.gradgradcheck(adjoin.ops.cube.cube, (x,))
"""


def test_twice_from_python(cube):
    env = clean_environment(ADJOIN_PLUGIN_PATH=cube)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PREFIX / "lib/adjoin/python"), env.get("PYTHONPATH")]))
    got = subprocess.run([sys.executable, "-c", PYTHON], capture_output=True, text=True, env=env, timeout=120)
    assert got.returncode == 0, got.stderr
    assert got.stdout == "[1.0, 8.0, 27.0] [3.0, 12.0, 27.0] [6.0, 12.0, 18.0]\n"
