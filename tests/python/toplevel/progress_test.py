"""tests/python/toplevel/progress_test.py: the progress bar on a terminal and in a log, and the pictures."""

import io

import pytest
from adjoin.utils import plots
from adjoin.utils.progress import Bar, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_log_gets_few_lines():
    log = io.StringIO()
    assert sum(progress(range(1000), label="counting", file=log)) == 499500
    lines = log.getvalue().splitlines()
    assert len(lines) == 1 and lines[0].startswith("counting  1000/1000  100%")


def test_a_terminal_gets_one_line_redrawn():
    screen = Terminal()
    with Bar(4, "work", file=screen) as bar:
        bar.interval = 0
        for i in range(4):
            bar.update(loss=1 / (i + 1), kind="x")
    text = screen.getvalue()
    assert text.count("\n") == 1 and text.count("\r") == 5
    assert "[############............]  2/4" in text
    assert text.rstrip().endswith("loss 0.2500  kind x")


def test_closing_twice_and_no_steps():
    log = io.StringIO()
    bar = Bar(0, file=log)
    bar.close()
    bar.close()
    assert log.getvalue().count("\n") == 1


@pytest.mark.skipif(not plots.available(), reason="matplotlib is not installed")
def test_pictures(tmp_path):
    panel = plots.Panel("loss", "epoch", "loss", {"a": [3, 2, 1], "b": [1, 1, 1]}, {"a": 0.5})
    plots.curves(tmp_path / "curves.png", [panel])
    plots.confusion(tmp_path / "confusion.png", [[3, 0], [1, 2]], ["no", "yes"])
    plots.images(tmp_path / "images.png", [[[0, 1], [1, 0]]], ["x"])
    plots.images(tmp_path / "none.png", [], [])
    for path in tmp_path.iterdir():
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 1000


def test_a_line_fits_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    screen = Terminal()
    with Bar(4, "a label of some length", file=screen) as bar:
        bar.interval = 0
        bar.update(loss=0.5)
    assert all(len(part) < 30 for part in screen.getvalue().rstrip("\n").split("\r"))
