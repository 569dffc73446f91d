"""tests/cli/lock_explain_test.py: `adjoin lock`, `verify`, `explain` and `blas compare`."""

import json
import os
import re
import shutil
import sys

import pytest

from abi_tools import PLUGINDIR, adjoin, build_plugin, run

PRODUCT = "import adjoin; x = adjoin.ones(64, 64); print((x @ x)[0, 0].item())"


def python(program, **extra):
    return run(sys.executable, "-c", program, PYTHONPATH=os.environ["PYTHONPATH"], **extra)


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    file = tmp_path_factory.mktemp("lock") / "adjoin.lock"
    got = adjoin("lock", file)
    assert got.returncode == 0 and f"ADJOIN_PLUGINS=lock:{file}" in got.stdout, got.stderr
    return file


def test_a_lock_names_plugins_libraries_and_features(locked):
    text = locked.read_text()
    for plugin in ("cpu", "reference"):
        assert re.search(rf"^plugin {plugin} [0-9a-f]{{64}}$", text, re.M)
    assert re.search(r"^libadjoin [0-9a-f]{64}$", text, re.M) and re.search(r"^features \S", text, re.M)
    for name, path in re.findall(r"^library (\S+) [0-9a-f]{64} (/.*)$", text, re.M):
        assert path.endswith("/" + name)
    got = adjoin("verify", locked)
    assert got.returncode == 0 and got.stdout == f"nothing differs from {locked}\n"
    assert json.loads(adjoin("verify", locked, "--json").stdout) == {"file": str(locked), "ok": True, "differences": []}


def test_a_program_runs_under_its_lock(locked, tmp_path):
    assert python(PRODUCT, ADJOIN_PLUGINS=f"lock:{locked}").stdout == "64.0\n"
    own = tmp_path / "own.lock"
    got = adjoin("lock", own, "--", sys.executable, "-c", PRODUCT, PYTHONPATH=os.environ["PYTHONPATH"])
    assert got.returncode == 0 and got.stdout.startswith("64.0\n"), got.stderr
    text = own.read_text()
    assert "\nplugin cpu " in text and "\nplugin reference " not in text
    assert python(PRODUCT, ADJOIN_PLUGINS=f"lock:{own}").stdout == "64.0\n"
    failed = adjoin("lock", own, "--", "false")
    assert failed.returncode == 1 and "ended with code 1" in failed.stderr


def changed(locked, tmp_path, what, to):
    file = tmp_path / "changed.lock"
    text, count = re.subn(what, to, locked.read_text(), flags=re.M)
    assert count >= 1
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("what", "to", "told"),
    [
        (r"^plugin cpu .*$", "plugin cpu " + "0" * 64, "the lock file says 0000"),
        (r"^plugin cpu .*\n", "", "not in the lock file"),
        (r"^libadjoin .*$", "libadjoin " + "1" * 64, "the lock file says 1111"),
        (r"^features ", "features avx9000 ", "it lacks what the lock file names: avx9000"),
        (r"^plugin cpu ", "plugin cpu cpu ", "wanted plugin NAME SHA256"),
        (r"^features .*$", "library x 12 /y", "wanted plugin NAME SHA256"),
    ],
)
def test_what_differs_is_refused_with_a_reason(locked, tmp_path, what, to, told):
    file = changed(locked, tmp_path, what, to)
    got = python(PRODUCT, ADJOIN_PLUGINS=f"lock:{file}")
    assert got.returncode != 0 and told in got.stderr
    if "not in" not in told:
        verdict = adjoin("verify", file)
        assert verdict.returncode == 1 and told in verdict.stdout + verdict.stderr


def test_a_library_that_differs_is_not_opened(locked, tmp_path):
    if "library libopenblas" not in locked.read_text():
        pytest.skip("NOT TESTED: OpenBLAS is not installed")
    complex_product = "import adjoin; x = adjoin.ones(64, 64).to(adjoin.complex64); print((x @ x)[0, 0].real.item())"
    bad = changed(locked, tmp_path, r"^(library libopenblas\S*) \S+", r"\1 " + "0" * 64)
    got = python(complex_product, ADJOIN_PLUGINS=f"lock:{bad}", ADJOIN_BLAS="openblas")
    assert got.stdout == "64.0\n" and "the lock file says 0000" in got.stderr  # our own products serve
    assert "the lock file says 0000" in adjoin("verify", bad).stdout
    gone = changed(locked, tmp_path, r"^library libopenblas.*\n", "")
    got = python(complex_product, ADJOIN_PLUGINS=f"lock:{gone}", ADJOIN_BLAS="openblas")
    assert got.stdout == "64.0\n" and "not in the lock file" in got.stderr


