"""bench/graphs.py: programs beside eager code: python bench/graphs.py [--only CASE,...] [--rounds 3] [--threads 1]

Each case runs in PyTorch eager, in torch.compile (BENCH_PYTHON names a Python that has them; else left out), in Adjoin eager and as
Adjoin's program, each in a process of its own, in turns. The table has medians of the steady state in microseconds, our ratio to the best
of PyTorch's and to our own eager, the CPU seconds of the first call, and how many kernels ran (fused ones count once) of how many calls.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
KINDS = ("torch", "torch.compile", "adjoin", "program")


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in used)


def measure(kind, only, threads):
    """Prints a line of JSON for each case."""
    if kind in ("torch", "torch.compile"):
        import torch as T
    else:
        import adjoin as T
    from graph_cases import CASES

    T.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    for name, make in CASES.items():
        if only and name not in only:
            continue
        T.manual_seed(0)
        f, inputs = make(T)
        told = {}
        with T.no_grad():
            before = cpu()
            if kind == "torch.compile":
                f = T.compile(f)
            elif kind == "program":
                f = T.jit.trace(f, inputs)
            f(*inputs)
            told["first"] = cpu() - before
            if kind == "program":
                stats = f.stats()
                told["kernels"] = [stats["passes"], stats["calls"]]
            f(*inputs), f(*inputs)
            start = clock()
            f(*inputs)
            n, samples = max(1, int(0.02 / max(clock() - start, 1e-7))), []
            for _ in range(11):
                start = clock()
                for _ in range(n):
                    f(*inputs)
                samples.append((clock() - start) / n)
        print(json.dumps({"case": name, "us": statistics.median(samples) * 1e6, **told}), flush=True)


def run(kind, a):
    python = os.environ.get("BENCH_PYTHON", sys.executable) if kind.startswith("torch") else sys.executable
    with tempfile.TemporaryDirectory() as cache:
        env = dict(
            os.environ, OMP_NUM_THREADS=str(a.threads), TORCHINDUCTOR_CACHE_DIR=cache, TORCHINDUCTOR_COMPILE_THREADS="1"
        )
        if kind.startswith("torch"):
            env.pop("PYTHONPATH", None)
        words = [python, __file__, "--kind", kind, "--only", a.only, "--threads", str(a.threads)]
        done = subprocess.run(words, env=env, capture_output=True, text=True, cwd=HERE)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        print(f"{kind}: ended early: {(done.stderr.strip().splitlines() or ['no word'])[-1][:160]}", file=sys.stderr)
    return lines


def geometric(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.kind:
        return measure(a.kind, [w for w in a.only.split(",") if w], a.threads)
    kinds = a.kinds.split(",")
    got = {}
    for _ in range(a.rounds):
        for kind in kinds:
            for line in run(kind, a):
                got.setdefault(line["case"], {}).setdefault(kind, []).append(line)
    print(
        f"{'case':17}"
        + "".join(f"{k:>15}" for k in kinds)
        + f"{'/ rival':>9}{'/ eager':>9}{'first ms':>10}{'kernels':>10}"
    )
    beside, own = [], []
    for name, row in got.items():
        us = {k: statistics.median(line["us"] for line in lines) for k, lines in row.items()}
        text = f"{name:17}" + "".join(f"{us.get(k, math.nan):15.1f}" for k in kinds)
        if "program" in us:
            rivals = [us[k] for k in ("torch", "torch.compile") if k in us]
            beside += [us["program"] / min(rivals)] if rivals else []
            own += [us["program"] / us["adjoin"]] if "adjoin" in us else []
            first = statistics.median(line["first"] for line in row["program"]) * 1e3
            ran, calls = row["program"][0]["kernels"]
            text += f"{beside[-1] if rivals else math.nan:9.2f}{own[-1] if 'adjoin' in us else math.nan:9.2f}{first:10.2f}{ran:6d}/{calls}"
        print(text)
    print(f"geometric means: beside the best rival {geometric(beside):.2f}, beside our eager {geometric(own):.2f}")


if __name__ == "__main__":
    main()
