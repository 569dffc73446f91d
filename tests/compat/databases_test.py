"""tests/compat/databases_test.py: the databases that PyTorch's package ships to test itself, as oracles: each column at least 99 %, of the ops a part."""

import pathlib
import subprocess
import sys

import pytest

for package in ("torch", "expecttest"):
    pytest.importorskip(package)

RUN = pathlib.Path(__file__).resolve().parent / "databases/run.py"


def printed(*args):
    done = subprocess.run([sys.executable, RUN, *args], capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr[-4000:]
    print(done.stdout)
    return done.stdout


def shares(text):
    """{aspect: share of entries that pass}, of a printed table."""
    lines = text.split("\n\n")[0].splitlines()[1:]
    return {line[:24].strip(): float(line[24:].split()[2].rstrip("%")) for line in lines}


@pytest.mark.parametrize("database", ["optimizers", "modules"])
def test_each_column_is_whole(database):
    columns = shares(printed(database))
    assert len(columns) >= 9
    assert all(share >= 99 for share in columns.values()), columns


def test_a_part_of_the_ops():
    columns = shares(printed("ops", "--part", "0.04"))
    columns = {c: share for c, share in columns.items() if not c.startswith("sparse")}  # few entries have those
    assert len(columns) == 10
    assert all(share >= 90 for share in columns.values()), columns


def test_a_fault_is_found():
    plant = "import adjoin; real = adjoin.nn.functional.linear; adjoin.nn.functional.linear = lambda *a: real(*a) + 1"
    code = f"""
import sys, runpy
{plant}
adjoin.nn.Linear.forward = lambda self, x: adjoin.nn.functional.linear(x, self.weight, self.bias)
sys.argv = ["run.py", "modules", "--entry", "nn.Linear"]
runpy.run_path({str(RUN)!r}, run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    assert shares(done.stdout)["outputs"] == 0 and shares(done.stdout)["constructor"] == 100
