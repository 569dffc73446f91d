"""What was checked for which row: filled by the tests, printed at the end, so that gaps are seen."""

import os
import random

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))
CHECKS = ("value", "special", "dtypes", "layout", "empty", "large", "meta", "out", "in-place", "grad", "grad2", "errors")
DTYPES = ("float64", "float32", "float16", "bfloat16", "complex128", "complex64", "int64", "int32", "int16", "int8",
          "uint8", "bool")  # fmt: skip

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


def render():
    if not rows:
        return ""
    width = max(len(n) for n in rows)
    lines = [" " * width + "  " + " ".join(c.rjust(len(c)) for c in CHECKS) + "  dtypes"]
    for name in sorted(rows):
        marks = " ".join(rows[name].get(c, ".").rjust(len(c)) for c in CHECKS)
        kinds = "".join("fFhbcCiIsBu?"[DTYPES.index(d)] if d in dtypes.get(name, ()) else "." for d in DTYPES)
        lines.append(f"{name.ljust(width)}  {marks}  {kinds}")
    lines.append(f"x checked, e both backends refuse, r against the reference backend, - does not apply, . not checked; dtypes in order {' '.join(DTYPES)}; {len(rows)} rows")
    return "\n".join(lines) + "\n"
