"""tests/abi/conftest.py: the program that plugins are tried in."""

import os
import subprocess

import pytest

from abi_tools import HERE, INCLUDE, LIBDIR, run

# For a sanitizer build of libadjoin: ADJOIN_HOST_FLAGS="-fsanitize=address,undefined".
FLAGS = os.environ.get("ADJOIN_HOST_FLAGS", "").split()


@pytest.fixture(scope="session")
def host(tmp_path_factory):
    """A C program that loads plugins and calls ops: host(words..., **environment) runs it."""
    out = tmp_path_factory.mktemp("host") / "host"
    options = ["-std=c11", "-Wall", "-Wextra", "-O1", f"-I{INCLUDE}", *FLAGS]
    linked = [f"-L{LIBDIR}", "-ladjoin", f"-Wl,-rpath,{LIBDIR}", "-lpthread"]
    subprocess.run(["gcc", *options, str(HERE / "host.c"), "-o", str(out), *linked], check=True)
    return lambda *words, **extra: run(out, *words, **extra)
