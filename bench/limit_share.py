"""bench/limit_share.py: how near each pointwise kernel comes to what the machine allows it.

Each writes into a reused output, over arrays of 256 MB. Its limit is the smaller of two rates: a triad with non-temporal
stores (bench/limits.cpp), passes of which alternate with the kernel's, and the same kernel on data in the first-level
caches of as many processors. python bench/limit_share.py [--threads 2] [--only exp]
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import adjoin as T

WANTED = 0.8  # of the limit
SIZE = 256_000_000  # bytes of an array
SMALL = 8_192  # of one in the first-level cache
WIDTH = {"float32": 4, "float64": 8, "bfloat16": 2, "int32": 4, "int64": 8, "bool": 1}

UNARY = (
    "abs neg square reciprocal floor ceil trunc round frac sign relu exp exp2 expm1 log log2 log10 log1p tanh sigmoid "
    "sin cos tan asin acos atan sinh cosh asinh acosh atanh sqrt rsqrt erf erfc erfinv lgamma digamma"
).split()
BINARY = "add sub mul div maximum minimum atan2 hypot logaddexp remainder fmod floor_divide pow".split()
COMPARE = "eq ne lt le gt ge logical_and logical_or logical_xor".split()
TEST = "isnan isinf isfinite signbit logical_not".split()
# Of whole numbers.
WHOLE = "add sub mul maximum minimum bitwise_and bitwise_or bitwise_xor floor_divide".split()


@dataclass
class Case:
    name: str
    statement: str
    arrays: float  # read and written, of the dtype's size
    dtype: str = "float32"


def cases():
    table = [Case(name, f"T.{name}(x, out=out)", 2) for name in UNARY]
    table += [Case(name, f"T.{name}(x, y, out=out)", 3) for name in BINARY]
    table += [Case(name, f"T.{name}(x, y, out=mask)", 2.25) for name in COMPARE]
    table += [Case(name, f"T.{name}(x, out=mask)", 1.25) for name in TEST]
    table += [
        Case("add_number", "T.add(x, 2.0, out=out)", 2),
        Case("add_alpha", "T.add(x, y, alpha=0.5, out=out)", 3),
        Case("addcmul", "T.addcmul(x, y, y, out=out)", 3),
        Case("lerp", "T.lerp(x, y, 0.3, out=out)", 3),
        Case("clamp", "T.clamp(x, 0.7, 1.2, out=out)", 2),
        Case("pow2.5", "T.pow(x, 2.5, out=out)", 2),
        Case("pow2", "T.pow(x, 2, out=out)", 2),
        Case("where", "T.where(mask, x, y, out=out)", 3.25),
        Case("where_number", "T.where(mask, x, 0.0, out=out)", 2.25),
        Case("addcdiv", "T.addcdiv(x, y, y, out=out)", 3),
        Case("gelu", "F.gelu(x, out=out)", 2),
        Case("gelu_tanh", "F.gelu(x, approximate='tanh', out=out)", 2),
        Case("silu", "F.silu(x, out=out)", 2),
        Case("elu", "F.elu(x, out=out)", 2),
        Case("softplus", "F.softplus(x, out=out)", 2),
        Case("leaky_relu", "F.leaky_relu(x, out=out)", 2),
        Case("hardtanh", "F.hardtanh(x, out=out)", 2),
        Case("fill", "out.fill_(1.5)", 1),
        Case("copy", "out.copy_(x)", 2),
        Case("to_float64", "twice.copy_(x)", 3),
        Case("to_bfloat16", "half.copy_(x)", 1.5),
        Case("to_int32", "whole.copy_(x)", 2),
        Case("of_uint8", "out.copy_(byte)", 1.25),
        Case("of_bfloat16", "out.copy_(half)", 1.5),
    ]
    for dtype in ("float64", "bfloat16"):
        table += [Case(name, f"T.{name}(x, y, out=out)", 3, dtype) for name in ("add", "mul")]
        table += [Case(name, f"T.{name}(x, out=out)", 2, dtype) for name in ("exp", "log", "tanh", "relu", "sin", "erf")]
        table.append(Case("gelu", "F.gelu(x, out=out)", 2, dtype))
        table += [Case(name, f"T.{name}(x, y, out=mask)", 2 + 1 / WIDTH[dtype], dtype) for name in ("eq", "gt")]
        table.append(Case("where", "T.where(mask, x, y, out=out)", 3 + 1 / WIDTH[dtype], dtype))
    for dtype in ("int32", "int64"):
        table += [Case(name, f"T.{name}(x, y, out=out)", 3, dtype) for name in WHOLE]
        table += [Case(name, f"T.{name}(x, out=out)", 2, dtype) for name in ("abs", "neg", "sign", "bitwise_not")]
        table += [Case(name, f"T.{name}(x, y, out=mask)", 2 + 1 / WIDTH[dtype], dtype) for name in ("eq", "gt")]
        table.append(Case("where", "T.where(mask, x, y, out=out)", 3 + 1 / WIDTH[dtype], dtype))
        table.append(Case("to_float32", "single.copy_(x)", 1 + 4 / WIDTH[dtype], dtype))
        table.append(Case("of_bool", "out.copy_(mask)", 1 + 1 / WIDTH[dtype], dtype))
    for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "eq", "ne"):
        table.append(Case(name, f"T.{name}(x, y, out=out)", 3, "bool"))
    table += [Case(name, f"T.{name}(x, out=out)", 2, "bool") for name in ("logical_not", "bitwise_not")]
    table.append(Case("where", "T.where(x, x, y, out=out)", 3, "bool"))
    table.append(Case("to_float32", "single.copy_(x)", 5, "bool"))
    return table


def names(dtype, n):
    kind = getattr(T, dtype)
    if dtype in ("float32", "float64", "bfloat16"):
        x = T.rand(n) + 0.5
        x, y = x.to(kind), (x * 0 + 1).to(kind)
    else:
        top = 2 if dtype == "bool" else 100
        x, y = (T.randint(0 if dtype == "bool" else 1, top, (n,)).to(kind) for _ in range(2))
    return {"T": T, "F": T.nn.functional, "x": x, "y": y, "out": T.empty(n, dtype=kind), "n": n}


def others(of):
    """What a few statements need besides, made when it is used."""
    x, n = of["x"], of["n"]
    return {
        "mask": lambda: x if x.dtype == T.bool else x > (1 if x.is_floating_point() else 50),
        "single": lambda: T.empty(n),
        "twice": lambda: T.empty(n, dtype=T.float64),
        "half": lambda: x.to(T.bfloat16),
        "whole": lambda: T.empty(n, dtype=T.int32),
        "byte": lambda: T.ones(n, dtype=T.uint8),
    }


def bound(case, of):
    extra = {name: make() for name, make in others(of).items() if re.search(rf"\b{name}\b", case.statement)}
    scope = {**of, **extra}
    exec(f"def loop(times):\n for _ in range(times): {case.statement}", scope)
    return scope["loop"]


def seconds(loop, times=1):
    start = time.perf_counter()
    loop(times)
    return (time.perf_counter() - start) / times


def limits_program():
    """bench/limits.cpp, built where it is not, or is older than its source."""
    source, program = Path("bench/limits.cpp"), Path("build/bench/limits")
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(parents=True, exist_ok=True)
        build = ["c++", "-std=c++20", "-O3", "-march=native", "-ffast-math", source, "-o", program, "-lpthread"]
        subprocess.run(build, check=True)
    return program


class TriadProcess:
    def __init__(self, threads):
        program = limits_program()
        self.process = subprocess.Popen(
            [program, str(threads), "triad"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def rate(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def cached_rate(case, threads):
    """Bytes per second of data in first-level caches, while other processes do the same on the other processors.

    The difference of two lengths leaves the price of a call out.
    """
    long = SMALL // WIDTH[case.dtype]
    short = long // 16
    loops = [bound(case, names(case.dtype, n)) for n in (long, short)]
    others = [child for _ in range(threads - 1) if (child := forked(loops[0]))]
    for loop in loops:
        loop(200)
    samples = [[seconds(loop, 500) for loop in loops] for _ in range(15)]
    for child in others:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    taken = statistics.median(a - b for a, b in samples)
    return case.arrays * WIDTH[case.dtype] * (long - short) / taken * threads


def forked(loop):
    child = os.fork()
    while child == 0:
        loop(1000)
    return child


def measure(case, of, triad, threads, rounds):
    loop = bound(case, of)
    loop(1)
    bytes_moved = case.arrays * WIDTH[case.dtype] * of["n"]
    pairs = [(bytes_moved / seconds(loop), triad.rate()) for _ in range(rounds)]
    reached = statistics.median(rate for rate, _ in pairs)
    of_triad = statistics.median(rate / limit for rate, limit in pairs)
    cached = cached_rate(case, threads)
    return {
        "case": case.name,
        "dtype": case.dtype,
        "reached": reached,
        "triad": statistics.median(limit for _, limit in pairs),
        "cached": cached,
        "share": max(of_triad, reached / cached),  # of the smaller limit
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="cases whose name matches this pattern")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    args = parser.parse_args()
    T.set_num_threads(args.threads)
    triad, results, of = TriadProcess(args.threads), [], None
    for case in cases():
        if not re.search(args.only, case.name):
            continue
        if of is None or of["x"].dtype != getattr(T, case.dtype):
            of = None
            of = names(case.dtype, SIZE // WIDTH[case.dtype])
        results.append(measure(case, of, triad, args.threads, args.rounds))
    triad.end()
    results.sort(key=lambda r: r["share"])
    print(f"pointwise kernels, reused output, arrays of 256 MB, {args.threads} thread(s); GB/s; wanted: {WANTED:.0%}")
    print(f"{'kernel':14} {'dtype':9} {'reached':>8} {'triad':>8} {'in cache':>9} {'of limit':>9}")
    for r in results:
        rates = " ".join(f"{r[key] / 1e9:8.1f}" for key in ("reached", "triad", "cached"))
        print(f"{r['case']:14} {r['dtype']:9} {rates} {r['share']:10.0%}{'' if r['share'] >= WANTED else ' *'}")
    below = [r["case"] for r in results if r["share"] < WANTED]
    print(f"below what is wanted: {', '.join(below) or 'none'}")
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / f"limit_share{args.threads}.json").write_text(json.dumps(results, indent=1) + "\n")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
