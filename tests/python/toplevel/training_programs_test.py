"""tests/python/toplevel/training_programs_test.py: programs that people write for PyTorch, run here, follow the losses PyTorch had;
optimizers and schedules take its recorded paths."""

import json
import pathlib
import sys

import adjoin
import pytest

sys.path.append(str(pathlib.Path(__file__).parents[2] / "programs"))
import optim_cases
import runner

pytestmark = pytest.mark.filterwarnings("ignore")
RECORDED = json.loads((runner.HERE / "recorded_optim.json").read_text())


@pytest.mark.parametrize("name", runner.NAMES)
def test_losses_follow_pytorch(name):
    wanted = runner.recorded()[name]
    got = runner.losses(name, adjoin, len(wanted))
    apart = [abs(a - b) for a, b in zip(got, wanted, strict=True)]
    assert max(apart[:20]) < 1e-4 and max(apart) < 1e-2
    assert wanted[-1] < 0.95 * wanted[0]  # there was something to follow


@pytest.mark.parametrize(("name", "settings"), optim_cases.SETTINGS, ids=str)
def test_steps(name, settings):
    tolerance = 2e-2 if name == "Muon" else 1e-7  # its products are in bfloat16
    wanted = RECORDED[f"{name} {settings}"]
    assert optim_cases.walk(adjoin, name, settings) == pytest.approx(wanted, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("settings", optim_cases.LBFGS, ids=str)
def test_lbfgs(settings):
    assert optim_cases.minimise(adjoin, settings) == pytest.approx(RECORDED[f"LBFGS {settings}"], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
@pytest.mark.parametrize("name", [*optim_cases.SCHEDULES, "SWALR", "SWALR cos"])
def test_rates(name, kind):
    made = optim_cases.start(adjoin, kind, name)
    got = optim_cases.flat(optim_cases.follow(*made, range(50)))
    assert got == pytest.approx(RECORDED[f"{name} of {kind}"], rel=1e-8, abs=1e-12)
