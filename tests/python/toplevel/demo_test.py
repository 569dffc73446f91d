"""tests/python/toplevel/demo_test.py: the digits demo in small: its files, its last line, its
independence of the backend."""

import json
import re

import adjoin
import pytest
from adjoin import safetensors

pytest.importorskip("sklearn")

from adjoin.demo import digits


def test_a_short_run(tmp_path, capsys):
    mean = digits.main(["--seeds", "1", "--epochs", "2", "--out", str(tmp_path)])
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert re.fullmatch(r"held-out accuracy: [01]\.\d{4}", last)
    assert mean > 0.9
    held = safetensors.load_file(tmp_path / "held_out.safetensors")
    assert held["pictures"].shape == (449, 1, 8, 8)
    right = (held["labels"] == held["predictions"]).sum().item() / 449
    assert right == pytest.approx(mean)
    again = digits.DigitNet()
    again.load_state_dict(safetensors.load_file(tmp_path / "digits.safetensors"))
    assert digits.predict(again, held["pictures"], "cpu") == held["predictions"].tolist()


def test_held_out_quarter_is_fixed_and_apart():
    pictures, labels, _, held_labels = digits.load_digits()
    assert (len(labels), len(held_labels)) == (1348, 449)
    assert held_labels[:6].tolist() == [3, 7, 1, 5, 9, 3]
    assert float(pictures.min()) == 0 and float(pictures.max()) == 1


def test_shifting_moves_by_at_most_one():
    adjoin.manual_seed(0)
    dot = adjoin.zeros(200, 1, 8, 8)
    dot[:, 0, 4, 4] = 1
    places = digits.shifted(dot).nonzero()[:, 2:] - 4
    assert set(map(tuple, places.tolist())) == {(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)}


def test_reference_backend_gives_the_same_curve(tmp_path):
    curves = []
    for backend in ("cpu", "reference"):
        digits.main(["--backend", backend, "--seeds", "1", "--steps", "20", "--out", str(tmp_path)])
        curves.append(json.loads((tmp_path / "losses.json").read_text())["losses"][0])
    assert len(curves[0]) == 20
    assert max(abs(a - b) for a, b in zip(*curves, strict=True)) < 1e-3
