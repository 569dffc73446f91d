"""tests/plugins/tuning_test.py: the fastest provider of a product, remembered in a file that is honoured, refused, or damaged."""

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import adjoin
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "abi"))
from abi_tools import PLUGINDIR, adjoin as command, build_plugin

blas = adjoin.backends.blas
SHAPE = (64, 96, 128)
# A provider of a stranger, easy to tell from others: every element of its products is 42.
FAKE = """
#include <adjoin/abi/service.h>
static int32_t fake_score(void* self, const aj_gemm* g) { (void)self; return g->dtype.bits == 32 ? 1 : 0; }
static aj_status* fake_gemm(void* self, const aj_gemm* g) {
  (void)self;
  for (int64_t i = 0; i < g->m; ++i)
    for (int64_t j = 0; j < g->n; ++j) ((float*)g->c)[i * g->ldc + j] = 42;
  return 0;
}
static aj_str fake_path(void* self) { (void)self; return AJ_STR_LIT(""); }
static const aj_blas fake = {sizeof(aj_blas), 0, {"fake", 4}, 0, fake_score, fake_gemm, fake_path, 0};
"""
REGISTER = """
  if (!env->core || !env->def_service) return 0;
  aj_service_def d = {sizeof d, 1, AJ_STR_LIT("aj.blas/cpu"), AJ_STR_LIT("fake"), &fake};
  return env->def_service(env->registrar, &d);
"""


@pytest.fixture(autouse=True)
def nothing_known():
    before = adjoin.get_num_threads()
    blas.load_tuning("")
    yield
    blas.load_tuning("")
    blas.set("")
    adjoin.use_deterministic_algorithms(False)
    adjoin.set_num_threads(before)


@pytest.fixture(scope="session")
def fake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fake")
    adjoin.load_plugin(build_plugin(folder, "fakeblas", extra=FAKE, init=REGISTER, provides="service:aj.blas/cpu"))
    return folder


def file_text(rows, processor=None, own=None, head="adjoin products 1", end=None):
    file = PLUGINDIR / "libaj_cpu.so"
    own = file.resolve().stat().st_size if own is None else own
    processor = blas.tuning()["processor"] if processor is None else processor
    lines = [head, f"processor {processor}", f"provider own {own} {file.name}", "provider fake 0 ", *rows]
    return "\n".join([*lines, f"end {len(rows) if end is None else end}"]) + "\n"


def products():
    m, n, k = SHAPE
    return adjoin.ones(m, k) @ adjoin.ones(k, n)


def test_a_file_says_who_serves(tmp_path, fake):
    path = tmp_path / "made-up"
    path.write_text(file_text([f"float32 nn 64 128 128 {t} {who} 1e-5" for t, who in ((1, "fake"), (2, "own"))]))
    adjoin.set_num_threads(1)
    assert (products() == SHAPE[2]).all() and blas.serving(*_mnk()) == "own"
    blas.load_tuning(path)
    assert blas.serving(*_mnk()) == "fake" and (products() == 42).all()
    assert blas.serving(*_mnk(), turned=(True, False)) == "own"  # not measured
    assert blas.serving(*_mnk(), dtype=adjoin.float64) == "own"
    assert blas.serving(64, 256, 128) == "own"  # another class
    for threads, who in ((2, "own"), (3, "own"), (1, "fake")):  # three count as two
        adjoin.set_num_threads(threads)
        assert blas.serving(*_mnk()) == who
    told = blas.tuning(classes=True)
    assert told["state"] == "used" and told["file"] == str(path)
    assert told["class float32 nn 64 128 128 1"] == "fake, 10 us"
    blas.load_tuning("")
    assert (products() == SHAPE[2]).all()


def _mnk():
    return SHAPE[0], SHAPE[1], SHAPE[2]


def test_a_call_overrides_the_file(tmp_path, fake):
    path = tmp_path / "made-up"
    path.write_text(file_text(["float32 nn 64 128 128 1 fake 1e-5"]))
    blas.load_tuning(path)
    for name in ("own", "library", "onednn"):
        blas.set(name)
        assert (products() == SHAPE[2]).all() and "override" in blas.tuning()
    blas.set("fake")
    assert (adjoin.ones(200, 30) @ adjoin.ones(30, 40) == 42).all()
    blas.set("")
    assert blas.serving(*_mnk()) == "fake"


def test_the_deterministic_mode_asks_for_one_thread(tmp_path, fake):
    path = tmp_path / "made-up"
    path.write_text(file_text([f"float32 nn 64 128 128 {t} {who} 1e-5" for t, who in ((1, "own"), (2, "fake"))]))
    blas.load_tuning(path)
    for threads in (1, 2, 3):
        adjoin.set_num_threads(threads)
        assert (products() == (SHAPE[2] if threads == 1 else 42)).all()
        adjoin.use_deterministic_algorithms(True)
        assert (products() == SHAPE[2]).all()
        adjoin.use_deterministic_algorithms(False)


