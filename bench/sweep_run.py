"""bench/sweep_run.py: times the forms that a sweep has written, in one library at a time, and puts two results side by side."""

import argparse
import importlib
import json
import re
import time

FORMS = []  # name, setup, statement


def form(name, setup, statement):
    FORMS.append((name, setup, statement))


def leaf(*sizes):
    return f"T.randn({', '.join(map(str, sizes))})"


IMAGE = "x=" + leaf(8, 32, 56, 56)
LINE = "x=" + leaf(16, 64, 1024)
VOLUME = "x=" + leaf(2, 16, 16, 28, 28)


def best(f, seconds):
    f()
    times, began = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - began < seconds and len(times) < 1000):
        t = time.process_time()
        f()
        times.append(time.process_time() - t)
    times.sort()
    return times[len(times) // 4]


def measure(T, F, setup, statement, seconds):
    names = {"T": T, "F": F}
    T.manual_seed(0)
    exec(setup, names)
    code = compile(statement, statement, "eval")
    with T.no_grad():
        found = {"forward": best(lambda: eval(code, names), seconds)}
    leaves = []
    for value in names.values():
        if isinstance(value, T.Tensor) and value.dtype == T.float32 and "_()" not in statement:
            leaves.append(value.requires_grad_(True))
        elif hasattr(value, "parameters"):
            leaves.extend(value.parameters())
    y = eval(code, names) if leaves else None
    if y is None or not isinstance(y, T.Tensor) or not y.requires_grad:
        return found
    gradient = T.ones_like(y).detach()

    def step():
        T.autograd.grad(eval(code, names), leaves, gradient, allow_unused=True)

    found["both"] = best(step, seconds)
    return found


def run(args):
    T = importlib.import_module(args.lib)
    F = importlib.import_module(args.lib + ".nn.functional")
    T.set_num_threads(args.threads)
    found = {}
    for name, setup, statement in FORMS:
        if args.only and not re.search(args.only, name):
            continue
        try:
            found[name] = measure(T, F, setup, statement, args.seconds)
        except Exception as error:  # a missing function is a finding too
            found[name] = {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"}
    text = json.dumps(found, indent=1)
    if args.save:
        with open(args.save, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text)


def beside(theirs, ours):
    with open(theirs, encoding="utf-8") as a, open(ours, encoding="utf-8") as b:
        theirs, ours = json.load(a), json.load(b)
    lines = []
    for name in ours:
        for part in ("forward", "both"):
            x, y = theirs.get(name, {}).get(part), ours[name].get(part)
            if x and y:
                lines.append((y / x, f"{y / x:8.2f}  {name} {part}: {x * 1e6:.0f} -> {y * 1e6:.0f} us"))
            elif (x is None) != (y is None):
                lines.append((1e9, f"          {name} {part}: {theirs.get(name)} {ours[name]}"))
    for _, line in sorted(lines, reverse=True):
        print(line)


def main(doc):
    """The command line of a sweep whose forms are written."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", default="adjoin")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="names that match")
    parser.add_argument("--seconds", type=float, default=0.08, help="for each figure")
    parser.add_argument("--save")
    parser.add_argument("--beside", nargs=2, metavar=("THEIRS", "OURS"))
    chosen = parser.parse_args()
    beside(*chosen.beside) if chosen.beside else run(chosen)
