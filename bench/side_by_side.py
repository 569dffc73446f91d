"""bench/side_by_side.py: two libraries in one run, their samples alternating, case by case.

The figure of a case is the median over rounds of (second / first): what slows the machine for a
while slows both.
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

from cases import CASES

HERE = Path(__file__).resolve().parent
NOT_JUDGED = {"python_nop_call"}  # the interpreter alone


class Worker:
    def __init__(self, python, library, threads):
        env = dict(os.environ, OMP_NUM_THREADS=str(threads))
        if library == "torch":
            env.pop("PYTHONPATH", None)
        self.process = subprocess.Popen(
            [python, str(HERE / "worker.py"), library, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        self.library = library

    def ask(self, *request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(
                f"side_by_side: the worker of {self.library} ended while it did {request}"
            )
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def failure(answer):
    return answer["error"] if isinstance(answer, dict) else None


def measure(first, second, name, rounds):
    for worker in (first, second):
        if error := failure(worker.ask("open", name)):
            return {"case": name, "suite": CASES[name].suite, "error": f"{worker.library}: {error}"}
    times = {first: [], second: []}
    for i in range(rounds):
        for worker in (first, second) if i % 2 else (second, first):
            sample = worker.ask("sample")
            if error := failure(sample):
                return {
                    "case": name,
                    "suite": CASES[name].suite,
                    "error": f"{worker.library}: {error}",
                }
            times[worker].append(sample)
    for worker in (first, second):
        worker.ask("close")
    ratios = [b / a for a, b in zip(times[first], times[second])]
    return {
        "case": name,
        "suite": CASES[name].suite,
        "first_ns": statistics.median(times[first]) * 1e9,
        "second_ns": statistics.median(times[second]) * 1e9,
        "ratio": statistics.median(ratios),
        "spread": [min(ratios), max(ratios)],
    }


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def judged(results):
    return [r for r in results if "ratio" in r and r["case"] not in NOT_JUDGED]


def summary(results, limit_mean, limit_case):
    lines = []
    for suite in dict.fromkeys(r["suite"] for r in results):
        ratios = [r["ratio"] for r in judged(results) if r["suite"] == suite]
        lines.append(f"{suite}: geometric mean {geometric_mean(ratios):.3f} of {len(ratios)} cases")
    ratios = [r["ratio"] for r in judged(results)]
    mean = geometric_mean(ratios)
    above = [r["case"] for r in judged(results) if r["ratio"] > limit_case]
    missing = [r["case"] for r in results if "error" in r]
    lines.append(
        f"all: geometric mean {mean:.3f} of {len(ratios)} cases (wanted: at most {limit_mean})"
    )
    lines.append(f"above {limit_case}: {', '.join(above) or 'none'}")
    lines.append(f"without a figure: {', '.join(missing) or 'none'}")
    return lines, mean <= limit_mean and not above and not missing


def plot(results, names, path):
    try:
        import matplotlib
    except ImportError:
        print("side_by_side: no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = sorted(judged(results), key=lambda r: r["ratio"])
    figure, axes = plt.subplots(figsize=(9, 0.19 * len(rows) + 1.2))
    colors = {"ops": "tab:blue", "view": "tab:green", "create": "tab:orange"}
    axes.barh(
        range(len(rows)),
        [r["ratio"] for r in rows],
        color=[colors.get(r["suite"], "gray") for r in rows],
    )
    axes.set_yticks(range(len(rows)), [r["case"] for r in rows], fontsize=6)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.axvline(
        geometric_mean([r["ratio"] for r in rows]),
        color="black",
        linewidth=0.8,
        linestyle=":",
    )
    axes.set_xlabel(f"time of {names[1]} / time of {names[0]} (dotted: geometric mean)")
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.legend(
        [plt.Rectangle((0, 0), 1, 1, color=c) for c in colors.values()], colors, loc="lower right"
    )
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    print(f"side_by_side: wrote {path}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", default=["torch", "adjoin"])
    parser.add_argument("--suite", default="ops,view,create")
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--mean", type=float, default=0.5, help="wanted: geometric mean")
    parser.add_argument("--worst", type=float, default=1.1, help="wanted: each case")
    return parser.parse_args()


def main():
    args = arguments()
    suites = args.suite.split(",")
    names = [c.name for c in CASES.values() if c.suite in suites and args.only in c.name]
    if args.list:
        print("\n".join(names))
        return 0
    other = os.environ.get("BENCH_PYTHON", sys.executable)  # the Python that has the other library
    pythons = [sys.executable if library == "adjoin" else other for library in args.libraries]
    workers = [Worker(p, library, args.threads) for p, library in zip(pythons, args.libraries)]
    versions = [worker.ask("version") for worker in workers]
    titles = [f"{worker.library} {version}" for worker, version in zip(workers, versions)]
    print(
        f"{titles[1]} beside {titles[0]}; {args.threads} thread(s); ns per op; ratio below 1: {titles[1]} is faster"
    )
    print(f"{'case':28} {titles[0]:>16} {titles[1]:>16} {'ratio':>7}   lowest .. highest")
    results = []
    for name in names:
        r = measure(*workers, name, args.rounds)
        results.append(r)
        if "error" in r:
            print(f"{name:28} {r['error'][:90]}")
        else:
            low, high = r["spread"]
            mark = " *" if r["ratio"] > args.worst and name not in NOT_JUDGED else ""
            print(
                f"{name:28} {r['first_ns']:16.0f} {r['second_ns']:16.0f} {r['ratio']:7.2f}   {low:.2f} .. {high:.2f}{mark}",
                flush=True,
            )
    for worker in workers:
        worker.end()
    lines, good = summary(results, args.mean, args.worst)
    print("\n".join(lines))
    args.out.mkdir(parents=True, exist_ok=True)
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cpus": os.cpu_count(),
        "system": platform.platform(),
    }
    record = {
        "libraries": titles,
        "threads": args.threads,
        "machine": machine,
        "results": results,
        "summary": lines,
    }
    (args.out / "side_by_side.json").write_text(json.dumps(record, indent=1) + "\n")
    plot(results, titles, args.out / "side_by_side.png")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
