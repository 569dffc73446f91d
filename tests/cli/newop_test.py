"""tests/cli/newop_test.py: what `adjoin new-op` writes builds with nothing but the installed headers, computes and differentiates;
the same C++ file is read by the compilers of GPUs where they are."""

import os
import re
import shutil
import subprocess

import pytest

from abi_tools import ADJOIN, adjoin

NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


@pytest.fixture(scope="module", params=["c", "c++"])
def op(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("new") / "soft"
    got = adjoin("new-op", "soft", "--lang", request.param, "--out", out)
    assert got.returncode == 0, got.stderr
    return out


def run(folder, *words, **more):
    path = {**os.environ, "PATH": f"{ADJOIN.parent}:{os.environ['PATH']}", **more}
    return subprocess.run([folder / words[0], *words[1:]], env=path, capture_output=True, text=True)


def test_it_holds_what_its_checks_ask(op):
    got = run(op, "check.sh", CFLAGS="-Werror", CXXFLAGS="-Werror")
    assert got.returncode == 0 and "test: everything holds" in got.stdout, got.stdout + got.stderr
    assert "warning" not in got.stderr
    for file in op.iterdir():
        assert file.suffix == ".so" or "acme" not in file.read_text(), file


@pytest.mark.parametrize(("gpu", "compiler"), [("cuda", NVCC), ("hip", shutil.which("hipcc"))])
def test_one_source_serves_gpus(op, gpu, compiler):
    """Compiled, loaded, and its kernel listed; the processor's kernel from that file computes. Where a GPU is, it is tried too."""
    if not (op / "soft.cpp").exists() or not compiler:
        pytest.skip(f"there is no compiler for {gpu} here" if not compiler else "the one in C serves the processor")
    got = run(op, "check.sh", gpu, **{"NVCC" if gpu == "cuda" else "HIPCC": compiler})
    assert got.returncode == 0 and "test: everything holds" in got.stdout, got.stdout + got.stderr
    listed = run(ADJOIN.parent, "adjoin", "ops", "soft::soft", ADJOIN_PLUGIN_PATH=str(op))
    assert re.search(rf"soft::soft on {gpu}\n +1. plugin soft", listed.stdout), listed.stdout + listed.stderr


def test_wrong_use(tmp_path):
    for words, told in ((["Soft"], "is no name for an op"), (["soft", "--lang", "cobol"], "no template in 'cobol'")):
        got = adjoin("new-op", *words)
        assert got.returncode in (1, 2) and told in got.stderr


@pytest.mark.parametrize("name", ["class", "import", "int", "operator", "lambda", "Acme", "1st"])
def test_a_name_that_a_language_uses_is_refused(name, tmp_path):
    for command in ("new-op", "new-backend"):
        got = adjoin(command, name, "--out", tmp_path / "x")
        assert got.returncode == 2 and f"'{name}' is no name for" in got.stderr and not (tmp_path / "x").exists()
