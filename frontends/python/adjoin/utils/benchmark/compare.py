"""adjoin.utils.benchmark.compare: measurements as tables: a table for each label, rows by threads and sub-label, a column for each
description."""

import statistics

from .timer import unit_of

_GREEN, _RED, _END = "\033[92m", "\033[91m", "\033[0m"


class Compare:
    """A table of measurements; those of one place are taken together."""

    def __init__(self, results):
        self._results = list(results)
        self._trimmed = self._colored = self._by_row = self._warns = False

    def extend_results(self, results):
        """More measurements."""
        for one in results:
            if not hasattr(one, "raw_times"):
                raise ValueError(f"Compare: a Measurement is wanted, not {type(one).__name__}")
        self._results.extend(results)

    def trim_significant_figures(self):
        """Digits that the spread of the runs leaves uncertain are not shown."""
        self._trimmed = True

    def colorize(self, rowwise=False):
        """The best of a column is green and what takes twice as long red; rowwise: of a row."""
        self._colored, self._by_row = True, rowwise

    def highlight_warnings(self):
        """Marks what the runs differ in by more than a tenth."""
        self._warns = True

    def __str__(self):
        labels = list(dict.fromkeys(r.label for r in self._results))
        return "\n".join(self._table([r for r in self._results if r.label == label], label) for label in labels)

    def print(self):
        """Shows the tables."""
        print(self)

    def _table(self, results, label):
        columns = list(dict.fromkeys(r.description for r in results))
        rows = list(dict.fromkeys((r.num_threads, r.as_row_name) for r in results))
        rows.sort(key=lambda row: row[0])
        cells = {}
        for r in results:
            cells.setdefault((r.num_threads, r.as_row_name, r.description), []).append(r)
        times = {place: statistics.median(t for r in found for t in r.times) for place, found in cells.items()}
        unit, scale = unit_of(min(times.values()))
        texts = {place: self._text(found, times[place] / scale) for place, found in cells.items()}
        names = max([len(row) for _, row in rows] + [10]) + 6
        widths = [max([len(c or ""), *(len(t) for p, t in texts.items() if p[2] == c)]) + 2 for c in columns]
        head = " " * names + "".join(f"|{(c or '').center(w)}" for c, w in zip(columns, widths, strict=True))
        out = [f"[{(' ' + (label or '') + ' ').center(len(head) - 2, '-')}]", head.rstrip()]
        threads = None
        for row in rows:
            if row[0] != threads:
                threads = row[0]
                out.append(f"{threads} threads: ".ljust(len(head), "-"))
            line = f"      {row[1]}".ljust(names)
            for c, w in zip(columns, widths, strict=True):
                text = texts.get((*row, c), "")
                line += "|" + self._color((*row, c), times, text.rjust(w - 1)) + " "
            out.append(line.rstrip())
        out += ["", f"Times are in {unit}."]
        if self._warns and any(r.has_warnings for r in results):
            out.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join(out) + "\n"

    def _text(self, found, value):
        digits = min(r.significant_figures for r in found) if self._trimmed else None
        text = f"{value:.1f}" if digits is None else _rounded(value, digits)
        worst = max(found, key=lambda r: r.iqr / r.median if r.median else 0)
        if self._warns and worst.has_warnings:
            text = f"(! {100 * worst.iqr / worst.median:.0f}%) {text}"
        return text

    def _color(self, place, times, text):
        if not self._colored or place not in times:
            return text
        at = slice(0, 2) if self._by_row else slice(2, 3)
        peers = [t for p, t in times.items() if p[at] == place[at] and (self._by_row or p[0] == place[0])]
        if len(peers) > 1 and times[place] == min(peers):
            return f"{_GREEN}{text}{_END}"
        return f"{_RED}{text}{_END}" if times[place] > 2 * min(peers) else text


def _rounded(value, digits):
    whole = len(str(int(value))) if value >= 1 else 0
    return f"{value:.{max(digits - whole, 0)}f}" if digits > whole else str(int(round(value, digits - whole)))
