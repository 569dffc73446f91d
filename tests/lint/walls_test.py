"""tests/lint/walls_test.py: lint says no to what it is there to keep out, each fault in a copy of the house."""

import pathlib
import shutil
import subprocess
import sys

import pytest

import measure

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = '["softmax", "log_softmax", "relu", "gelu", "silu", "mish", "selu", "celu"]'
FAULTS = {  # file, what is put at its end; the script; what it says
    "an arrow up": ("core/base/status.cpp", '#include "core/call/frame.hpp"\n', "house.py", "core/call/frame.hpp"),
    "a folder without a floor": (
        "core/cellar/one.cpp",
        "// core/cellar/one.cpp: a room.\n",
        "house.py",
        "has no place",
    ),
    "a core that includes a plugin": (
        "core/op/kinds.cpp",
        '#include "plugins/cpu/device.hpp"\n',
        "house.py",
        "core includes",
    ),
    "a backend's name in the core": (
        "core/op/kinds.cpp",
        'const char* best = "cuda";\n',
        "house.py",
        "names a backend",
    ),
    "a number read by the locale": (
        "core/op/kinds.cpp",
        "double n = strtod(text, nullptr);\n",
        "house.py",
        "the locale",
    ),
    "a file too long": ("core/op/kinds.cpp", "//\n" * 800, "house.py", "make two rooms"),
    "an op's name in the core": ("core/op/kinds.cpp", 'const char* one = "softmax";\n', "names.py", "the op softmax"),
    "a second list of ops": ("frontends/python/adjoin/hub.py", f"_KNOWN = {NAMES}\n", "names.py", "a list of 8 names"),
    "one in a string": (
        "frontends/python/adjoin/hub.py",
        f"_KNOWN = '{' '.join(eval(NAMES))}'.split()\n",
        "names.py",
        "a list of 8 names",
    ),
    "one in bench": ("bench/memory.py", f"_KNOWN = {NAMES}\n", "names.py", "bench/memory.py"),
    "a type twice in a program": (
        "core/op/kinds.cpp",
        "namespace adjoin {\nstruct Frame {\n  int a;\n};\n}  // namespace adjoin\n",
        "twins.py",
        "Frame",
    ),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """What git knows of this checkout, in a folder of its own."""
    copy = tmp_path_factory.mktemp("house")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    subprocess.run(["git", "init", "-q", "."], cwd=copy, check=True)
    return copy


def look(house, script):
    done = subprocess.run([sys.executable, f"tests/lint/{script}"], cwd=house, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("script", ["house.py", "names.py", "twins.py"])
def test_the_house_passes(house, script):
    code, said = look(house, script)
    assert code == 0, said


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told(house, fault):
    name, more, script, told = FAULTS[fault]
    path = house / name
    before = path.read_text() if path.exists() else None
    path.parent.mkdir(exist_ok=True)
    path.write_text((before or "") + more)
    try:
        code, said = look(house, script)
    finally:
        path.unlink() if before is None else path.write_text(before)
    assert code == 1 and told in said, said
    assert pathlib.Path(name).name in said


@pytest.mark.parametrize(
    "name, text", [("core/op/more.cpp", "int   a ;\n"), ("bench/more.py", "a   = 1\n"), ("run.sh", "cd $1\n")]
)
def test_what_is_not_in_form_is_told(house, name, text):
    tools = ("clang-format", "shellcheck")
    if not all(map(shutil.which, tools)) or not (ROOT / ".venv/bin/ruff").exists():
        pytest.skip(f"NOT TESTED: {', '.join(tools)} or ruff is missing; ./run setup installs them")
    few = house.parent / f"form{name.replace('/', '_')}"
    (few / name).parent.mkdir(parents=True)
    (few / name).write_text(text)
    (few / "run").write_text("#!/bin/sh\n")
    for kept in (".clang-format", "pyproject.toml", "tests/lint/format.sh"):
        (few / kept).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / kept, few / kept)
    (few / ".venv").symlink_to(ROOT / ".venv")
    subprocess.run(["git", "init", "-q", "."], cwd=few, check=True)
    subprocess.run(["git", "add", "-A"], cwd=few, check=True)
    done = subprocess.run(["bash", "tests/lint/format.sh"], cwd=few, capture_output=True, text=True)
    assert done.returncode != 0 and pathlib.Path(name).name in done.stdout + done.stderr, done.stdout + done.stderr


def test_the_path_of_a_call_is_as_measure_lists_it():
    """Each function that measure.py counts is where it says."""
    for listed in (measure.CALL, measure.GENERAL):
        lines, functions, files = measure.path_of_call(listed)
        assert lines > functions >= files > 0
