"""tests/abi/conftest.py: the program that plugins are tried in, and the contract as it was and as it could be."""

import pytest

from abi_tools import HERE, INCLUDE, build_host, run
from freeze import CANDIDATE
from grow import grown_include


@pytest.fixture(scope="session")
def host(tmp_path_factory):
    """A C program that loads plugins and calls ops: host(words..., **environment) runs it."""
    out = build_host(tmp_path_factory.mktemp("host") / "host")
    return lambda *words, **extra: run(out, *words, **extra)


@pytest.fixture(scope="session")
def headers(tmp_path_factory):
    """Include folders: the candidate's contract, the installed one, and the next minor version as it could be."""
    folder = tmp_path_factory.mktemp("headers")
    (folder / "candidate/adjoin").mkdir(parents=True)
    (folder / "candidate/adjoin/abi").symlink_to(HERE / CANDIDATE)
    grown_include(folder / "next")
    return {"candidate": folder / "candidate", "today": INCLUDE, "next": folder / "next"}
