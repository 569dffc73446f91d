"""tests/python/toplevel/examples_test.py: the programs on the page of examples learn what they are there to show, in a short run."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "frontends/docs"))
import examples

# The steps of a short run, and what the last curve (the mean of its last tenth) is then.
SHORT = {
    "shapes": (4, lambda right: right > 0.6),
    "reversal": (200, lambda right: right > 0.5),
    "communities": (100, lambda right: right > 0.8),
    "cartpole": (50, lambda steps: steps > 50),
    "flow": (150, lambda lacking: lacking < 0.5),
    "diffusion": (600, lambda apart: apart < 0.3),
    "oscillator": (1200, lambda error: error < 0.5),
    "maml": (300, lambda error: error < 2.5),
    "wgan_gp": (300, lambda apart: apart < 0.7),
    "unrolled_gan": (150, lambda share: 0.2 < share < 0.8),
}


@pytest.mark.parametrize("name", examples.TITLES)
def test_it_learns(name):
    steps, reached = SHORT[name]
    found = examples.curves(name, steps)
    *_, last = found.values()
    end = max(1, len(last) // 10)
    assert all(isinstance(value, float) for values in found.values() for value in values)
    assert reached(sum(last[-end:]) / end), last[-end:]


def test_maml_is_better_after_the_step():
    before, after = examples.curves("maml", 400).values()
    assert sum(after[-50:]) < 0.8 * sum(before[-50:]) and sum(after[-50:]) < 0.8 * sum(after[:50])


def test_every_program_is_on_the_page():
    assert set(examples.TITLES) == {path.stem for path in examples.HERE.glob("*.py")} and len(examples.TITLES) == 10
