"""tests/cli/tune_test.py: `adjoin tune`: what it measures, writes, shows and refuses."""

import os
import sys

import pytest

from abi_tools import adjoin


def tune(*words, **extra):
    return adjoin("tune", *words, **extra)


def test_a_file_is_written_and_read_by_another_process(tmp_path):
    file = tmp_path / "deep/products"
    got = tune("--dtypes", "float32", "--sizes", "16,64", "--threads", "1", "--seconds", "0.0001", ADJOIN_TUNING=file)
    assert got.returncode == 0 and f"written: {file}" in got.stdout and got.stderr == ""
    assert file.read_text().startswith("adjoin products 1\nprocessor ") and file.read_text().endswith("end 24\n")
    assert os.listdir(file.parent) == ["products"]  # no temporary file is left
    shown = tune("--show", "--all", ADJOIN_TUNING=file).stdout
    assert "state: used\n" in shown and shown.count("class float32 ") == 24
    assert "class float32 tn 16 64 16 1: " in shown


def test_the_default_place_is_the_users_cache(tmp_path):
    got = tune("--show", XDG_CACHE_HOME=tmp_path)
    assert f"file: {tmp_path}/adjoin/products\nstate: absent\n" in got.stdout
    assert "file: none\n" in tune("--show", ADJOIN_TUNING="").stdout


def test_shapes_of_a_file_and_of_a_program(tmp_path):
    shapes, file = tmp_path / "shapes", tmp_path / "products"
    shapes.write_text(
        "# two\nfloat64 nt 33 65 20\n\nbfloat16 nn 40 40 40 # of one class with what follows\nbfloat16 nn 35 40 40\n"
    )
    options = ("--threads", "1", "--seconds", "0.0001", "--output", file)
    assert tune(*options, "--shapes", shapes).returncode == 0
    rows = [line.split()[:6] for line in file.read_text().splitlines() if line.startswith(("float64 ", "bfloat16 "))]
    assert [r[:2] for r in rows] == [["bfloat16", "nn"], ["float64", "nt"]]
    program = "import adjoin; x = adjoin.ones(100, 30); x @ x.t(); x @ x.t(); adjoin.ones(2, 2) @ adjoin.ones(2, 2)"
    got = tune(*options, "--add", "--", sys.executable, "-c", program, PYTHONPATH=os.environ["PYTHONPATH"])
    assert got.returncode == 0, got.stderr
    text = file.read_text()
    assert "\nfloat32 nt 100 100 30 1 " in text and "float64 nt 33 65 20 1" in text and text.endswith("end 3\n")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--threads", "0"], 2, "'0' is no number"),
        (["--sizes", "big"], 2, "'big' is no number"),
        (["--seconds", "0"], 2, "--seconds"),
        (["--"], 2, "-- wants a program"),
        (["--shapes", "/no/such"], 1, "/no/such cannot be read"),
        (["--dtypes", "float31"], 1, "float31"),
        (["--device", "gone"], 1, "gone"),
        (["--", "false"], 1, "the program failed"),
        (["--", "true"], 1, "no product to measure"),
        (["--show", "--output", "/no/such"], 1, "tuner: /no/such: No such file"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else None,
)
def test_what_is_refused(words, code, told, tmp_path):
    got = tune(*words, ADJOIN_TUNING=tmp_path / "products")
    assert got.returncode == code and told in got.stderr, got
    assert not (tmp_path / "products").exists()


def test_lines_that_are_no_shapes(tmp_path):
    shapes = tmp_path / "shapes"
    for line in ("float32 nn 1 2", "float32 nx 1 2 3", "float32 nn 1 2 3 4", "float32 nn a 2 3"):
        shapes.write_text("float32 nn 1 2 3\n" + line + "\n")
        got = tune("--shapes", shapes, "--output", tmp_path / "out")
        assert got.returncode == 1 and f"line 2: '{line}', wanted" in got.stderr
    shapes.write_text("float32 nn 99999999 2 3\n")
    assert "is not measured; sizes are" in tune("--shapes", shapes, "--output", tmp_path / "out").stderr


def test_nothing_is_measured_while_one_is_chosen(tmp_path):
    got = tune("--sizes", "16", "--output", tmp_path / "out", ADJOIN_BLAS="own")
    assert got.returncode == 1 and "unset ADJOIN_BLAS" in got.stderr
    assert "override: own serves alone" in tune("--show", ADJOIN_BLAS="own").stdout
