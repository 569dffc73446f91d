"""tests/abi/symbols_test.py: libadjoin exports four symbols, a plugin at most three; and what all of it asks of a system."""

import re
import subprocess

import pytest

from abi_tools import ADJOIN, LIBADJOIN, PLUGINDIR, PREFIX, adjoin

FOUR = ["aj_abi_version", "aj_get_interface", "aj_list_plugins", "aj_load_plugin"]
THREE = {"aj_plugin_note_v1", "aj_plugin_init_v1", "aj_plugin_drain_v1"}
INSTALLED = sorted(PLUGINDIR.glob("libaj_*.so"))


def symbols(library, which):
    """(type, name) pairs of nm -D."""
    out = subprocess.run(["nm", "-D", which, str(library)], capture_output=True, text=True, check=True).stdout
    pairs = [line.split()[-2:] for line in out.splitlines()]
    return [(kind, name.split("@")[0]) for kind, name in pairs]


def test_libadjoin_exports_four_symbols():
    assert sorted(name for kind, name in symbols(LIBADJOIN, "--defined-only") if kind != "A") == FOUR


def test_the_standard_plugins_are_installed():
    assert {p.name for p in INSTALLED} >= {"libaj_cpu.so", "libaj_reference.so"}


@pytest.mark.parametrize("plugin", INSTALLED, ids=lambda p: p.name)
def test_plugins_export_three_symbols_at_most(plugin):
    names = {name for kind, name in symbols(plugin, "--defined-only") if kind != "A"}
    assert names <= THREE
    assert names >= {"aj_plugin_note_v1", "aj_plugin_init_v1"}


@pytest.mark.parametrize("plugin", INSTALLED, ids=lambda p: p.name)
def test_plugins_need_no_symbol_of_ours(plugin):
    assert [name for _, name in symbols(plugin, "--undefined-only") if name.startswith("aj_")] == []
    needed = subprocess.run(["readelf", "-d", str(plugin)], capture_output=True, text=True, check=True).stdout
    assert "libadjoin" not in needed


@pytest.mark.parametrize("library", [LIBADJOIN, *INSTALLED], ids=lambda p: p.name)
def test_nothing_pins_itself_by_unique_symbols(library):
    assert [name for kind, name in symbols(library, "--defined-only") if kind == "u"] == []


# What a binary may ask for: it runs on systems that have these or newer ones (Ubuntu 22.04, Debian 12).
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}


def versions_asked(binary):
    """{library: newest version of its symbols} of what a binary needs."""
    out = subprocess.run(["readelf", "-V", str(binary)], capture_output=True, text=True, check=True).stdout
    asked = {}
    for library, version in re.findall(r"Name: ([A-Z]+)_([\d.]+)", out):
        asked[library] = max(asked.get(library, ()), tuple(map(int, version.split("."))))
    return asked


@pytest.mark.parametrize("binary", [ADJOIN, *sorted(PREFIX.glob("**/*.so"))], ids=lambda p: p.name)
def test_no_newer_system_is_asked_for(binary):
    asked = versions_asked(binary)
    assert "GLIBC" in asked
    assert {k: v for k, v in asked.items() if v > NEWEST.get(k, v)} == {}


@pytest.mark.parametrize("plugin", INSTALLED, ids=lambda p: p.name)
def test_plugins_check_agrees(plugin):
    got = adjoin("plugins", "check", plugin)
    assert got.returncode == 0, got.stdout + got.stderr
    assert re.search(r"^verdict +ok$", got.stdout, re.M)


def test_libadjoin_is_small(tmp_path):
    """Without debug information, which a package strips."""
    stripped = tmp_path / "libadjoin.so"
    subprocess.run(["strip", "-s", str(LIBADJOIN), "-o", str(stripped)], check=True)
    size = stripped.stat().st_size
    assert size <= 3 << 20, f"libadjoin.so has {size} bytes"
