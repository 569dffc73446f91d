"""tests/abi/layout_test.py: every compiler puts the contract where the candidate's data say."""

import re
import subprocess

import pytest

from abi_tools import HERE, INCLUDE, needs_clang
from freeze import CANDIDATE


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
@pytest.mark.parametrize("language", [("c", "c11"), ("c++", "c++17")])
def test_layout_is_the_written_one(compiler, language):
    kind, standard = language
    layout = HERE / CANDIDATE / "layout.c"
    words = [compiler, "-x", kind, f"-std={standard}", "-fsyntax-only", f"-I{INCLUDE}", str(layout)]
    subprocess.run(words, check=True)


def test_extensible_structs_begin_with_their_size():
    for header in sorted((INCLUDE / "adjoin/abi").glob("*.h")):
        for name, body in re.findall(
            r"typedef struct (\w+) \{ /\* EXTENSIBLE.*?\n(.*?)\n\} \1;", header.read_text(), re.S
        ):
            if name != "aj_plugin_note":  # a reader of files wants the magic first
                assert re.match(r"\s*uint32_t struct_size[,;]", body), f"{header.name}: {name}"
