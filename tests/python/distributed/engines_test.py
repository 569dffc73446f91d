"""tests/python/distributed/engines_test.py: every engine does what it says it can, by `adjoin conform --comm`."""

import re
import shutil
import subprocess

import pytest

import adjoin

ADJOIN = shutil.which("adjoin")


def conforms(*words, before=()):
    got = subprocess.run([*before, ADJOIN, "conform", "--comm", *words], capture_output=True, text=True, timeout=120)
    # mpirun takes a process whose communicator was broken off for a lost one.
    assert before or got.returncode == 0, got.stdout + got.stderr
    passed = [int(n) for n in re.findall(r"(\d+) checks passed, 0 failed.*conforms", got.stdout)]
    assert passed, got.stdout
    return passed


@pytest.mark.parametrize("engine", ["simulated", "shm", "gloo", "faulty"])
def test_an_engine(engine, monkeypatch):
    monkeypatch.setenv("ADJOIN_FAULTY", "simulated")  # and no fault: it goes through
    if engine not in adjoin.plugin.available():
        pytest.skip(f"NOT TESTED: the plugin {engine} was not built")
    assert conforms(engine, "--ranks", "3")[0] > 1000


def test_mpi():
    if "mpi" not in adjoin.plugin.available() or not shutil.which("mpirun"):
        pytest.skip("NOT TESTED: the plugin mpi was not built, or there is no mpirun (openmpi-bin)")
    before = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    assert len(conforms("mpi", before=before)) == 2


def test_a_wrong_engine_is_found(tmp_path):
    """Its sums are off by one in the last element: the check can fail."""
    import pathlib

    source = (pathlib.Path(__file__).parent / "over_store.c").read_text().replace("over_store", "off_by_one")
    wrong = source.replace(
        "if (!s) w->done = 1;",
        "if (!s) w->done = 1;\n  if (c->kind == AJ_COLL_ALL_REDUCE && c->count > 2) ((double*)c->out)[c->count - 1] += 1;",
    )
    assert wrong != source
    (tmp_path / "wrong.c").write_text(wrong)
    flags = subprocess.run([ADJOIN, "config", "--cflags"], capture_output=True, text=True, check=True).stdout.split()
    made = tmp_path / "libaj_off_by_one.so"
    subprocess.run(
        ["cc", "-std=c99", "-shared", "-fPIC", *flags, str(tmp_path / "wrong.c"), "-o", str(made)], check=True
    )
    got = subprocess.run(
        [ADJOIN, "conform", "--comm", str(made), "--ranks", "2"], capture_output=True, text=True, timeout=60
    )
    assert got.returncode == 1 and re.search(r"failed: all_reduce sum float64\[5\].* element 4 is", got.stdout), (
        got.stdout
    )


def test_an_engine_that_is_not_there():
    got = subprocess.run([ADJOIN, "conform", "--comm", "none"], capture_output=True, text=True)
    assert got.returncode == 1 and "no plugin offers the engine 'none'" in got.stderr and "simulated" in got.stderr
