"""Puts the helpers on the path; prints what was checked for every row after the run."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import coverage_table  # noqa: E402


def pytest_report_header():
    return f"row samples: seed {coverage_table.SEED}" + (" (all)" if coverage_table.FULL else "")


def pytest_terminal_summary(terminalreporter):
    text = coverage_table.render()
    if text:
        terminalreporter.section("rows x checks")
        terminalreporter.write(text)
        folder = os.environ.get("ADJOIN_TEST_OUT")
        if folder:
            pathlib.Path(folder, "rows.txt").write_text(text)
