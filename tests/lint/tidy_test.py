"""tests/lint/tidy.py says no to faults that compile, and nothing to a file without them."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

TIDY = pathlib.Path(__file__).with_name("tidy.py")
GOOD = """
#include <string>
#include <vector>
int total(const std::vector<std::string>& names) {
  int n = 0;
  for (const std::string& name : names) n += int(name.size());
  return n;
}
"""
FAULTS = {
    "performance-for-range-copy": GOOD.replace("const std::string& name", "const std::string name"),
    "bugprone-use-after-move": GOOD
    + """
#include <utility>
std::size_t kept(std::string s) {
  std::string t = std::move(s);
  return s.size() + t.size();
}
""",
}


def look(folder, text):
    (folder / "core").mkdir()
    (folder / "core" / "one.cpp").write_text(text)
    command = "g++ -std=c++20 -fno-tree-loop-distribute-patterns -c core/one.cpp"
    database = [{"directory": str(folder), "file": "core/one.cpp", "command": command}]
    (folder / "compile_commands.json").write_text(json.dumps(database))
    done = subprocess.run(
        [sys.executable, str(TIDY), "core/one.cpp"],
        cwd=folder,
        env=os.environ | {"ADJOIN_TREE": str(folder)},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.fixture(autouse=True)
def tool():
    if not shutil.which("clang-tidy"):
        pytest.skip("clang-tidy is not installed")


def test_a_file_without_faults_passes(tmp_path):
    assert look(tmp_path, GOOD) == (0, "")


@pytest.mark.parametrize("check", FAULTS)
def test_a_fault_is_named(tmp_path, check):
    code, said = look(tmp_path, FAULTS[check])
    assert code == 1
    assert check in said
