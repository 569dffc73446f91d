"""adjoin.autograd._nvprof: what nvprof wrote (``nvprof --profile-from-start off -o FILE``): ranges, and the kernels inside of them."""

import contextlib
import sqlite3

from .._profiler_events import EventList, FunctionEvent, Kernel

_RANGES = """
    SELECT opened.id AS id, texts.value AS name, opened.timestamp AS begun, closed.timestamp AS ended
    FROM CUPTI_ACTIVITY_KIND_MARKER AS opened
    JOIN CUPTI_ACTIVITY_KIND_MARKER AS closed ON closed.id = opened.id AND closed.name = 0
    JOIN StringTable AS texts ON texts._id_ = opened.name
    WHERE opened.name != 0 ORDER BY opened.timestamp
"""
_KERNELS = """
    SELECT calls.start AS begun, calls.end AS ended, kernels.end - kernels.start AS spent, kernels.name AS name
    FROM CUPTI_ACTIVITY_KIND_RUNTIME AS calls
    JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL AS kernels ON kernels.correlationId = calls.correlationId
"""


def parse_nvprof_trace(path):
    """A list of the file's ranges as events, by their begin. ``event.kernels`` lists what each started: (name, nanoseconds)."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
        file.row_factory = sqlite3.Row
        try:
            events = [
                FunctionEvent(r["id"], r["name"], 0, r["begun"] / 1e3, r["ended"] / 1e3) for r in file.execute(_RANGES)
            ]
            kernels = [tuple(row) for row in file.execute(_KERNELS)]
        except sqlite3.DatabaseError as e:
            raise RuntimeError(f"parse_nvprof_trace: {path} is no profile of nvprof's: {e}") from None
    for event in events:
        begun, ended = event.time_range.start * 1e3, event.time_range.end * 1e3
        event.kernels = [Kernel(name, 0, spent) for b, e, spent, name in kernels if begun < b and e < ended]
    return events


def load_nvprof(path):
    """The same as an EventList, which sums and prints them."""
    return EventList(parse_nvprof_trace(path))
