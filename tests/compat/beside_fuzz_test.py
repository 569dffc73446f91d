"""tests/compat/beside_fuzz_test.py: a few hundred calls made at random of each target of fuzz/run.py, and that it tells what is wrong."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = [
    "creation",
    "indexing",
    "reductions",
    "views",
    "promotion",
    "pointwise",
    "shapes",
    "out",
    "gradients",
    "programs",
    "sparse",
    "einsum",
    "solvers",
]
CASES = os.environ.get("ADJOIN_FUZZ_CASES", "300")


def python(*args):
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=900, cwd=HERE)


@pytest.mark.parametrize("target", TARGETS)
def test_each_difference_of_random_calls_has_its_name(target):
    run = python(HERE / "fuzz/run.py", "--target", target, "--cases", CASES)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


def test_each_rule_stands_for_a_line_of_the_document():
    code = """
from fuzz import classes
words = classes.DOCUMENT.read_text()
missing = [(r.name, r.line) for r in classes.RULES if r.line not in words]
assert not missing, missing
assert len({r.name for r in classes.RULES}) == len(classes.RULES)
"""
    run = python("-c", code)
    assert run.returncode == 0, run.stderr[-4000:]


# Each plants a fault into Adjoin: name of the target, and Python that plants it.
FAULTS = {
    "a wrong value": ("reductions", "real = adjoin.sum; adjoin.sum = lambda *a, **k: real(*a, **k) + 1"),
    "a wrong dtype": (
        "reductions",
        "real = adjoin.amax; adjoin.amax = lambda *a, **k: real(*a, **k).to(adjoin.float64)",
    ),
    "a refusal": ("pointwise", "def refuse(*a, **k): raise RuntimeError('out of order')\nadjoin.maximum = refuse"),
    "a missing refusal": ("shapes", "adjoin.cat = lambda *a, **k: adjoin.ones(3)"),
    "a sparse product of another value": (
        "sparse",
        "real = adjoin.Tensor.to_dense; adjoin.Tensor.to_dense = lambda *a, **k: real(*a, **k) * 2",
    ),
    "a product of another value": ("einsum", "real = adjoin.einsum; adjoin.einsum = lambda *a, **k: real(*a, **k) + 1"),
    "vectors that are no basis": (
        "solvers",
        "real = adjoin.linalg.qr\ndef qr(*a, **k):\n q, r = real(*a, **k)\n return q * 2, r / 2\nadjoin.linalg.qr = qr",
    ),
    "a view that is none": ("views", "real = adjoin.atleast_1d; adjoin.atleast_1d = lambda x: real(x).clone()"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_told(fault):
    target, plant = FAULTS[fault]
    code = f"""
import adjoin
exec({plant!r})
from fuzz import worker
told = []
for at in range(0, 1500, 50):  # until one is told: the rival itself may crash later
    worker.work({target!r}, 1, at, at + 50, lambda index, rule, text: told.append((rule, text)))
    unnamed = [text for rule, text in told if not rule]
    if unnamed:
        break
assert unnamed, "nothing was told"
print(unnamed[0])
"""
    run = python("-c", code)
    assert run.returncode == 0, run.stderr[-3000:]


def test_memory_that_is_not_written_is_told():
    code = """
from fuzz import memory
from fuzz.case import Call, Case
def told(name):
    call = Call(name, ["3"])
    return memory.unwritten(Case("creation", name, [], [call], call))
assert told("empty") and not told("zeros")
"""
    run = python("-c", code)
    assert run.returncode == 0, run.stderr[-3000:]


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), signal.SIGSEGV)", "time.sleep(60)"])
def test_a_crash_and_a_hang_are_told_with_their_case(how):
    code = f"""
import os, signal, sys, time
from fuzz import run
from fuzz.targets import TARGETS
def make(seed, index):
    if index == 3:
        {how}
    return real(seed, index)
real = TARGETS["creation"]
TARGETS["creation"] = make
report = run.Report(0)
run.processes("creation", 1, 0, 6, 3, report)
assert [(index, stage) for index, stage, how in report.lost] == [(3, 1)], report.lost
"""
    run = python("-c", code)
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]


def test_a_crash_while_pytorch_makes_a_program_is_its_own():
    code = """
import os, signal
from fuzz import live, run
real = live.compiled
def planted(line):
    if line.startswith("v"):
        os.kill(os.getpid(), signal.SIGSEGV)
    return real(line)
live.compiled = planted
report = run.Report(0)
run.processes("programs", 1, 0, 4, 20, report)
assert report.lost and all(run.STAGES[stage] == "PyTorch" for index, stage, how in report.lost), report.lost
"""
    run = python("-c", code)
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]


@pytest.mark.parametrize("library, theirs", [("torch", True), ("adjoin", False)])
def test_whoever_breaks_memory_is_told_though_the_process_ends_later(library, theirs):
    code = f"""
import os, subprocess
from fuzz import run
plant = "import os, signal, {library}; {library}.tensor = {library}.empty = lambda *a, **k: os.kill(os.getpid(), signal.SIGSEGV)"
real = subprocess.run
def planted(command, **words):
    inner = f"{{plant}}; import runpy, sys; sys.argv = {{command[1:]!r}}; runpy.run_path(sys.argv[0], run_name='__main__')"
    return real([command[0], "-c", inner], **words)
run.subprocess.run = planted
assert run.broken_by_theirs("creation", 1, 0, 40) is {theirs}
"""
    run = python("-c", code)
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]


def test_the_command_has_each_target():
    run = python("-c", f"from fuzz.targets import TARGETS; assert sorted(TARGETS) == sorted({TARGETS!r})")
    assert run.returncode == 0, run.stderr[-2000:]
