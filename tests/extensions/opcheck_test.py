"""tests/extensions/opcheck_test.py: opcheck finds each broken promise of a plugin that is full of them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from installed import flags

import adjoin as T
from adjoin.testing import opcheck as opcheck_module
from adjoin.testing.opcheck import OpCheckError, check_op, opcheck
from adjoin.utils.cpp_extension import load, load_inline

# The check that must fail, and what it has to say.
FAULTS = {
    "aliases": ("schema", "result 0 shares memory with 'input'"),
    "writes": ("schema", "writes to 'input', which the schema does not mark"),
    "silent": ("gradient", "would silently be zero"),
    "wrong_gradient": ("gradient", "the derivative says 3"),
    "wrong_second": ("second gradient", "Jacobian mismatch"),
    "meta_shape": ("meta", "result 0 is (3, 4) .*, on meta it is ()"),
    "reads_meta": ("meta", "crashes: Segmentation fault"),
    "remembers": ("threads", "called by four threads at once it gives other results"),
    "ignores_strides": ("layouts", "inputs with gaps: result 0 has other values"),
    "reads_empty": ("layouts", "crashes: Aborted"),
    "ignores_dtype": ("dtypes", "is taken and wrong: declare the kernel's dtypes"),
    "keeps_tensors": ("leaks", "a call keeps [0-9]+ bytes of .* for good"),
    "keeps_memory": ("leaks", "a call keeps [0-9]+ bytes of malloc's for good"),
    "keeps_gradients": ("leaks", "a call with its backward pass keeps [0-9]+ bytes of .* for good"),
    "good": (None, ""),
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faulty")
    return load("faulty", Path(__file__).with_name("faulty.cpp"), build_directory=folder).__file__


@pytest.mark.parametrize("op", FAULTS)
def test_finds(faulty, op):
    check, words = FAULTS[op]
    verdicts = {v.check: v for v in check_op(f"faulty::{op}", checks=check and [check])}
    if check is None:
        assert all(v.ok is not False for v in verdicts.values()), verdicts
        assert verdicts["second gradient"].ok and verdicts["dtypes"].text.startswith("takes ")
        return
    assert verdicts[check].ok is False
    assert re.search(words.replace("(3, 4)", r"\(3, 4\)").replace("()", r"\(\)"), verdicts[check].text), verdicts[check]


def test_command(faulty, built):
    def run(*words):
        return subprocess.run(["adjoin", "opcheck", *words], capture_output=True, text=True)

    done = run(faulty, "--check", "schema")
    assert done.returncode == 1 and re.search("faulty::writes +schema +FAILS  writes to 'input'", done.stdout)
    done = run(str(built / "libaj_squash.so"), str(built / "libaj_softsign.so"), str(built / "libaj_bounded.so"))
    assert done.returncode == 0 and "FAILS" not in done.stdout and "second load" in done.stdout, done.stdout
    done = run(
        "--json", "--check", "schema", "--check", "meta", "mul", "linalg::qr" if T._C.find_op("linalg::qr") else "add"
    )
    assert done.returncode == 0 and {v["check"] for v in json.loads(done.stdout)} == {"schema", "meta"}
    done = run("no::such")
    assert done.returncode == 2 and "no op named 'no::such'" in done.stderr
    assert run("/nowhere/libaj_x.so").returncode == 1


def test_without_numpy(built, tmp_path):
    (tmp_path / "numpy.py").write_text("raise ImportError('there is no NumPy')")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    line = [sys.executable, "-m", "adjoin.testing.opcheck", str(built / "libaj_squash.so")]
    done = subprocess.run(line, capture_output=True, text=True, env=env)
    assert done.returncode == 0 and "FAILS" not in done.stdout, done.stdout


def test_samples_of_ones_own(tmp_path, extensions):
    source = 'Tensor picky(Tensor x, int64_t k) { if (k != 7) adjoin::kit::raise(3, "k must be 7"); return x * 2; }'
    load_inline("picky", source, functions="picky")
    (verdict,) = check_op("picky::picky")
    assert verdict.ok is False and "no sample is taken" in verdict.text and "k must be 7" in verdict.text
    (tmp_path / "s.json").write_text('[[{"shape": [2, 3], "dtype": "float32"}, 7]]')
    from adjoin.testing._samples import from_file

    assert all(v.ok is not False for v in check_op("picky::picky", from_file(tmp_path / "s.json")))


def test_a_call_that_crashes_or_does_not_end(monkeypatch, extensions):
    monkeypatch.setattr(opcheck_module, "SECONDS", 4)
    ends = """
    #include <unistd.h>
    Tensor crash(Tensor x) { TORCH_CHECK(x.ndim() < 9, "few dimensions"); __builtin_trap(); }
    Tensor hang(Tensor) { for (;;) usleep(1000); }"""
    load_inline("ends", ends, functions=["crash", "hang"])
    (verdict,) = check_op("ends::hang")
    assert verdict.ok is False and verdict.text == "a call does not end within 1 s"
    (verdict,) = check_op("ends::crash")
    assert verdict.ok is False and verdict.text.startswith("a call crashes: ")
    with pytest.raises(RuntimeError, match="few dimensions"):
        T.ops.ends.crash(T.ones([1] * 9))
    with pytest.raises(OpCheckError, match="a call with what was given fails: .*few dimensions"):
        opcheck("ends::crash", (T.ones([1] * 9),))


def test_as_pytorch_names_it(faulty):
    assert opcheck(T.ops.faulty.good, (T.randn(3),))["schema"] == "SUCCESS"
    with pytest.raises(OpCheckError, match="faulty::aliases: schema: result 0 shares"):
        opcheck("faulty::aliases", (T.randn(3),))
    told = opcheck("faulty::aliases", (T.randn(3),), raise_exception=False, test_utils="schema")
    assert list(told) == ["schema"] and told["schema"].startswith("FAILED")
    told = opcheck(T.ops.faulty.good, (T.randn(3),), test_utils=("test_schema", "test_faketensor"))
    assert told == {"test_schema": "SUCCESS", "test_faketensor": "SUCCESS"}
    with pytest.raises(ValueError, match="no check 'test_aot"):
        opcheck(T.ops.faulty.good, (T.randn(3),), test_utils="test_aot_dispatch_dynamic")


def test_a_plugin_that_cannot_be_loaded_twice(tmp_path):
    (tmp_path / "once.c").write_text("""
#include <adjoin/abi/plugin.h>
AJ_PLUGIN_NOTE("once", "0", "", "", "ops:once", "");
AJ_PLUGIN_INIT {
  static int calls;
  return calls++ ? env->core->status_new(AJ_INTERNAL, AJ_STR_LIT(""), AJ_STR_LIT("not again"), 0, 0) : NULL;
}
""")
    line = ["cc", "-shared", "-fPIC", *flags("--cflags", "--ldflags")]
    subprocess.run([*line, str(tmp_path / "once.c"), "-o", str(tmp_path / "libaj_once.so")], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "adjoin.testing.opcheck", str(tmp_path / "libaj_once.so")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and re.search("second load +FAILS", done.stdout) and "not again" in done.stdout, (
        done.stdout
    )