def test_a_stranger_is_refused_under_a_lock(locked, tmp_path):
    build_plugin(tmp_path)
    got = adjoin("plugins", "why", "acme", ADJOIN_PLUGIN_PATH=tmp_path, ADJOIN_PLUGINS=f"lock:{locked}")
    assert "disabled: not in the lock file" in got.stdout
    shutil.copy(PLUGINDIR / "libaj_reference.so", tmp_path / "libaj_reference.so")
    (tmp_path / "libaj_reference.so").chmod(0o644)
    got = adjoin("plugins", "list", ADJOIN_PLUGIN_PATH=tmp_path, ADJOIN_PLUGINS=f"lock:{locked}")
    assert re.search(r"reference +\S+ +found", got.stdout)  # the same bytes elsewhere are as good


def test_verify_without_a_file(tmp_path):
    got = adjoin("verify", tmp_path / "none")
    assert got.returncode == 1 and "cannot be read" in got.stderr


SCRIPT = """
import sys
import adjoin
x = adjoin.randn(int(sys.argv[1]), 8, requires_grad=True)
adjoin.nn.functional.softmax(x @ x.t(), -1).sum().backward()
print("done", sys.argv[1:])
"""


def test_explain_runs_a_script_and_tells_who_served(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    path = os.path.dirname(sys.executable) + ":" + os.environ["PATH"]
    env = {"PYTHONPATH": os.environ["PYTHONPATH"], "PATH": path}
    got = adjoin("explain", script, "16", "--json", **env)
    assert got.returncode == 0 and "done ['16', '--json']" in got.stdout, got.stderr
    assert re.search(r"^op +key +served by +calls +time +bytes +why$", got.stdout, re.M)
    assert re.search(r"^mm +cpu +cpu +3 ", got.stdout, re.M)
    out = tmp_path / "out.json"
    assert adjoin("explain", "--json", "--output", out, script, "4", **env).stdout == "done ['4']\n"
    rows = json.loads(out.read_text())
    assert {"op", "key", "served_by", "calls", "nanoseconds", "bytes", "why"} == set(rows[0])
    assert any(row["op"] == "mm" and row["served_by"] == "cpu" for row in rows)
    times = [row["nanoseconds"] for row in rows]
    assert times == sorted(times, reverse=True)
    script.write_text("import adjoin, sys; adjoin.ones(2) + 1; sys.exit(3)")
    got = adjoin("explain", script, **env)
    assert got.returncode == 3 and re.search(r"^add +cpu +cpu +1 ", got.stdout, re.M)
    assert "did not use libadjoin" in adjoin("explain", "true").stderr
    assert adjoin("explain", "--fly").returncode == 2


def test_blas_compare():
    got = adjoin("blas", "compare", "--shapes", "33x65x47,64x64x64", "--seconds", "0.001", "--json")
    assert got.returncode == 0, got.stderr
    rows = json.loads(got.stdout)
    assert {"own"} <= {row["provider"] for row in rows}
    for row in rows:
        assert 0 <= row["mean_ulp"] <= row["max_ulp"] < 16, row
        assert row["served_by"] in (row["provider"], "own")
    text = adjoin(
        "blas", "compare", "--shapes", "64x64x64", "--dtypes", "float64", "--seconds", "0.001", "--providers", "own"
    ).stdout
    assert text.startswith("float64 64x64x64\n  provider  served by") and "\n  own " in text
    for bad in (["--shapes", "3x4"], ["--dtypes", "int8"], ["--shapes", "0x1x1"]):
        assert adjoin("blas", "compare", *bad).returncode == 2
    assert "blas" in adjoin("blas", "compare", "--providers", "blurb").stderr


def test_why_tells_what_a_plugin_registered(tmp_path):
    got = adjoin("plugins", "why", "reference", "--load").stdout
    assert re.search(r"^plugin reference \S+ \(/.*\): loaded$", got, re.M)
    assert re.search(r"^  has \d+ kernels at reference$", got, re.M) and "  device reference: priority 0, active" in got
    before = adjoin("plugins", "why", "onednn").stdout  # no device's: it is looked at, not loaded
    assert ": found" in before and "kernels at" not in before
    entry = json.loads(adjoin("plugins", "why", "device:cpu", "--load", "--json").stdout)
    assert [p["state"] for p in entry["plugins"]] == ["loaded"]
    assert any("service aj.blas/cpu 'own': priority 0" in line for line in entry["lines"])
    build_plugin(tmp_path, init='return complain(env->core, AJ_INTERNAL, "no card in here");')
    broken = adjoin("plugins", "why", "acme", "--load", ADJOIN_PLUGIN_PATH=tmp_path)
    assert broken.returncode == 0 and "failed: no card in here" in broken.stdout
