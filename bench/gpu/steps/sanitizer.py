"""bench/gpu/steps/sanitizer.py: NVIDIA's compute-sanitizer over a call of each family of kernels: what they read and write, races,
memory that nobody has written, barriers. Without the cache, so that each tensor has limits of its own."""

import glob
import os
import re
import shutil
import subprocess
import sys

from pieces import DEVICE, OUT, check, left_out, seconds_left
from runner import HERE

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
PLACES = (
    "/usr/local/cuda*/bin",
    "/usr/local/cuda*/compute-sanitizer",
    "/opt/cuda*/bin",
    "/opt/cuda*/extras/compute-sanitizer",
)


def find():
    places = [folder for pattern in PLACES for folder in sorted(glob.glob(pattern))]
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(places))


def run(program, tool, seconds):
    """(did it find nothing?, what it says)."""
    log = os.path.join(OUT, f"sanitizer.{tool}.log")
    command = [program, "--tool", tool, "--target-processes", "all", sys.executable, str(HERE / "steps/kernels.py")]
    environment = dict(os.environ, ADJOIN_MEMORY_CACHE="off", ADJOIN_GPU_STEP=f"sanitizer.{tool}")
    with open(log, "wb") as file:
        try:
            job = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=environment, timeout=seconds)
        except subprocess.TimeoutExpired:
            return False, f"had not ended after {seconds:.0f} s: {log}"
        except OSError as error:
            return False, f"{program} does not start: {error.strerror}"
    with open(log, encoding="utf-8", errors="replace") as file:
        text = file.read()
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)[^\n]*", text)
    if not summary:
        return (
            False,
            f"it ended with {job.returncode} and has no summary: {''.join(text.strip().splitlines()[-1:])[:200]}",
        )
    lines = [line.strip("= ") for line in text.splitlines() if line.startswith("=========")]
    first = " ".join(line for line in lines[:4] if "SUMMARY" not in line and line != "COMPUTE-SANITIZER")
    told = f"{sum(map(int, summary))} findings" + (f", the first: {first[:300]}" if any(map(int, summary)) else "")
    broken = re.findall(r"^FAILED: (.*)", text, re.M)
    if broken:
        told += f"; under it these do not hold: {'; '.join(broken)[:300]}"
    return not any(map(int, summary)) and not broken, told


def main():
    if DEVICE != "cuda":
        return left_out("compute-sanitizer", f"it is NVIDIA's, for cuda; this is {DEVICE}")
    program = find()
    if not program:
        return left_out("compute-sanitizer", "it is not in PATH nor in /usr/local/cuda*; NVIDIA's toolkit brings it")
    for i, tool in enumerate(TOOLS):
        share = (seconds_left() - 5) / (len(TOOLS) - i)  # what one leaves the next ones have
        check(tool, *run(program, tool, share))


main()
