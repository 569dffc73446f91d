"""tests/ops/coverage_table.py: what was checked for which row: filled by the tests, printed at the end, so that gaps are seen."""

import os
import random

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))
CHECKS = ("value", "special", "dtypes", "layout", "empty", "large", "meta", "out", "in-place", "grad", "grad2", "shapes",
          "dims", "index", "types", "devices")  # fmt: skip
DTYPES = ("float64", "float32", "float16", "bfloat16", "complex128", "complex64", "int64", "int32", "int16", "int8",
          "uint8", "bool")  # fmt: skip
LEGEND = """\
x   checked: against NumPy, SciPy or a closed form; derivatives against differences; refusals for what they say
r   against the plain loops of the reference backend: NumPy has no word for it, or cannot take these sizes
s   shape and dtype only: nobody has written the memory
e   every backend refuses it
0   a derivative that is zero by definition
n   so many wrong calls were refused; the others gave what the reference backend gives
-   does not apply: no such argument, no such form, no derivative, special values in `value`, every shape or dtype is right
.   not checked
"""

rows = {}  # name -> {check: mark}
dtypes = {}  # name -> set of dtypes that cpu and reference agree on


def mark(row, check, what="x"):
    rows.setdefault(row.name, {})[check] = what


def pick(samples, count, salt):
    """All of them, or a choice by the printed seed."""
    samples = list(samples)
    if FULL or len(samples) <= count:
        return samples
    return random.Random(f"{SEED}{salt}").sample(samples, count)


def applies(row, check):
    """What a row can be asked at all; what only a test can tell it marks itself."""
    test = row.test or {}
    return {
        "special": "also" in test,
        "out": row.info["out"] and not any(p.name == "out" for p in row.params),
        "in-place": row.info["in_place"],
        "dims": any(p.base == "dim" for p in row.params),
        "index": bool(test.get("ints")),
        "types": bool(row.tensors) and "dtypes" not in test,
        "devices": sum(p.list or 1 for p in row.tensors) > 1,
    }.get(check, bool(row.tensors) or check in ("value", "dtypes", "meta", "shapes"))


def cell(row, check):
    return rows.get(row.name, {}).get(check, "." if applies(row, check) else "-")


def gaps(all_rows):
    return [(r.name, c) for r in all_rows for c in CHECKS if cell(r, c) == "."]


def render(all_rows):
    if not rows:
        return ""
    width = max(len(r.name) for r in all_rows)
    lines = [" " * width + "  " + " ".join(CHECKS) + "  dtypes"]
    for row in sorted(all_rows, key=lambda r: r.name):
        marks = " ".join(cell(row, c).rjust(len(c)) for c in CHECKS)
        kinds = "".join("fFhbcCiIsBu?"[i] if d in dtypes.get(row.name, ()) else "." for i, d in enumerate(DTYPES))
        lines.append(f"{row.name.ljust(width)}  {marks}  {kinds}")
    return "\n".join(lines) + f"\n{LEGEND}dtypes in order {' '.join(DTYPES)}; {len(all_rows)} rows\n"
