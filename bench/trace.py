"""bench/trace.py: where the nanoseconds of one add of 64 floats go, step by step, beside each step's budget.

Prints only. LIBADJOIN is of a build with -Dtrace_call=true (`./run build traced`): it takes the place of the staged one in
call_bench and in this Python. Time stamps cost time themselves; what an empty step costs is taken off each.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

# What stands in the table, its budget in nanoseconds, and the marks of core/trace.hpp that make it up.
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
import adjoin
a, b = adjoin.ones(64, requires_grad={grad}), adjoin.ones(64, requires_grad={grad})
for _ in range(20000):
    c = a + b
"""


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
    columns = {
        "from C": traced([call_bench, "--benchmark_filter=^add_64/"], library),
        "a + b": traced([sys.executable, "-c", PROGRAM.format(grad=False)], library),
        "recorded": traced([sys.executable, "-c", PROGRAM.format(grad=True)], library),
    }
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


main()
