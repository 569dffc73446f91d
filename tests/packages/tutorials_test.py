"""tests/packages/tutorials_test.py: every code block of the tutorials is run, page by page, in an empty folder."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from abi_tools import LIBDIR, PREFIX, clean_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted(p for p in (ROOT / "frontends/docs").glob("*.md") if p.name != "index.md")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
NAMED = re.compile(r"\A(?://|/\*|#) ([\w.-]+\.(?:c|cpp|py|toml|lua|rs))\b")


def program(page):
    """One Python program that does what the blocks of a page do, one after the other."""
    lines = ["import subprocess as _subprocess, pathlib as _pathlib"]
    for language, code in BLOCK.findall(page.read_text()):
        name = NAMED.match(code)
        if name:
            lines.append(f"_pathlib.Path({name[1]!r}).write_text({code!r})")
        elif language == "python":
            lines.append(code)
        elif language == "bash":
            lines.append(f"_subprocess.run(['bash', '-euo', 'pipefail', '-c', {code!r}], check=True)")
        else:
            raise AssertionError(
                f"{page.name}: a block of {language} without a name in its first line is run by nobody"
            )
    return "\n".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_page(page, tmp_path):
    env = clean_environment(
        PATH=os.pathsep.join([str(PREFIX / "bin"), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]),
        PYTHONPATH=LIBDIR / "adjoin/python",
        PKG_CONFIG_PATH=LIBDIR / "pkgconfig",
        CPATH=PREFIX / "include",
    )
    got = subprocess.run([sys.executable, "-c", program(page)], capture_output=True, text=True, cwd=tmp_path, env=env)
    assert got.returncode == 0, got.stdout + got.stderr


def test_the_index_has_every_page():
    index = (ROOT / "frontends/docs/index.md").read_text()
    assert set(re.findall(r"^([a-z-]+)$", index, re.M)) == {p.stem for p in PAGES}
