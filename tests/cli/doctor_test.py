"""tests/cli/doctor_test.py: `adjoin doctor`: silent where nothing is wrong, and sees each fault once."""

import json
import os
import re
import subprocess
import sys

import pytest

from abi_tools import ADJOIN, INCLUDE, PREFIX, adjoin, build_plugin, clean_environment

PACKAGE = PREFIX / "lib/adjoin/python"


def doctor(*words, **extra):
    extra = {"PYTHONPATH": PACKAGE, "ADJOIN_PYTHON": sys.executable, **extra}
    got = adjoin("doctor", "--json", *words, **extra)
    findings = json.loads(got.stdout)
    assert findings["ok"] == (got.returncode == 0) == (not complaints(findings)), got.stdout
    return findings


def complaints(findings):
    return [f for f in findings["findings"] if f["state"] == "complaint"]


def the_complaint(findings):
    (one,) = complaints(findings)
    assert one["remedy"]
    return one


def texts(findings, section, name=None):
    return [f["text"] for f in findings["findings"] if f["section"] == section and name in (None, f["name"])]


def test_no_complaint_about_what_is_installed():
    got = doctor()
    assert got["ok"], complaints(got)
    (cpu,) = texts(got, "plugins", "cpu")
    assert re.fullmatch(re.escape(adjoin("--version").stdout.strip()) + r": kernels for \d{3} ops, device cpu: 1", cpu)
    assert any(line.startswith("vector kernels: ") for line in texts(got, "plugins"))
    assert texts(got, "Python", "adjoin")[0].endswith(str((PACKAGE / "adjoin").resolve()))


def test_for_people():
    got = adjoin("doctor", PYTHONPATH=PACKAGE, ADJOIN_PYTHON=sys.executable)
    assert got.returncode == 0 and got.stdout.endswith("no complaint\n") and got.stderr == ""
    assert not [line for line in got.stdout.splitlines() if line.startswith("!")]


def test_a_folder_that_is_none(tmp_path):
    one = the_complaint(doctor(ADJOIN_PLUGIN_PATH=tmp_path / "none"))
    assert one["section"] == "plugins" and one["text"] == f"'{tmp_path}/none' is no folder"


@pytest.mark.parametrize(
    "init, text",
    [("abort();", "crashes while it is loaded"), ("_exit(3);", "ends the process while it is loaded: exit code 3")],
    ids=["crash", "exit"],
)
def test_a_plugin_that_takes_the_process_along(tmp_path, init, text):
    build_plugin(tmp_path, name="bad", init=init)
    one = the_complaint(doctor(ADJOIN_PLUGIN_PATH=tmp_path))
    assert one["name"] == "bad" and text in one["text"] and str(tmp_path) in one["text"]


def test_a_file_that_is_no_plugin(tmp_path):
    (tmp_path / "libaj_text.so").write_text("text")
    one = the_complaint(doctor(ADJOIN_PLUGIN_PATH=tmp_path))
    assert "refused" in one["text"] and "libaj_text.so" in one["remedy"]


def test_what_the_user_left_out_is_no_fault():
    got = doctor(ADJOIN_PLUGINS="only:cpu")
    assert got["ok"]
    assert {f["name"] for f in got["findings"] if f["state"] == "note"} >= {"reference"}


def test_too_many_threads():
    one = the_complaint(doctor(ADJOIN_NUM_THREADS=1000))
    assert one["name"] == "threads" and "more than there are processors" in one["text"]


def test_variables_that_are_ignored():
    for name, bad, good in (
        ("ADJOIN_NUM_THREADS", "many", "1"),
        ("ADJOIN_MEMORY_LIMIT", "1x", "1.5GiB"),
        ("ADJOIN_LOG", "loud", "warning"),
    ):
        one = the_complaint(doctor(**{name: bad}))
        assert one["name"] == "variable" and f"{name}={bad}" in one["text"] and f"unset {name}" in one["remedy"]
        assert doctor(**{name: good})["ok"]


