"""adjoin.jit._look: `adjoin graph time | diff | picture`: how long a program takes, where two differ, what one looks like."""

import argparse
import difflib
import re
import sys
from time import perf_counter_ns as now

import adjoin

from .. import _C, jit
from ..utils.npz import load_npy
from ._picture import svg
from ._traced import Program

SIZE = 8  # of a dimension that has a name, where nothing says another


def program_of(path):
    """The program in a file: an archive, or text alone."""
    if path.endswith(".ajir"):
        with open(path) as f:
            handle = _C.program_parse(f.read())
        return Program(handle, None, None)
    made = jit.load(path)
    if not hasattr(made, "_traced"):
        raise ValueError(f"graph: '{path}' holds no program of calls; `adjoin graph show` prints what it holds")
    return made._traced.program


def inputs_of(program, files):
    """Tensors for the inputs: from files, or random ones of the program's sizes."""
    given = [load_npy(f) for f in files]
    for _, dtype, shape in program.inputs[len(given) :]:
        sizes = [SIZE if n < 0 else n for n in shape]
        if dtype.is_floating_point or dtype.is_complex:
            given.append(adjoin.randn(sizes).to(dtype))
        else:
            given.append(adjoin.zeros(sizes, dtype=dtype))
    if len(given) != len(program.inputs):
        raise ValueError(f"graph: {len(given)} inputs are given, the program takes {len(program.inputs)}")
    return given


def time(a):
    """Medians of both ways to run, and the calls that take longest."""
    program = program_of(a.files[0])
    given = inputs_of(program, a.input)
    took = {True: [], False: []}
    with adjoin.no_grad():
        for fused in (True, False):
            _C.program_run(program.handle, given, fused)
        for _ in range(a.rounds):
            for fused in (True, False):
                begin = now()
                _C.program_run(program.handle, given, fused)
                took[fused].append((now() - begin) / 1e3)
        _C.program_run(program.handle, given, True)
        calls, passes, groups, fused_calls = _C.program_stats(program.handle)
        median = {k: sorted(v)[len(v) // 2] for k, v in took.items()}
        print(
            f"fused       {median[True]:12.1f} µs, {passes} walks over tensors, {groups} groups of {fused_calls} calls"
        )
        print(f"one by one  {median[False]:12.1f} µs, {calls} calls")
        with adjoin.profiler.profile() as told:
            for _ in range(3):
                _C.program_run(program.handle, given, False)
    print(told.key_averages().table(sort_by="self_cpu_time_total", row_limit=a.rows))
    return 0


def calls_of(program):
    """The program's lines without the names of values and the numbers of source lines."""
    return [
        re.sub(r" @\d+$", "", re.sub(r"%[\w.]+", "%", line)) for line in _C.program_text(program.handle).splitlines()
    ]


def diff(a):
    """The calls that differ, and by how much the results do; 1 if any does."""
    one, other = (program_of(f) for f in a.files)
    lines = list(difflib.unified_diff(calls_of(one), calls_of(other), *a.files, lineterm="", n=1))
    print("\n".join(lines) if lines else "the calls are the same")
    given = inputs_of(one, a.input)
    with adjoin.no_grad():
        both = [_C.program_run(p.handle, given, True) for p in (one, other)]
    if len(both[0]) != len(both[1]):
        print(f"results: {len(both[0])} and {len(both[1])}")
        return 1
    differs = False
    for i, (x, y) in enumerate(zip(*both, strict=True)):
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            told = f"{x.dtype} {tuple(x.shape)} and {y.dtype} {tuple(y.shape)}"
        elif x.numel() == 0 or x.equal(y):
            told = "the same"
        else:
            far = (x.to(adjoin.float64) - y.to(adjoin.float64)).abs().reshape(-1)
            told = f"differs by {far.max().item():.3g} at most, at element {far.argmax().item()}"
        differs |= told != "the same"
        print(f"result {i}: {told}")
    return int(differs or bool(lines))


def picture(a):
    program = program_of(a.files[0])
    made = svg(_C.program_text(program.handle), lambda n: _C.program_source(program.handle, n))
    target = a.output or a.files[0].rpartition(".")[0] + ".svg"
    with open(target, "w") as f:
        f.write(made)
    print(target)
    return 0


def main(words):
    p = argparse.ArgumentParser("adjoin graph", description="What a program (.aj, .ajir) does.")
    kinds = p.add_subparsers(dest="kind", required=True)
    for kind, run, files in (("time", time, 1), ("diff", diff, 2), ("picture", picture, 1)):
        k = kinds.add_parser(kind, description=run.__doc__ or "A picture of the calls (SVG).")
        k.add_argument("files", nargs=files, metavar="FILE")
        k.set_defaults(run=run)
        if kind == "picture":
            k.add_argument("-o", "--output", help="the file that is written; FILE.svg if it is left out")
            continue
        k.add_argument(
            "-i", "--input", action="append", default=[], help="a .npy file for each input; random if left out"
        )
        if kind == "time":
            k.add_argument("--rounds", type=int, default=21)
            k.add_argument("--rows", type=int, default=12, help="calls that are shown")
    a = p.parse_args(words)
    try:
        return a.run(a)
    except (OSError, ValueError, RuntimeError, NotImplementedError, TypeError) as error:
        print(f"adjoin: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
