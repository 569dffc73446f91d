"""tests/compat/packages_test.py: programs over other people's packages, by PyTorch and by `adjoin run`: every number is the same.

Run where PyTorch and tests/programs/requirements.txt are installed; left out elsewhere.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

for package in (
    "torch",
    "transformers",
    "timm",
    "torchvision",
    "torchmetrics",
    "einops",
    "accelerate",
    "lightning",
    "botorch",
):
    pytest.importorskip(package)

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs/packages"


def told(*command):
    done = subprocess.run(
        [sys.executable, *command],
        cwd=PROGRAMS,
        capture_output=True,
        text=True,
        timeout=3000,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("told "))


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, list) else [value]


@pytest.mark.parametrize(
    "program",
    [
        "transformers_models",
        "vision_models",
        "detection",
        "protocols",
        "small_packages",
        "training_packages",
        "other_packages",
    ],
)
def test_every_number_is_pytorchs(program):
    theirs, ours = told(f"{program}.py"), told("-m", "adjoin.torch", f"{program}.py")
    assert list(ours) == list(theirs) and ours
    for name, value in theirs.items():
        a, b = flat(ours[name]), flat(value)
        assert len(a) == len(b), name
        for x, y in zip(a, b, strict=True):
            assert x == y or (not isinstance(y, str) and x == pytest.approx(y, rel=2e-3, abs=1e-5)), name


def test_exported_programs_run_elsewhere():
    pytest.importorskip("onnxruntime")
    far = told("-m", "adjoin.torch", "exported_models.py")
    assert list(far) == ["gpt2", "llama", "resnet", "vit"] and all(x <= 1e-5 for x in far.values()), far
