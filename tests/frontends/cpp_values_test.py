"""tests/frontends/cpp_values_test.py: numbers of C++ become tensors and come back, tensors print, and a module that cannot be taken
apart is refused in words."""

import os
import subprocess
from pathlib import Path

import pytest
from building import build, config, run

PRINTED = """\
2.5 float32[]
[1, 2, 3] int64[3]
[[1, 2],
 [3, 4]] float32[2, 2]
[[[true]],
 [[false]]] bool[2, 1, 1]
[[1]] float64[1, 1]
[1-2j, 0+1j] complex64[2]
[-1, 2] int16[2]
[0.1, 1e+20] float64[2]
[0, 1, 2, ..., 1997, 1998, 1999] int64[2000]
[[],
 []] float32[2, 0]
float32[2, 2]
undefined tensor
7 2 5 3 6 4 7
[2, 4] float32[2]
tensor: rows of different shapes: [2] and [1]
"""


def test_numbers_and_text(tmp_path):
    told = run(build(Path(__file__).with_name("values.cpp"), tmp_path))
    assert told.replace(" cpu\n", "\n").replace(" meta\n", "\n") == PRINTED
    assert told.count(" meta\n") == 1


def test_text_is_the_same_under_every_locale(tmp_path):
    """A program that writes 1.000,5: its own streams do, tensors do not."""
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"], capture_output=True)
    if not (tmp_path / "de_DE.UTF-8").exists():
        pytest.skip(f"NOT TESTED: localedef cannot make de_DE.UTF-8: {made.stderr}")
    (tmp_path / "set.hpp").write_text(
        "#include <cstdio>\n#include <iostream>\n#include <locale>\n"
        'static const bool set = (std::locale::global(std::locale("")), std::cout.imbue(std::locale()), true);\n'
        'static const bool told = std::fprintf(stderr, "%.1f", 0.5) > 0;\n'
    )
    program = build(Path(__file__).with_name("values.cpp"), tmp_path, more=f"-include '{tmp_path}/set.hpp'")
    under = {**os.environ, "LC_ALL": "de_DE.UTF-8", "LOCPATH": str(tmp_path)}
    done = subprocess.run([program], env=under, capture_output=True, text=True, check=True)
    assert done.stderr == "0,5" and done.stdout.replace(" cpu\n", "\n").replace(" meta\n", "\n") == PRINTED


def test_too_many_members_are_told(tmp_path):
    members = "\n".join(f"  nn::Linear m{i}{{1, 1}};" for i in range(25))
    program = f"#include <adjoin/nn.hpp>\nusing namespace adjoin;\nstruct Net : nn::Module<Net> {{\n{members}\n}};\n"
    (tmp_path / "many.cpp").write_text(program + "size_t count(Net& net) { return net.parameters().size(); }\n")
    line = ["g++", "-std=c++20", "-fsyntax-only", *config("--cflags").split(), str(tmp_path / "many.cpp")]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode and "a module has at most 24 members" in done.stderr
    (tmp_path / "many.cpp").write_text(
        program.replace("  nn::Linear m24{1, 1};\n", "")
        + "size_t count(Net& net) { return net.parameters().size(); }\n"
    )
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
