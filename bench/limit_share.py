"""bench/limit_share.py: how near each pointwise kernel comes to what the machine allows it.

Each writes into a reused output, over arrays of 256 MB. Its limit is the smallest of three rates: a triad with
non-temporal stores and a loop that only reads and writes as many bytes per element as the kernel does (bench/limits.cpp),
passes of which alternate with the kernel's, and the same kernel on data in the first-level caches of as many processors.
The loop is there because a triad says too much where a kernel reads far more than it writes, or only writes: a processor
that keeps so many reads under way is not faster at more of them. python bench/limit_share.py [--threads 2] [--only exp]
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
# Names in statements: those of the dtype, and bytes of an element of others.
OWN = ("x", "y", "out")
OTHER = {"mask": 1, "single": 4, "twice": 8, "half": 2, "whole": 4, "byte": 1}

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
    dtype: str = "float32"

    def sizes(self):
        """Bytes of an element of the result, then of the operands, the largest first."""
        result = re.search(r"out=(\w+)|^(\w+)\.(?:copy|fill)_", self.statement)
        result = result[1] or result[2]
        used = set(re.findall(rf"\b({'|'.join((*OWN, *OTHER))})\b(?!=)", self.statement)) - {result}
        size = {**dict.fromkeys(OWN, WIDTH[self.dtype]), **OTHER}
        return [size[result], *sorted((size[name] for name in used), reverse=True)]


def cases():
    table = [Case(name, f"T.{name}(x, out=out)") for name in UNARY]
    table += [Case(name, f"T.{name}(x, y, out=out)") for name in BINARY]
    table += [Case(name, f"T.{name}(x, y, out=mask)") for name in COMPARE]
    table += [Case(name, f"T.{name}(x, out=mask)") for name in TEST]
    table += [
        Case("add_number", "T.add(x, 2.0, out=out)"),
        Case("add_alpha", "T.add(x, y, alpha=0.5, out=out)"),
        Case("addcmul", "T.addcmul(x, y, y, out=out)"),
        Case("lerp", "T.lerp(x, y, 0.3, out=out)"),
        Case("clamp", "T.clamp(x, 0.7, 1.2, out=out)"),
        Case("pow2.5", "T.pow(x, 2.5, out=out)"),
        Case("pow2", "T.pow(x, 2, out=out)"),
        Case("where", "T.where(mask, x, y, out=out)"),
        Case("where_number", "T.where(mask, x, 0.0, out=out)"),
        Case("addcdiv", "T.addcdiv(x, y, y, out=out)"),
        Case("gelu", "F.gelu(x, out=out)"),
        Case("gelu_tanh", "F.gelu(x, approximate='tanh', out=out)"),
        Case("silu", "F.silu(x, out=out)"),
        Case("elu", "F.elu(x, out=out)"),
        Case("softplus", "F.softplus(x, out=out)"),
        Case("leaky_relu", "F.leaky_relu(x, out=out)"),
        Case("hardtanh", "F.hardtanh(x, out=out)"),
        Case("fill", "out.fill_(1.5)"),
        Case("copy", "out.copy_(x)"),
        Case("to_float64", "twice.copy_(x)"),
        Case("to_bfloat16", "half.copy_(x)"),
        Case("to_int32", "whole.copy_(x)"),
        Case("of_uint8", "out.copy_(byte)"),
        Case("of_bfloat16", "out.copy_(half)"),
    ]
    for dtype in ("float64", "bfloat16"):
        table += [Case(name, f"T.{name}(x, y, out=out)", dtype) for name in ("add", "mul")]
        table += [Case(name, f"T.{name}(x, out=out)", dtype) for name in ("exp", "log", "tanh", "relu", "sin", "erf")]
        table.append(Case("gelu", "F.gelu(x, out=out)", dtype))
        table += [Case(name, f"T.{name}(x, y, out=mask)", dtype) for name in ("eq", "gt")]
        table.append(Case("where", "T.where(mask, x, y, out=out)", dtype))
    for dtype in ("int32", "int64"):
        table += [Case(name, f"T.{name}(x, y, out=out)", dtype) for name in WHOLE]
        table += [Case(name, f"T.{name}(x, out=out)", dtype) for name in ("abs", "neg", "sign", "bitwise_not")]
        table += [Case(name, f"T.{name}(x, y, out=mask)", dtype) for name in ("eq", "gt")]
        table.append(Case("where", "T.where(mask, x, y, out=out)", dtype))
        table.append(Case("to_float32", "single.copy_(x)", dtype))
        table.append(Case("of_bool", "out.copy_(mask)", dtype))
    for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "eq", "ne"):
        table.append(Case(name, f"T.{name}(x, y, out=out)", "bool"))
    table += [Case(name, f"T.{name}(x, out=out)", "bool") for name in ("logical_not", "bitwise_not")]
    table.append(Case("where", "T.where(x, x, y, out=out)", "bool"))
    table.append(Case("to_float32", "single.copy_(x)", "bool"))
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


class LimitsProcess:
    def __init__(self, threads):
        program = limits_program()
        self.process = subprocess.Popen(
            [program, str(threads), "streams"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def rates(self, sizes):
        """Of the triad, and of a loop that moves elements of these sizes."""
        print(*sizes, *[0] * (4 - len(sizes)), file=self.process.stdin, flush=True)
        return [float(rate) for rate in self.process.stdout.readline().split()]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Cached:
    """A case on data in first-level caches, while other processes do the same on the other processors."""

    def __init__(self, case, threads):
        long = SMALL // WIDTH[case.dtype]
        short = long // 16
        # The difference of two lengths leaves the price of a call out.
        self.bytes = sum(case.sizes()) * (long - short) * threads
        self.loops = [bound(case, names(case.dtype, n)) for n in (long, short)]
        self.others = threads - 1
        for loop in self.loops:
            loop(200)

    def rate(self):
        others = [child for _ in range(self.others) if (child := forked(self.loops[0]))]
        samples = [[seconds(loop, 200) for loop in self.loops] for _ in range(7)]
        for child in others:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return self.bytes / statistics.median(a - b for a, b in samples)


def forked(loop):
    child = os.fork()
    while child == 0:
        loop(1000)
    return child


def measure(case, of, limits, threads, rounds):
    loop, sizes, cached = bound(case, of), case.sizes(), Cached(case, threads)
    passes = []
    for _ in range(rounds):
        loop(1)  # pages of a process that has forked are its own again when it has written to them
        reached = sum(sizes) * of["n"] / seconds(loop)
        passes.append((reached, *limits.rates(sizes), cached.rate()))
    columns = [statistics.median(rates) for rates in zip(*passes, strict=True)]
    return {
        "case": case.name,
        "dtype": case.dtype,
        **dict(zip(("reached", "triad", "moved", "cached"), columns, strict=True)),
        "without_moved": statistics.median(reached / min(triad, fast) for reached, triad, _, fast in passes),
        "share": statistics.median(reached / min(most) for reached, *most in passes),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="cases whose name matches this pattern")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    args = parser.parse_args()
    T.set_num_threads(args.threads)
    limits, results, of = LimitsProcess(args.threads), [], None
    for case in cases():
        if not re.search(args.only, case.name):
            continue
        if of is None or of["x"].dtype != getattr(T, case.dtype):
            of = None
            of = names(case.dtype, SIZE // WIDTH[case.dtype])
        results.append(measure(case, of, limits, args.threads, args.rounds))
    limits.end()
    results.sort(key=lambda r: r["share"])
    print(f"pointwise kernels, reused output, arrays of 256 MB, {args.threads} thread(s); GB/s; wanted: {WANTED:.0%}")
    head = " ".join(f"{name:>8}" for name in ("reached", "triad", "so moved", "in cache"))
    print(f"{'kernel':14} {'dtype':9} {head} {'of limit':>9}   without 'so moved'")
    for r in results:
        rates = " ".join(f"{r[key] / 1e9:8.1f}" for key in ("reached", "triad", "moved", "cached"))
        mark = " " if r["share"] >= WANTED else "*"
        print(f"{r['case']:14} {r['dtype']:9} {rates} {r['share']:9.0%} {mark} {r['without_moved']:9.0%}")
    below = [r["case"] for r in results if r["share"] < WANTED]
    print(f"below what is wanted: {', '.join(below) or 'none'}")
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / f"limit_share{args.threads}.json").write_text(json.dumps(results, indent=1) + "\n")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
