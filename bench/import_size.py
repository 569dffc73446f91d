"""bench/import_size.py: what importing costs: seconds, memory, bytes on disk. Beside NumPy and PyTorch where they are."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROBE = """
import json, os, sys, time
def resident():
    with open("/proc/self/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
before = resident()
start = time.perf_counter()
module = __import__(sys.argv[1])
took = time.perf_counter() - start
held = resident() - before
if len(sys.argv) > 2:
    exec(sys.argv[2], {"T": module})
print(json.dumps({"seconds": took, "bytes": held, "total": resident(), "file": module.__file__}))
"""

LIMITS = {"seconds": 0.15, "bytes": 60e6, "libadjoin.so": 3e6}


def probe(python, module, use="", clean=False):
    env = dict(os.environ)
    if clean:
        env.pop("PYTHONPATH", None)
    command = [python, "-c", PROBE, module] + ([use] if use else [])
    run = subprocess.run(command, check=False, capture_output=True, text=True, env=env)
    return json.loads(run.stdout.split("\n")[-2]) if run.returncode == 0 else None


def figures(python, module, use="", clean=False, rounds=7):
    runs = [probe(python, module, use, clean) for _ in range(rounds + 1)][1:]  # the first one reads the disk
    if None in runs:
        return None
    result = {key: statistics.median(r[key] for r in runs) for key in ("seconds", "bytes", "total")}
    result["file"] = runs[0]["file"]
    return result


def tree_bytes(folder):
    return sum(
        p.stat().st_size for p in Path(folder).rglob("*") if p.is_file() and not p.is_symlink() and p.suffix != ".pyc"
    )


def stripped_bytes(library):
    with tempfile.NamedTemporaryFile() as copy:
        run = subprocess.run(["strip", "-o", copy.name, str(library)], check=False)
        return (Path(copy.name) if run.returncode == 0 else library).stat().st_size


def main():
    other = os.environ.get("BENCH_PYTHON", sys.executable)
    rows = {
        "adjoin": figures(sys.executable, "adjoin"),
        "adjoin, a + b": figures(sys.executable, "adjoin", "T.ones(3) + T.ones(3)"),
        "numpy": figures(sys.executable, "numpy"),
        "torch": figures(other, "torch", clean=True, rounds=3),
    }
    print(f"{'import':16} {'seconds':>9} {'MB added':>9} {'MB process':>11} {'MB on disk':>11}")
    for name, r in rows.items():
        if r is None:
            print(f"{name:16} is not there")
            continue
        disk = tree_bytes(Path(r["file"]).parent) / 1e6
        print(f"{name:16} {r['seconds']:9.3f} {r['bytes'] / 1e6:9.1f} {r['total'] / 1e6:11.1f} {disk:11.1f}")
    good = rows["adjoin"] is not None
    prefix = os.environ.get("ADJOIN_PREFIX")
    if prefix:
        for library in sorted(Path(prefix, "lib").rglob("*.so")):
            size = stripped_bytes(library)
            over = library.name in LIMITS and size > LIMITS[library.name]
            good &= not over
            print(f"{library.relative_to(prefix)}: {size / 1e6:.2f} MB{' *' if over else ''} (stripped)")
    if rows["adjoin"]:
        for key in ("seconds", "bytes"):
            if rows["adjoin"][key] > LIMITS[key]:
                good = False
                print(f"* adjoin: {key} {rows['adjoin'][key]:.3g}, wanted at most {LIMITS[key]:.3g}")
    return 0 if good else 1


sys.exit(main())
