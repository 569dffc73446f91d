"""tests/python/distributed/curves_test.py: every way to train in parallel has the curve of one process with the whole batch, over every
engine, to 1e-12 in float64. CI draws a part by the seed; --full runs all."""

import os
import pathlib
import random
import re
import shutil

import pytest

import adjoin

PROGRAM = pathlib.Path(__file__).parent / "training_curves.py"
SOURCE = f"import runpy\nrunpy.run_path({str(PROGRAM)!r}, run_name='__main__')\n"
FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
ENGINES = (
    "gloo",
    "shm",
    "mpi",
    "simulated",
    "emulated",
)  # the last one is a device, whose tensors go through the processor's memory
ANY, EVEN, CUBE = (1, 2, 3, 4, 8), (4, 8), (8,)
WAYS = {
    "ddp": ANY, "zero": ANY, "shard": ANY, "hybrid": EVEN, "tensor": ANY, "gpipe": ANY, "1f1b": ANY, "interleaved": ANY,
    "breadth": ANY, "halves": ANY, "v": ANY,
    "ddp+tensor": EVEN, "shard+tensor": EVEN, "ddp+pipeline": EVEN, "shard+pipeline": EVEN, "tensor+pipeline": EVEN,
    "ddp+v": EVEN, "shard+halves": EVEN, "tensor+v": EVEN,
    "shard+tensor+pipeline": CUBE,
}  # fmt: skip
MODELS = ("mlp", "conv", "transformer")


def drawn(engine):
    """[(n, cells)]: what is run of an engine."""
    every = {n: [f"{way}:{model}" for way, sizes in WAYS.items() if n in sizes for model in MODELS] for n in ANY}
    if FULL:
        return list(every.items())
    rng = random.Random(f"{os.environ.get('ADJOIN_TEST_SEED', '0')}/{engine}")
    # Threads cost nothing to begin with: most ways are tried there, the engines' own part on all of them.
    n, few = {"simulated": (rng.choice((3, 4, 8)), 6), "emulated": (2, 1)}.get(engine, (rng.choice((2, 3)), 3))
    return [(n, rng.sample(every[n], few))]


@pytest.mark.parametrize(
    "engine, n, cells",
    [(e, *d) for e in ENGINES for d in drawn(e)],
    ids=lambda v: str(v) if isinstance(v, (str, int)) else "",
)
def test_the_curve_of_one_process(launch, engine, n, cells):
    if engine not in adjoin.plugin.available() or (engine == "mpi" and not shutil.which("mpirun")):
        pytest.skip(f"NOT TESTED: the plugin {engine} was not built")
    more = {"TEST_DEVICE": "emulated"} if engine == "emulated" else {"TEST_RANKS": str(n)}
    steps = (10 if engine == "emulated" else 100 if n <= 4 else 30) if FULL else 2 if engine == "emulated" else 4
    got = launch(
        1 if engine == "simulated" else n, SOURCE, engine="shm" if engine == "emulated" else engine, timeout=6000 if FULL else 400,
        arguments=("--steps", str(steps), *cells), **more,
    )  # fmt: skip
    found = re.findall(r"CURVE (\S+) (\S+) (\S+)", got.out)
    assert got.code == 0 and {cell for cell, *_ in found} == set(cells), got.out + got.err
    far = [f for f in found if not max(float(f[1]), float(f[2])) < 1e-12]
    assert not far, f"the curve, and the parameters, are not those of one process: {far}"
