#!/usr/bin/env python
"""tests/compat/fuzz/run.py: calls made at random, in Adjoin and in PyTorch; each difference is one of differences.md, or is told.

    python tests/compat/fuzz/run.py --target indexing --cases 100000 --seed 1
    python tests/compat/fuzz/run.py --target indexing --seed 1 --show 1234    # one case, as lines to paste, and both outcomes

A process of its own runs the cases. When it dies or stands still, the case is told and the next process goes on behind it.
"""

import argparse
import collections
import json
import mmap
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

STAGES = ["its start", "making it", "Adjoin", "PyTorch", "the comparison"]
START = 600  # seconds that importing both may take on a busy machine


class Report:
    """What was told of the cases of one target."""

    def __init__(self, shown):
        self.classes, self.unnamed, self.lost, self.shown = collections.Counter(), [], [], shown

    def take(self, line):
        index, rule, text = json.loads(line)
        self.classes[rule or "(no rule)"] += 1
        if not rule:
            self.unnamed.append((index, text))
            if len(self.unnamed) <= self.shown:
                print(f"-- case {index}\n{text}\n", flush=True)

    def lose(self, index, stage, how):
        self.lost.append((index, stage, how))
        print(f"-- case {index}: {how} in {STAGES[stage]}", flush=True)


def processes(target, seed, first, cases, limit, report, most_lost=50):
    end, start = first + cases, first
    while start < end and len(report.lost) < most_lost:
        start = one_process(target, seed, start, end, limit, report)


def one_process(target, seed, start, end, limit, report):
    """Runs cases in a child; the first one that is still to be run."""
    shared = mmap.mmap(-1, 4096)
    into, out = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(into)
        code = 1
        try:
            serve(target, seed, start, end, shared, out)
            code = 0
        finally:
            os._exit(code)
    os.close(out)
    os.set_blocking(into, False)
    how = watch(child, shared, limit, into, report)
    os.close(into)
    index, stage = struct.unpack("qq", shared[:16])
    if how is None:
        return end
    index = max(index, start)
    if STAGES[stage] != "PyTorch" and "crash" in how and broken_by_theirs(target, seed, start, index):
        stage = STAGES.index("PyTorch")
    report.lose(index, stage, how)
    return index + 1


def broken_by_theirs(target, seed, first, last):
    """Do the cases break memory in PyTorch alone, and not in Adjoin alone? The end comes later, in whosever code."""
    return survives("adjoin", target, seed, first, last) and not survives("torch", target, seed, first, last)


def survives(name, target, seed, first, last):
    """Runs cases in one library, where the C library looks at its blocks of memory and ends the process when one is broken."""
    cases = ["--target", target, "--seed", str(seed), "--first", str(first), "--cases", str(last + 1 - first)]
    checked = {**os.environ, "LD_PRELOAD": "libc_malloc_debug.so.0", "MALLOC_CHECK_": "3"}
    command = [sys.executable, os.path.abspath(__file__), *cases, "--alone", name]
    return subprocess.run(command, env=checked, capture_output=True).returncode == 0


def watch(child, shared, limit, told, report):
    """Reads what the child tells until it ends; None, or how it was lost."""
    last, since, hung, rest = None, time.monotonic(), False, b""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        while chunk := read(told):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                report.take(line)
        if ended:
            if hung:
                return f"a hang (more than {limit} s)"
            if os.WIFSIGNALED(status):
                return f"a crash (signal {signal.Signals(os.WTERMSIG(status)).name})"
            return None if status == 0 else f"an end of its process (status {os.WEXITSTATUS(status)})"
        now = shared[:16]
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > (limit if struct.unpack("qq", now)[1] else START) and not hung:
            hung = True
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)


def read(told):
    try:
        return os.read(told, 1 << 16)
    except BlockingIOError:
        return b""


def serve(target, seed, start, end, shared, out):
    from fuzz import worker

    worker.prepare()
    with open(out, "w", buffering=1) as told:

        def tell(index, rule, text):
            told.write(json.dumps([index, rule, text]) + "\n")

        shared[:16] = struct.pack("qq", start, 0)
        with worker.quiet():
            worker.work(target, seed, start, end - start, tell, worker.Place(shared))


def show(target, seed, index):
    from fuzz import worker

    worker.prepare()
    case, told = worker.judge(target, seed, index, worker.Place())
    print(case.text())
    for difference, rule in told:
        print(f"# {difference}\n#   {rule.name if rule else 'no rule takes this'}")
    return 1 if any(rule is None for _, rule in told) else 0


def alone(given):
    from fuzz import worker

    worker.prepare()
    with worker.quiet():
        worker.alone(given.alone, given.target, given.seed, given.first, given.cases)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--limit", type=float, default=20, help="seconds after which a case hangs")
    parser.add_argument("--shown", type=int, default=20, help="so many unnamed differences are printed in full")
    parser.add_argument("--show", type=int, help="prints this case alone")
    parser.add_argument(
        "--alone", choices=["adjoin", "torch"], help="runs the cases in this library, and compares nothing"
    )
    given = parser.parse_args()
    if given.alone:
        return alone(given)
    if given.show is not None:
        return show(given.target, given.seed, given.show)
    report, began = Report(given.shown), time.monotonic()
    processes(given.target, given.seed, given.first, given.cases, given.limit, report)
    for name, count in report.classes.most_common():
        print(f"{count:8}  {name}")
    own = [lost for lost in report.lost if STAGES[lost[1]] != "PyTorch"]
    crashes = sum("hang" not in how for _, _, how in own)
    differ = sum(report.classes.values())
    print(f"{given.target}: {given.cases} cases from {given.first} of seed {given.seed}: {crashes} crashes, "
          f"{len(own) - crashes} hangs, {len(report.lost) - len(own)} of PyTorch; {differ} differences, {len(report.unnamed)} without a name; "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip
    return 1 if report.unnamed or own else 0


if __name__ == "__main__":
    sys.exit(main())
