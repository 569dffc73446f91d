"""tests/plugins/passing.py: builds and loads passing.cpp, whose keys "below" and "above" the tape only pass calls on."""

import subprocess
import sys
from pathlib import Path

import adjoin

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "abi"))
from abi_tools import config  # noqa: E402

KEYS = ("below", "above")


_loaded = []  # once a process, whichever test comes first


def load(folder):
    if _loaded:
        return
    out = folder / "libaj_passing.so"
    words = [
        "c++",
        "-std=c++20",
        "-O1",
        "-shared",
        "-fPIC",
        f"-I{config('includedir')}",
        HERE / "passing.cpp",
        "-o",
        out,
    ]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    adjoin.load_plugin(str(out))
    _loaded.append(out)


def calls(op):
    """How often a key saw the op; counting begins again."""
    return adjoin.ops.passing.calls(adjoin.tensor(0), op).item()
