"""bench/graphs.py: programs beside eager code: python bench/graphs.py [--only CASE,...] [--rounds 3] [--threads 1] [--save FILE]

Each case runs in PyTorch eager, torch.compile (BENCH_PYTHON names a Python that has them), jax.jit (JAX_PYTHON), in Adjoin eager, as
a traced program, in compile(), and in compile(replay=True), each kind in a process of its own, in turns; what is not named is left
out. The table has medians of the steady state in microseconds, the CPU milliseconds of the first call, and how many kernels ran (a
fused group counts once) of how many calls. `best` is our fastest program beside the fastest rival, `gate` compile() and
compile(replay=True) beside our eager, samples in turn in one process: what else the machine does then is the same for both. It is
the greater of two ratios: of the calls 3 to 12 of functions that are compiled anew, the least time of each, and of later calls.
A goal is a ratio to the best rival; a `*` marks what misses it. --save keeps the figures; --page FILE... writes the table of kept ones
into bench/README.md.
"""

import argparse
import datetime
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RIVALS = ("torch", "torch.compile", "jax.jit")
OURS = ("adjoin", "program", "compile", "replay")
# What a program is wanted to take: its share of the best rival's time.
GOALS = {
    "gelu_1e6": 0.88,
    "gelu_1e4": 0.31,
    "layer_norm": 0.62,
    "softmax_dropout": 0.1,
    "adam": 0.87,
    "mlp_tiny_step": 0.14,
    "mlp_784_step": 0.74,
    "gpt_block_step": 0.7,
    "lstm_16_step": 0.55,
    "ops_150_on_4": 0.32,
    "boxes_256": 0.74,
}
MEAN, FIRST, GATE = 0.6, 1 / 50, 1.05  # wanted of the geometric means, and of compile() beside our eager
MARKS = ("<!-- table: written by bench/graphs.py -->\n", "<!-- end of table of programs -->\n")


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in used)


def torch_like(kind, only):
    """(name, what makes a step, what tells the kernels that ran, what makes a step of the function as it is) of each case."""
    if kind in ("torch", "torch.compile"):
        import torch as T
    else:
        import adjoin as T
    from graph_cases import CASES

    T.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if kind == "torch.compile":  # the compiler's own start is no case's
        T.compile(lambda x: x + 1)(T.ones(3))
    for name, make in CASES.items():
        if only and name not in only:
            continue
        T.manual_seed(0)
        f, inputs, *step_of = make(T)
        program = []

        def ready(f=f, inputs=inputs, step_of=step_of, program=program):
            words = {"replay": True} if kind == "replay" else {}
            made = (
                T.jit.trace(f, inputs)
                if kind == "program"
                else T.compile(f, **words)
                if kind in ("torch.compile", "compile", "replay")
                else f
            )
            program.append(made)
            return step_of[0](made) if step_of else lambda: made(*inputs)

        def kernels(program=program):
            if kind == "program":
                stats = program[0].stats()
                return [stats["passes"], stats["calls"]]
            if kind == "compile":
                regions = program[0].explain().regions
                return [sum(r["passes"] for r in regions), sum(r["calls"] for r in regions)]
            return None

        with T.set_grad_enabled(bool(step_of)):
            yield name, ready, kernels, lambda f=f, i=inputs, s=step_of: s[0](f) if s else lambda: f(*i)


def jax_like(only):
    if os.environ["OMP_NUM_THREADS"] == "1":
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax
    from graph_cases_jax import CASES

    jax.block_until_ready(jax.jit(lambda x: x + 1)(1.0))
    for name, make in CASES.items():
        if only and name not in only:
            continue
        f = make()
        yield name, lambda f=f: lambda: jax.block_until_ready(f()), lambda: None, None


