"""tests/cli/conform_queued_test.py: a device whose work is queued, in one C file from the contract alone, conforms; each broken
promise of it is found and named."""

import json
from pathlib import Path

import pytest

from abi_tools import adjoin, compile_plugin

SOURCE = Path(__file__).with_name("queued.c").read_text()


def build(folder, fault=0, text=SOURCE):
    return compile_plugin(
        folder, text, "queued", "gcc", [f"-DFAULT={fault}", "-pthread", "-Wno-missing-field-initializers"]
    )


def conform(file, *options):
    got = adjoin("conform", file, "--json", "-", *options)
    assert got.stdout, got.stderr
    report = json.loads(got.stdout)
    return got.returncode, report, [f for r in report["records"] for f in r["failures"]]


def test_it_conforms(tmp_path):
    file = build(tmp_path)
    code, report, failures = conform(file, "--mode", "test", "--dtype", "float32", "--timeout", "20")
    assert (code, failures) == (0, []), report["seed"]
    assert {"held up streams", "accounting", "second-stream order"} <= {
        r["check"] for r in report["records"] if r["passed"]
    }
    told = adjoin("plugins", "check", file).stdout
    assert (
        "kernels for 4 ops, has a kernel at queued for mull, an op that nobody defines" in told
        and "device queued: 1" in told
    )


MUL = ["--op", "mul", "--dtype", "float32"]
NO_ROWS = ["--mode", "device"]


@pytest.mark.parametrize(
    "fault, options, told",
    [
        (1, MUL, "after a wait: "),
        (2, NO_ROWS, "event_sync: came back before the event had passed"),
        (3, NO_ROWS, "stream_wait: work behind it ran before the event had passed"),
        (4, MUL, "again and again: each call leaves 512 bytes in use"),
        (5, NO_ROWS, "mem_free: of 4 blocks of 16 MiB that were freed, "),
        (7, NO_ROWS, "stream_sync: came back before the stream's work had passed"),
        (8, MUL, "mem_alloc of plugin 'queued' gave an address that is not aligned to 64 bytes"),
        (9, MUL, "its mem_alloc: queued: the driver does not answer"),
        (10, MUL, "event_query of an event on an idle stream: it never passes"),
        (10, NO_ROWS, "held up: does not come back within 5 s"),
        (11, MUL, "event_query of an event on an idle stream: it never passes"),
    ],
)
def test_a_broken_promise_is_told(fault, options, told, tmp_path):
    code, _, failures = conform(build(tmp_path, fault), *options, "--timeout", "5")
    assert code == 1 and any(told in f for f in failures), failures


def test_a_device_that_hangs_everywhere_is_given_up(tmp_path):
    code, report, failures = conform(build(tmp_path, 6), *MUL[2:], "--timeout", "1")
    assert report["verdict"] == "does not conform"
    assert code == 1 and sum("does not come back" in f for f in failures) >= 5
    assert "in a row did not come back" in failures[-1] and len(report["records"]) < 40


@pytest.mark.parametrize(
    "without, told",
    [
        (".mem_free = mem_free", "has no mem_free"),
        (".stream_sync = stream_sync", "has no stream_sync"),
        (".copy = copy", "has no copy"),
    ],
)
def test_half_a_table_is_refused(without, told, tmp_path):
    text = SOURCE.replace(f"{without},", "").replace(
        "#include <stdlib.h>", '#include <stdlib.h>\n#pragma GCC diagnostic ignored "-Wunused"'
    )
    got = adjoin("plugins", "check", build(tmp_path, 0, text))
    assert got.returncode == 1 and f"def_device: device 'queued' {told}, needed with" in got.stdout
