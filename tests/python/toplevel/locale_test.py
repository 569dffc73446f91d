"""tests/python/toplevel/locale_test.py: a program may set any locale; ops, numbers and files stay what they are."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

LOCALES = {"de_DE.UTF-8": "de_DE", "tr_TR.UTF-8": "tr_TR"}  # a decimal comma; letters whose capitals are others

# What a program sees; printed as JSON, which Python writes alike everywhere.
PROGRAM = """
    import ctypes, io, json, locale, os, sys
    if os.environ.get("LC_ALL"):
        locale.setlocale(locale.LC_ALL, "")
        point = locale.localeconv()["decimal_point"]
        assert point == ",", point
        for library in sys.argv[1:]:  # std::locale::global, as a host program in C++ has it
            ctypes.CDLL(library).set_global()
    import adjoin as aj
    from adjoin import nn

    told = {}
    x = aj.tensor([[0.5, 1e-7], [1234567.25, -3.0]], requires_grad=True)
    told["ops"] = sorted(dir(aj))
    told["repr"] = [repr(x), repr(aj.tensor([1.5 + 2.25j])), repr(aj.tensor(1e10)), str(x.grad_fn), repr(nn.Dropout(0.25))]
    told["grad_fn"] = repr((x.index_select(0, aj.tensor([0])) + 1.5).grad_fn.name())
    told["defaults"] = [aj.nn.functional.leaky_relu(aj.tensor(-1.0)).item(), aj.nn.functional.elu(aj.tensor(-1.0)).item(),
                        aj.nn.functional.layer_norm(aj.tensor([1.0, 2.0]), (2,)).tolist()]
    told["einsum"] = aj.einsum("iI,Ij->ij", aj.ones(2, 3), aj.ones(3, 2)).tolist()
    told["parsed"] = [float(aj.tensor([1.25]).item()), aj.tensor(["1.5" == "1.5"]).tolist()]
    try:
        aj.ones(2).clamp_(0.5).view(1.5)
    except Exception as wrong:
        told["error"] = str(wrong)
    try:
        aj.nn.functional.dropout(aj.ones(2), 1.5)
    except Exception as wrong:
        told["error of a number"] = str(wrong)
    file = io.BytesIO()
    aj.save({"x": x.detach(), "rate": 0.125}, file)
    file.seek(0)
    told["file"] = repr(aj.load(file))
    (aj.ones(64, 64) @ aj.ones(64, 64)).sum().item()
    print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def locales(tmp_path_factory):
    """A folder for LOCPATH that has both."""
    folder = tmp_path_factory.mktemp("locales")
    for name, source in LOCALES.items():
        done = subprocess.run(["localedef", "-i", source, "-f", "UTF-8", folder / name], capture_output=True, text=True)
        if not (folder / name).exists():
            pytest.skip(f"NOT TESTED: localedef cannot make {name}: {done.stderr}")
    return folder


@pytest.fixture(scope="module")
def global_locale(tmp_path_factory):
    """A library that sets C++'s own locale too."""
    folder = tmp_path_factory.mktemp("global")
    text = '#include <locale>\nextern "C" void set_global() { std::locale::global(std::locale("")); }\n'
    (folder / "set.cpp").write_text(text)
    subprocess.run(["g++", "-shared", "-fPIC", "set.cpp", "-o", "libset.so"], cwd=folder, check=True)
    return folder / "libset.so"


def environment(**more):
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG"))}
    return {**plain, "ADJOIN_MEMORY_LIMIT": "1.5GB", **more}


def run(program, library, **more):
    program = textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", program, library], capture_output=True, text=True, env=environment(**more)
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", LOCALES)
def test_a_program_is_the_same_under_every_locale(name, locales, global_locale):
    wanted = json.loads(run(PROGRAM, global_locale))
    got = json.loads(run(PROGRAM, global_locale, LC_ALL=name, LOCPATH=str(locales)))
    assert len(wanted["ops"]) > 500 and wanted.keys() == got.keys()
    for what in wanted:
        assert got[what] == wanted[what], what


@pytest.mark.parametrize("name", LOCALES)
def test_what_was_measured_is_read_again(name, locales, global_locale, tmp_path):
    measured = tmp_path / "products"
    words = [
        "adjoin",
        "tune",
        "--quiet",
        "--dtypes",
        "float32",
        "--sizes",
        "8,16",
        "--seconds",
        "0.0005",
        "--output",
        measured,
    ]
    under = environment(LC_ALL=name, LOCPATH=str(locales))
    subprocess.run(words, check=True, capture_output=True, env=under)
    show = ["adjoin", "tune", "--show", "--all", "--output", measured]
    wanted, got = (
        subprocess.run(show, check=True, capture_output=True, env=env).stdout for env in (environment(), under)
    )
    assert wanted == got and b"8" in wanted
    program = "import locale; locale.setlocale(locale.LC_ALL, ''); import adjoin as aj; print((aj.ones(8, 8) @ aj.ones(8, 8)).sum().item())"
    assert run(program, global_locale, ADJOIN_TUNING=str(measured), LC_ALL=name, LOCPATH=str(locales)) == "512.0\n"


@pytest.mark.parametrize("name", LOCALES)
def test_the_command_says_the_same(name, locales):
    def told(*words, **more):
        done = subprocess.run(["adjoin", *words], capture_output=True, text=True, env=environment(**more))
        assert done.returncode == 0, done.stderr
        return done.stdout

    for words in (["ops", "add"], ["ops"], ["plugins", "list"]):
        assert told(*words) == told(*words, LC_ALL=name, LOCPATH=str(locales))
