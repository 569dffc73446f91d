"""tests/plugins/trust_test.py: libraries and files that variables name: not from where others may write, and not in a process with
another user's rights."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "abi"))
from abi_tools import build_host, clean_environment

FAKE = """
#include <stdio.h>
__attribute__((constructor)) static void mark(void) { FILE* f = fopen("%s", "w"); if (f) fclose(f); }
void cblas_sgemm(void) {}
"""
PROGRAM = "import adjoin; print((adjoin.ones(64, 64) @ adjoin.ones(64, 64)).sum().item())"


@pytest.fixture
def open_folder():
    """A folder outside of anybody's own."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def fake_blas(folder):
    mark = folder / "ran"
    (folder / "fake.c").write_text(FAKE % mark)
    library = folder / "libfake_blas.so"
    subprocess.run(["gcc", "-shared", "-fPIC", str(folder / "fake.c"), "-o", str(library)], check=True)
    return library, mark


@pytest.mark.parametrize("spoiled", ["folder", "file", "nothing"])
def test_a_blas_from_where_everybody_writes(spoiled, open_folder):
    library, mark = fake_blas(open_folder)
    if spoiled != "nothing":
        (open_folder if spoiled == "folder" else library).chmod(0o777)
    program = PROGRAM if spoiled != "nothing" else "import adjoin; print(adjoin.ones(1).sum().item())"
    if spoiled == "nothing":  # named only to be opened: its product is none
        program += f"; import ctypes; ctypes.CDLL({str(library)!r})"
    env = {**os.environ, "ADJOIN_BLAS": str(library)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if spoiled == "nothing":
        assert mark.exists()
    else:
        assert not mark.exists() and done.stdout == "262144.0\n"
        assert str(library) in done.stderr and "may be written by everybody" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root makes a program that runs with its rights")
def test_a_program_with_more_rights_trusts_no_variable(open_folder):
    library, mark = fake_blas(open_folder)
    record, lock = open_folder / "record", open_folder / "lock"
    program = build_host(open_folder / "host")
    program.chmod(0o4755)
    from abi_tools import build_plugin

    plugin = build_plugin(
        open_folder / "plugins",
        extra=f'__attribute__((constructor)) static void m(void) {{ FILE* f = fopen("{mark}", "w"); if (f) fclose(f); }}',
    )
    assert plugin.exists()
    env = clean_environment(
        ADJOIN_BLAS=library, ADJOIN_TUNE_RECORD=record, ADJOIN_LOCK=lock, ADJOIN_TRACE=record, ADJOIN_TUNING=record,
        ADJOIN_PLUGIN_PATH=open_folder / "plugins", XDG_DATA_HOME=open_folder, ADJOIN_LOG="trace",
    )  # fmt: skip
    done = subprocess.run(
        [program, "device", "acme", "device", "cpu", "call", "neg"],
        env=env,
        capture_output=True,
        text=True,
        user=65534,
        group=65534,
        cwd="/",
    )
    if "cannot open shared object" in done.stderr:
        pytest.skip("NOT TESTED: another user cannot read libadjoin here")
    assert "ok cpu" in done.stdout and "error" in done.stdout.splitlines()[0], done.stdout + done.stderr
    assert not mark.exists() and not record.exists() and not lock.exists()
