"""tests/compat/random_programs_test.py: random programs of views, in-place ops and recorded ops do in Adjoin what they do in PyTorch."""

import os

import pytest

pytest.importorskip("torch")

from random_programs import Program

PROGRAMS = int(os.environ.get("ADJOIN_RANDOM_PROGRAMS", "2000"))
FIRST = int(os.environ.get("ADJOIN_RANDOM_SEED", "0"))
BATCH = 100


@pytest.mark.parametrize("first", range(FIRST, FIRST + PROGRAMS, BATCH))
def test_random_programs(first):
    failures = []
    for seed in range(first, min(first + BATCH, FIRST + PROGRAMS)):
        try:
            Program(seed).run()
        except AssertionError as e:
            failures.append(f"seed {seed}:\n{e}")
    assert not failures, f"{len(failures)} of {BATCH} programs differ\n\n" + "\n\n".join(failures[:3])
