"""adjoin.torch._report: `adjoin run --report`: what a program used of torch, what was missing, and what fell back."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from . import VERSION, environment
from ._watch import VARIABLE


def _added(parts):
    """Name -> [times, first place, ...] of several processes."""
    whole = {}
    for part in parts:
        for name, (times, *rest) in part.items():
            whole.setdefault(name, [0, *rest])[0] += times
    return whole


def _lines(whole, *words):
    most_first = sorted(whole.items(), key=lambda item: (-item[1][0], item[0]))
    return [{"name": name, "times": line[0], **dict(zip(words, line[1:], strict=True))} for name, line in most_first]


def _ops(text):
    """Of the trace that libadjoin writes: ops with their calls, and those that ran elsewhere through copies."""
    head, *rows = [line.split("\t") for line in text.splitlines()] or [[]]
    rows = [dict(zip(head, row, strict=False)) for row in rows]
    calls, copies = {}, []
    for row in rows:
        if row["served by"].startswith("copies to "):
            words = {"times": int(row["calls"]), "device": row["key"], "bytes": int(row["bytes"]), "why": row["why"]}
            copies.append({"op": row["op"], **words, "how": row["served by"]})
        else:
            calls[row["op"]] = calls.get(row["op"], 0) + int(row["calls"])
    return [{"op": op, "times": n} for op, n in sorted(calls.items(), key=lambda item: (-item[1], item[0]))], copies


def collect(folder, command, code):
    """What the processes of a program left in a folder, as one dictionary."""
    told = [json.loads(file.read_text()) for file in sorted(pathlib.Path(folder).glob("names-*.json"))]
    trace = pathlib.Path(folder, "ops.tsv")
    ops, copies = _ops(trace.read_text() if trace.exists() else "")
    loops = {}
    for op, why, calls, samples in (line for one in told for line in one["loops"]):
        held = loops.setdefault(op, {"op": op, "times": 0, "samples": 0, "why": why})
        held["times"], held["samples"] = held["times"] + calls, held["samples"] + (samples or 0)
    return {
        "program": command,
        "exit_code": code,
        "torch": str(VERSION),
        "processes": len(told),
        "missing": _lines(_added(one["missing"] for one in told), "first"),
        "fell_back": {
            "names_that_do_less": _lines(_added(one["kept"] for one in told), "first", "instead"),
            "copies_to_the_host": copies,
            "loops_of_vmap": list(loops.values()),
        },
        "used": _lines(_added(one["used"] for one in told), "first"),
        "ops": ops,
    }


def _table(title, rows, empty):
    if not rows:
        return [f"{title}: {empty}", ""]
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]) - 1)]
    lines = [
        "  " + "  ".join([*(f"{cell!s:{w}}" for cell, w in zip(row, widths, strict=False)), str(row[-1])])
        for row in rows
    ]
    return [f"{title}:", *lines, ""]


def as_text(told):
    """The report for people."""
    back = told["fell_back"]
    less = [(one["name"], one["times"], one["instead"], one["first"]) for one in back["names_that_do_less"]]
    copies = [
        (one["op"], one["times"], f"{one['device']}, {one['how']}", one["why"]) for one in back["copies_to_the_host"]
    ]
    loops = [
        (one["op"], one["times"], f"{one['samples']} samples one by one", one["why"]) for one in back["loops_of_vmap"]
    ]
    lines = [
        f"{' '.join(told['program'])}: exit code {told['exit_code']}, torch {told['torch']}, processes: {told['processes']}",
        "",
        *_table(
            "Missing", [(o["name"], o["times"], o["first"]) for o in told["missing"]], "nothing that was asked for"
        ),
        *_table("Fell back", less + copies + loops, "nothing"),
        *_table("Names of torch", [(o["name"], o["times"], o["first"]) for o in told["used"]], "none"),
        *_table("Ops", [(o["op"], o["times"]) for o in told["ops"]], "none"),
    ]
    return "\n".join(lines)


def run(command, words, to):
    """Runs a command and writes the report: to a file, as JSON if its name ends so, or to stderr. Gives the exit code."""
    with tempfile.TemporaryDirectory(prefix="adjoin-report-") as folder:
        made = {**environment(), VARIABLE: folder, "ADJOIN_TRACE": os.path.join(folder, "ops.tsv")}
        child = subprocess.Popen(command, env=made)
        asked = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program gets it, too, and ends as it likes
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        code = child.wait()
        signal.signal(signal.SIGINT, asked)
        told = collect(folder, words, code)
    text = json.dumps(told, indent=1) if to and to.endswith(".json") else as_text(told)
    if to:
        pathlib.Path(to).write_text(text + "\n")
    else:
        print(text, file=sys.stderr)
    if code < 0:  # a signal ended it: so it does for whoever waits for this process
        with contextlib.suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code