def from_the_third(made_anew, plain, clock):
    """The calls 3 to 12 of a compiled function beside the function itself, call by call in turn: the least of each of five."""

    def timed(f):
        start = clock()
        f()
        return clock() - start

    runs = []
    for _ in range(5):
        mine = made_anew()
        runs.append([(timed(mine), timed(plain)) for _ in range(12)][2:])
    least = [[min(pair[k] for pair in call) for call in zip(*runs, strict=True)] for k in (0, 1)]
    return sum(least[0]) / sum(least[1])


def measure(kind, only):
    """Prints a line of JSON for each case."""
    clock = time.process_time if os.environ["OMP_NUM_THREADS"] == "1" else time.perf_counter
    for name, ready, kernels, as_it_is in jax_like(only) if kind == "jax.jit" else torch_like(kind, only):
        before = cpu()
        step = ready()
        step()
        told = {"case": name, "first": cpu() - before}
        ran = kernels()
        for _ in range(2):
            step()
        start = clock()
        step()
        took = max(clock() - start, 1e-7)

        def sample(step, n):
            start = clock()
            for _ in range(n):
                step()
            return (clock() - start) / n

        samples = [sample(step, max(1, int(0.02 / took))) for _ in range(11)]
        plain, ratios = as_it_is() if kind in ("compile", "replay") else None, []
        # Short samples side by side have the same neighbours on the machine; who comes first has no advantage.
        for turn in range(0 if not plain else 61 if took < 0.01 else 11):
            n, pair = max(1, int(0.002 / took)), [step, plain]
            times = [sample(f, n) for f in (pair[::-1] if turn % 2 else pair)]
            mine, own = times[::-1] if turn % 2 else times
            ratios.append(mine / own)
        early = from_the_third(ready, plain, clock) if plain else 0
        told["gate"] = max(early, statistics.median(ratios)) if ratios else None
        print(json.dumps({**told, "us": statistics.median(samples) * 1e6, "kernels": ran}), flush=True)


def python_of(kind):
    if kind in OURS:
        return sys.executable
    return os.environ.get("JAX_PYTHON" if kind == "jax.jit" else "BENCH_PYTHON")


def run(kind, a):
    with tempfile.TemporaryDirectory() as cache:
        env = dict(
            os.environ, OMP_NUM_THREADS=str(a.threads), TORCHINDUCTOR_CACHE_DIR=cache, TORCHINDUCTOR_COMPILE_THREADS="1"
        )
        if kind in RIVALS:
            env.pop("PYTHONPATH", None)
        words = [python_of(kind), __file__, "--kind", kind, "--only", a.only]
        out = Path(cache) / "lines"
        why = ""
        with out.open("w") as lines, (Path(cache) / "errors").open("w+") as errors:
            try:
                subprocess.run(words, env=env, stdout=lines, stderr=errors, cwd=HERE, timeout=a.limit, check=True)
            except subprocess.TimeoutExpired:
                why = f"{a.limit} s were over"
            except subprocess.CalledProcessError:
                errors.seek(0)
                why = (errors.read().strip().splitlines() or ["no word"])[-1][:160]
        found = [json.loads(line) for line in out.read_text().splitlines() if line.startswith("{")]
    if why:
        print(f"{kind}: ended after {len(found)} cases: {why}", file=sys.stderr)
    return found


