"""adjoin.utils.progress: how far a loop is, on one line of a terminal, or a line now and then in
a log."""

import os
import shutil
import sys
import time


class Bar:
    """A progress bar of ``total`` steps; ``update`` moves it, ``close`` (or leaving ``with``) ends
    it.

    On a terminal one line is redrawn ten times a second. Elsewhere a line is printed every
    ``interval`` seconds and at the end, so that a log stays readable.
    """

    WIDTH = 24  # characters of the bar itself

    def __init__(self, total, label="", file=None, interval=10.0):
        self.total = total
        self.label = label
        self.file = sys.stderr if file is None else file
        self.terminal = bool(getattr(self.file, "isatty", lambda: False)())
        self.interval = 0.1 if self.terminal else interval
        self.done = 0
        self.values = {}
        self.started = self.shown = time.monotonic()
        self.length = 0
        self.closed = False

    def update(self, steps=1, **values):
        """Goes ``steps`` further; ``values`` (numbers or texts) are shown at the end of the
        line."""
        self.done += steps
        self.values.update(values)
        now = time.monotonic()
        if now - self.shown >= self.interval:
            self.shown = now
            self._show()

    def close(self):
        """Shows the last state and ends the line."""
        if self.closed:
            return
        self.closed = True
        self._show()
        if self.terminal:
            self.file.write("\n")
        self.file.flush()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def text(self):
        """The line as it is now, without its bar where there is no terminal; a narrow one shows its begin."""
        elapsed = time.monotonic() - self.started
        share = self.done / self.total if self.total else 1.0
        parts = [self.label] if self.label else []
        if self.terminal and _columns(self.file) > 2 * self.WIDTH:
            full = min(self.WIDTH, int(self.WIDTH * share))
            parts.append("[" + "#" * full + "." * (self.WIDTH - full) + "]")
        parts.append(f"{self.done}/{self.total}")
        parts.append(f"{100 * share:3.0f}%")
        left = elapsed / self.done * max(self.total - self.done, 0) if self.done else None
        parts.append(_clock(elapsed) + ("" if left is None or self.closed else f" + {_clock(left)}"))
        for name, value in self.values.items():
            parts.append(f"{name} {value:.4f}" if isinstance(value, float) else f"{name} {value}")
        return "  ".join(parts)

    def _show(self):
        line = self.text()
        if self.terminal:
            line = line[: _columns(self.file) - 1]  # a line that wraps could not be redrawn
            # Spaces wipe what a longer line left behind.
            self.file.write("\r" + line + " " * max(0, self.length - len(line)))
            self.length = len(line)
        else:
            self.file.write(line + "\n")
        self.file.flush()


def progress(iterable, total=None, label="", **options):
    """Yields from ``iterable`` under a Bar; ``total`` is its length unless given."""
    total = len(iterable) if total is None else total
    with Bar(total, label, **options) as bar:
        for item in iterable:
            yield item
            bar.update()


def _columns(file):
    try:
        return os.get_terminal_size(file.fileno()).columns or 80
    except (OSError, AttributeError, ValueError):
        return shutil.get_terminal_size().columns


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
