"""bench/gpu/pieces.py: how a step says what it found: a line of JSON each, at once, so that nothing is lost when it is killed."""

import contextlib
import json
import os
import time

from report import number

DEVICE = os.environ["ADJOIN_GPU_DEVICE"]
SIMULATED = bool(os.environ["ADJOIN_GPU_SIMULATED"])
OUT = os.environ["ADJOIN_GPU_OUT"]
UNTIL = float(os.environ["ADJOIN_GPU_UNTIL"])


def _write(kind, **what):
    with open(os.path.join(OUT, os.environ["ADJOIN_GPU_STEP"] + ".jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps({"kind": kind, **what}) + "\n")


def check(name, ok, told=""):
    """One thing that holds or does not; told: what was seen."""
    _write("check", name=name, ok=bool(ok), told=str(told))
    print(f"{'ok' if ok else 'FAILED'}: {name}" + (f": {told}" if told else ""), flush=True)


def figure(name, value, unit, beside=""):
    """A number for the report; beside: what it is compared with, in words."""
    _write("figure", name=name, value=value, unit=unit, beside=str(beside))
    print(f"{name}: {number(value)} {unit}" + (f" ({beside})" if beside else ""), flush=True)


def left_out(name, why):
    """What was not tried, and what would bring it."""
    _write("left out", name=name, why=why)
    print(f"left out: {name}: {why}", flush=True)


def unfinished(why):
    """The step did not get through; another run goes on."""
    _write("unfinished", why=why)
    print(f"unfinished: {why}", flush=True)


@contextlib.contextmanager
def guarded(name):
    """A check that holds if the block raises nothing; the step goes on after it."""
    try:
        yield
    except Exception as error:  # whatever it is, the report tells it
        check(name, False, f"{type(error).__name__}: {error}")
    else:
        check(name, True)


def seconds_left():
    return UNTIL - time.time()


def told(f, *arguments):
    """The error of a call as text, or None."""
    try:
        f(*arguments)
    except (RuntimeError, IndexError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
