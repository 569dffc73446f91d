"""adjoin.testing._opcheck_command: `adjoin opcheck`: ops of a plugin's file, or by name, as a table of verdicts."""

import argparse
import json
import os
import sys

import adjoin

from ..utils.cpp_extension import _ops_of
from . import _form
from ._samples import from_file
from . import opcheck
from .opcheck import CHECKS, Verdict, check_op, isolated

_WORDS = {True: "holds", False: "FAILS", None: "-"}


def _arguments():
    parser = argparse.ArgumentParser(
        prog="adjoin opcheck",
        description="Does an op keep what its schema promises? Writes and shared memory, derivatives, meta tensors, threads, layouts, dtypes, leaks.",
        epilog=_form.explained(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what", nargs="+", metavar="FILE|OP", help="a plugin's file: all its ops; or an op's name: acme::squash"
    )
    parser.add_argument(
        "--samples", metavar="FILE", help='JSON: a list of calls, e.g. [[{"shape": [3, 4], "dtype": "float64"}, 2.0]]'
    )
    parser.add_argument("--check", action="append", choices=[*CHECKS], help="only this one; may be given several times")
    parser.add_argument(
        "--seconds",
        type=int,
        metavar="N",
        help=f"that a check may take (default {opcheck.SECONDS}), a quarter of it one call",
    )
    parser.add_argument("--json", action="store_true", help="prints JSON")
    return parser.parse_args


def _reload(path):
    """The plugin can be loaded again, switched off and on, and its ops stay."""
    adjoin.load_plugin(path)
    name = adjoin._C.replace_plugin(path)
    before = _ops_of(name)
    adjoin.load_plugin(path)
    adjoin.plugin.disable(name)
    adjoin.plugin.enable(name)
    return (True, "") if _ops_of(name) == before else (False, f"after a second load its ops are {_ops_of(name)}")


def _told(f):
    try:
        return f()
    except Exception as e:
        return False, f"{type(e).__name__}: {e}"


def _file(path, samples, checks):
    """Lists of verdicts, each with the width of its first column: what was found is shown while the next is tried."""
    name = os.path.basename(path)
    found = isolated(lambda: _told(lambda: (adjoin.load_plugin(path), (True, ""))[1]))
    if not found[0]:
        yield [Verdict(name, "load", *found)], len(name)
        return
    again = isolated(lambda: _told(lambda: _reload(path)))
    ops = _ops_of(adjoin._C.replace_plugin(path))
    wide = max(map(len, [name, *ops]))
    yield [Verdict(name, "load", *found), Verdict(name, "second load", *again)], wide
    for op in ops:
        yield check_op(op, samples, checks), wide


def _all(given):
    samples = from_file(given.samples) if given.samples else None
    for what in given.what:
        if what.endswith(".so") or os.path.sep in what:
            yield from _file(os.path.abspath(what), samples, given.check)
        else:
            yield check_op(what, samples, given.check), len(what)


def run(words):
    """0: every promise is kept; 1: one is not; 2: wrong use."""
    given = _arguments()(words)
    opcheck.SECONDS = given.seconds or opcheck.SECONDS
    verdicts = []
    try:
        for some, wide in _all(given):
            verdicts += some
            for v in () if given.json else some:
                print(f"{v.op:{wide}}  {v.check:15}  {_WORDS[v.ok]:5}  {v.text}".rstrip(), flush=True)
    except (LookupError, OSError, ValueError) as e:
        print(f"adjoin: {e}", file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps([v._asdict() for v in verdicts], indent=1))
    return int(any(v.ok is False for v in verdicts))
