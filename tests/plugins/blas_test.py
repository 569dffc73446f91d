"""tests/plugins/blas_test.py: products with any BLAS, with another one, and with none."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import adjoin, numpy
adjoin.manual_seed(1)
for dtype in (adjoin.float32, adjoin.float64, adjoin.complex64):
    a, b = adjoin.randn(70, 90).to(dtype), adjoin.randn(90, 50).to(dtype)
    for x, y in ((a, b), (a.t().contiguous().t(), b.t().contiguous().t())):
        wanted = x.numpy().astype(complex) @ y.numpy().astype(complex)
        assert abs((x @ y).numpy() - wanted).max() < 1e-3
weight = adjoin.randn(8, 4, 3, 3)
adjoin.nn.functional.conv2d(adjoin.randn(2, 4, 9, 9), weight, padding=1).sum().item()
print("right")
"""


def run(blas):
    env = {**os.environ, "ADJOIN_BLAS": blas}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=False,
        capture_output=True,
        text=True,
        env=env,
    )


@pytest.mark.parametrize("blas", ["", "own", "onednn", "openblas", "blis", "mkl", "/no/such/library.so"])
def test_products_are_right_whatever_is_asked_for(blas):
    result = run(blas)
    assert result.stdout == "right\n", result.stderr


def test_a_library_that_was_named_and_is_missing_is_told():
    result = run("/no/such/library.so")
    assert "no BLAS library, our own products serve (/no/such/library.so: " in result.stderr
    assert run("own").stderr == ""


def test_listing_who_is_there_warns_of_nobody():
    program = "from adjoin.backends import blas; blas.get(); print([name for name, *_ in blas.available()])"
    env = {**os.environ, "ADJOIN_BLAS": ""}
    got = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=env)
    assert got.stderr == "" and "own" in got.stdout
    if "mkl" in got.stdout:
        pytest.skip("MKL is installed: nothing is missing to be told")
    assert "no BLAS library 'mkl', our own products serve (" in run("blis,dgemm=mkl").stderr


@pytest.mark.parametrize("suffix, meets", [("_", "potrf"), ("_64_", "2.0")], ids=["32", "64"])
def test_lapack_is_that_of_the_library_that_was_named(tmp_path, suffix, meets):
    """Not where its integers have 64 bits: the contract's have 32, and it would read what lies beside them."""
    source, library = tmp_path / "named.c", tmp_path / "libnamed.so"
    routines = [f"{letter}{name}" for letter in "sdcz" for name in ("potrf", "getrf", "trsm", "geqrf", "gesdd", "geev")]
    routines += ["ssyevd", "dsyevd", "cheevd", "zheevd", "sorgqr", "dorgqr", "cungqr", "zungqr"]
    lines = [f"void cblas_{letter}gemm{suffix[1:-1] and '64_'}(void) {{ abort(); }}" for letter in "sdcz"]
    lines += [f'void {name}{suffix}(void) {{ puts("{name[1:]}"); fflush(stdout); _exit(0); }}' for name in routines]
    source.write_text("\n".join(["#include <stdio.h>", "#include <stdlib.h>", "#include <unistd.h>", *lines]))
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    program = """
import adjoin, sys
adjoin.set_num_threads(1)
four = adjoin.eye(100, dtype=adjoin.float64) * 4
for chosen in sys.argv[1:]:
    adjoin.linalg.cholesky(four)  # who serves is asked again after a choice
    adjoin.backends.blas.set(chosen)
print(adjoin.linalg.cholesky(four)[0, 0].item())
"""
    named = str(library)
    for blas, chosen, found in (
        (named, [], meets),
        ("own", [], "2.0"),
        ("", [], "2.0"),
        ("", [named], meets),
        ("own", [named], meets),
        ("", ["own"], "2.0"),
        ("", [f"cgemm={named}"], "2.0"),
    ):
        env = {**os.environ, "ADJOIN_BLAS": blas}
        command = [sys.executable, "-c", program, *chosen]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=env)
        assert done.stdout.split() == [found], (blas, chosen, done.stderr)


@pytest.mark.parametrize(
    "guess, settings, known",
    [
        ("Prescott", {}, True),
        ("Zen", {}, False),
        ("Prescott", {"OPENBLAS_CORETYPE": "NEHALEM"}, False),
        ("Prescott", {"ADJOIN_CPU_ISA": "base"}, False),
    ],
    ids=["older than the processor", "it knows it", "the user said", "without AVX2"],
)
def test_an_openblas_that_does_not_know_the_processor_is_told(tmp_path, guess, settings, known):
    """It would compute with vectors of 16 bytes. What is told stands in the environment for that moment alone."""
    with open("/proc/cpuinfo") as file:
        flags = next(line for line in file if line.startswith("flags")).split()
    if "avx2" not in flags:
        pytest.skip("this processor has no AVX2")
    source, library = tmp_path / "old.c", tmp_path / "libold.so"
    source.write_text(f"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void say(const char* word) {{ const char* set = getenv("OPENBLAS_CORETYPE"); printf("%s %s\\n", word, set ? set : "-"); fflush(stdout); }}
int gotoblas_SKYLAKEX, gotoblas_HASWELL;
const char* openblas_get_corename(void) {{ return "{guess}"; }}
void gotoblas_dynamic_quit(void) {{ say("quit"); }}
void gotoblas_dynamic_init(void) {{ say("init"); }}
void cblas_sgemm(void) {{ say("gemm"); _exit(0); }}
""")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    env = {**os.environ, "ADJOIN_BLAS": str(library), **settings}
    program = "import adjoin; x = adjoin.ones(64, 64); x @ x"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, env=env)
    core = "SKYLAKEX" if {"avx512f", "avx512vl", "avx512dq", "avx512bw"} <= set(flags) else "HASWELL"
    told = ["quit", core, "init", core] if known else []
    assert done.stdout.split() == [*told, "gemm", settings.get("OPENBLAS_CORETYPE", "-")], done.stderr