def test_the_same_bits_whoever_serves():
    adjoin.use_deterministic_algorithms(True)
    a, b = adjoin.randn(3, 700, 100), adjoin.randn(3, 100, 90)
    for name in ("own", "library", "onednn"):
        blas.set(name)
        found = set()
        for threads in (1, 2, 3, 8):
            adjoin.set_num_threads(threads)
            found.add((a @ b).numpy().tobytes() + (a[0] @ b[0]).numpy().tobytes())
        assert len(found) == 1, name


ROW = "float32 nn 64 128 128 1 own 1e-5"
WRONG = {
    "another format": (dict(head="adjoin products 2"), "line 1: it does not begin"),
    "another processor": (dict(processor="Z80"), "another processor (Z80)"),
    "another version": (dict(own=17), "another version of libaj_cpu.so"),
    "cut off": (dict(end=5), "lines are missing: 1 are there"),
    "unknown provider": (dict(rows=[ROW.replace("own", "acme")]), "no provider 'acme'"),
    "bad dtype": (dict(rows=[ROW.replace("float32", "float31")]), "begins with 'float31'"),
    "bad size": (dict(rows=[ROW.replace("64", "-64")]), "a size is '-64'"),
    "absurd size": (dict(rows=[ROW.replace("64", "9" * 30)]), "a size is"),
    "bad operands": (dict(rows=[ROW.replace("nn", "n")]), "operands are 'n'"),
    "bad time": (dict(rows=[ROW.replace("1e-5", "nan")]), "the time is 'nan'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_file_is_told_and_ignored(tmp_path, what):
    changes, reason = WRONG[what]
    path = tmp_path / "wrong"
    path.write_text(file_text(**{"rows": [ROW], **changes}))
    with pytest.raises(Exception, match="tuner: ") as error:
        blas.load_tuning(path)
    assert reason in str(error.value)
    got = command("tune", "--show", ADJOIN_TUNING=path)
    assert got.returncode == 0 and "state: ignored, " in got.stdout and reason in got.stdout
    program = "import adjoin; print((adjoin.ones(64, 64) @ adjoin.ones(64, 64) == 64).all().item())"
    env = {**os.environ, "ADJOIN_TUNING": str(path)}
    assert subprocess.run([sys.executable, "-c", program], env=env, check=True, capture_output=True).stdout == b"True\n"


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, reason in (
        (tmp_path, "no plain file"),
        (tmp_path / "pipe", "no plain file"),
        (tmp_path / "none", "No such"),
    ):
        with pytest.raises(Exception, match=reason):
            blas.load_tuning(path)


def test_damaged_files_never_crash(tmp_path, fake):
    choose = random.Random(11)
    whole = file_text(
        [
            f"{d} {t} {m} 64 512 {p} fake 1e-5"
            for d in ("float32", "bfloat16")
            for t in ("nn", "nt")
            for m in (16, 999)
            for p in (1, 2)
        ]
    ).encode()
    path = tmp_path / "damaged"
    pieces = [b"\n", b" ", b"\0", b"\xff", b"9" * 40, b"end 0\n", b"provider x 1 y\n", b"-", b"fake", b"own 1e-5\n"]
    for _ in range(1500):
        text = bytearray(whole)
        for _ in range(choose.randint(1, 6)):
            at = choose.randrange(len(text) + 1)
            match choose.randrange(4):
                case 0:
                    text = text[:at]
                case 1:
                    text[at : at + choose.randint(1, 30)] = b""
                case 2:
                    text[at:at] = choose.choice(pieces)
                case 3 if at < len(text):
                    text[at] = choose.randrange(256)
            if not text:
                break
        path.write_bytes(text)
        try:
            blas.load_tuning(path)
        except (ValueError, RuntimeError) as error:
            assert "tuner: " in str(error)
        assert blas.serving(16, 64, 512) in ("own", "fake")
        assert products().shape == SHAPE[:2]


def test_many_threads_while_choices_change(tmp_path, fake):
    path = tmp_path / "made-up"
    path.write_text(file_text(["float32 nn 64 128 128 1 fake 1e-5"]))
    adjoin.set_num_threads(1)
    wrong, done = [], threading.Event()

    def multiply():
        while not done.is_set():
            first = products()[3, 5].item()
            if first not in (42, SHAPE[2]):
                wrong.append(first)

    threads = [threading.Thread(target=multiply) for _ in range(4)]
    for t in threads:
        t.start()
    for i in range(150):
        blas.load_tuning(path if i % 2 else "")
        blas.set("own" if i % 3 == 0 else "")
    done.set()
    for t in threads:
        t.join()
    assert not wrong
