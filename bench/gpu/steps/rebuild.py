"""bench/gpu/steps/rebuild.py: compiles the plugin `cuda` anew from the packed sources with the nvcc of this machine, for this card
alone, and lets what came out conform for a moment."""

import concurrent.futures
import glob
import os
import pathlib
import re
import shutil
import subprocess
import time

from pieces import DEVICE, OUT, check, figure, left_out, seconds_left, unfinished
from runner import PREFIX, ROOT

PLUGINS = ROOT / "plugins"
FOLDER = pathlib.Path(OUT) / "rebuild"
RESERVE = 45  # seconds for linking and a moment's conformance
NO_TIME = "no time was left"
FAST = ["-Ofc=min"]  # as plugins/cuda/meson.build has it
HOST = ["-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-DNDEBUG"]


def find_nvcc():
    places = os.pathsep.join(sorted(glob.glob("/usr/local/cuda*/bin") + glob.glob("/opt/cuda*/bin"), reverse=True))
    return shutil.which("nvcc") or shutil.which("nvcc", path=places)


def architecture():
    """The number that nvcc has for this card, 90 for sm_90."""
    command = [PREFIX / "bin/adjoin", "plugins", "why", DEVICE]
    told = subprocess.run([str(w) for w in command], capture_output=True, text=True).stdout
    return re.search(r"device cuda:0: .*sm_(\d+)", told).group(1)


def commands(nvcc, arch):
    """{object: command}: kernels by nvcc, the rest by g++."""
    toolkit = pathlib.Path(nvcc).resolve().parents[1] / "include"
    macros = ["-DAJ_GPU_TARGET=<target.hpp>", "-DAJ_GPU_RUNTIME=<runtime.hpp>"]
    shared = [f"-I{PREFIX}/include", f"-I{PLUGINS}/cuda", *macros]
    probe = subprocess.run([nvcc, *FAST, "--dryrun", "-E", "-x", "cu", "/dev/null"], capture_output=True)
    fast = [] if probe.returncode else FAST
    made = {}
    for source in sorted((PLUGINS / "gpu/kernels").glob("**/*.cuh")):
        kind = source.parent.name
        extra = (fast if kind != "hot" else []) + (["-fmad=false"] if kind == "exact" else [])
        wrapper = FOLDER / f"{source.stem}.cu"
        wrapper.write_text(f'#include "{source}"\n')
        made[FOLDER / f"{source.stem}.o"] = [
            nvcc, "-std=c++20", "-O1", "-Xcompiler=-fPIC,-fvisibility=hidden,-fno-strict-aliasing", "--expt-relaxed-constexpr",
            "-diag-suppress=186,445", f"-gencode=arch=compute_{arch},code=sm_{arch}", *extra, *shared, "-c", str(wrapper),
        ]  # fmt: skip
    for source in sorted([*(PLUGINS / "cuda").glob("*.cpp"), *(PLUGINS / "gpu/vendor").glob("*.cpp")]):
        made[FOLDER / f"{source.parent.name}_{source.stem}.o"] = [
            "g++", *HOST, *shared, f'-DAJ_GPU_ARCHS="sm_{arch}"', f"-isystem{toolkit}", "-c", str(source),
        ]  # fmt: skip
    return made


def compile_one(pair):
    """None, or what the compiler says; NO_TIME. An object that an earlier run has made stays."""
    to, command = pair
    if to.exists():
        return None
    new, left = to.with_suffix(".new"), seconds_left() - RESERVE
    try:
        job = subprocess.run([*command, "-o", str(new)], capture_output=True, text=True, timeout=max(left, 0))
    except subprocess.TimeoutExpired:
        return NO_TIME
    if job.returncode:
        return f"{to.name}: {(job.stderr.strip() or job.stdout.strip())[:400]}"
    new.rename(to)


def main():
    if DEVICE != "cuda":
        return left_out("rebuilding", f"it is for cuda; this is {DEVICE}")
    nvcc = find_nvcc()
    missing = [name for name, there in (("nvcc", nvcc), ("g++", shutil.which("g++"))) if not there]
    if missing:
        return left_out(
            "rebuilding", f"{' and '.join(missing)} are missing; NVIDIA's toolkit brings nvcc, the system g++"
        )
    FOLDER.mkdir(exist_ok=True)
    begun, made = time.monotonic(), commands(nvcc, architecture())
    with concurrent.futures.ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        wrong = [told for told in pool.map(compile_one, made.items()) if told]
    figure("compiling", time.monotonic() - begun, "s", f"{len(made)} files")
    told = [each for each in wrong if each != NO_TIME]
    check("the packed sources compile", not told, "; ".join(told[:3]))
    if NO_TIME in wrong:
        return unfinished(
            f"{wrong.count(NO_TIME)} of {len(made)} files were not compiled; ./run gpu rebuild goes on with them"
        )
    if wrong:
        return None
    library = FOLDER / "libaj_cuda.so"
    options = ["-ldl", "-pthread", "-Wl,-z,defs", f"-Wl,--version-script={PLUGINS}/plugin.map"]
    link = ["g++", "-shared", "-s", *map(str, made), "-o", str(library), *options]
    job = subprocess.run(link, capture_output=True, text=True)
    check("the plugin links", job.returncode == 0, job.stderr.strip()[:400] or f"{library.stat().st_size / 1e6:.1f} MB")
    if job.returncode == 0:
        conform = [str(PREFIX / "bin/adjoin"), "conform", str(library), "--quick"]
        job = subprocess.run(conform, capture_output=True, text=True, timeout=max(seconds_left() - 1, 1))
        check(
            "what was made conforms", job.returncode == 0, (job.stdout.strip().splitlines() or [job.stderr.strip()])[-1]
        )


main()
