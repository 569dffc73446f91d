"""tests/python/graph/look_test.py: pictures of programs, and `adjoin graph time | diff | picture`."""

import subprocess
import xml.etree.ElementTree as tree

import adjoin
import pytest
from adjoin import jit, nn
from adjoin.jit import _look
from adjoin.jit._picture import arranged, boxes_of, svg

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture):
    return [t.text for t in tree.fromstring(picture).iter(SVG + "text")]


def net():
    adjoin.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Softmax(-1))


def test_a_picture_has_a_box_for_each_call_and_a_line_for_each_use():
    traced = jit.trace(net(), adjoin.ones(2, 4))
    picture = traced._repr_svg_()
    told = texts(picture)
    assert all(
        any(word in (t or "") for t in told)
        for word in ("linear", "tanh", "softmax", "0.weight", "results", "float32[2, 3]")
    )
    boxes = {b.title.partition("(")[0]: b for floor in arranged(boxes_of(traced.graph)) for b in floor}
    assert {b.title for b in boxes["nn::linear"].takes} == {"%x", "0.weight", "0.bias"}
    assert [b.title for b in boxes["tanh"].takes] == ["nn::linear"]
    assert len(tree.fromstring(picture).findall(SVG + "path")) == sum(len(b.takes) for b in boxes.values())
    assert boxes["%x"].floor < boxes["nn::linear"].floor < boxes["tanh"].floor < boxes["results"].floor
    titles = [t.text for t in tree.fromstring(picture).iter(SVG + "title")]
    assert any("activation" in t or "look_test.py" in t or ".py:" in t for t in titles)  # the lines of the calls


def test_boxes_do_not_cover_each_other():
    def f(x):
        parts = [(x * k).sin() + k for k in range(6)]
        return sum(parts[1:], parts[0]), [p.exp() for p in parts]

    picture = tree.fromstring(jit.trace(f, adjoin.ones(3))._repr_svg_())
    rows = {}
    for r in picture.iter(SVG + "rect"):
        rows.setdefault(r.get("y"), []).append((float(r.get("x")), float(r.get("width"))))
    for row in rows.values():
        row.sort()
        assert all(x + w <= after for (x, w), (after, _) in zip(row, row[1:], strict=False))
    assert float(picture.get("width")) >= max(x + w for row in rows.values() for x, w in row)


def test_loops_writes_and_text_that_means_something_in_xml():
    def f(x, n):
        y = x * 1
        y[0] = 3
        return jit.while_loop(lambda x, i: i < n, lambda x, i: (x * 1.5, i + 1), (y, n * 0))[0]

    traced = jit.trace(f, (adjoin.ones(4), adjoin.tensor(2)))
    boxes = boxes_of(traced.graph)
    (loop,) = [b for b in boxes if b.title.startswith("while")]
    (end,) = [b for b in boxes if b.title == "end"]
    assert loop in end.takes and any(b.kind == "write" for b in boxes)
    assert "<b>" not in svg(
        'adjoin.program 1\nfn f(%x: float32[3]) {\n  %w = param "<b>&" : float32[3]\n  return %w\n}\n'
    )
    with pytest.raises(NotImplementedError, match="code"):
        svg("adjoin.program 1\nscripted f\n")


@pytest.fixture
def files(tmp_path):
    model, x = net(), adjoin.randn(2, 4)
    jit.save(jit.trace(model, x), tmp_path / "a.aj")
    with adjoin.no_grad():
        model[0].bias.add_(1)
    jit.save(jit.trace(nn.Sequential(*model, nn.ReLU()), x), tmp_path / "b.aj")
    adjoin.utils.npz.save_npy(tmp_path / "x.npy", x)
    return tmp_path


def told(capsys, *words):
    code = _look.main([str(w) for w in words])
    return code, capsys.readouterr()


def test_time_and_diff(files, capsys):
    a, b, x = files / "a.aj", files / "b.aj", files / "x.npy"
    code, out = told(capsys, "time", a, "--rounds", 3)
    assert code == 0 and "walks over tensors" in out.out and "3 calls" in out.out and "linear" in out.out
    code, out = told(capsys, "diff", a, a, "-i", x)
    assert code == 0 and "the calls are the same" in out.out and "result 0: the same" in out.out
    code, out = told(capsys, "diff", a, b, "-i", x)
    assert code == 1 and "+  % = relu(%)" in out.out.replace("nn::", "") and "result 0: differs by" in out.out
    code, out = told(capsys, "diff", a, b, "-i", x, "-i", x)
    assert code == 1 and "2 inputs are given, the program takes 1" in out.err


def test_the_command_draws(files, env_of_command):
    done = subprocess.run(
        ["adjoin", "graph", "picture", files / "a.aj"], capture_output=True, text=True, env=env_of_command
    )
    assert done.returncode == 0, done.stderr
    assert "softmax" in (files / "a.svg").read_text() and texts((files / "a.svg").read_text())
    bad = subprocess.run(
        ["adjoin", "graph", "picture", files / "x.npy"], capture_output=True, text=True, env=env_of_command
    )
    assert bad.returncode == 1 and bad.stderr.startswith("adjoin: ")


@pytest.fixture
def env_of_command():
    import os
    import sys

    return dict(os.environ, ADJOIN_PYTHON=sys.executable)
