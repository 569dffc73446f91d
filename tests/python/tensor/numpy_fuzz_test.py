"""tests/python/tensor/numpy_fuzz_test.py: random calls beside NumPy: creation, indices, reductions, views and writes, promotion, out=.

A case is a pair of lines, ours and NumPy's, that leave their result in `r`. ADJOIN_FUZZ_CASES says how many, ADJOIN_FUZZ_SEED which;
what differs is told by the shortest line that shows it.
"""

import os
import random
import re

import adjoin as aj
import numpy as np
import pytest

CASES, SEED = (
    int(os.environ.get("ADJOIN_FUZZ_CASES", 3000)),
    int(os.environ.get("ADJOIN_FUZZ_SEED", 0) or os.environ.get("ADJOIN_TEST_SEED", 0)) or random.randrange(1 << 30),
)
FLOATS, INTS, COMPLEX = (
    ("float16", "float32", "float64"),
    ("uint8", "int8", "int16", "int32", "int64"),
    ("complex64", "complex128"),
)
DTYPES = (*FLOATS, *INTS, *COMPLEX, "bool")

# What is meant to differ: (a pattern of our line, why).
KNOWN = (
    (r"aj\.(argmax|argmin|amax|amin)\(", "complex numbers have no order here", COMPLEX),
    (r"aj\.(std|var|mean)\(", "of whole numbers there is no mean without a dtype", INTS + ("bool",)),
    (r"r = x - y", "bools are not subtracted", ("bool",)),
)


def values(rng, dtype, n):
    if dtype == "bool":
        return [rng.random() < 0.5 for _ in range(n)]
    whole = [rng.choice((0, 1, 2, 3, 5, 7) if dtype == "uint8" else (0, 1, -1, 2, -3, 5)) for _ in range(n)]
    if dtype in INTS:
        return whole
    return [w * 0.5 + (1j * rng.choice((0, 1, -2)) if dtype in COMPLEX else 0) for w in whole]


def shape(rng, most=3):
    return [rng.choice((0, 1, 1, 2, 3, 4)) for _ in range(rng.randint(0, most))]


def array(rng, dtype, size):
    return f"np.array({values(rng, dtype, int(np.prod(size)))}, '{dtype}').reshape({size})"


def ours(text):
    return f"aj.from_numpy({text})"


def both(name, made, line, theirs=None, setup="", dtypes=True):
    """x made on both sides, then one line each."""
    return name, f"x = {ours(made)}; {setup}{line}", f"x = {made}; {setup}{theirs or line}", dtypes


def creation(rng):
    dtype, size = rng.choice(DTYPES), shape(rng)
    kind = rng.choice(
        ("full", "zeros", "ones", "arange", "linspace", "eye", "tri", "cat", "stack", "tile", "repeat", "diag")
    )
    number = rng.choice(values(rng, dtype, 9))
    if kind == "full":
        return (
            kind,
            f"r = aj.full({size}, {number}, dtype=aj.{dtype})",
            f"r = np.full({size}, {number}, '{dtype}')",
            True,
        )
    if kind in ("zeros", "ones"):
        return kind, f"r = aj.{kind}({size}, dtype=aj.{dtype})", f"r = np.{kind}({size}, '{dtype}')", True
    if kind == "arange":
        step = rng.choice((1, 2, 0.5, 0.25, 3))
        low, high = rng.randint(-4, 2), rng.randint(2, 9)
        low, high, step = rng.choice(((low, high, step), (high, low, -step)))
        return kind, f"r = aj.arange({low}, {high}, {step})", f"r = np.arange({low}, {high}, {step})", False
    if kind == "linspace":
        args = f"{rng.randint(-4, 4)}, {rng.randint(-4, 4)}{rng.choice(('', '', 'j'))}, {rng.randint(0, 7)}"
        return kind, f"r = aj.linspace({args})", f"r = np.linspace({args})", False
    if kind == "eye":
        args = f"{rng.randint(0, 4)}, {rng.randint(0, 4)}"
        return kind, f"r = aj.eye({args}, dtype=aj.{dtype})", f"r = np.eye({args}, dtype='{dtype}')", True
    if kind == "tri":
        k, which = rng.randint(-3, 3), rng.choice(("tril", "triu"))
        return both(
            kind,
            array(rng, dtype, [rng.randint(0, 3), rng.randint(0, 4)]),
            f"r = x.{which}({k})",
            f"r = np.{which}(x, {k})",
        )
    made = array(rng, dtype, size)
    if kind == "diag":
        return both(kind, array(rng, dtype, [rng.randint(0, 4)]), "r = aj.diag(x)", "r = np.diag(x)")
    if kind == "tile":
        times = tuple(rng.randint(0, 2) for _ in range(rng.randint(1, 3)))
        return both(kind, made, f"r = x.tile({times})", f"r = np.tile(x, {times})")
    if kind == "repeat":
        return both(kind, made, "r = x.repeat_interleave(2)", "r = np.repeat(x, 2)")
    dim = rng.randint(0, max(0, len(size) - 1))
    words = ("cat", "concatenate") if kind == "cat" else ("stack", "stack")
    return both(kind, made, f"r = aj.{words[0]}([x, x], {dim})", f"r = np.{words[1]}([x, x], {dim})")


