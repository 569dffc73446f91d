"""worker.py: runs a range of cases in both libraries, in this process, and names or tells each difference.

Before each step it writes into shared memory which case it is at and in whose code, for whoever survives it.
"""

import contextlib
import gc
import os
import resource
import struct
import traceback
import warnings
import zlib

os.environ.setdefault("ADJOIN_MEMORY_LIMIT", "2G")

import adjoin
import torch

from . import case as cases
from . import classes, compare, memory
from .case import run
from .targets import TARGETS

STAGE = {"make": 1, "adjoin": 2, "torch": 3, "compare": 4}
ROOM = 6 << 30  # of addresses, beyond what the libraries took: who asks for more is refused
UNWRITTEN = 8  # one case of so many runs again, twice, with memory that holds other bytes


def prepare():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))


class Place:
    """The case that runs now, where another process sees it."""

    def __init__(self, shared=None):
        self.shared = shared

    def at(self, index, stage):
        if self.shared is not None:
            self.shared[:16] = struct.pack("qq", index, STAGE[stage])


def judge(target, seed, index, place):
    """(case, what differs, [(difference, rule or None)])."""
    place.at(index, "make")
    cases.entered = lambda lib: place.at(index, lib.__name__ if lib else "compare")
    make = TARGETS[target]
    case = make(seed, index)
    if hasattr(case, "told"):
        return case, case.told()
    if not hasattr(case, "steps"):  # a program judges itself
        place.at(index, "adjoin")
        return case, [(d, None) for d in case.differences()]
    ours = run(adjoin, case)
    theirs = run(torch, case)
    told = [(d, classes.rule_for(d)) for d in compare.differences(case, ours, theirs)]
    if case.values and zlib.crc32(f"{seed} {index}".encode()) % UNWRITTEN == 0:
        told += [(d, None) for d in memory.unwritten(case)]
    return case, told


def alone(name, target, seed, first, count):
    """Runs cases in one library."""
    for index in range(first, first + count):
        run({"adjoin": adjoin, "torch": torch}[name], TARGETS[target](seed, index))


def work(target, seed, first, count, tell, place=None):
    """Tells tell(index, kind, text) of each difference: kind is the name of its rule, "" for none."""
    place = place or Place()
    for index in range(first, first + count):
        try:
            case, told = judge(target, seed, index, place)
        except Exception:
            tell(index, "", f"the comparison itself failed:\n{traceback.format_exc()}")
            continue
        if told:
            unnamed = [d for d, rule in told if rule is None]
            rule = "" if unnamed else told[0][1].name
            shown = unnamed or [d for d, _ in told]
            tell(index, rule, "\n".join([case.text(), *(f"# {d}" for d in shown)]))
        if index % 2000 == 0:
            gc.collect()


@contextlib.contextmanager
def quiet():
    """Libraries print warnings of their own to the error stream."""
    with open(os.devnull, "w") as sink:
        kept = os.dup(2)
        os.dup2(sink.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
