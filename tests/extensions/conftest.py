"""tests/extensions/conftest.py: the examples, each built by its one line against the installed headers."""

import subprocess

import pytest
from installed import SOURCES, flags


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("examples")
    for source in [*SOURCES.glob("*.cpp"), *SOURCES.glob("*.c")]:
        start = ["c++", "-std=c++20"] if source.suffix == ".cpp" else ["cc", "-std=c11", "-Wextra"]
        words = ["-O2", "-shared", "-fPIC", "-Wall", "-Werror", *flags("--cflags", "--ldflags")]
        line = [*start, *words, source, "-o", out / f"libaj_{source.stem}.so"]
        done = subprocess.run(line, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def extensions(cache, monkeypatch):
    """Where load() builds: a folder of the tests' own."""
    monkeypatch.setenv("ADJOIN_EXTENSIONS_DIR", str(cache))
    return cache