def key(rng, size):
    out, d = [], 0
    while d < len(size) and rng.random() < 0.9:
        n, kind = size[d], rng.random()
        if kind < 0.15:
            out.append("None")
            continue
        if kind < 0.2 and "..." not in out:
            out.append("...")
            break
        if kind < 0.4 and n:
            out.append(str(rng.randint(-n, n - 1)))
        elif kind < 0.55 and n and not any("np" in k for k in out) and all(k.startswith((":", "slice")) for k in out):
            out.append(f"np.array({[rng.randint(-n, n - 1) for _ in range(rng.randint(0, 3))]}, 'int64')")
        else:
            ends = [rng.choice(("", rng.randint(-n - 1, n + 1))) for _ in range(2)]
            out.append(f"{ends[0]}:{ends[1]}:{rng.choice(('', 1, 2, 3))}")
        d += 1
    if any("np" in k for k in out):  # NumPy counts an int among the arrays, and so moves dimensions
        out = [k for k in out if not re.fullmatch(r"-?\d+", k)]
    return ", ".join(out) + ("," if len(out) == 1 else "") or "..."


def get(rng):
    size, dtype = shape(rng), rng.choice(DTYPES)
    return both("get", array(rng, dtype, size), f"r = x[{key(rng, size)}]")


def put(rng):
    size, dtype = shape(rng), rng.choice(DTYPES)
    where = key(rng, size)
    if rng.random() < 0.5:
        return both("set", array(rng, dtype, size), f"x[{where}] = {rng.choice(values(rng, dtype, 5))}; r = x")
    if "np" in where:  # one place may be named twice
        return both("set", array(rng, dtype, size), f"x[{where}] = x[{where}] * 0; r = x")
    return both("set of itself", array(rng, dtype, size), f"x[{where}] = x[{where}]; r = x")


def reduction(rng):
    size, dtype = shape(rng), rng.choice(DTYPES)
    name = rng.choice(
        (
            "sum",
            "prod",
            "mean",
            "amax",
            "amin",
            "any",
            "all",
            "argmax",
            "argmin",
            "cumsum",
            "cumprod",
            "var",
            "std",
            "nansum",
        )
    )
    dim = rng.choice((None, *range(-len(size), len(size)))) if size else None
    if name in ("cumsum", "cumprod"):
        dim = dim if dim is not None else 0 if size else -1
        return both(
            name,
            array(rng, dtype, size),
            f"r = x.{name}({dim})",
            f"r = np.{name}(x, {dim})" if size else "r = x",
            dtypes=False,
        )
    keep = rng.random() < 0.5 and dim is not None
    args = f"dim={dim}" + (", keepdim=True" if keep else "") if dim is not None else ""
    axis = f"axis={dim}, keepdims={keep}" if dim is not None else ""
    asked = (
        rng.choice(("float64", "int64", "bool"))
        if name in ("sum", "prod") and rng.random() < 0.4 and dtype not in COMPLEX
        else None
    )
    cast = "x"
    if asked:
        args += f"{', ' if args else ''}dtype=aj.{asked}"
        axis += f"{', ' if axis else ''}dtype='{asked}'"
        cast = f"x.astype('{asked}')"
    if name in ("var", "std"):
        args, axis = f"{args}{', ' if args else ''}correction=0", axis
    line = f"r = aj.{name}(x{', ' if args else ''}{args})"
    return both(name, array(rng, dtype, size), line, f"r = np.{name}({cast}{', ' if axis else ''}{axis})", dtypes=False)


def view(rng):
    size, dtype = [rng.choice((1, 2, 3, 4)) for _ in range(rng.randint(1, 3))], rng.choice(DTYPES)
    made, mine, theirs, n = array(rng, dtype, size), "v = x", "v = x", len(size)
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(("slice", "swap", "add", "last", "step"))
        if kind == "slice" and n:
            mine, theirs = mine + "[1:]", theirs + "[1:]"
        elif kind == "swap" and n > 1:
            mine, theirs = mine + ".transpose(0, -1)", theirs + ".swapaxes(0, -1)"
        elif kind == "add":
            mine, theirs, n = mine + ".unsqueeze(0)", theirs + "[None]", n + 1
        elif kind == "last" and n > 1:
            mine, theirs, n = mine + "[..., -1]", theirs + "[..., -1]", n - 1
        elif kind == "step" and n:
            mine, theirs = mine + "[::2]", theirs + "[::2]"
    write = rng.choice(("v[...] = 1", "v += v", "v *= 2", "v[...] = v", "v[:1] = 0", "v[...] = v[:1]", "v.flat"))
    if write == "v.flat":
        return both("view", made, f"{mine}; r = v.reshape(-1)", f"{theirs}; r = v.reshape(-1)")
    if dtype == "bool" and write[2] in "+*":
        write = "v[...] = 1"
    return both("view", made, f"{mine}; {write}; r = x", f"{theirs}; {write}; r = x")


