"""tests/cli/newbackend_test.py: what `adjoin new-backend` writes builds with nothing but the installed headers, conforms, and
trains a network."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from abi_tools import ADJOIN, PLUGINDIR, PREFIX, adjoin


@pytest.fixture(scope="module", params=["c", "c++"])
def backend(request, tmp_path_factory):
    """The folder of a backend called vendor, built."""
    out = tmp_path_factory.mktemp("new") / "vendor"
    got = adjoin("new-backend", "vendor", "--lang", request.param, "--out", out)
    assert got.returncode == 0, got.stderr
    path = {**os.environ, "PATH": f"{ADJOIN.parent}:{os.environ['PATH']}", "CFLAGS": "-Werror", "CXXFLAGS": "-Werror"}
    made = subprocess.run([out / "build.sh"], env=path, capture_output=True, text=True)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    return out


def test_it_is_short(backend):
    source = next(backend.glob("vendor.c*")).read_text()
    assert source.count("\n") <= 600 and "acme" not in source
    assert 40 <= len(re.findall(r'\{"[a-z_:0-9]+", ', source)) <= 60
    assert set(re.findall(r"#include <(adjoin/\w+)/", source)) <= {"adjoin/abi", "adjoin/kit"}


def test_it_conforms(backend):
    got = adjoin("conform", backend / "libaj_vendor.so", "--mode", "all", "--json", "-")
    report = json.loads(got.stdout)
    assert [f for r in report["records"] for f in r["failures"]] == [] and got.returncode == 0, report["seed"]
    assert len({r["row"] for r in report["records"] if r["passed"]}) > 150


def test_it_trains(backend):
    pytest.importorskip("sklearn")
    folder = {**os.environ, "ADJOIN_PLUGIN_PATH": str(backend)}
    got = subprocess.run([sys.executable, backend / "train.py", "vendor"], env=folder, capture_output=True, text=True)
    assert got.returncode == 0 and "the losses agree" in got.stdout, got.stdout + got.stderr


def test_it_stands_in_one_graph_with_other_devices(backend):
    emulated = PLUGINDIR / "libaj_emulated.so"
    devices = ["cpu", *(["emulated:0", "emulated:1"] if emulated.exists() else []), "vendor"]
    program = Path(__file__).resolve().parents[1] / "plugins/several_devices.py"
    folder = {**os.environ, "ADJOIN_PLUGIN_PATH": str(backend)}
    got = subprocess.run([sys.executable, program, *devices], env=folder, capture_output=True, text=True)
    assert got.returncode == 0 and "the losses agree" in got.stdout, got.stdout + got.stderr
    if not emulated.exists():
        pytest.skip("NOT TESTED: with emulated devices, whose plugin is not built")


def test_meson_builds_and_installs_it(tmp_path):
    if not shutil.which("meson"):
        pytest.skip("there is no meson")
    out = tmp_path / "vendor"
    assert adjoin("new-backend", "vendor", "--lang", "c", "--out", out).returncode == 0
    found = {**os.environ, "PKG_CONFIG_PATH": str(PREFIX / "lib/pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": "", "CC": "gcc"}
    include = f"-Dc_args=-I{PREFIX}/include"  # a staged prefix is not where its .pc file says
    for words in (["setup", "build", include], ["compile", "-C", "build"]):
        done = subprocess.run(["meson", *words], cwd=out, env=found, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (out / "build/libaj_vendor.so").exists()


def test_wrong_use(tmp_path):
    (tmp_path / "file").write_text("mine")
    for words, told in (
        ([], "which name?"),
        (["Acme"], "is no name for a device"),
        (["acme", "--lang", "cobol"], "no template in 'cobol'"),
        (["acme", "--out", tmp_path], "is there already and not empty"),
    ):
        got = adjoin("new-backend", *words)
        assert got.returncode in (1, 2) and told in got.stderr
    assert (tmp_path / "file").read_text() == "mine"
