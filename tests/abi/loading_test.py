"""tests/abi/loading_test.py: what is found, in which order, and what is refused unseen."""

import hashlib
import json
import os
import shutil

import pytest

from abi_tools import PLUGINDIR, adjoin, build_plugin


def listed(**extra):
    """name -> entry of `adjoin plugins list`, or a list of them; not the installed ones."""
    got = adjoin("plugins", "list", "--json", **extra)
    assert got.returncode == 0, got.stderr
    entries = {}
    for entry in json.loads(got.stdout):
        if not entry["path"].startswith(str(PLUGINDIR)):
            entries.setdefault(entry["name"], []).append(entry)
    return {name: found[0] if len(found) == 1 else found for name, found in entries.items()}


def constructor(mark):
    """Code that leaves a file behind when it runs."""
    body = f'FILE* f = fopen("{mark}", "w"); if (f) fclose(f);'
    return f"__attribute__((constructor)) static void mark(void) {{ {body} }}"


REFUSED = {
    "newer minor": (
        {"minor_min": "7", "minor_built": "9"},
        "needs ABI 1.7, this libadjoin serves 1.0",
    ),
    "other major": ({"major": "2"}, "built for ABI 2.0, this libadjoin serves 1.0"),
    "bad magic": ({"magic": '"AJPLUGX"'}, "it does not begin with AJPLUG1"),
    "no size": ({"struct_size": "0"}, "its struct_size is 0"),
    "huge size": ({"struct_size": "0xffffffffu"}, "its struct_size is 4294967295"),
    "other machine": ({"machine": "3"}, "its note says ELF machine 3"),
    "sanitizer": ({"build_flags": "AJ_BUILD_ASAN | AJ_BUILD_TSAN"}, "sanitizer"),
    "unknown flags": ({"build_flags": "1u << 7"}, "does not know: 128"),
    "unknown interface": ({"requires": "iface:aj.teleport>=0"}, "needs interface aj.teleport"),
    "newer interface": (
        {"requires": "iface:aj.autograd>=5"},
        "needs interface aj.autograd 1.5, this libadjoin serves 1.0",
    ),
    "unknown need": ({"requires": "moon:full"}, "requires 'moon:full'"),
    "bad provides": ({"provides": "acme"}, "wanted KIND:NAME"),
    "bad name": ({"name": "Acme!"}, "its name is not a word"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_any_code_runs(case, tmp_path, host):
    note, reason = REFUSED[case]
    mark = tmp_path / "ran"
    note = dict(note)
    name = note.pop("name", "acme")
    plugin = build_plugin(tmp_path, "acme", extra=constructor(mark), **note) if name == "acme" else None
    if not plugin:
        plugin = tmp_path / "libaj_acme.so"
        build_plugin(tmp_path, "Acme!", extra=constructor(mark), **note).rename(plugin)
    entry = listed(ADJOIN_PLUGIN_PATH=tmp_path)["acme"]
    assert entry["state"] == "refused" and reason in entry["reason"]
    asked = host("load", plugin, "device", "acme", ADJOIN_PLUGIN_PATH=tmp_path)
    assert asked.returncode == 0
    for line in asked.stdout.splitlines():
        assert line.startswith("error ") and reason in line and str(plugin) in line
    assert not mark.exists(), "code of a refused plugin ran"


def test_the_mark_would_be_seen(tmp_path, host):
    mark = tmp_path / "ran"
    plugin = build_plugin(tmp_path, extra=constructor(mark))
    assert listed(ADJOIN_PLUGIN_PATH=tmp_path)["acme"]["state"] == "found"
    assert not mark.exists(), "listing runs nothing"
    assert host("load", plugin).stdout == "ok load\n"
    assert mark.exists()


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_truncated_file(part, tmp_path, host):
    plugin = build_plugin(tmp_path)
    whole = plugin.read_bytes()
    plugin.write_bytes(whole[: int(len(whole) * part)])
    entry = listed(ADJOIN_PLUGIN_PATH=tmp_path)["acme"]
    assert entry["state"] == "refused"
    assert "truncated" in entry["reason"]
    got = host("device", "acme", "call", "add", ADJOIN_PLUGIN_PATH=tmp_path)
    assert got.returncode == 0 and "truncated" in got.stdout.splitlines()[0]


@pytest.mark.parametrize("content", [b"", b"not a library", b"\x7fELF", b"\x7fELF" + b"\0" * 5000])
def test_not_a_library(content, tmp_path):
    (tmp_path / "libaj_acme.so").write_bytes(content)
    assert listed(ADJOIN_PLUGIN_PATH=tmp_path)["acme"]["state"] == "refused"


def test_things_that_are_no_files(tmp_path):
    (tmp_path / "libaj_folder.so").mkdir()
    os.mkfifo(tmp_path / "libaj_pipe.so")
    (tmp_path / "libaj_gone.so").symlink_to("/nowhere/at/all")
    (tmp_path / "libaj_self.so").symlink_to("libaj_self.so")
    found = listed(ADJOIN_PLUGIN_PATH=tmp_path)
    assert {n: found[n]["state"] for n in ("folder", "pipe", "gone", "self")} == dict.fromkeys(
        ("folder", "pipe", "gone", "self"), "refused"
    )


def test_missing_init(tmp_path):
    mark = tmp_path / "ran"
    build_plugin(tmp_path, init=None, extra=constructor(mark))
    entry = listed(ADJOIN_PLUGIN_PATH=tmp_path)["acme"]
    assert entry["state"] == "refused" and "aj_plugin_init_v1" in entry["reason"]
    assert not mark.exists()


def test_missing_library_names_it(tmp_path, host):
    plugin = build_plugin(tmp_path, extra="int nowhere_defined(void);", init="return nowhere_defined() ? 0 : 0;")
    got = host("load", plugin)
    assert got.stdout.startswith("error ") and "nowhere_defined" in got.stdout
    assert got.stdout.count("\n") == 1 and "boost" not in got.stdout and "Bad file" not in got.stdout


def test_first_in_order_wins(tmp_path, host):
    first = build_plugin(tmp_path / "a", version="1.0")
    second = build_plugin(tmp_path / "b", version="2.0")
    path = f"{tmp_path}/a:{tmp_path}/b"
    one, two = listed(ADJOIN_PLUGIN_PATH=path)["acme"]
    assert (one["path"], one["state"]) == (str(first), "found")
    assert (two["path"], two["state"]) == (str(second), "shadowed") and str(first) in two["reason"]
    got = host("load", second, "why", "acme", ADJOIN_PLUGIN_PATH=path)
    assert f"plugin acme 2.0 ({second}): loaded" in got.stdout


def test_a_refused_one_shadows_nobody(tmp_path):
    build_plugin(tmp_path / "a", major="9")
    build_plugin(tmp_path / "b")
    one, two = listed(ADJOIN_PLUGIN_PATH=f"{tmp_path}/a:{tmp_path}/b")["acme"]
    assert (one["state"], two["state"]) == ("refused", "found")


def test_a_failed_one_makes_room_for_the_next(tmp_path, host):
    build_plugin(
        tmp_path / "a",
        version="1.0",
        provides="ops:acme",
        init='return complain(env->core, AJ_UNAVAILABLE, "no driver");',
    )
    build_plugin(tmp_path / "b", version="2.0", provides="ops:acme")
    got = host("find", "acme::x", "why", "acme", ADJOIN_PLUGIN_PATH=f"{tmp_path}/a:{tmp_path}/b")
    assert "failed: no driver" in got.stdout
    assert "2.0" in got.stdout and "): loaded" in got.stdout


def test_same_file_once(tmp_path):
    plugin = build_plugin(tmp_path / "a")
    (tmp_path / "a/libaj_link.so").symlink_to(plugin)
    os.link(plugin, tmp_path / "a/libaj_hard.so")
    found = listed(ADJOIN_PLUGIN_PATH=f"{tmp_path}/a:{tmp_path}/a")
    assert list(found) == ["acme"] and isinstance(found["acme"], dict)


def test_two_of_one_name_are_not_both_loaded(tmp_path, host):
    first, second = build_plugin(tmp_path / "a"), build_plugin(tmp_path / "b")
    got = host("load", first, "load", first, "load", second).stdout.splitlines()
    assert got[:2] == ["ok load", "ok load"]
    assert got[2].startswith("error 6: ") and str(first) in got[2] and "is loaded already" in got[2]


def test_the_current_folder_is_never_searched(tmp_path, monkeypatch):
    build_plugin(tmp_path)
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", ":", "./:"):
        assert listed(ADJOIN_PLUGIN_PATH=path) == {}


def test_frontends_add_folders(tmp_path, host):
    build_plugin(tmp_path)
    got = host("folder", tmp_path, "why", "acme", "folder", "relative/one")
    assert "ok folder" in got.stdout and f"{tmp_path}/libaj_acme.so): found" in got.stdout
    assert "is not an absolute path" in got.stdout


def test_user_data_folder(tmp_path):
    build_plugin(tmp_path / "adjoin/plugins-1")
    assert listed(XDG_DATA_HOME=tmp_path)["acme"]["state"] == "found"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(
    "spoil,reason",
    [
        (lambda folder, file: folder.chmod(0o777), "may be written by everybody"),
        (lambda folder, file: file.chmod(0o666), "may be written by everybody"),
        (lambda folder, file: os.chown(file, 12345, 0), "belongs to user 12345"),
        (lambda folder, file: os.chown(folder, 12345, 0), "belongs to user 12345"),
        (
            lambda folder, file: (os.chown(folder, 0, 12345), folder.chmod(0o775)),
            "may be written by group 12345",
        ),
    ],
)
def test_places_that_others_may_write(spoil, reason, tmp_path, host):
    mark = tmp_path / "ran"
    plugin = build_plugin(tmp_path / "here", extra=constructor(mark))
    spoil(tmp_path / "here", plugin)
    entry = listed(ADJOIN_PLUGIN_PATH=tmp_path / "here")["acme"]
    assert entry["state"] == "refused" and reason in entry["reason"]
    assert reason in host("device", "acme", ADJOIN_PLUGIN_PATH=tmp_path / "here").stdout
    assert not mark.exists()
    asked = host("load", plugin)  # by its path: the user knows
    assert asked.stdout == "ok load\n" and reason in asked.stderr


def test_a_link_is_as_good_as_where_it_points(tmp_path):
    plugin = build_plugin(tmp_path / "open")
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "safe").mkdir(mode=0o755)
    (tmp_path / "safe/libaj_acme.so").symlink_to(plugin)
    entry = listed(ADJOIN_PLUGIN_PATH=tmp_path / "safe")["acme"]
    assert entry["state"] == "refused" and "may be written by everybody" in entry["reason"]


def test_policy(tmp_path, host):
    plugin = build_plugin(tmp_path)

    def state(policy):
        entry = listed(ADJOIN_PLUGIN_PATH=tmp_path, ADJOIN_PLUGINS=policy)["acme"]
        return entry["state"], entry["reason"]

    assert state("") == ("found", "")
    assert state("none") == ("disabled", "ADJOIN_PLUGINS is none")
    assert state("only:cpu,acme")[0] == "found"
    assert state("only:cpu") == ("disabled", "ADJOIN_PLUGINS is 'only:cpu'")
    assert state("cpu")[0] == "disabled" and "wanted all, none, only:" in state("cpu")[1]
    lock = tmp_path / "lock"
    lock.write_text(f"# pinned\nplugin acme {hashlib.sha256(plugin.read_bytes()).hexdigest()}\n")
    assert state(f"lock:{lock}")[0] == "found"
    lock.write_text(f"plugin acme {'0' * 64}\n")
    assert state(f"lock:{lock}")[0] == "disabled" and "the lock file says 0000" in state(f"lock:{lock}")[1]
    assert "ADJOIN_PLUGINS is none" in host("device", "acme", ADJOIN_PLUGIN_PATH=tmp_path, ADJOIN_PLUGINS="none").stdout
    assert host("load", plugin, ADJOIN_PLUGINS="only:cpu").stdout == "ok load\n"
    assert host("load", plugin, ADJOIN_PLUGINS="none").stdout.startswith("error ")
    assert host("load", plugin, ADJOIN_PLUGINS=f"lock:{lock}").stdout.startswith("error ")


def test_options_and_path_reach_init(tmp_path, host):
    plugin = build_plugin(
        tmp_path,
        "ac-me",
        init="""
      printf("path %.*s\\noptions %.*s\\nminor %u %d\\n",
             (int)env->path.len, env->path.data, (int)env->options.len,
             env->options.data, (unsigned)env->minor, (int)(env->struct_size >= sizeof *env));
      fflush(stdout);
      return 0;""",
    )
    got = host("load", plugin, ADJOIN_OPTIONS_AC_ME="a=1;b=2")
    assert got.stdout == f"path {plugin}\noptions a=1\nb=2\nminor 0 1\nok load\n"


def test_a_plugin_that_needs_another(tmp_path, host):
    build_plugin(tmp_path, "base", init='printf("base\\n"); fflush(stdout); return 0;')
    build_plugin(
        tmp_path,
        "more",
        requires="plugin:base",
        init='printf("more\\n"); fflush(stdout); return 0;',
    )
    lonely = build_plugin(tmp_path, "lonely", requires="plugin:nobody")
    one = build_plugin(tmp_path, "one", requires="plugin:two")
    build_plugin(tmp_path, "two", requires="plugin:one")
    got = host("load", tmp_path / "libaj_more.so", ADJOIN_PLUGIN_PATH=tmp_path)
    assert got.stdout == "base\nmore\nok load\n"
    assert "needs plugin 'nobody', which is not installed" in host("load", lonely, ADJOIN_PLUGIN_PATH=tmp_path).stdout
    assert "needs itself" in host("load", one, ADJOIN_PLUGIN_PATH=tmp_path).stdout


def test_nobody_provides(tmp_path, host):
    got = host("device", "warp", ADJOIN_PLUGIN_PATH=tmp_path).stdout
    said = "error 5: device 'warp': no plugin provides 'warp'; loaded: nothing; searched: "
    assert got.startswith(f"{said}$ADJOIN_PLUGIN_PATH {tmp_path}, ") and str(PLUGINDIR) in got


def test_a_broken_plugin_changes_nothing_else(tmp_path, host):
    build_plugin(tmp_path, "broken", init="abort();")
    shutil.copy(build_plugin(tmp_path / "x", "half"), tmp_path / "libaj_half.so")
    (tmp_path / "libaj_half.so").write_bytes((tmp_path / "libaj_half.so").read_bytes()[:5000])
    without = host("call", "neg")
    with_it = host("call", "neg", ADJOIN_PLUGIN_PATH=tmp_path)
    assert without.stdout == with_it.stdout == "ok neg -1 -2 -3 -4 -5 -6 -7 -8\n"
    assert with_it.stderr == ""


def test_why_tells_every_candidate(tmp_path):
    build_plugin(tmp_path / "a", minor_min="3")
    build_plugin(tmp_path / "b")
    got = adjoin("plugins", "why", "acme", ADJOIN_PLUGIN_PATH=f"{tmp_path}/a:{tmp_path}/b")
    assert "): refused: needs ABI 1.3" in got.stdout and "libaj_acme.so): loaded" in got.stdout
    assert f"searched $ADJOIN_PLUGIN_PATH {tmp_path}/a: 1 plugin" in got.stdout
    lines = json.loads(adjoin("plugins", "why", "nothing", "--json").stdout)["lines"]
    assert lines[0] == "no plugin is called 'nothing' or provides it"