def joined(a, b):
    """The dtype of both: the wider of one kind, the later kind of two; a whole number never widens a float."""
    kinds = [("bool",), INTS, FLOATS, COMPLEX]
    rank = lambda d: next(i for i, k in enumerate(kinds) if d in k)  # noqa: E731
    if rank(a) != rank(b):
        low, high = sorted((a, b), key=rank)
        return "complex128" if high == "complex64" and low == "float64" else high
    return str(np.promote_types(a, b))


def promotion(rng):
    a, b, size = rng.choice(DTYPES), rng.choice(DTYPES), shape(rng, 2) or [2]
    op = rng.choice(("+", "*", "-", "==", "<", "maximum"))
    if op in ("<", "maximum") and (a in COMPLEX or b in COMPLEX):
        op = "=="
    t = joined(a, b)
    make = f"y = {{}}({array(rng, b, size)})"
    line = f"x {op} y" if op != "maximum" else "{}.maximum(x, y)"
    cast = f"x, y = x.astype('{t}'), y.astype('{t}')"
    made = array(rng, a, size)
    return ("promotion", f"x = {ours(made)}; {make.format('aj.from_numpy')}; r = {line.format('aj')}",
            f"x = {made}; {make.format('np.asarray')}; {cast}; r = {line.format('np')}", True)  # fmt: skip


def out(rng):
    size, dtype = shape(rng, 2) or [3], rng.choice(FLOATS)
    op, made = rng.choice(("add", "multiply", "maximum")), array(rng, dtype, size)
    where = rng.choice((f"{{0}}.zeros({size}, dtype={{1}})", f"{{0}}.zeros({[*size, 2]}, dtype={{1}})[..., 1]", "x"))
    return both("out", made, f"o = {where.format('aj', 'aj.' + dtype)}; aj.{op}(x, x, out=o); r = o",
                f"o = {where.format('np', 'np.' + dtype)}; np.{op}(x, x, out=o); r = o")  # fmt: skip


MAKERS = (creation, get, put, reduction, reduction, view, promotion, out)


def attempt(line):
    names = {"aj": aj, "np": np}
    try:
        exec(line, names)
    except Exception as error:  # noqa: BLE001
        return error
    return names["r"]


def difference(mine, theirs, dtypes):
    """What differs, or None."""
    if isinstance(mine, Exception) and isinstance(theirs, Exception):
        return None
    if isinstance(mine, Exception):
        return f"ours raises {type(mine).__name__}: {mine}"
    if isinstance(theirs, Exception):
        return f"NumPy raises {type(theirs).__name__}: {theirs}"
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    if mine.shape != theirs.shape:
        return f"shapes {mine.shape} and {theirs.shape}"
    if dtypes and mine.dtype != theirs.dtype:
        return f"dtypes {mine.dtype} and {theirs.dtype}"
    # NumPy rounds halves after each step of a variance; ours are rounded once.
    digits = 4e-3 if "float16" in (mine.dtype, theirs.dtype) else 1e-5
    exact = mine.dtype.kind in "biu"
    with np.errstate(all="ignore"):
        same = np.array_equal(mine, theirs) if exact else np.allclose(mine, theirs, digits, digits, equal_nan=True)
    return None if same else f"{mine.tolist()} and {theirs.tolist()}"


def known(line):
    for pattern, _, *dtypes in KNOWN:
        if re.search(pattern, line) and (not dtypes or any(f"'{d}'" in line for d in dtypes[0])):
            return True
    return False


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_calls_do_what_those_of_numpy_do():
    rng, found = random.Random(SEED), []
    with np.errstate(all="ignore"):
        for _ in range(CASES):
            name, mine, theirs, dtypes = rng.choice(MAKERS)(rng)
            told = difference(attempt(mine), attempt(theirs), dtypes)
            if told and not known(mine):
                found.append((len(mine), name, mine, theirs, told))
    print(f"seed {SEED}, {CASES} cases, {len(found)} differ")
    if found:
        _, name, mine, theirs, told = min(found)
        raise AssertionError(
            f"ADJOIN_FUZZ_SEED={SEED}: {len(found)} of {CASES} differ; the shortest, {name}: {told}\n"
            f"import adjoin as aj, numpy as np; {mine}; print(r)\nimport numpy as np; {theirs}; print(r)"
        )
