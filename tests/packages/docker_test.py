"""tests/packages/docker_test.py: the package lists of the Dockerfiles are those of `run`, and Debian has them."""

import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / ".ci").glob("*.Dockerfile"))
EXTRA = {"ca-certificates", "git"}  # a bare image has neither


def of_run():
    sets = re.findall(r"^(?:demo|test)_packages=\((.*?)\)", (ROOT / "run").read_text(), re.S | re.M)
    assert len(sets) == 2
    return set(" ".join(sets).split())


def instructions(path):
    """(word, text) of each, continued lines joined, comments left out."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def installed(path):
    """The packages of each apt-get install of a file."""
    found = []
    for word, text in instructions(path):
        if word == "RUN" and "apt-get install" in text:
            words = text.split("apt-get install", 1)[1].split("&&")[0].split()
            found.append({w for w in words if not w.startswith("-")})
    return found


def test_both_are_there():
    assert [f.name for f in FILES] == ["develop.Dockerfile", "runtime.Dockerfile"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_what_is_needed_to_build_is_what_run_says(path):
    assert installed(path)[0] - EXTRA == of_run()


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_form(path):
    words = [word for word, _ in instructions(path)]
    assert words[0] == "FROM" and set(words) <= {"FROM", "RUN", "COPY", "ENV", "WORKDIR", "CMD"}
    stages = {text.split(" AS ")[1] for word, text in instructions(path) if word == "FROM" and " AS " in text}
    for word, text in instructions(path):
        for stage in re.findall(r"--from=(\w+)", text) if word == "COPY" else []:
            assert stage in stages
        if word == "RUN" and "apt-get" in text:
            assert "--no-install-recommends" in text and "rm -rf /var/lib/apt/lists" in text


def test_debian_has_them():
    if not shutil.which("apt-cache"):
        pytest.skip("NOT TESTED: apt-cache is missing")
    wanted = sorted(set().union(*[p for f in FILES for p in installed(f)]))
    known = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True).stdout.split()
    if not {"g++", "libdnnl-dev"} <= set(known):
        pytest.skip("NOT TESTED: apt-cache has no lists")
    missing = [p for p in wanted if p not in known]
    assert not missing
