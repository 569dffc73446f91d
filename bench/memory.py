"""bench/memory.py: the most memory that training takes, each case in a process of its own, library beside library.

`above` is the peak less what the process held after the import; `in all` is the peak. MB; ratios below 1: the second library
takes less.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHILD = """
import importlib, json, resource, sys
sys.path.insert(0, {here!r})
T = importlib.import_module(sys.argv[1])
T.set_num_threads(int(sys.argv[3]))
T.nn.Linear, T.optim.SGD
held = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
import training
from table import CASES
names = CASES[sys.argv[2]].setup(T)
for _ in range(5):
    exec(CASES[sys.argv[2]].statement, names)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([held / 1e6, peak / 1e6]))
"""


def taken(library, case, threads):
    python = sys.executable if library == "adjoin" else os.environ.get("BENCH_PYTHON", sys.executable)
    env = dict(os.environ)
    if library != "adjoin":
        env.pop("PYTHONPATH", None)
    run = subprocess.run(
        [python, "-c", CHILD.format(here=str(HERE)), library, case, threads],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise SystemExit(f"memory: {library}: {case}: {run.stderr.strip().splitlines()[-1]}")
    return json.loads(run.stdout)


def main():
    import training  # noqa: F401 - fills the table
    from table import CASES

    libraries = ("torch", "adjoin")
    threads = sys.argv[1] if len(sys.argv) > 1 else "1"
    print(f"{'MB':22}" + "".join(f"{x + ' above':>16}{'in all':>9}" for x in libraries) + "   ratio above  in all")
    failed = False
    for name in (n for n in CASES if n.startswith("train_")):
        figures = [taken(library, name, threads) for library in libraries]
        above = [peak - held for held, peak in figures]
        peaks = [peak for _, peak in figures]
        ratios = above[1] / above[0], peaks[1] / peaks[0]
        failed |= ratios[0] > 1.0 or ratios[1] > 0.7
        print(
            f"{name:22}"
            + "".join(f"{a:16.1f}{p:9.1f}" for a, p in zip(above, peaks))
            + f"{ratios[0]:14.2f}{ratios[1]:8.2f}",
            flush=True,
        )
    print("wanted: above at most 1.00, in all at most 0.70")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
