"""adjoin._memory_stats: what is counted of a device's memory under PyTorch's names, as numbers, as text and piece by piece.

What nobody counts has no key: a number that is there is true.
"""

import collections

from . import _C

_POOLS = {"all": "", "small_pool": "small_", "large_pool": "large_"}
_STATES = {1: "active_allocated", 2: "active_pending_free", 3: "inactive"}  # AJ_PIECE_... of <adjoin/abi/memory.h>
_begun = {}  # device: what had come when reset_accumulated_memory_stats was called


def stats(device):
    """The numbers of a device, by name."""
    sums, counts = _C.memory_stats(device), _C.memory_counts(device)
    found = _of_sums(sums) if counts is None else _of_counts(sums, counts)
    for key, before in _begun.get(device, {}).items():
        found[key] -= before
    return collections.OrderedDict(sorted(found.items()))


def _of_sums(sums):
    """Of memory that is the host's."""
    return {
        "allocated_bytes.all.current": sums["in_use"],
        "allocated_bytes.all.peak": sums["peak_in_use"],
        "allocation.all.allocated": sums["allocations"],
        "reserved_bytes.all.current": sums["in_use"] + sums["cached"],
        "num_device_alloc": sums["system_allocations"],
    }


def _of_counts(sums, counts):
    found = {"num_alloc_retries": counts["retries"], "num_ooms": counts["refusals"], "max_split_size": -1}
    for pool, prefix in _POOLS.items():
        _put(found, f"allocation.{pool}", counts[f"{prefix}blocks"])
        _put(found, f"allocated_bytes.{pool}", counts[f"{prefix}bytes"])
    _put(found, "segment.all", counts["segments"])
    _put(found, "reserved_bytes.all", counts["segment_bytes"])
    found["num_device_alloc"] = found["segment.all.allocated"]
    found["num_device_free"] = found["segment.all.freed"]
    found["active.all.current"] = found["allocation.all.current"] + counts["waiting_blocks"]
    found["active_bytes.all.current"] = found["allocated_bytes.all.current"] + counts["waiting_bytes"]
    found["active_bytes.all.peak"] = sums["peak_in_use"]
    return found


def _put(found, name, tally):
    current, peak, total = tally
    found |= {
        f"{name}.current": current,
        f"{name}.peak": peak,
        f"{name}.allocated": total,
        f"{name}.freed": total - current,
    }


def reset_accumulated(device):
    """What comes and goes is counted from now on."""
    _begun.pop(device, None)
    ending = (".allocated", ".freed")
    _begun[device] = {key: n for key, n in stats(device).items() if key.endswith(ending) or key.startswith("num_")}


def nested(flat):
    """The numbers as dicts in dicts."""
    found = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        place = found
        for name in path:
            place = place.setdefault(name, {})
        place[last] = value
    return found


def pieces(device):
    """The memory that the cache holds: its segments, the blocks in each, and who asked for them."""
    found = []
    for state, address, size, stream, pool, op, line in _C.memory_pieces(device):
        if state == 0:
            segment = {
                "device": device.index or 0, "address": address, "total_size": size, "allocated_size": 0, "active_size": 0,
                "stream": stream, "segment_type": "large", "segment_pool_id": (0, pool), "is_expandable": False, "frames": [],
                "blocks": [],
            }  # fmt: skip
            found.append(segment)
            continue
        segment["allocated_size"] += size * (state == 1)
        segment["active_size"] += size * (state != 3)
        frames = [_frame(op, line)] if op or line else []
        segment["blocks"].append({"address": address, "size": size, "state": _STATES[state], "frames": frames})
    return found


def _frame(op, line):
    """Of "train.py:41 in step"."""
    place, _, name = (line or "").partition(" in ")
    file, _, number = place.rpartition(":")
    return {"filename": file or place, "line": int(number) if number.isdigit() else 0, "name": name, "op": op}


_ROWS = {
    "Allocated memory": "allocated_bytes", "Active memory": "active_bytes", "Reserved memory": "reserved_bytes",
    "Allocations": "allocation", "Active allocs": "active", "Reserved segments": "segment",
}  # fmt: skip
_COLUMNS = {"Cur Usage": "current", "Peak Usage": "peak", "Tot Alloc": "allocated", "Tot Freed": "freed"}


def summary(device, flat, abbreviated):
    """The numbers as a table."""
    lines = [f"Memory of {device}", ""]
    if "num_ooms" in flat:
        lines[0] += f": out of memory {flat['num_ooms']} times, tried again {flat['num_alloc_retries']} times"
    rule = "|".join(["", "-" * 26, *["-" * 13] * len(_COLUMNS), ""])
    lines += ["|".join(["", f" {'Metric':25}", *(f" {name:^12}" for name in _COLUMNS), ""]), rule]
    for title, key in _ROWS.items():
        for pool in _POOLS:
            cells = [flat.get(f"{key}.{pool}.{column}") for column in _COLUMNS.values()]
            if cells[0] is None or (pool != "all" and abbreviated):
                continue
            name = title if pool == "all" else f"  from {pool.replace('_', ' ')}"
            lines.append("|".join(["", f" {name:25}", *(f" {_cell(key, n):>12}" for n in cells), ""]))
    return "\n".join([*lines, rule])


def _cell(key, number):
    if number is None:
        return "not counted"
    if not key.endswith("bytes"):
        return str(number)
    for unit in ("B", "KiB", "MiB"):
        if number < 10 * 1024:
            return f"{number} {unit}"
        number //= 1024
    return f"{number} GiB"
