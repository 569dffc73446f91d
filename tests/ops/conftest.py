"""tests/ops/conftest.py: puts the helpers on the path; prints what was checked for every row after the run, and fails on gaps."""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

import coverage_table  # noqa: E402

selected = {"whole": False}


def pytest_report_header():
    return f"row samples: seed {coverage_table.SEED}" + (" (all)" if coverage_table.FULL else "")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Only a run of all tests of all rows can say that nothing is left out."""
    named = [a for a in config.args if "::" in a or a.endswith(".py")]
    modules = {i.path.name for i in items if i.path.parent == HERE}
    selected["whole"] = (
        not config.option.keyword and not named and {p.name for p in HERE.glob("rows_*test.py")} <= modules
    )
    if selected["whole"] and os.environ.get("ADJOIN_TEST_SHARE", "1") != "1" and not coverage_table.FULL:
        selected["whole"] = False  # see tests/conftest.py


def pytest_sessionfinish(session, exitstatus):
    from rows import ROWS

    if selected["whole"] and exitstatus == 0 and coverage_table.gaps(ROWS):
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    from rows import ROWS

    text = coverage_table.render(ROWS)
    if not text or os.environ.get("ADJOIN_TEST_SHARE", "1") != "1":  # of a few tests it would say little
        return
    terminalreporter.section("rows x checks")
    terminalreporter.write(text)
    if selected["whole"]:
        for row, check in coverage_table.gaps(ROWS):
            terminalreporter.write_line(f"not covered: {row}: {check}", red=True)
    folder = os.environ.get("ADJOIN_TEST_OUT")
    if folder:
        pathlib.Path(folder, "rows.txt").write_text(text)
