"""tests/cli/conform_parts_test.py: what `adjoin conform` says of a part, how soon it speaks, and that nothing of it outlives it."""

import json
import os
import signal
import subprocess
import time

import pytest

from abi_tools import ADJOIN, PLUGINDIR, adjoin, clean_environment
from conform_queued_test import build

CPU = f"{PLUGINDIR}/libaj_cpu.so"


def started(*words):
    return subprocess.Popen(
        [ADJOIN, "conform", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=clean_environment(),
    )


def test_one_op_is_no_certificate(tmp_path):
    page = tmp_path / "page.html"
    got = adjoin("conform", CPU, "--op", "add", "--dtype", "float32", "--html", page)
    *_, checked, left, verdict = got.stdout.splitlines()
    assert got.returncode == 0 and "conforms" not in got.stdout and "conforms" not in page.read_text()
    assert checked.startswith("checked: the device (") and checked.endswith("; gradients of add; values of add")
    assert left == "not checked: all ops but add; all dtypes but float32"
    assert verdict.startswith("cpu, device cpu: no fault found in what was checked: ") and "; 1 of " in verdict


def test_no_derivative_is_asked_by_what_is_fixed():
    """eigvalsh reads one triangle: its row fixes the matrix, whose elements cannot change alone."""
    got = adjoin("conform", CPU, "--mode", "grad", "--op", "linalg::eigvalsh", "--op", "linalg::det")
    assert got.returncode == 0 and "gradients of linalg::det" in got.stdout, got.stdout


def test_a_short_run_is_short_and_says_what_it_left_out():
    start = time.time()
    got = adjoin("conform", f"{PLUGINDIR}/libaj_emulated.so", "--quick", "--seed", "5")
    assert time.time() - start < 60  # 20 of a machine that does nothing else
    verdict = got.stdout.splitlines()[-1]
    assert got.returncode == 0, got.stdout
    if "no time for" in got.stdout:
        assert "not checked: " in got.stdout and "no fault found in what was checked" in verdict
    else:
        assert "conforms" in verdict


def test_it_speaks_while_it_runs(tmp_path):
    run = started(build(tmp_path, 4), "--mode", "test", "--op", "mul", "--op", "div", "--timeout", "5")
    lines = []
    for line in run.stdout:
        lines.append(line)
        if line.startswith("failed: mul"):
            break
    assert run.poll() is None and lines[0].startswith("queued, device queued: ") and "seed" in lines[0]
    run.kill()
    run.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_child_outlives_it(number, tmp_path):
    run = started(build(tmp_path, 10), "--mode", "device", "--timeout", "60")  # events that never pass: it hangs
    children = []
    while not children:
        time.sleep(0.2)
        with open(f"/proc/{run.pid}/task/{run.pid}/children") as file:
            children = [int(word) for word in file.read().split()]
    run.send_signal(number)
    assert run.wait(10) == -number
    deadline = time.time() + 10
    while any(os.path.exists(f"/proc/{child}") for child in children):
        assert time.time() < deadline, "a child still runs"
        time.sleep(0.05)


def test_events_that_never_pass_end_with_a_verdict(tmp_path):
    start = time.time()
    got = adjoin("conform", build(tmp_path, 10), "--json", "-", "--op", "add", "--timeout", "1")
    report = json.loads(got.stdout)
    assert got.returncode == 1 and report["verdict"] == "does not conform" and time.time() - start < 60
    assert "failed: " in got.stderr  # at once, where JSON does not stand
