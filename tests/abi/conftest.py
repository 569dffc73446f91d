"""tests/abi/conftest.py: the program that plugins are tried in."""

import subprocess

import pytest

from abi_tools import HERE, INCLUDE, LIBDIR, run


@pytest.fixture(scope="session")
def host(tmp_path_factory):
    """A C program that loads plugins and calls ops: host(words..., **environment) runs it."""
    out = tmp_path_factory.mktemp("host") / "host"
    subprocess.run(
        [
            "gcc",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-O1",
            f"-I{INCLUDE}",
            str(HERE / "host.c"),
            "-o",
            str(out),
            f"-L{LIBDIR}",
            "-ladjoin",
            f"-Wl,-rpath,{LIBDIR}",
            "-lpthread",
        ],
        check=True,
    )
    return lambda *words, **extra: run(out, *words, **extra)
