"""tests/ops/fuzz.py: calls rows with absurd arguments; a program of its own, for it may die. `fuzz.py SEED CALLS [ROW...]`

Every call is written to standard error before it is made, so the last line names the culprit. Whatever is raised must be an
error in the project's form; a crash, a hang or a foreign exception is a fault.
"""

import random
import sys
import time

import adjoin
import samples
from rows import ROWS

DTYPES = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "complex128",
    "complex64",
    "int64",
    "int32",
    "int8",
    "uint8",
    "bool",
)
SHAPES = ([], [0], [1], [3], [2, 3], [3, 3], [1, 1], [2, 3, 4], [3, 0, 2], [2, 3, 4, 5], [1, 2, 3, 4, 5], [1] * 64)
SMALL = (-2, -1, 0, 1, 2, 3, 5)
HUGE = (-7, 64, 10**9, 2**31, 2**32, 10**15, 2**62, 2**63 - 1, -(2**63), 2**70)
FLOATS = (0.0, -0.0, 0.5, 1.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324)
WORDS = (
    "",
    "mean",
    "sum",
    "none",
    "nonsense",
    "constant",
    "reflect",
    "circular",
    "ij",
    "floor",
    "fro",
    "ij,jk->ik",
    "x" * 300,
)
# Time and memory of these follow from a number; a large one is right, and slow.
PATIENT = {"chunks", "sections", "repeats", "num_samples"}


def tensor(rng):
    dtype = getattr(adjoin, rng.choice(DTYPES))
    shape = rng.choice(SHAPES)
    t = adjoin.tensor([rng.choice((0, 1, 2, -3, 100)) for _ in range(samples.count_of(shape))]).reshape(shape).to(dtype)
    if rng.random() < 0.15 and t.is_floating_point():
        t = t * rng.choice(FLOATS)
    how = rng.random()
    if how < 0.15 and t.ndim > 1:
        t = t.transpose(0, -1)
    elif how < 0.25 and t.ndim < 60:
        t = t.unsqueeze(0).expand([3, *t.shape])
    elif how < 0.3:
        t = t.to(rng.choice(("reference", "meta")))
    if rng.random() < 0.2 and (t.is_floating_point() or t.is_complex()):
        t.requires_grad_()
    return t


def integer(rng):
    return rng.choice(SMALL if rng.random() < 0.7 else HUGE)


def one(rng, p):
    """A value for one parameter, of its type or not."""
    if rng.random() < 0.04:
        return rng.choice((None, "text", 1.5, [], object(), {}, float("nan"), 1j, (), b"x"))
    if p.base == "Operand" and rng.random() < 0.4:
        return rng.choice((*FLOATS, *SMALL, *HUGE, True, 1j))
    make = {
        "Tensor": lambda: tensor(rng), "Operand": lambda: tensor(rng), "Scalar": lambda: rng.choice((*FLOATS, *SMALL, *HUGE, True, 2j)),
        "int": lambda: rng.choice(SMALL) if p.name in PATIENT else integer(rng), "dim": lambda: integer(rng), "size": lambda: integer(rng),
        "float": lambda: rng.choice(FLOATS), "bool": lambda: rng.random() < 0.5, "str": lambda: rng.choice(WORDS),
        "dtype": lambda: getattr(adjoin, rng.choice(DTYPES)), "device": lambda: rng.choice(("cpu", "reference", "meta", "cpu:7", "nobody")),
    }.get(p.base, lambda: None)  # fmt: skip
    if p.list:
        return [make() for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 9)))]
    return make()


def arguments(rng, row):
    """Half of the calls are a good sample with one or two arguments exchanged."""
    if rng.random() < 0.5:
        shapes, other = rng.choice(list(row.samples())[:24])
        given = {**samples.tensors(rng, row, shapes, rng.choice(row.dtypes())), **other}
        for p in rng.sample(row.params, min(len(row.params), rng.choice((1, 1, 2)))):
            given[p.name] = one(rng, p)
        return given
    return {p.name: one(rng, p) for p in row.params if rng.random() < 0.9 or (p.default is None and not p.optional)}


def shown(value):
    if isinstance(value, adjoin.Tensor):
        return f"{value.dtype}{list(value.shape)}{list(value.stride())}@{value.device}"
    return "[" + ", ".join(map(shown, value)) + "]" if isinstance(value, list) else repr(value)


def backward(result):
    for t in result if isinstance(result, (tuple, list)) else [result]:
        if isinstance(t, adjoin.Tensor) and t.requires_grad and t.device.type != "meta":
            t.sum().backward()


def main(seed, calls, names):
    adjoin.manual_seed(seed)
    expected = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, OverflowError, MemoryError)
    for row in ROWS:
        if names and row.name not in names:
            continue
        rng = random.Random(f"{seed}{row.name}")
        for _ in range(calls):
            given = arguments(rng, row)
            print(row.name, {k: shown(v) for k, v in given.items()}, file=sys.stderr, flush=True)
            begin = time.monotonic()
            try:
                backward(row.call(**given))
            except expected as error:
                text = str(error)
                if "\n" in text or text.endswith(".") or "std::" in text:
                    raise AssertionError(f"{row.name}: the form of the error: {text!r}") from error
            if time.monotonic() - begin > 20:
                raise AssertionError(f"{row.name}: took {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), set(sys.argv[3:]))
