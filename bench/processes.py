#!/usr/bin/env python3
"""bench/processes.py: two processes that train together, beside PyTorch with Gloo.

processes.py [--rounds N] [--engines gloo,shm] [--large] [--many] [--json FILE]

Jobs of Adjoin and of PyTorch (BENCH_PYTHON, or a Python beside which `torch` is) take turns; a figure is the lower quartile of a job's
samples and the median over jobs (on a machine that others use, `chrt -r 1 python bench/processes.py` keeps them off its processors); a
ratio Adjoin / PyTorch stands beside what is wanted of it; a star marks what misses that by more than a tenth. One thread a process.
`beyond` is the time of a step of DistributedDataParallel less that of the same step of the bare module that ends in a barrier.
--many: 4,096 threads that each are a process, too, which PyTorch has nothing beside.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from processes_worker import NAMES

# What is wanted, as ratios to PyTorch's Gloo; of shm and mpi in the second column.
WANTED = {
    "all_reduce 4 B": (0.55, 0.02),
    "all_reduce 1 MB": (0.43, 0.08),
    "all_reduce 64 MB": (0.7, 0.19),
    "beyond, MLP": (0.8, 0.3),
    "beyond, 102 tensors": (0.6, 0.15),
    "beyond, 19.7 M": (0.9, 0.25),
    "main thread, a parameter": (0.25, 0.25),
    "unused found, MLP": (1.0, 1.0),
    "no_sync, MLP": (1.0, 1.0),
    "memory beyond, 79 MB": (0.12, 0.12),
    "peak of it": (0.25, 0.25),
    "memory of the first wrap": (0.02, 0.02),
    "launch to barrier": (0.35, 0.35),
    "init": (0.3, 0.3),
    "first wrap": (0.02, 0.02),
    "kill to new group": (0.45, 0.45),
    "save 228 MB": (1.2, 1.2),
    "load 228 MB": (0.8, 0.8),
    "300 join a store": (0.004, 0.004),
}
# What PyTorch has nothing beside: units, at most.
MOST = {
    "4,096 join the server": 3,
    "a death told to them": 1,
    "4,096 simulated, 5 steps": 60,
    "memory of them": 2048,
}


def job(command, backend, part, options=()):
    """The figures of one job; none of one that fails, which is told: the others' are kept."""
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"BENCH_BEGAN": str(time.time()), "OMP_NUM_THREADS": "1"}
        worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "processes_worker.py")
        line = [*command, *options, worker, backend, part, folder]
        try:
            got = subprocess.run(line, env=env, capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            print(f"{' '.join(line)} took more than 600 s", file=sys.stderr)
            return {}
    for text in got.stdout.splitlines():
        if "RESULT" in text:
            return json.loads(text.split("RESULT", 1)[1])
    print(f"{' '.join(line)} failed:\n{got.stdout}{got.stderr}", file=sys.stderr)
    return {}


def figures_of(name, command, backend, large):
    got = {}
    for part in ("small", "large", "files") if large else ("small", "files"):
        got |= job(command, backend, part)
    if name != "mpi":  # mpirun does not start again what was killed
        got |= job(command, backend, "killed", ["--max-restarts", "1"])
    if name in ("PyTorch", "gloo"):  # the store is the same, whatever the engine
        got |= job(alone(name), backend, "store")
    return got


def alone(name):
    """What runs a program in one process."""
    return [os.environ.get("BENCH_PYTHON", sys.executable)] if name == "PyTorch" else ["adjoin", "run"]


def printed(table):
    """A line for each figure: PyTorch's, then each engine's with its ratio and what is wanted."""
    engines = [name for name in table if name != "PyTorch"]
    print(f"{'':30} {'PyTorch':>10}" + "".join(f" {name:>10} {'ratio':>6} {'wanted':>6}" for name in engines))
    nan = float("nan")
    for key, unit in NAMES.items():
        if not any(key in found for found in table.values()):
            continue
        base = table["PyTorch"].get(key, nan)
        line = f"{key + ', ' + unit:30} {base:10.3f}"
        for name in engines:
            mine, wanted = table[name].get(key), WANTED.get(key, (None, None))[name != "gloo"]
            if mine is None:
                line += f" {'-':>10} {'-':>6}  {wanted if wanted is not None else '':>6}"
                continue
            ratio = mine / base if base > 0 else nan
            mark = "*" if wanted is not None and ratio > wanted * 1.1 else " "
            line += f" {mine:10.3f} {ratio:5.2f}{mark} {wanted if wanted is not None else '':>6}"
        print(line)


def medians(rounds):
    """Of each figure over the rounds that have it."""
    return {
        key: statistics.median(f[key] for f in rounds if key in f) for key in NAMES if any(key in f for f in rounds)
    }


def printed_many(found):
    for key, most in MOST.items():
        if key not in found:
            continue
        print(
            f"{key + ', ' + NAMES[key]:30} {found[key]:10.3f}  at most {most}"
            + ("*" if found[key] > most * 1.1 else "")
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engines", default="gloo,shm")
    parser.add_argument("--large", action="store_true", help="a module of 19.7 million parameters, and memory, too")
    parser.add_argument("--many", action="store_true", help="4,096 threads that each are a process, too")
    parser.add_argument("--json")
    args = parser.parse_args()
    jobs = {
        "PyTorch": ([*alone("PyTorch"), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"], "gloo")
    }
    for engine in args.engines.split(","):
        jobs[engine] = (["adjoin", "launch", "--nproc-per-node", "2"], engine)
    if "mpi" in jobs:
        jobs["mpi"] = (["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "adjoin", "run"], "mpi")
    figures = {name: [] for name in jobs}
    for _ in range(args.rounds):
        for name, (command, backend) in jobs.items():
            figures[name].append(figures_of(name, command, backend, args.large))
        if args.json:
            with open(args.json, "w") as file:
                json.dump(figures, file)
    printed({name: medians(rounds) for name, rounds in figures.items()})
    if args.many:
        printed_many(job(alone("simulated"), "simulated", "many"))


if __name__ == "__main__":
    main()
