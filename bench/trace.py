"""bench/trace.py: where the nanoseconds of one add of 64 floats go, step by step, beside each step's budget.

Prints only. Marks keep neighbouring steps apart, which the processor overlaps otherwise: the last line says what a call takes
without them. LIBADJOIN is of a build with -Dtrace_call=true (`./run build traced`): it takes the place of the staged one in
call_bench and in this Python. Time stamps cost time themselves; what an empty step costs is taken off each.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# What stands in the table, its budget in nanoseconds, and the marks of core/base/marks.hpp that make it up.
STEPS = [
    ("interpreter, slot, arguments", 35, ["before"]),
    ("keys, table", 5, ["keys"]),
    ("inference, plan", 20, ["plan"]),
    ("output block, dims, data", 20, ["output"]),
    ("frame, kernel through the table", 12, ["kernel"]),
    ("recording: node, edges, saved", 50, ["record"]),
    ("result out, previous one dropped", 15, ["leave", "after"]),
    ("release of the previous result", 20, ["release"]),
]
ABOVE_C = ("interpreter, slot, arguments", "result out, previous one dropped")
PROGRAM = """
import time
import adjoin
a, b = adjoin.ones(64, requires_grad={grad}), adjoin.ones(64, requires_grad={grad})
least = 1e9
for _ in range(20):
    start = time.perf_counter_ns()
    for _ in range(2000):
        c = a + b
    least = min(least, (time.perf_counter_ns() - start) / 2000)
print(least)
"""


def plain(command):
    """The same without marks: the least of several runs."""
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    if command[0] == sys.executable:
        return float(run.stdout)
    medians = [b for b in json.loads(run.stdout)["benchmarks"] if b.get("aggregate_name") == "median"]
    return medians[0]["cpu_time"]


def traced(command, library):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "trace"
        plugins = Path(os.environ["ADJOIN_PREFIX"]) / "lib/adjoin/plugins-1"
        env = {
            **os.environ,
            "LD_PRELOAD": library,
            "ADJOIN_TRACE_CALL": str(out),
            "ADJOIN_PLUGIN_PATH": str(plugins),
        }
        run = subprocess.run(command, check=False, env=env, capture_output=True, text=True)
        if run.returncode or not out.exists():
            raise SystemExit(f"trace: {command[0]} failed: {run.stderr.strip() or 'it left no trace'}")
        lines = [line.split() for line in out.read_text().splitlines()]
        return {step: float(ns) for step, ns, calls in lines if int(calls)}


def main():
    call_bench, library = sys.argv[1:]
    library = str(Path(library).resolve())
    commands = {
        "from C": [call_bench, "--benchmark_filter=^add_64/", "--benchmark_format=json"],
        "a + b": [sys.executable, "-c", PROGRAM.format(grad=False)],
        "recorded": [sys.executable, "-c", PROGRAM.format(grad=True)],
    }
    columns = {name: traced(command, library) for name, command in commands.items()}
    print(f"{'ns, means of 4096 calls':34} {'budget':>6}" + "".join(f"{name:>9}" for name in columns))
    sums = dict.fromkeys(columns, 0.0)
    for step, budget, marks in STEPS:
        cells = ""
        for name, figures in columns.items():
            shown = [figures[m] for m in marks if m in figures]
            if not shown or (name == "from C" and step in ABOVE_C):
                cells += f"{'':9}"
                continue
            sums[name] += sum(shown)
            cells += f"{sum(shown):9.1f}"
        print(f"{step:34} {budget:6}{cells}")
    print(f"{'sum':34} {'':6}" + "".join(f"{s:9.1f}" for s in sums.values()))
    print(f"{'the call without marks':34} {'':6}" + "".join(f"{plain(c):9.1f}" for c in commands.values()))


main()
