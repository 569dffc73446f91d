"""tests/ops/fuzz_test.py: a seeded handful of absurd calls of every row, in a process of its own."""

import os
import pathlib
import subprocess
import sys

import coverage_table as table


def test_absurd_arguments_raise():
    """Huge and negative integers, NaN, mixed dtypes and devices, 64 dimensions, nothing at all, arguments of a wrong type."""
    calls = 60 if table.FULL else 4
    here = pathlib.Path(__file__).parent
    run = subprocess.run([sys.executable, "-X", "faulthandler", here / "fuzz.py", str(table.SEED), str(calls)], capture_output=True,
                         text=True, timeout=900, env={**os.environ, "ADJOIN_MEMORY_LIMIT": "1G", "PYTHONPATH": os.pathsep.join(
                             [str(here), os.environ.get("PYTHONPATH", "")])})  # fmt: skip
    assert run.returncode == 0, "\n".join(run.stderr.splitlines()[-40:])
