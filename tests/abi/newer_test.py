"""tests/abi/newer_test.py: what was built before meets a libadjoin of the next minor version, and the reverse.

The newer libadjoin is built from a copy of the sources in which every EXTENSIBLE struct has two more
fields (grow.py), and stands in a copy of the installed tree: the same command, Python module and
plugins find it there.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

import golden_test
from abi_tools import HERE, INCLUDE, PREFIX, build_host, build_plugin, clean_environment, compile_plugin, run
from evolve_test import CAREFUL, CAREFUL_INIT, WORKS
from grow import build_grown

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
CUBE = (HERE / "cube.c").read_text()


@pytest.fixture(scope="session")
def prefixes(tmp_path_factory):
    """Installed trees: today's, and one with the next minor version's libadjoin."""
    library = build_grown()
    there = tmp_path_factory.mktemp("next") / "prefix"
    shutil.copytree(PREFIX, there, symlinks=True)
    (there / "lib/libadjoin.so").unlink()
    shutil.copy2(library, there / "lib/libadjoin.so")
    return {"today": PREFIX, "next": there}


def backend(prefix, language, include, folder):
    """What new-backend writes, compiled against the contract in an include folder."""
    out = folder / "vendor"
    subprocess.run([prefix / "bin/adjoin", "new-backend", "vendor", "--lang", language, "--out", out], check=True)
    env = clean_environment(CFLAGS=f"-I{include}", CXXFLAGS=f"-I{include}")
    env["PATH"] = f"{prefix}/bin:{env['PATH']}"
    subprocess.run([out / "build.sh"], env=env, check=True, stdout=subprocess.DEVNULL)
    return out


def train(prefix, script, device, **extra):
    """Eight steps of the digits network on the device and on the reference: the losses must agree."""
    pytest.importorskip("sklearn")
    env = clean_environment(**extra)
    env["PYTHONPATH"] = str(prefix / "lib/adjoin/python")
    words = [sys.executable, script, device]
    got = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300)
    assert got.returncode == 0 and "the losses agree" in got.stdout, got.stdout + got.stderr


def test_the_newer_libadjoin_says_so(prefixes, tmp_path, headers):
    """Its tables have the appended fields, and a plugin built against them sees them."""
    host = build_host(tmp_path / "host", libdir=prefixes["next"] / "lib")
    how = {"include": headers["next"], "flags": ["-DGROWN"], "minor_min": "1"}
    plugin = build_plugin(tmp_path, extra=CAREFUL.replace("GROWN", "NEVER"),
                          init=CAREFUL_INIT.replace("AJ_HAS_FN", "AJ_HAS_FIELD"), **how)  # fmt: skip
    got = run(host, "load", plugin, "call", "acme::twice", "grad", "acme::twice")
    assert got.stdout.splitlines() == ["appended 1 1 1 1 1", *WORKS], got.stdout + got.stderr


@pytest.mark.parametrize("truncate", ["0", "1"])
@pytest.mark.parametrize("frontend", ["candidate", "today", "next"])
@pytest.mark.parametrize("version", ["candidate", "today"])
def test_plugins_and_frontends_on_the_newer_libadjoin(version, frontend, truncate, prefixes, tmp_path, headers):
    host = build_host(tmp_path / "host", include=headers[frontend], libdir=prefixes["next"] / "lib")
    plugin = build_plugin(tmp_path, extra=CAREFUL, init=CAREFUL_INIT, include=headers[version])
    compile_plugin(tmp_path, CUBE, name="cube", include=headers[version])
    words = ["load", plugin, "call", "acme::twice", "grad", "acme::twice", "grad2", "cube::cube"]
    words += ["threads", "cube::cube", "device", "reference", "grad", "neg"]
    got = run(host, *words, ADJOIN_ABI_TRUNCATE=truncate, ADJOIN_PLUGIN_PATH=tmp_path)
    assert got.stdout.splitlines() == [
        *WORKS,
        "ok grad2 6 12 18 24 30 36 42 48",
        *["ok cube::cube 1 8 27 64 125 216 343 512"] * 8,
        "ok reference 1 2 3 4 5 6 7 8",
        "ok grad -1 -1 -1 -1 -1 -1 -1 -1",
    ], got.stdout + got.stderr


@pytest.mark.parametrize("frontend", ["candidate", "next"])
def test_nothing_is_written_behind_a_struct(frontend, prefixes, tmp_path, headers):
    library = prefixes["next"] / "lib"
    program = build_host(tmp_path / "clamp", include=headers[frontend], libdir=library, source="clamp.c")
    got = run(program)
    assert got.returncode == 0 and got.stdout.count(" ok\n") == 8, got.stdout + got.stderr


# Which headers the plugin was built with, which libadjoin it meets, in which language it is written. The kit of C++
# belongs to the headers it is installed with; compiling it takes long.
slow = pytest.mark.skipif(not FULL, reason="a plugin in C++, all ops of it: only with ./run test --full")
MEETINGS = [
    ("candidate", "next", "c"),
    ("next", "today", "c"),
    pytest.param("today", "next", "c++", marks=slow),
    pytest.param("next", "today", "c++", marks=slow),
]
SOME = [word for op in ("add", "copy_", "fill_", "sum", "argmax", "mm", "gather", "softmax") for word in ("--op", op)]


@pytest.mark.parametrize("built,core,language", MEETINGS)
def test_a_device_plugin_conforms_and_trains(built, core, language, prefixes, tmp_path, headers):
    prefix = prefixes[core]
    made = backend(prefix, language, headers[built], tmp_path)
    words = [prefix / "bin/adjoin", "conform", made / "libaj_vendor.so", "--mode", "all", "--json", "-"]
    got = run(*words, *([] if FULL else SOME), timeout=600)
    report = json.loads(got.stdout)
    assert [f for r in report["records"] for f in r["failures"]] == [] and got.returncode == 0, got.stderr
    assert sum(r["passed"] for r in report["records"]) > (100 if FULL else 10)
    train(prefix, made / "train.py", "vendor", ADJOIN_PLUGIN_PATH=made)


@golden_test.here
@pytest.mark.parametrize("part", list(golden_test.USES))
def test_the_golden_plugins_on_the_newer_libadjoin(part, prefixes, tmp_path):
    """Stored binaries of the candidate (golden_test.py) and a libadjoin whose structs have grown."""
    shutil.copytree(golden_test.golden.BIN, tmp_path / "golden")
    (tmp_path / "golden").chmod(0o755)
    got = golden_test.use(
        {"golden": tmp_path / "golden"}, "golden", part, PYTHONPATH=prefixes["next"] / "lib/adjoin/python"
    )
    assert got.returncode == 0 and got.stdout.endswith("used three times\n"), got.stdout + got.stderr
    key = tmp_path / "golden/libaj_golden_key.so"
    told = run(tmp_path / "golden/golden_frontend", prefixes["next"] / "lib/libadjoin.so", key, "golden_key")
    assert told.returncode == 0 and told.stdout.endswith("all held\n"), told.stdout + told.stderr


def test_the_installed_plugins_train_on_the_newer_libadjoin(prefixes):
    """cpu, its libraries, the reference, the Python module and the command, as they were built today."""
    script = next((prefixes["next"] / "share/adjoin/templates").glob("**/train.py"))
    train(prefixes["next"], script, "cpu")
    listed = run(prefixes["next"] / "bin/adjoin", "plugins", "list")
    assert listed.returncode == 0 and "cpu" in listed.stdout and "refused" not in listed.stdout
    assert os.path.samefile(INCLUDE, PREFIX / "include")
