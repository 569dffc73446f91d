"""bench/sweep_run.py: times the forms that a sweep has written, in one library at a time, and puts two results side by side.

--against PYTHON measures both in turn instead, form by form: adjoin here, torch in a process of the Python that is named.
What else the machine does then counts for both.
"""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
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
    t = time.process_time()
    f()
    several = range(
        max(1, int(2e-5 / max(time.process_time() - t, 1e-7)))
    )  # of what is as short as asking for the time
    times, began = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - began < seconds and len(times) < 1000):
        t = time.process_time()
        for _ in several:
            f()
        times.append((time.process_time() - t) / len(several))
    times.sort()
    return times[len(times) // 4]


def parts(T, F, setup, statement):
    """What is to be timed of a form, by name."""
    names = {"T": T, "F": F}
    T.manual_seed(0)
    exec(setup, names)
    code = compile(statement, statement, "eval")

    def forward():
        with T.no_grad():
            eval(code, names)

    forward()
    made = {"forward": forward}
    leaves = []
    for value in names.values():
        if isinstance(value, T.Tensor) and value.dtype == T.float32 and "_()" not in statement:
            leaves.append(value.requires_grad_(True))
        elif hasattr(value, "parameters"):
            leaves.extend(value.parameters())
    try:
        y = eval(code, names) if leaves else None
        if not isinstance(y, T.Tensor) or not y.requires_grad:
            return made
        gradient = T.ones_like(y).detach()

        def step():
            T.autograd.grad(eval(code, names), leaves, gradient, allow_unused=True)

        step()
        return made | {"both": step}
    except (RuntimeError, NotImplementedError):  # no gradient of this form
        for leaf in leaves:
            leaf.requires_grad_(False)
        return made


def chosen_forms(args):
    return [f for f in FORMS if not args.only or re.search(args.only, f[0])]


def run(args):
    T = importlib.import_module(args.lib)
    F = importlib.import_module(args.lib + ".nn.functional")
    T.set_num_threads(args.threads)
    found = {}
    for name, setup, statement in chosen_forms(args):
        try:
            made = parts(T, F, setup, statement)
            found[name] = {part: best(f, args.seconds) for part, f in made.items()}
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


def serve(args):
    """One library of --against: a form is made when its number is read, a part of it timed when its name is."""
    T = importlib.import_module(args.lib)
    F = importlib.import_module(args.lib + ".nn.functional")
    T.set_num_threads(args.threads)
    forms, made = chosen_forms(args), {}
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if isinstance(asked, int):
                made = {}
                made = parts(T, F, *forms[asked][1:])
                told = list(made)
            else:
                told = best(made[asked], args.seconds)
        except Exception as error:
            told = {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"}
        print(json.dumps(told), flush=True)


def against(args):
    """Rounds of both in turn; the least of each counts."""
    command = [
        sys.argv[0],
        "--serve",
        "--only",
        args.only,
        "--threads",
        str(args.threads),
        "--seconds",
        str(args.seconds),
    ]
    theirs, ours = (
        subprocess.Popen(
            [python, *command, "--lib", lib], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        for python, lib, env in (
            (args.against, "torch", {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}),
            (sys.executable, "adjoin", None),
        )
    )

    def ask(process, what):
        process.stdin.write(json.dumps(what) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    found, lines = {}, []
    for number, (name, *_) in enumerate(chosen_forms(args)):
        both = ask(theirs, number), ask(ours, number)
        for one in both:
            if isinstance(one, dict):
                print(f"{name}: {one['error']}")
        for part in both[1] if not any(isinstance(one, dict) for one in both) else ():
            if part not in both[0]:
                continue
            rounds = [(ask(theirs, part), ask(ours, part)) for _ in range(args.rounds)]
            x, y = (min(times) for times in zip(*rounds, strict=True))
            found[f"{name} {part}"] = {"ratio": y / x, "theirs": x, "ours": y, "rounds": [b / a for a, b in rounds]}
            each = " ".join(f"{b / a:.2f}" for a, b in rounds)
            lines.append((y / x, f"{y / x:8.2f}  {name} {part}: {x * 1e6:.1f} -> {y * 1e6:.1f} us  ({each})"))
    for ratio, line in sorted(lines, reverse=True):
        if ratio > args.limit:
            print(line)
    if args.save:
        with open(args.save, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


def main(doc):
    """The command line of a sweep whose forms are written."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", default="adjoin")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="names that match")
    parser.add_argument("--seconds", type=float, default=0.08, help="for each figure")
    parser.add_argument("--save")
    parser.add_argument("--beside", nargs=2, metavar=("THEIRS", "OURS"))
    parser.add_argument("--against", metavar="PYTHON", help="one that has torch: both in turn")
    parser.add_argument("--rounds", type=int, default=5, help="of --against")
    parser.add_argument("--limit", type=float, default=0, help="--against shows what is above this ratio")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.beside:
        beside(*args.beside)
    else:
        (against if args.against else serve if args.serve else run)(args)
