"""tests/abi/junk_test.py: what no table can take is refused with a sentence; whoever is loaded first does not take the host."""

import pytest

from abi_tools import HERE, compile_plugin, run_python


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("junk")
    compile_plugin(
        folder,
        (HERE / "junk.cpp").read_text(),
        name="junk",
        compiler="g++",
        suffix=".cpp",
        flags=["-std=c++20", "-Werror"],
    )
    got = run_python(
        """
import glob, os, adjoin
adjoin.load_plugin(glob.glob(os.environ["JUNK"] + "/*.so")[0])
x = adjoin.ones(2)
print("host:", x.device, x.numpy().tolist(), (adjoin.tensor([1.0]) + x).tolist(), flush=True)
y = adjoin.empty(2, device="junk")
print("junk:", y.device, flush=True)
""",
        JUNK=folder,
    )
    assert got.returncode == 0, got.stdout + got.stderr
    return got.stdout.splitlines()


def lines(told, word):
    return [line.partition(": ")[2] for line in told if line.startswith(word + ":")]


def test_values_and_objects(told):
    assert "payload of" in lines(told, "type")[0] and "2^40" in lines(told, "type")[0]
    assert "the function is NULL" in lines(told, "function")[0]
    assert "needs a name" in lines(told, "dtype")[0]
    assert "32 bits, 0 lanes, wanted 1" in lines(told, "lanes")[0]
    assert lines(told, "generator")[0].split()[0] != "0"
    odd = lines(told, "list")
    assert len(odd) == 6 and all("has the tag" in line for line in odd) and "NULL" in odd[-1]
    assert lines(told, "deep") == ["released"]


def test_arguments_that_are_not_there(told):
    assert lines(told, "null") == [
        "3 neg: argument 'input' is Tensor with a NULL inside; what is absent is AJ_NONE",
        "3 sum: argument 'dim' is list of int with a NULL inside; what is absent is AJ_NONE",
        *["3 cat: argument 'tensors' is list of Tensor with a NULL inside; what is absent is AJ_NONE"] * 2,
    ]


def test_texts_without_end(told):
    assert lines(told, "mask") == ["0"] and lines(told, "services") == ["0 0"]
    assert all(line.split()[0] != "0" for line in lines(told, "service") + lines(told, "choose"))


def test_keys_of_the_core(told):
    assert "'autograd' is the core's own" in lines(told, "fallback")[0]


def test_parallel_bodies_that_throw(told):
    got = lines(told, "parallel")
    assert len(got) == 2 and all("out of a parallel body" in line and "junk" in line for line in got), got


def test_shapes_that_are_not_there(told):
    assert lines(told, "made") == ["0 "] and "data is NULL" in lines(told, "memory")[0]
    got = lines(told, "shape")
    assert len(got) == 6 and all("shape is NULL" in line for line in got), got


def test_nobody_takes_the_host(told):
    assert lines(told, "host") == ["cpu [1.0, 1.0] [2.0, 2.0]"] and lines(told, "junk") == ["junk:0"]
