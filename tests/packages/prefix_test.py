"""tests/packages/prefix_test.py: what `meson install` put beneath a prefix serves a C and a C++ program by pkg-config alone."""

import os
import subprocess
import sysconfig

import pytest

from abi_tools import INCLUDE, LIBDIR, PLUGINDIR, PREFIX, run_python

C = """#include <adjoin/abi/capi.h>
#include <stdio.h>
int main(void) {
  const aj_core* core = (const aj_core*)aj_get_interface("aj.core", AJ_ABI_MAJOR);
  printf("%u %d\\n", aj_abi_version() >> 16, core && core->num_threads() > 0);
  return 0;
}
"""
CPP = """#include <adjoin/adjoin.hpp>
#include <cstdio>
int main() { std::printf("%g\\n", adjoin::sum(adjoin::ones({2, 3})).item<double>()); }
"""


def pkg_config(*words):
    env = {**os.environ, "PKG_CONFIG_PATH": str(LIBDIR / "pkgconfig")}
    got = subprocess.run(["pkg-config", *words, "adjoin"], env=env, capture_output=True, text=True)
    assert got.returncode == 0, got.stderr
    return got.stdout.split()


def same(text, path):
    return os.path.realpath(text) == os.path.realpath(path)


def test_flags_and_variables():
    (cflags,) = pkg_config("--cflags")
    assert cflags.startswith("-I") and same(cflags[2:], INCLUDE)
    where, what, path = pkg_config("--libs")
    assert (
        same(where.removeprefix("-L"), LIBDIR) and what == "-ladjoin" and same(path.removeprefix("-Wl,-rpath,"), LIBDIR)
    )
    assert same(*pkg_config("--variable=plugindir"), PLUGINDIR) and same(*pkg_config("--variable=prefix"), PREFIX)
    version = subprocess.run([PREFIX / "bin/adjoin", "--version"], capture_output=True, text=True).stdout.strip()
    assert pkg_config("--modversion") == [version]


@pytest.mark.parametrize("compiler, name, text, printed", [
    (["gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"], "one.c", C, "1 1\n"),
    (["g++", "-std=c++20"], "one.cpp", CPP, "6\n"),
], ids=["C", "C++"])  # fmt: skip
def test_a_program(tmp_path, compiler, name, text, printed):
    (tmp_path / name).write_text(text)
    subprocess.run([*compiler, name, "-o", "one", *pkg_config("--cflags", "--libs")], cwd=tmp_path, check=True)
    env = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "ADJOIN_PREFIX")}
    got = subprocess.run([tmp_path / "one"], env=env, capture_output=True, text=True)
    assert got.stdout == printed, got.stderr


def test_the_native_module_says_which_python_it_is_for():
    """It calls private functions of CPython: that of another version loaded it without a word."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    got = run_python("import adjoin; print(adjoin._C.__file__)")
    assert "cpython" in suffix and got.stdout.strip().endswith(f"/_C{suffix}"), got.stdout + got.stderr


def test_the_prefix_may_be_moved(tmp_path):
    moved = tmp_path / "elsewhere"
    subprocess.run(["cp", "-a", PREFIX, moved], check=True)
    got = subprocess.run([moved / "bin/adjoin", "config", "--includedir"], capture_output=True, text=True)
    assert same(got.stdout.strip(), moved / "include")
    env = {**os.environ, "PKG_CONFIG_PATH": str(moved / "lib/pkgconfig")}
    flags = subprocess.run(["pkg-config", "--cflags", "adjoin"], env=env, capture_output=True, text=True).stdout.strip()
    assert same(flags[2:], moved / "include")
