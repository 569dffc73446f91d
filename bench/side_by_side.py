"""bench/side_by_side.py: two libraries in one run, their samples alternating, case by case.

The figure of a case is the median over rounds of (second / first): what slows the machine for a
while slows both. Both run on the same cores, since a core whose sibling is busy is slower.
"""

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

from all_cases import CASES
from table import NOT_JUDGED, SINGLY, WANTED, group_of

HERE = Path(__file__).resolve().parent
SLOWER, SLOWER_MEAN = 1.1, 1.03  # what a later build's case and a suite's mean may take of an earlier one's time
SUITES = "ops,view,create,ew,gemm,conv,rnn,attn,optim,train,data,fft,func,sparse,linalg"


class Worker:
    """A process that times cases of one library: `torch`, `adjoin`, or `adjoin@PREFIX`, an Adjoin that is installed elsewhere."""

    def __init__(self, library, threads):
        library, _, prefix = library.partition("@")
        python = sys.executable if library == "adjoin" else os.environ.get("BENCH_PYTHON", sys.executable)
        env = dict(os.environ, OMP_NUM_THREADS=str(threads))
        if library != "adjoin":
            env.pop("PYTHONPATH", None)
        elif prefix:
            env["PYTHONPATH"] = str(Path(prefix) / "lib/adjoin/python")
        self.process = subprocess.Popen(
            [python, str(HERE / "worker.py"), library, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
            preexec_fn=lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:]),
        )
        self.library = library
        self.title = f"{library} {self.ask('version')}" + (" there" if prefix else "")

    def ask(self, *request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"side_by_side: the worker of {self.library} ended while it did {request}")
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


def limit_of(case):
    """The ratio that a case may have at most."""
    return SINGLY.get(case.name, WANTED[group_of(case)].worst)


def summary(results):
    """Lines about each group, and whether all of them are as wanted."""
    lines, good = [], True
    for group, wanted in WANTED.items():
        of = [r for r in results if group_of(CASES[r["case"]]) == group]
        if not of:
            continue
        mean = geometric_mean([r["ratio"] for r in judged(of)])
        above = [r for r in judged(of) if r["ratio"] > limit_of(CASES[r["case"]])]
        missing = [r["case"] for r in of if "error" in r]
        good &= mean <= wanted.mean and not above and not missing
        lines.append(
            f"{group}: geometric mean {mean:.3f} of {len(judged(of))} cases (wanted: {wanted.mean}, "
            f"none above {wanted.worst})"
        )
        for r in above:
            lines.append(f"  above what is wanted: {r['case']} {r['ratio']:.2f} (wanted: {limit_of(CASES[r['case']])})")
        if missing:
            lines.append(f"  without a figure: {', '.join(missing)}")
    return lines, good


def changes(results):
    """The same of two builds of Adjoin: lines about each suite, and whether the second is as fast as the first."""
    lines, good = [], True
    for suite in dict.fromkeys(r["suite"] for r in results):
        of = [r for r in judged(results) if r["suite"] == suite]
        mean = geometric_mean([r["ratio"] for r in of])
        above = [r for r in of if r["ratio"] > SLOWER]
        good &= mean <= SLOWER_MEAN and not above
        lines.append(
            f"{suite}: geometric mean {mean:.3f} of {len(of)} cases (wanted: {SLOWER_MEAN}, none above {SLOWER})"
        )
        lines += [f"  slower than it was: {r['case']} {r['ratio']:.2f}" for r in above]
    return lines, good


def limits(threads):
    """Bytes and operations per second that this machine reaches: of bench/limits.cpp, where it was built."""
    program = Path("build/bench/limits")
    if not program.exists():
        return {}
    run = subprocess.run([program, str(threads)], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def share_of_limit(case, ns, most):
    """How near to the machine's limit: seconds that its bytes and operations take at least, of those it took."""
    flops = most.get("float64" if case.dtype == "float64" else "float32", 0) * (2 if case.dtype == "bfloat16" else 1)
    least = max(case.bytes / most["bytes"] if most else 0, case.flops / flops if flops else 0)
    return least / (ns * 1e-9) if least else None


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
    suites = list(dict.fromkeys(r["suite"] for r in results))
    colors = {suite: f"C{i}" for i, suite in enumerate(suites)}
    axes.barh(
        range(len(rows)),
        [r["ratio"] for r in rows],
        xerr=[[max(0, r["ratio"] - r["spread"][0]) for r in rows], [max(0, r["spread"][1] - r["ratio"]) for r in rows]],
        error_kw={"elinewidth": 0.6, "ecolor": "black"},
        color=[colors[r["suite"]] for r in rows],
    )
    axes.set_xscale("log")
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
    axes.legend([plt.Rectangle((0, 0), 1, 1, color=c) for c in colors.values()], colors, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    print(f"side_by_side: wrote {path}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "libraries",
        nargs="*",
        default=["torch", "adjoin"],
        help="two of torch, adjoin, adjoin@PREFIX: an Adjoin installed under PREFIX, such as another build's stage/usr/local",
    )
    parser.add_argument("--suite", default="ops,view,create", help=f"any of {SUITES}")
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def main():
    args = arguments()
    suites = args.suite.split(",")
    names = [c.name for c in CASES.values() if c.suite in suites and args.only in c.name]
    if args.list:
        print("\n".join(names))
        return 0
    workers = [Worker(library, args.threads) for library in args.libraries]
    titles = [worker.title for worker in workers]
    ourselves = all(worker.library == "adjoin" for worker in workers)
    print(f"{titles[1]} beside {titles[0]}; {args.threads} thread(s); ns per op; ratio below 1: {titles[1]} is faster")
    most = limits(args.threads)
    print(f"{'case':28} {titles[0]:>16} {titles[1]:>16} {'ratio':>7}   lowest .. highest   of the limit")
    results = []
    for name in names:
        r = measure(*workers, name, args.rounds)
        results.append(r)
        if "error" in r:
            print(f"{name:28} {r['error'][:90]}")
        else:
            low, high = r["spread"]
            share = share_of_limit(CASES[name], r["second_ns"], most)
            r["of_limit"] = share
            near = "" if share is None else f"{share:14.0%}"
            most_wanted = SLOWER if ourselves else limit_of(CASES[name])
            mark = " *" if name not in NOT_JUDGED and r["ratio"] > most_wanted else ""
            print(
                f"{name:28} {r['first_ns']:16.0f} {r['second_ns']:16.0f} {r['ratio']:7.2f}   {low:.2f} .. {high:.2f}{near}{mark}",
                flush=True,
            )
    for worker in workers:
        worker.end()
    lines, good = changes(results) if ourselves else summary(results)
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
        "date": datetime.date.today().isoformat(),
        "limits": most,
        "results": results,
        "summary": lines,
    }
    (args.out / "side_by_side.json").write_text(json.dumps(record, indent=1) + "\n")
    plot(results, titles, args.out / "side_by_side.png")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
