"""tests/cli/cli_test.py: the command `adjoin`, as people and programs use it."""

import json
import re
import subprocess

import pytest

from abi_tools import INCLUDE, LIBDIR, PLUGINDIR, adjoin, build_plugin

COMMANDS = [
    [],
    ["plugins"],
    ["plugins", "list"],
    ["plugins", "check"],
    ["plugins", "why"],
    ["ops"],
    ["config"],
    ["doctor"],
    ["conform"],
    ["new-backend"],
    ["tune"],
    ["explain"],
    ["lock"],
    ["verify"],
    ["blas"],
    ["blas", "compare"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help(words):
    got = adjoin(*words, "--help")
    assert got.returncode == 0 and got.stdout.startswith("usage: adjoin") and got.stderr == ""
    assert max(map(len, got.stdout.splitlines())) <= 120


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["fly"],
        ["plugins"],
        ["plugins", "fly"],
        ["plugins", "check"],
        ["plugins", "why"],
        ["config", "--fly"],
        ["ops", "a", "b"],
        ["plugins", "check", "x", "--timeout", "soon"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_code_2(words):
    got = adjoin(*words)
    assert got.returncode == 2 and "usage: adjoin" in got.stderr and got.stdout == ""


def test_a_name_that_nobody_has_is_code_1():
    got = adjoin("plugins", "why", "nosuch")
    assert got.returncode == 1 and got.stdout == "" and "no plugin is called 'nosuch'" in got.stderr
    got = adjoin("plugins", "why", "nosuch", "--json")
    assert got.returncode == 1 and json.loads(got.stdout)["plugins"] == []
    assert adjoin("plugins", "why", "cpu").returncode == 0


def test_version():
    version = adjoin("--version").stdout
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", version)
    assert adjoin("config", "--version").stdout == version


def test_config():
    got = json.loads(adjoin("config", "--json").stdout)
    assert got["includedir"] == str(INCLUDE) and got["libdir"] == str(LIBDIR) and got["plugindir"] == str(PLUGINDIR)
    assert got["abi"] == "1.0"
    assert adjoin("config", "--cflags").stdout == f"-I{INCLUDE}\n"
    assert adjoin("config", "--plugindir", "--libdir").stdout == f"{LIBDIR}\n{PLUGINDIR}\n"
    rows = dict(line.split(maxsplit=1) for line in adjoin("config").stdout.splitlines())
    assert rows == got


def test_cflags_are_enough_to_build_a_plugin(tmp_path):
    (tmp_path / "acme.c").write_text(
        "#include <adjoin/abi/plugin.h>\n"
        'AJ_PLUGIN_NOTE("acme", "0.1", "", "", "ops:acme", "");\n'
        "AJ_PLUGIN_INIT { (void)env; return 0; }\n"
    )
    flags = adjoin("config", "--cflags").stdout.split()
    subprocess.run(
        ["gcc", "-shared", "-fPIC", *flags, "acme.c", "-o", "libaj_acme.so"],
        cwd=tmp_path,
        check=True,
    )
    got = adjoin("plugins", "check", tmp_path / "libaj_acme.so")
    assert got.returncode == 0, got.stdout


def test_list_names_what_is_installed():
    entries = {e["name"]: e for e in json.loads(adjoin("plugins", "list", "--json").stdout)}
    assert entries["cpu"]["state"] == "found" and "device:cpu" in entries["cpu"]["provides"]
    assert entries["reference"]["provides"] == ["device:reference"]
    text = adjoin("plugins", "list").stdout
    assert re.search(r"^reference +\S+ +found +device:reference +/\S+libaj_reference\.so$", text, re.M)


def test_list_shows_reasons(tmp_path):
    build_plugin(tmp_path, minor_min="4")
    text = adjoin("plugins", "list", ADJOIN_PLUGIN_PATH=tmp_path).stdout
    assert re.search(r"^acme +0\.1 +refused .*\n  needs ABI 1\.4, this libadjoin serves 1\.0$", text, re.M)


def test_list_without_any_plugin(tmp_path):
    text = adjoin("plugins", "list", ADJOIN_PLUGINS="none").stdout
    assert "disabled" in text and "ADJOIN_PLUGINS is none" in text


def test_ops():
    text = adjoin("ops").stdout
    assert re.search(r"^add +\S+ ", text, re.M) and re.search(r"^\d+ ops$", text, re.M)
    every = {o["name"]: o for o in json.loads(adjoin("ops", "--json").stdout)}
    primitives = {o["name"] for o in json.loads(adjoin("ops", "--primitives", "--json").stdout)}
    assert primitives < set(every) and "add" in primitives
    assert all("composite" not in every[name]["features"] for name in primitives)
    assert every["add"]["schema"].startswith("add(") and every["add"]["doc"]


def test_one_op():
    text = adjoin("ops", "add").stdout
    assert re.search(r"^op +add\(", text, re.M) and re.search(r"^from +libadjoin$", text, re.M)
    assert re.search(r"^cpu:\n  \S", text, re.M) and re.search(r"^reference:\n  \S", text, re.M)
    got = json.loads(adjoin("ops", "add", "--device", "cpu", "--json").stdout)
    assert list(got["devices"]) == ["cpu"]


def test_no_such_op(tmp_path):
    got = adjoin("ops", "fly")
    assert got.returncode == 1 and got.stderr == "adjoin: there is no op 'fly'\n"
    assert adjoin("ops", "addd").stderr == "adjoin: there is no op 'addd'; did you mean 'add'?\n"
    assert "there is no command 'opps'; did you mean 'ops'?" in adjoin("opps").stderr
    build_plugin(tmp_path, minor_min="4")
    got = adjoin("ops", "acme::fly", ADJOIN_PLUGIN_PATH=tmp_path)
    assert got.returncode == 1 and "needs ABI 1.4" in got.stderr


def test_check_of_the_installed_plugins():
    for plugin in PLUGINDIR.glob("libaj_*.so"):
        got = json.loads(adjoin("plugins", "check", plugin, "--json").stdout)
        assert got["ok"] and got["verdict"] == "ok" and got["symbols"] == [], got


def test_names_that_are_not_utf8(tmp_path):
    folder = tmp_path / b"caf\xe9".decode("utf-8", "surrogateescape")
    folder.mkdir(mode=0o755)
    (folder / "libaj_acme.so").write_text("nothing")
    entries = json.loads(adjoin("plugins", "list", "--json", ADJOIN_PLUGIN_PATH=folder).stdout)
    assert [e["path"] for e in entries if e["name"] == "acme"] == [str(folder / "libaj_acme.so")]
