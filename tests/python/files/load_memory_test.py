"""tests/python/files/load_memory_test.py: what `load` holds after it has returned, and what becomes of tensors whose file changes."""

import gc
import io
import os
import pickle
import signal
import subprocess
import sys

import adjoin
import pytest
from adjoin import safetensors, serialization
from adjoin.utils import npz

KB_EACH = 400
SMALL = adjoin.arange(KB_EACH * 256, dtype=adjoin.float32)


def resident_kb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def mappings():
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)


def refused(data):
    with pytest.raises(pickle.UnpicklingError):
        adjoin.load(io.BytesIO(data))


@pytest.mark.parametrize(
    "how", ["bytes", "file", "mapped", "copied", "open file", "own unpickler", "pickle", "unsafe names", "refused"]
)
def test_a_thousand_loads_leave_nothing(tmp_path, how):
    path = tmp_path / "x.pt"
    adjoin.save({"x": SMALL, "names": [str(i) for i in range(100)]}, path)
    data = path.read_bytes()
    bad = io.BytesIO()
    adjoin.save({"x": SMALL, "y": os.path.join}, bad)
    bad = bad.getvalue()

    def from_open_file():
        with open(path, "rb") as file:
            return adjoin.load(file)

    once = {
        "bytes": lambda: adjoin.load(io.BytesIO(data)),
        "file": lambda: adjoin.load(path),
        "mapped": lambda: adjoin.load(path, mmap=True),
        "copied": lambda: adjoin.load(path, mmap=False, check_sums=False),
        "open file": from_open_file,
        "own unpickler": lambda: adjoin.load(path, mmap=True, pickle_module=pickle),
        "pickle": lambda: adjoin.load(path, weights_only=False, map_location="cpu"),
        "unsafe names": lambda: serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(bad)),
        "refused": lambda: refused(bad),
    }[how]
    gc.disable()  # a file must go by itself
    try:
        for _ in range(20):
            once()
        before, maps = resident_kb(), mappings()
        for _ in range(1000):
            once()
        assert resident_kb() - before < 20 * KB_EACH and mappings() - maps < 20
    finally:
        gc.enable()


def test_tensors_outlive_their_file(tmp_path):
    path = tmp_path / "x.pt"
    adjoin.save(SMALL, path)
    for settings in ({}, {"mmap": True}, {"mmap": False}):
        found = adjoin.load(path, **settings)
        assert adjoin.equal(found, SMALL)


def spoil(path):
    """Written over in place, then cut short."""
    with open(path, "r+b") as file:
        file.write(b"\xff" * os.path.getsize(path))
        file.truncate(100)


def test_small_files_are_read_so_that_nobody_changes_the_tensors(tmp_path):
    for name, save, load in (
        ("x.pt", adjoin.save, adjoin.load),
        ("y.pt", adjoin.save, lambda path: adjoin.load(open(path, "rb"))),  # noqa: SIM115
        (
            "x.safetensors",
            lambda t, path: safetensors.save_file({"x": t}, path),
            lambda path: safetensors.load_file(path)["x"],
        ),
        ("x.npy", lambda t, path: npz.save_npy(path, t), npz.load_npy),
    ):
        path = tmp_path / name
        save(SMALL, path)
        found = load(path)
        spoil(path)
        assert adjoin.equal(found, SMALL), name


def test_a_mapped_file_that_is_cut_short_is_named(tmp_path):
    path = tmp_path / "cut.pt"
    adjoin.save(SMALL, path)
    program = (
        f"import adjoin, os; x = adjoin.load({str(path)!r}, mmap=True); os.truncate({str(path)!r}, 100); print(x.sum())"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == -signal.SIGBUS and f"mapped file '{path}'" in run.stderr
    assert "cut short" in adjoin.load.__doc__ and "64 MB" in adjoin.load.__doc__


@pytest.mark.parametrize("large", [False, True])
def test_what_is_mapped(tmp_path, monkeypatch, large):
    path = tmp_path / "x.pt"
    adjoin.save(SMALL, path)
    if large:  # a file with a hole in front of its directory would be none, so the limit moves
        monkeypatch.setattr("adjoin._files.MAPPED", 1000)
    for settings, mapped in (({}, large), ({"mmap": True}, True), ({"mmap": False}, False)):
        kept = adjoin.load(path, **settings)
        with open("/proc/self/maps") as file:
            assert (str(path) in file.read()) is mapped, settings
        del kept
