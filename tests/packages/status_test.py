"""tests/packages/status_test.py: the README's status table is what the kept results of the tests give."""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "frontends/docs"))
import status

RENEW = "; `python frontends/docs/status.py --run` renews status.json and README.md"


def test_the_table_is_what_the_results_give():
    text = status.README.read_text()
    assert status.into(text, status.table(status.kept())) == text, "README.md's table is stale" + RENEW


def test_every_file_of_tests_belongs_to_a_part():
    assert not [name for name in status.known_files() if status.part_of(name) is None]


def test_every_part_has_tests():
    record = status.kept()
    assert not [title for title, total in status.sums(record) if not total["files"]]


def test_no_result_is_older_than_its_file():
    gone = set(status.kept()["files"]) - status.known_files()
    assert not gone, f"results of files that are gone: {', '.join(sorted(gone))}{RENEW}"


def test_a_file_without_a_result_is_told():
    """A new file of tests makes the table another one, so that nobody forgets it."""
    record = status.kept()
    record["files"].pop("tests/cli/cli_test.py")
    assert re.search(r"the command `adjoin` \| works; [1-9] of \d+ files not run", status.table(record))


def test_nothing_fails():
    """But what is compared with PyTorch, which is no dependency: the table tells that."""
    files = {name: entry for name, entry in status.kept()["files"].items() if not name.startswith("tests/compat/")}
    assert not [name for name, entry in files.items() if entry["failed"] or not entry["passed"] + entry["left_out"]]
    assert status.ITSELF not in status.kept()["files"]


@pytest.mark.parametrize("name", status.PLANNED)
def test_what_is_planned_is_not_there_yet(name):
    assert not status.PLANNED[name](), (
        f"{name}: it has come; take it out of PLANNED in frontends/docs/status.py, and into PARTS"
    )


REPORT = """<testsuites><testsuite>
<testcase classname="tests.packages.status_test" name="a"/>
<testcase classname="tests.packages.status_test.TestMore" name="b"><skipped message="NOT TESTED: no compiler"/></testcase>
<testcase classname="tests.packages.docs_test" name="c"><failure message="x">x</failure></testcase>
<testcase classname="tests.gone_test" name="d"/>
<testcase classname="adjoin" name="core"><system-out>[  PASSED  ] 95 tests.</system-out></testcase>
</testsuite></testsuites>"""


def test_a_report_is_read(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)
    assert status.read(tmp_path / "report.xml") == {
        "tests/packages/status_test.py": {"passed": 1, "left_out": 1, "failed": 0, "reasons": ["no compiler"]},
        "tests/packages/docs_test.py": {"passed": 0, "left_out": 0, "failed": 1, "reasons": []},
        "C++ core": {"passed": 95, "left_out": 0, "failed": 0, "reasons": []},
    }


def test_a_failure_is_told():
    record = {
        "files": {"tests/cli/cli_test.py": {"passed": 3, "left_out": 0, "failed": 1, "reasons": []}},
        "devices": {},
    }
    assert "| the command `adjoin` | 1 of its tests fails | 3 passed, 1 failed |" in status.table(record)
    assert "| the core: calls, tape, memory, loader | not run |  |" in status.table(record)
