"""tests/compat/beside_programs_test.py: the programs of tests/programs with PyTorch and here, side by side: losses, text of
the models, names of their state."""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

import adjoin

sys.path.append(str(pathlib.Path(__file__).parent.parent / "programs"))
import runner

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", runner.NAMES)
def test_same_losses(name):
    wanted, got = (runner.losses(name, library) for library in (torch, adjoin))
    apart = [abs(a - b) for a, b in zip(got, wanted, strict=True)]
    assert max(apart[:20]) < 1e-4 and max(apart) < 1e-2
    assert runner.recorded()[name][:20] == pytest.approx(wanted[:20], abs=1e-4)


@pytest.mark.parametrize("name", runner.NAMES)
def test_same_models(name):
    ours, theirs = (runner.load(name, library).build() for library in ("adjoin", "torch"))
    assert str(ours) == str(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]


@pytest.mark.parametrize("name", ["gpt", "vit"])
def test_losses_in_bfloat16(name, monkeypatch):
    """The same programs under autocast, which differ in few words."""
    words = {
        'nullcontext() if device_type == "cpu" else ': "",
        'dtype = "float32"': 'dtype = "bfloat16"',
        "enabled=False)": "enabled=True)",
    }
    plain = runner.pathlib.Path.read_text

    def read(path, *args, **kwargs):
        text = plain(path, *args, **kwargs)
        for old, new in words.items():
            text = text.replace(old, new)
        return text

    monkeypatch.setattr(runner.pathlib.Path, "read_text", read)
    wanted, got = (runner.losses(name, library, 50) for library in (torch, adjoin))
    assert max(abs(a - b) for a, b in zip(got, wanted, strict=True)) < 1e-2
