"""bench/budget.py: what one call costs beside its budget: from C (call_bench's JSON) and from Python.

Machines differ, so each figure also stands as a multiple of an empty Python call, of NumPy's a + b, and, from C, of the
same call in libtorch where the Python that BENCH_PYTHON names has one.
"""

import array
import json
import os
import statistics
import subprocess
import sys
import time
import timeit
from pathlib import Path

import adjoin

ROUNDS, TARGET = 15, 0.004
PASSES = 3  # of the programs, in turn: their medians are compared


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


def libtorch_program(folder):
    """Builds libtorch_calls.cpp; None where there is no libtorch or no compiler for it."""
    where = "import os, torch; print(os.path.dirname(torch.__file__), int(torch.compiled_with_cxx11_abi()))"
    found = subprocess.run(
        [os.environ.get("BENCH_PYTHON", sys.executable), "-c", where],
        check=False,
        capture_output=True,
        text=True,
    )
    if found.returncode:
        return None
    torch, abi = found.stdout.split()
    source, program = Path(__file__).with_name("libtorch_calls.cpp"), folder / "libtorch_calls"
    libraries = [f"-L{torch}/lib", f"-Wl,-rpath,{torch}/lib", "-lc10", "-ltorch_cpu", "-ltorch"]
    command = ["c++", "-std=c++20", "-O2", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-isystem", f"{torch}/include"]
    built = subprocess.run([*command, source, "-o", program, *libraries], check=False, capture_output=True, text=True)
    if built.returncode:
        print(f"budget: libtorch_calls.cpp does not build: {(built.stderr.strip().splitlines() or ['?'])[-1]}")
        return None
    return program


def from_libtorch(program):
    run = subprocess.run([program], check=False, capture_output=True, text=True)
    return {name: float(ns) for name, ns in map(str.split, run.stdout.splitlines())}


def both_from_c(program):
    """Medians of our calls, and of their ratios to libtorch's; one after the other, since machines are busy for a while."""
    other = libtorch_program(Path(program).parent)
    ours, ratios = {}, {}
    for _ in range(PASSES if other else 1):
        theirs = from_libtorch(other) if other else {}
        for name, figure in from_c(program).items():
            ours.setdefault(name, []).append(figure)
            if name in theirs:
                ratios.setdefault(name, []).append(figure / theirs[name])
    return {k: statistics.median(v) for k, v in ours.items()}, {k: statistics.median(v) for k, v in ratios.items()}


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


def print_lists():
    """tolist() beside the interpreter's own C code making the same objects. The least of runs in turn: only that is a floor."""
    rows = {name: array.array("f", range(8 * i, 8 * i + 8)) for i, name in enumerate("abcdefgh")}
    statements = {
        "of 8 x 8 floats": ("x.tolist()", {"x": adjoin.arange(64.0).reshape(8, 8)}),
        "by eight arrays": (f"[{', '.join(f'{name}.tolist()' for name in rows)}]", rows),
        "of 64 floats": ("x.tolist()", {"x": adjoin.arange(64.0)}),
        "by an array": ("x.tolist()", {"x": array.array("f", range(64))}),
    }
    timers = {name: timeit.Timer(s, timer=time.process_time, globals=names) for name, (s, names) in statements.items()}
    least = dict.fromkeys(timers, float("inf"))
    for _ in range(10 * ROUNDS):
        for name, timer in timers.items():
            least[name] = min(least[name], timer.timeit(200) / 200 * 1e9)
    print("tolist(), ns: " + ", ".join(f"{name} {ns:.0f}" for name, ns in least.items()))


def print_beside_libtorch(c, ratios):
    if not ratios:
        print("beside libtorch: left out; BENCH_PYTHON names a Python that has it")
        return
    print(f"{'from C':28} {'ns':>7} {'/ libtorch':>10}")
    for name, ratio in ratios.items():
        print(f"{name:28} {c[name]:7.0f} {ratio:10.3f}{'  wanted: 0.12' if name == 'add_64' else ''}")


def main():
    c, ratios = both_from_c(sys.argv[1]) if len(sys.argv) > 1 else ({}, {})
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
    print_lists()
    if c:
        print_beside_libtorch(c, ratios)
    return 1 if over else 0


sys.exit(main())