def geometric(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def judged(row):
    """Of a case: the best rival and ours, and what follows."""
    rivals, ours = {k: row[k] for k in RIVALS if k in row}, {k: row[k] for k in OURS[1:] if k in row}
    told = {}
    if rivals and ours:
        told["best"] = min(v["us"] for v in ours.values()) / min(v["us"] for v in rivals.values())
    told["gates"] = [row[k]["gate"] for k in ("compile", "replay") if row.get(k, {}).get("gate")]
    if "adjoin" in row and ours:
        told["own"] = min(v["us"] for v in ours.values()) / row["adjoin"]["us"]
    made = [row[k]["first"] for k in RIVALS[1:] if k in row]
    if made and "program" in row:
        told["first"] = row["program"]["first"] / min(made)
    return told


def table(run):
    rows, kinds = run["cases"], [k for k in RIVALS + OURS if any(k in row for row in run["cases"].values())]
    threads = run["threads"]
    lines = [
        f"{threads} thread{'s' * (threads > 1)}, µs:",
        "",
        "| case | " + " | ".join(kinds) + " | best | goal | gate | first call, ms: rivals | ours | kernels of calls |",
        "|---" * (len(kinds) + 7) + "|",
    ]
    means = {"best": [], "own": [], "first": []}
    for name, row in rows.items():
        told = judged(row)
        for key, values in means.items():
            if key in told and (name in GOALS or key == "own"):
                values.append(told[key])

        def ratio(key, limit=None, told=told):
            if key not in told:
                return ""
            return f"{told[key]:.2f}{'*' if limit and told[key] > limit else ''}"

        goal = GOALS.get(name)
        made = " / ".join(f"{row[k]['first'] * 1e3:.0f}" for k in RIVALS[1:] if k in row)
        kernels = next((row[k]["kernels"] for k in ("program", "compile") if row.get(k, {}).get("kernels")), None)
        cells = [f"{row[k]['us']:.1f}" if k in row else "" for k in kinds]
        gates = " / ".join(f"{g:.2f}{'*' if g > GATE else ''}" for g in told["gates"])
        cells += [ratio("best", goal), str(goal or ""), gates, made]
        cells += [
            f"{row['program']['first'] * 1e3:.2f}" if "program" in row else "",
            "{} / {}".format(*kernels) if kernels else "",
        ]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    lines += [
        "",
        f"Geometric means: beside the best rival {geometric(means['best']):.2f} (wanted {MEAN}), beside our eager {geometric(means['own']):.2f}, "
        f"first call beside the faster rival's {geometric(means['first']):.4f} (wanted {FIRST:.4f}).",
    ]
    return "\n".join(lines) + "\n"


def page(files):
    readme = HERE / "README.md"
    text = readme.read_text()
    before, _, rest = text.partition(MARKS[0])
    _, found, after = rest.partition(MARKS[1])
    if not found:
        raise SystemExit(f"graphs: {readme} lacks the marks {MARKS[0].strip()} and {MARKS[1].strip()}")
    made = "\n".join(table(json.loads(Path(f).read_text())) for f in files)
    readme.write_text(before + MARKS[0] + made + MARKS[1] + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(RIVALS + OURS))
    parser.add_argument(
        "--limit", type=float, default=900, help="seconds that a process may take; what it has printed counts"
    )
    parser.add_argument("--save", type=Path)
    parser.add_argument("--page", nargs="+", help="files that --save has made")
    parser.add_argument("--kind", choices=RIVALS + OURS, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.kind:
        return measure(a.kind, [w for w in a.only.split(",") if w])
    if a.page:
        return page(a.page)
    kinds = [k for k in a.kinds.split(",") if python_of(k)]
    got = {}
    for _ in range(a.rounds):
        for kind in kinds:
            for line in run(kind, a):
                got.setdefault(line.pop("case"), {}).setdefault(kind, []).append(line)
    cases = {
        name: {
            kind: {
                "us": statistics.median(line["us"] for line in lines),
                "first": statistics.median(line["first"] for line in lines),
                "kernels": lines[0]["kernels"],
                "gate": statistics.median(line["gate"] for line in lines) if lines[0]["gate"] else None,
            }
            for kind, lines in row.items()
        }
        for name, row in got.items()
    }
    kept = {
        "threads": a.threads,
        "rounds": a.rounds,
        "machine": {"processor": platform.machine(), "cpus": os.cpu_count()},
        "date": datetime.date.today().isoformat(),
        "cases": cases,
    }
    if a.save:
        a.save.write_text(json.dumps(kept, indent=1) + "\n")
    print(table(kept))


if __name__ == "__main__":
    main()
