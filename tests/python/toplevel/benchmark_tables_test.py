"""tests/python/toplevel/benchmark_tables_test.py: tables of measurements, from times that are given: nothing is timed."""

import pickle

import pytest
from adjoin.utils.benchmark import Compare, Measurement, TaskSpec, Timer


def measured(times, sub_label, description, threads=1, label="Dot"):
    return Measurement(10, [10 * t for t in times], TaskSpec("f(x)", "pass", label, sub_label, description, threads))


RESULTS = [
    measured([2e-6], "[8]", "first"),
    measured([4e-6], "[8]", "second"),
    measured([30e-6, 10e-6, 20e-6], "[64]", "first"),
    measured([10e-6], "[64]", "second", 4),
]


def test_a_table():
    lines = str(Compare(RESULTS)).splitlines()
    assert lines[0].startswith("[--") and " Dot " in lines[0] and len(lines[0]) == len(lines[2])
    assert [line.split() for line in lines[1:]] == [
        ["|", "first", "|", "second"],
        ["1", "threads:", "-" * (len(lines[2]) - len("1 threads: "))],
        ["[8]", "|", "2.0", "|", "4.0"],
        ["[64]", "|", "20.0", "|"],
        ["4", "threads:", "-" * (len(lines[2]) - len("1 threads: "))],
        ["[64]", "|", "|", "10.0"],
        [],
        ["Times", "are", "in", "microseconds."],
    ]


def test_best_and_worst_have_colors(capsys):
    table = Compare([])
    table.extend_results([measured([1e-3], "a", "x"), measured([3e-3], "b", "x"), measured([1.5e-3], "c", "x")])
    table.colorize()
    table.print()
    a, b, c = [line for line in capsys.readouterr().out.splitlines() if line.startswith("      ")][1:]
    assert "\033[92m" in a and "\033[91m" in b and "\033" not in c
    with pytest.raises(ValueError, match="a Measurement is wanted, not int"):
        table.extend_results([1])


def test_digits_that_are_certain():
    wide, narrow = measured([1e-6, 2e-6, 3e-6], "a", "x"), measured([1.2346e-6] * 3, "b", "x")
    assert (
        wide.significant_figures == 1
        and narrow.significant_figures == 4
        and wide.has_warnings
        and not narrow.has_warnings
    )
    table = Compare([wide, narrow])
    table.trim_significant_figures()
    table.highlight_warnings()
    text = str(table)
    assert "1.235" in text and "(! 50%) 2\n" in text and "high variance" in text


def test_measurements_are_values():
    again = pickle.loads(pickle.dumps(RESULTS[2]))
    assert again.title == "Dot: [64]" and again.median == pytest.approx(20e-6) and again.iqr == pytest.approx(10e-6)
    (merged,) = Measurement.merge([RESULTS[0], again.__class__(10, [6e-5], RESULTS[0].task_spec)])
    assert merged.times == pytest.approx([2e-6, 6e-6])
    made = Timer("y + 1", "y = 1", description="sum").timeit(10)
    assert "y + 1\nsum\nsetup: y = 1" in repr(made) and "1 measurement, 10 runs, 1 thread" in repr(made)
