"""bench/budget.py: what one call costs beside its budget: from C (call_bench's JSON) and from Python.

Machines differ, so each figure also stands as a multiple of an empty Python call and of NumPy's a + b.
"""

import json
import statistics
import subprocess
import sys
import time
import timeit

import adjoin

ROUNDS, TARGET = 15, 0.004


def nanoseconds(statement, names):
    # Time of this process, not of the clock: the machine may be busy with others.
    loop = timeit.Timer(statement, timer=time.process_time, globals=names).timeit
    count = 100
    while (took := loop(count)) < TARGET:
        count = int(count * min(10, 1.3 * TARGET / max(took, 1e-9))) + 1
    return statistics.median(loop(count) for _ in range(ROUNDS)) / count * 1e9


def from_c(program):
    run = subprocess.run(
        [program, "--benchmark_format=json", "--benchmark_min_time=0.05"],
        check=False,
        capture_output=True,
        text=True,
    )
    if run.returncode:
        print(f"budget: {program}: {run.stderr.strip().splitlines()[-1]}")
        return {}
    return {
        b["run_name"].split("/")[0]: b["cpu_time"]
        for b in json.loads(run.stdout)["benchmarks"]
        if b.get("aggregate_name") == "median"
    }


def from_python():
    plain = {"a": adjoin.ones(64), "b": adjoin.ones(64), "add": adjoin.add, "nothing": lambda: None}
    recorded = {
        **plain,
        "a": adjoin.ones(64, requires_grad=True),
        "b": adjoin.ones(64, requires_grad=True),
    }
    figures = {
        "empty call": nanoseconds("nothing()", plain),
        "a + b": nanoseconds("a + b", plain),
        "a + 1.5": nanoseconds("a + 1.5", plain),
        "add(a, b)": nanoseconds("add(a, b)", plain),
        "a.add(b)": nanoseconds("a.add(b)", plain),
        "add(a, b, alpha=1)": nanoseconds("add(a, b, alpha=1)", plain),
        "recorded a + b": nanoseconds("a + b", recorded),
    }
    try:
        import numpy
    except ImportError:
        return figures, None
    ones = numpy.ones(64, numpy.float32)
    return figures, nanoseconds("a + b", {"a": ones, "b": ones})


def main():
    c = from_c(sys.argv[1]) if len(sys.argv) > 1 else {}
    python, numpy_add = from_python()
    recording = python["recorded a + b"] - python["a + b"]
    # name, figure, budget, gate; None where there is none
    table = [
        ("from C: add", c.get("add_64"), 60, 100),
        ("from C: add, a number", c.get("add_number_64"), 60, 100),
        ("from C: add, a row", c.get("add_row_8x8"), None, None),
        ("from C: add, recorded", c.get("add_64_recorded"), 110, None),
        ("from C: empty and release", c.get("empty_64"), 40, None),
        ("from C: select", c.get("select"), None, None),
        ("a + b", python["a + b"], 110, 250),
        ("a + 1.5", python["a + 1.5"], 110, 250),
        ("add(a, b)", python["add(a, b)"], 130, 250),
        ("a.add(b)", python["a.add(b)"], 130, 250),
        ("add(a, b, alpha=1)", python["add(a, b, alpha=1)"], 130, 250),
        ("recording, in a + b", recording, 50, None),
    ]
    print(
        f"64 float32. An empty Python call: {python['empty call']:.0f} ns"
        + (f"; NumPy's a + b: {numpy_add:.0f} ns" if numpy_add else "")
    )
    print(f"{'':28} {'ns':>7} {'budget':>7} {'gate':>6} {'/ call':>7} {'/ NumPy':>8}")
    over = []
    for name, figure, budget, gate in table:
        if figure is None:
            continue
        marks = " over the budget" if budget and figure > budget else ""
        if gate and figure > gate:
            over.append(name)
            marks = " OVER THE GATE"
        beside = f"{figure / numpy_add:8.2f}" if numpy_add else f"{'':8}"
        print(
            f"{name:28} {figure:7.0f} {budget or '':>7} {gate or '':>6} {figure / python['empty call']:7.1f} {beside}{marks}"
        )
    return 1 if over else 0


sys.exit(main())