def test_a_tuning_file_that_is_damaged(tmp_path):
    (tmp_path / "products").write_text("nonsense\n")
    one = the_complaint(doctor(ADJOIN_TUNING=tmp_path / "products"))
    assert one["section"] == "caches" and "another file in ADJOIN_TUNING" in one["remedy"]


FAKES = ["libgomp.so.1", "libiomp5.so", "libopenblas.so.0", "libblis.so.4"]


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """A process with two OpenMP runtimes and two BLAS libraries, by name."""
    folder = tmp_path_factory.mktemp("crowded")
    for name in FAKES:
        (folder / "empty.c").write_text("int nothing;\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "empty.c", "-o", name], cwd=folder, check=True)
    code = (
        f"import ctypes; [ctypes.CDLL({str(folder)!r} + '/' + n) for n in {FAKES}]; print('ready', flush=True); input()"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    yield child
    child.communicate("\n")


def test_two_blas_and_two_openmp(crowded):
    found = complaints(doctor("--pid", crowded.pid))
    assert [(f["section"], f["name"]) for f in found] == [
        (f"process {crowded.pid}", "BLAS in process"),
        (f"process {crowded.pid}", "OpenMP in process"),
    ]
    assert "libopenblas.so.0" in found[0]["text"] and "libblis.so.4" in found[0]["text"]
    assert "libgomp.so.1" in found[1]["text"] and "libiomp5.so" in found[1]["text"]


def fake_package(folder, body):
    (folder / "adjoin").mkdir()
    (folder / "adjoin/__init__.py").write_text(body)
    return folder


def test_a_package_that_breaks(tmp_path):
    one = the_complaint(doctor(PYTHONPATH=fake_package(tmp_path, "import nothing_of_this_name")))
    assert "import adjoin fails: ModuleNotFoundError" in one["text"] and str(PACKAGE) in one["remedy"]


def test_a_package_of_another_installation(tmp_path):
    one = the_complaint(doctor(PYTHONPATH=fake_package(tmp_path, "__version__ = '0.0.1'")))
    assert one["section"] == "Python" and "this command" in one["text"]


def test_no_package_and_no_python_are_notes(tmp_path):
    got = doctor(PYTHONPATH=tmp_path)
    assert got["ok"] and "this Python has no package adjoin" in texts(got, "Python", "adjoin")
    got = doctor(ADJOIN_PYTHON="/nonexistent/python3")
    assert got["ok"] and "cannot be run" in texts(got, "Python", "python")[0]


def test_no_compiler_is_a_note_with_the_command(tmp_path):
    got = doctor(PATH=tmp_path)
    (one,) = [f for f in got["findings"] if f["name"] == "compiler"]
    assert got["ok"] and one["state"] == "note" and one["remedy"] == "apt-get install g++"


def test_collect_env_prints_the_same():
    env = clean_environment(PYTHONPATH=PACKAGE)
    command = [sys.executable, "-m", "adjoin.utils.collect_env"]
    got = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert got.returncode == 0 and got.stdout.endswith("no complaint\n"), got.stdout + got.stderr
    mine = adjoin("doctor", PYTHONPATH=PACKAGE, ADJOIN_PYTHON=sys.executable).stdout
    sections = {line for line in mine.splitlines() if not line.startswith((" ", "-", "!"))}
    assert sections <= set(got.stdout.splitlines())
    code = "from adjoin.utils import collect_env as c; import os; i = c.get_env_info(); print(i['ok'], os.getpid(), "
    code += (
        "any(f['section'] == f'process {os.getpid()}' for f in i['findings']), 'plugins' in c.get_pretty_env_info())"
    )
    got = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert got.stdout.split()[0] == "True" and got.stdout.split()[2:] == ["True", "True"], got.stderr


def test_python_m_adjoin_is_the_command():
    env = clean_environment(PYTHONPATH=PACKAGE)
    command = [sys.executable, "-m", "adjoin", "config", "--includedir"]
    got = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert got.stdout == f"{INCLUDE}\n", got.stderr
    assert os.path.samefile(ADJOIN, PREFIX / "bin/adjoin")
