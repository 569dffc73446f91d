"""tests/python/toplevel/examples_test.py: the programs on the page of examples learn what they are there to show, in a short run."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "frontends/docs"))
import examples

# What the last curve (the mean of its last tenth) is after a short run.
REACHED = {
    "shapes": lambda right: right > 0.6,
    "reversal": lambda right: right > 0.5,
    "communities": lambda right: right > 0.8,
    "cartpole": lambda steps: steps > 50,
    "flow": lambda lacking: lacking < 0.5,
    "diffusion": lambda apart: apart < 0.4,
    "oscillator": lambda error: error < 0.5,
    "maml": lambda error: error < 2.2,
    "wgan_gp": lambda apart: apart < 0.7,
    "unrolled_gan": lambda share: 0.2 < share < 0.8,
}


@pytest.mark.parametrize("name", examples.ENTRIES)
def test_it_learns(name):
    found = examples.curves(name, examples.ENTRIES[name][1])
    *first, last = found.values()
    end = max(1, len(last) // 10)
    assert all(isinstance(value, float) for values in found.values() for value in values)
    assert REACHED[name](sum(last[-end:]) / end), last[-end:]
    if name == "maml":  # better after the step than before it
        assert sum(last[-50:]) < 0.8 * sum(first[0][-50:])


def test_every_program_is_on_the_page():
    assert set(examples.ENTRIES) == {path.stem for path in examples.HERE.glob("*.py")} and len(examples.ENTRIES) == 10
