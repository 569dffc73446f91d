"""bench/gpu/steps/module.py: makes sure that this Python can import adjoin: _C is there for the Python that packed it, and is
compiled for another one, which takes g++ and that Python's headers."""

import pathlib
import shutil
import subprocess
import sys
import sysconfig
import time

from pieces import check, figure, left_out, seconds_left
from runner import PACKAGE, PREFIX, ROOT

LEAST = (3, 11)  # of the package
NAME = "the package adjoin in Python " + sys.version.split()[0]


def imported():
    """None, or why adjoin cannot be imported."""
    job = subprocess.run(
        [sys.executable, "-c", "import adjoin; adjoin.ones(2).sum().item()"],
        capture_output=True, text=True,
    )  # fmt: skip
    return None if job.returncode == 0 else (job.stderr.strip().splitlines() or [f"it ended with {job.returncode}"])[-1]


def compile_module(headers):
    """One call of g++ over all sources of the module; None, or what it says."""
    to = PACKAGE / "adjoin" / ("_C" + sysconfig.get_config_var("EXT_SUFFIX"))
    command = [
        "g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-DNDEBUG",
        f"-I{PREFIX}/include", f"-I{headers}", *map(str, sorted((ROOT / "frontends/python/src").glob("*.cpp"))),
        "-o", str(to), f"-L{PREFIX}/lib", "-ladjoin", "-Wl,-rpath,$ORIGIN/../../..",
    ]  # fmt: skip
    print("compiling _C for this Python", flush=True)
    begun = time.monotonic()
    try:
        job = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds_left() - 5
        )
    except subprocess.TimeoutExpired:
        to.unlink(missing_ok=True)
        return "g++ took longer than this step's limit; --limit SECONDS gives more"
    figure("compiling _C", time.monotonic() - begun, "s")
    return None if job.returncode == 0 else job.stdout.strip()[-300:]


def main():
    if sys.version_info < LEAST:
        return left_out(
            NAME, "it wants Python 3.11 or later; ADJOIN_GPU_PYTHON=/path/to/python3 ./run gpu names another"
        )
    why = imported()
    if why and "_C" in why:
        headers = pathlib.Path(sysconfig.get_path("include"))
        if not (headers / "Python.h").exists():
            why = f"_C must be compiled for this Python, and {headers}/Python.h is missing: another Python (ADJOIN_GPU_PYTHON), or its headers"
        elif not shutil.which("g++"):
            why = "_C must be compiled for this Python, and there is no g++: a Python 3.11 (ADJOIN_GPU_PYTHON), or g++"
        else:
            why = compile_module(headers) or imported()
    check(NAME, not why, why or sys.executable)


main()
