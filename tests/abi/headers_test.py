"""tests/abi/headers_test.py: each header of the contract stands alone, in every language."""

import re
import subprocess

import pytest

from abi_tools import INCLUDE, needs_clang

HEADERS = sorted(h.name for h in (INCLUDE / "adjoin/abi").glob("*.h"))
STANDARDS = [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++17"), ("c++", "c++20")]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wpadded", "-Werror", "-fsyntax-only"]


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
@pytest.mark.parametrize("language,standard", STANDARDS)
def test_headers_compile_alone(compiler, language, standard, tmp_path):
    for header in HEADERS:
        file = tmp_path / "one"
        file.write_text(f"#include <adjoin/abi/{header}>\n" * 2 + "typedef int not_empty;\n")
        subprocess.run(
            [compiler, "-x", language, f"-std={standard}", *STRICT, f"-I{INCLUDE}", str(file)],
            check=True,
        )


@pytest.mark.parametrize("language,standard", STANDARDS)
def test_plugin_macros_compile(language, standard, tmp_path):
    file = tmp_path / "plugin"
    file.write_text(
        "#include <adjoin/abi/plugin.h>\n"
        'AJ_PLUGIN_NOTE("acme", "0.1.0", "Acme Corp", "Apache-2.0", "ops:acme", "");\n'
        "AJ_PLUGIN_INIT { (void)env; return 0; }\n"
    )
    subprocess.run(["gcc", "-x", language, f"-std={standard}", *STRICT, f"-I{INCLUDE}", str(file)], check=True)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_kit_is_read_in_any_order(reverse, tmp_path):
    names = sorted((h.name for h in (INCLUDE / "adjoin/kit").glob("*.hpp")), reverse=reverse)
    file = tmp_path / "kit.cpp"
    file.write_text("".join(f"#include <adjoin/kit/{name}>\n" for name in names))
    subprocess.run(
        ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{INCLUDE}", file], check=True
    )


def test_headers_include_only_each_other_and_the_language():
    for header in HEADERS:
        found = re.findall(r'#include\s*[<"]([^>"]+)[>"]', (INCLUDE / "adjoin/abi" / header).read_text())
        assert set(found) <= {"stddef.h", "stdint.h", *HEADERS}, header


@pytest.mark.parametrize("define,message", [("-DADJOIN_TARGET_MINOR=99", "newer than these headers")])
def test_a_target_above_the_headers_is_refused(define, message, tmp_path):
    file = tmp_path / "one.c"
    file.write_text("#include <adjoin/abi/base.h>\n")
    got = subprocess.run(["gcc", define, "-fsyntax-only", f"-I{INCLUDE}", str(file)], capture_output=True, text=True)
    assert got.returncode != 0 and message in got.stderr
