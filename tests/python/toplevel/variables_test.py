"""tests/python/toplevel/variables_test.py: what the environment asks for and nobody can do is told once, with what is done."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import adjoin
x = adjoin.ones(300, 300)
x @ x, x @ x
print(adjoin.get_num_threads(), adjoin.get_num_threads())
"""


def run(**variables):
    clean = {k: v for k, v in os.environ.items() if k not in ("ADJOIN_NUM_THREADS", "OMP_NUM_THREADS", "ADJOIN_LOG")}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=clean | variables, capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize(
    "variable, value, told",
    [
        ("NUM_THREADS", "many", "ADJOIN_NUM_THREADS is 'many', wanted a whole number from 1 to 1024; "),
        ("NUM_THREADS", "0", "ADJOIN_NUM_THREADS is '0', wanted a whole number"),
        ("NUM_THREADS", "2x", "ADJOIN_NUM_THREADS is '2x', wanted a whole number"),
        (
            "NUM_THREADS",
            "5000",
            "ADJOIN_NUM_THREADS is '5000', wanted a whole number from 1 to 1024; 1024 threads serve",
        ),
        ("LOG", "loud", "ADJOIN_LOG is 'loud', wanted error, warning, info or trace; errors and warnings are shown"),
        ("FALLBACK", "hots", "no plugin offers the device 'hots'"),
        ("FALLBACK", "add@nowhere=host", "no plugin offers the device 'nowhere'"),
        ("FALLBACK", "host:12XB", "'12XB': wanted a number and B, KB, MB or GB, as in host:100MB; it is left out"),
        ("MEMORY_LIMIT", "3x", "ADJOIN_MEMORY_LIMIT is '3x', a size such as 512MB or 4GiB is wanted; not used"),
        ("BLAS", "nonsense", "ADJOIN_BLAS is 'nonsense', and there is no 'nonsense': "),
        ("BLAS", "dgemm=nobody", "there is no 'nobody': "),
        ("BLAS", "/none/lib.so", "our own products serve (/none/lib.so: "),
    ],
)
def test_what_nobody_can_do_is_told_once(variable, value, told):
    got = run(**{f"ADJOIN_{variable}": value})
    assert told in got.stderr
    assert got.stderr.startswith("adjoin warning: ") and got.stderr.count("\n") == 1


def test_the_next_variable_counts_instead():
    got = run(ADJOIN_NUM_THREADS="none", OMP_NUM_THREADS="3,2")
    assert got.stdout.split() == ["3", "3"] and got.stderr.endswith("; 3 threads serve\n")


@pytest.mark.parametrize(
    "variables",
    [
        {"NUM_THREADS": "1", "LOG": "warning", "FALLBACK": "host:100MB", "BLAS": "own", "MEMORY_LIMIT": "2GiB"},
        {"NUM_THREADS": "", "LOG": "", "FALLBACK": "", "BLAS": ""},
        {"FALLBACK": "*@meta=error,add@cpu=decompose,warn", "BLAS": "dgemm=own,own"},
    ],
)
def test_what_can_be_done_is_done_without_a_word(variables):
    got = run(**{f"ADJOIN_{name}": value for name, value in variables.items()})
    assert got.stderr == ""
    assert variables.get("NUM_THREADS") != "1" or got.stdout.split() == ["1", "1"]
