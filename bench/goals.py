"""bench/goals.py: factorisations, transforms, sparse matrices and derivatives of functions beside what is wanted of each.

`BENCH_PYTHON=/path/to/python python bench/goals.py` times every case of GOALS in Adjoin and in each of torch, scipy, jax and
pyfftw that this Python has, in turn, and prints the ratio to the judge of the row: a library, or the best of all. `*`: missed.
"""

import argparse
import os
import subprocess
import sys

from all_cases import CASES
from rivals import RIVALS
from side_by_side import Worker, failure, geometric_mean

BEST = "best"


def goals():
    """name: [(judge, the ratio that is wanted at most)]."""
    of = {}
    stacks = {
        "cholesky": (0.1, 0.15, 0.2, 0.25), "lu": (0.1, 0.1, 0.15, 0.2), "solve": (0.1, 0.1, 0.15, 0.2), "det": (0.1, 0.1, 0.15, 0.2),
        "inv": (0.15, 0.1, 0.25, 0.4), "qr": (0.05, 0.1, 0.2, 0.25), "eigh": (0.06, 0.12, 0.3, 0.7), "svd": (0.1, 0.2, 0.4, 0.8),
    }  # fmt: skip
    for op, ratios in stacks.items():
        of |= {f"{op}_stack_{n}": [(BEST, r)] for n, r in zip((4, 8, 16, 32), ratios, strict=True)}
        spectral = op in ("eigh", "svd")
        of |= {f"{op}_{n}": [(BEST, 0.8 if spectral else 0.3)] for n in (32, 64)}
        of |= {f"{op}_{n}": [(BEST, 1.05 if spectral else 0.85 if op == "qr" else 0.75)] for n in (256, 1024)}
    fftw = {
        "1024": 2.2, "65536": 1.25, "1048576": 1.12, "1000": 1.85, "1009": 1.13, "64x4096": 1.07, "plane_1024": 1.12, "real_1048576": 1.24,
    }  # fmt: skip
    primes = ("31", "101", "1009", "10007", "64x1009")
    for name, case in CASES.items():
        if case.suite == "fft":
            short = name.removeprefix("fft_")
            of[name] = [("torch", 0.6 if short in primes else 1.15)]
            if short in fftw:
                of[name].append((BEST, fftw[short]))
    for count, vector, columns, add in ((100_000, 0.61, 0.7, 0.9), (1_000_000, 0.75, 0.56, 0.9)):
        of[f"csr_vector_{count}"] = of[f"csr_vector_int32_{count}"] = [(BEST, vector)]
        of[f"csr_64_columns_{count}"] = [(BEST, columns)]
        of[f"csr_add_{count}"] = [(BEST, add)]
        of[f"coalesce_{count}"] = [(BEST, 0.25)]
    for name in ("jacrev_64", "jacfwd_64", "vmap_20_ops", "vmap_grad_20_ops", "per_sample_mlp"):
        of["func_" + name] = [("torch", 0.15), ("jax", 1.0)]
    of["func_hessian_32"] = [("torch", 0.15), ("jax", 1.7)]
    of["func_per_sample_convolutions"] = [("torch", 0.7)]
    of["func_jvp_64"] = [("func_chain_64", 3.4)]
    of["func_jvp_256x256"] = [("func_chain_256x256", 2.1)]
    return of


# What is not judged by the row alone: a geometric mean.
MEANS = {"fft": ("torch", 0.45)}


def available(python, name):
    return (
        name == "adjoin"
        or subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0
    )


def times_of(workers, name, rounds):
    """Of each library that knows the case the least of the samples, in seconds; what failed is told."""
    best, open_ones = {}, []
    for worker in workers:
        if worker.library in RIVALS and worker.library not in CASES[name].rivals:
            continue
        if error := failure(worker.ask("open", name)):
            print(f"  {name}: {worker.library}: {error}")
            continue
        open_ones.append(worker)
    for _ in range(rounds):
        for worker in open_ones:
            sample = worker.ask("sample")
            if failure(sample) is None:
                best[worker.library] = min(sample, best.get(worker.library, sample))
    for worker in open_ones:
        worker.ask("close")
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--suite", default="linalg,fft,sparse,func")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    python = os.environ.get("BENCH_PYTHON", sys.executable)
    libraries = [name for name in ("adjoin", "torch", *sorted(RIVALS)) if available(python, name)]
    workers = [Worker(name, args.threads) for name in libraries]
    others = libraries[1:]
    print(f"{args.threads} thread(s); microseconds, least of {args.rounds}; ratio: Adjoin by the judge")
    print(f"{'case':30}" + "".join(f"{name:>10}" for name in libraries) + "   ratio   goal  judge")
    wanted = {n: g for n, g in goals().items() if CASES[n].suite in args.suite.split(",") and args.only in n}
    missed, means = [], {}
    for name, judges in wanted.items():
        times = times_of(workers, name, args.rounds)
        if "adjoin" not in times:
            missed.append(name)
            continue
        for judge, goal in judges:
            if judge in CASES:
                by = times_of(workers[:1], judge, args.rounds)["adjoin"]
            else:
                by = min((times[o] for o in others if o in times), default=None) if judge == BEST else times.get(judge)
            row = f"{name:30}" + "".join(f"{times[n] * 1e6:10.2f}" if n in times else f"{'':10}" for n in libraries)
            if by is None:
                print(f"{row}       -  {goal:5.2f}  {judge}: not here")
                continue
            ratio = times["adjoin"] / by
            if (CASES[name].suite, judge) in {(s, j) for s, (j, _) in MEANS.items()}:
                means.setdefault(CASES[name].suite, []).append(ratio)
            mark = " *" if ratio > goal else ""
            missed += [name] if mark else []
            print(f"{row}  {ratio:6.2f}  {goal:5.2f}  {judge}{mark}", flush=True)
    for suite, ratios in means.items():
        print(
            f"{suite}: geometric mean {geometric_mean(ratios):.3f} of {MEANS[suite][0]}'s (wanted: {MEANS[suite][1]})"
        )
    print(f"missed: {len(set(missed))} of {len(wanted)}: {', '.join(dict.fromkeys(missed)) or 'none'}")
    for worker in workers:
        worker.end()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
