"""tests/python/toplevel/unlucky_test.py: what `adjoin run` says about programs that are wrong, or unlucky, line by line."""

import importlib.util
import pathlib
import re
import shutil

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "programs/unlucky"
spec = importlib.util.spec_from_file_location("unlucky", FOLDER / "run.py")
unlucky = importlib.util.module_from_spec(spec)
spec.loader.exec_module(unlucky)
GOLDEN = unlucky.parts(unlucky.GOLDEN.read_text())
# Python's own words, which change with its versions.
PYTHONS = {
    "spawn_without_a_guard",
    "module_absent",
    "package_without_main",
    "relative_import_in_a_script",
    "wrong_syntax",
}


def without_marks(text):
    """Without the lines below a line of code, which Python draws in its way."""
    return "".join(line for line in text.splitlines(True) if set(line.strip()) - set("~^"))


@pytest.mark.parametrize("name", unlucky.PROGRAMS)
def test_it_is_told_what_is_wrong_and_what_to_do(name):
    if "extension" in unlucky.PROGRAMS[name] and shutil.which("cc") is None:
        pytest.skip("no compiler of C")
    told = unlucky.said(name)
    if name in PYTHONS:
        assert told.splitlines()[-1] == GOLDEN[name].splitlines()[-1] and "program.py" in told or "No module" in told
    elif name.startswith("cuda_"):  # what is said of it depends on what is built and installed
        told, golden = without_marks(told).splitlines(), without_marks(GOLDEN[name]).splitlines()
        assert told[:-2] == golden[:-2] and "device 'cuda'" in told[-2] and told[-1] == golden[-1]
    else:
        assert without_marks(told) == without_marks(GOLDEN[name])


def test_no_frame_of_the_library_stands_in_them():
    frames = re.findall(r'^ *File "(\S+)", line', "".join(GOLDEN.values()), re.MULTILINE)
    assert len(frames) > 40 and set(frames) <= {"program.py", "<stdin>"}
    assert len(GOLDEN) == len(unlucky.PROGRAMS) >= 40
