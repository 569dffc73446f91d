"""README.md: every block is run, section by section, and every claim that a file can decide is looked up."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", README, re.S | re.M))
PEOPLE = [title for title in SECTIONS if title.startswith("I ")]
LINES = 12  # of a section's blocks: a person pastes and reads them at once
NEEDS = {"I bind a language": "luajit"}


def test_who_it_is_for():
    wanted = [
        "I train networks",
        "I have programs written for PyTorch",
        "I load a vendor's backend",
        "I write an op",
        "I swap a BLAS",
        "I bind a language",
        "I deploy",
    ]
    assert PEOPLE == wanted


@pytest.mark.parametrize("title", PEOPLE)
def test_section(title, tmp_path):
    blocks = BLOCK.findall(SECTIONS[title])
    code = "".join(text for _, text in blocks)
    assert blocks and len(code.splitlines()) <= LINES
    needed = NEEDS.get(title)
    if needed and not shutil.which(needed):
        pytest.skip(f"NOT TESTED: {needed} is missing")
    env = {k: v for k, v in os.environ.items() if k not in ("ADJOIN_PLUGIN_PATH", "ADJOIN_BLAS", "ADJOIN_PLUGINS")}
    env["XDG_CACHE_HOME"] = str(tmp_path)
    for language, text in blocks:
        command = {"python": [sys.executable, "-c"], "bash": ["bash", "-euo", "pipefail", "-c"]}[language]
        got = subprocess.run([*command, text], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
        assert got.returncode == 0, got.stdout + got.stderr


def test_the_other_blocks_are_commands_of_run():
    rest = [text for title, text in SECTIONS.items() if title not in PEOPLE] + [README[: README.index("\n## ")]]
    lines = [line for text in rest for _, block in BLOCK.findall(text) for line in block.splitlines()]
    usage = subprocess.run([ROOT / "run", "help"], capture_output=True, text=True, check=True).stdout
    assert len(lines) == 4
    for line in lines:
        command = line.split("#")[0].strip().removeprefix('eval "$(').removesuffix(')"')
        assert re.search(rf"^{re.escape(command)}\b", usage, re.M), line
    for command in set(re.findall(r"`(\./run \w+)`", README)):
        assert re.search(rf"^{re.escape(command)}\b", usage, re.M), command


def test_what_it_names_is_there():
    for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)|src=\"([^\"]+)\"", README):
        assert (ROOT / "".join(target)).exists(), target
    for path in re.findall(r"`((?:abi|\.ci|frontends|bench)/[\w./-]+)`", README):
        assert (ROOT / path).exists(), path


def test_every_dockerfile_is_named_as_untested():
    for path in (ROOT / ".ci").glob("*.Dockerfile"):
        assert f"`.ci/{path.name}`" in SECTIONS["Status"]
