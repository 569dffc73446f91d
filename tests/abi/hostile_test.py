"""tests/abi/hostile_test.py: plugins that do their worst, each in a process of its own."""

import json
import random
import re
import signal

import pytest

from abi_tools import (
    DEFINE_TWICE,
    LIBDIR,
    TWICE,
    adjoin,
    build_plugin,
    compile_plugin,
    source,
)


def check(plugin, *words, **extra):
    got = adjoin("plugins", "check", plugin, "--json", *words, **extra)
    return got.returncode, json.loads(got.stdout)["verdict"], got.stderr


WORST = {
    "exit": (
        "exit(3);",
        "ends the process while it is loaded: exit code 3",
        "called exit() while it was being loaded",
    ),
    "exit 0": (
        "exit(0);",
        "ends the process while it is loaded: exit code 0",
        "called exit() while it was being loaded",
    ),
    "_exit": ("_exit(4);", "ends the process while it is loaded: exit code 4", ""),
    "abort": (
        "abort();",
        "crashes while it is loaded: Aborted",
        "aborted while it was being loaded",
    ),
    "crash": (
        "*(volatile int*)8 = 1; return 0;",
        "crashes while it is loaded: Segmentation fault",
        "crashed while it was being loaded",
    ),
    "crash at exit": (
        "extern int atexit(void (*)(void)); atexit(abort); return 0;",
        "crashes when the process ends: Aborted",
        "",
    ),
}


@pytest.mark.parametrize("case", WORST)
def test_check_survives_and_names(case, tmp_path):
    init, verdict, said = WORST[case]
    plugin = build_plugin(tmp_path, init=init, provides="ops:acme")
    code, got, stderr = check(plugin)
    assert (code, got) == (1, verdict)
    assert said in stderr
    if said:
        assert f"plugin acme 0.1 ({plugin})" in stderr


def test_in_process_the_culprit_is_named(tmp_path, host):
    got = host("load", build_plugin(tmp_path, init="abort();"))
    assert got.returncode == -signal.SIGABRT
    assert re.search(
        r"adjoin: plugin acme 0\.1 \(.*\): the process aborted while it was being loaded",
        got.stderr,
    )


def test_endless_init(tmp_path):
    plugin = build_plugin(tmp_path, init="for (;;) usleep(1000);")
    code, verdict, stderr = check(plugin, "--timeout", "6")
    assert (code, verdict) == (1, "does not come back from loading within 6 s")
    assert "has been initialising for 5 s" in stderr and "acme 0.1" in stderr


def test_endless_constructor(tmp_path):
    plugin = build_plugin(
        tmp_path,
        extra="__attribute__((constructor)) static void spin(void) { for (;;) usleep(1000); }",
    )
    assert check(plugin, "--timeout", "1")[:2] == (1, "does not come back from loading within 1 s")


FAIL = 'return complain(env->core, AJ_UNAVAILABLE, "out of fuel");'


def test_init_that_fails_half_way_leaves_nothing(tmp_path, host):
    half = build_plugin(
        tmp_path / "half", "half", extra=TWICE, init=DEFINE_TWICE + "if (bad) return bad;" + FAIL, provides="ops:acme"
    )
    good = build_plugin(tmp_path / "good", "good", extra=TWICE, init=DEFINE_TWICE + "return bad;", provides="ops:acme")
    got = host("load", half, "find", "acme::twice", "load", good, "call", "acme::twice").stdout.splitlines()
    assert got[0].startswith("error 14: ") and got[0].endswith(": out of fuel") and str(half) in got[0]
    assert got[1:] == ["error 5: no such op", "ok load", "ok acme::twice 2 4 6 8 10 12 14 16"]


def test_the_other_way_round_the_second_is_refused(tmp_path, host):
    one = build_plugin(tmp_path / "one", "one", extra=TWICE, init=DEFINE_TWICE + "return bad;", provides="ops:acme")
    two = build_plugin(tmp_path / "two", "two", extra=TWICE, init=DEFINE_TWICE + "return bad;", provides="ops:acme")
    got = host("load", one, "load", two, "call", "acme::twice").stdout.splitlines()
    assert got[0] == "ok load"
    assert got[1].startswith("error 6: ") and "acme::twice" in got[1] and "'one'" in got[1]
    assert got[2] == "ok acme::twice 2 4 6 8 10 12 14 16"


def test_duplicate_op_in_one_plugin(tmp_path, host):
    plugin = build_plugin(
        tmp_path,
        extra=TWICE,
        init=DEFINE_TWICE
        + """
      if (!bad) bad = define_op(env, "acme::twice(Tensor x) -> Tensor");
      return bad;""",
    )
    got = host("load", plugin, "find", "acme::twice").stdout.splitlines()
    assert got[0].startswith("error 6: ") and "acme::twice" in got[0] and got[1] == "error 5: no such op"


def test_duplicate_of_a_core_op(tmp_path, host):
    plugin = build_plugin(
        tmp_path,
        extra=TWICE,
        init='return define_op(env, "add(Tensor x) -> Tensor");'.replace("return", "(void)define_kernel; return"),
    )
    got = host("load", plugin, "call", "neg").stdout.splitlines()
    assert got[0].startswith("error 6: ") and got[1] == "ok neg -1 -2 -3 -4 -5 -6 -7 -8"


BAD_DEFINITIONS = {
    "unreadable schema": 'define_op(env, "acme::x(Tensor -> ")',
    "empty schema": 'define_op(env, "")',
    "schema without end": 'define_op(env, "acme::x(Tensor a, Tensor a) -> Tensor")',
    "unknown type": 'define_op(env, "acme::x(Teapot a) -> Tensor")',
    "no kernel function": "bad_kernel(env, sizeof(aj_kernel_def), 0)",
    "kernel of size zero": "bad_kernel(env, 0, twice)",
    "kernel of a tiny size": "bad_kernel(env, 8, twice)",
    "unknown must-understand flag": "flagged_kernel(env, 1u << 15)",
    "null device": "env->def_device(env->registrar, 0)",
    "empty device": "empty_device(env)",
    "null service": "env->def_service(env->registrar, 0)",
    "null op": '((const aj_dispatch*)env->query("aj.op", 1))->def_op(env->registrar, 0)',
    "null kernel": '((const aj_dispatch*)env->query("aj.op", 1))->def_kernel(env->registrar, 0)',
    "null derivative": '((const aj_autograd*)env->query("aj.autograd", 1))->def_vjp(env->registrar, 0)',
}
BAD = (
    TWICE
    + """
__attribute__((unused)) static aj_status* bad_kernel(
    const aj_plugin_env* env, uint32_t size, aj_kernel_fn fn) {
  const aj_dispatch* d = (const aj_dispatch*)env->query("aj.op", 1);
  aj_kernel_def k;
  memset(&k, 0, sizeof k);
  k.struct_size = size;
  k.op = AJ_STR_LIT("neg");
  k.key = AJ_STR_LIT("cpu");
  k.fn = fn;
  return d->def_kernel(env->registrar, &k);
}
__attribute__((unused)) static aj_status* flagged_kernel(const aj_plugin_env* env, uint32_t flags) {
  const aj_dispatch* d = (const aj_dispatch*)env->query("aj.op", 1);
  aj_kernel_def k;
  memset(&k, 0, sizeof k);
  k.struct_size = sizeof k;
  k.flags = flags;
  k.op = AJ_STR_LIT("neg");
  k.key = AJ_STR_LIT("cpu");
  k.fn = twice;
  return d->def_kernel(env->registrar, &k);
}
__attribute__((unused)) static aj_status* empty_device(const aj_plugin_env* env) {
  aj_device_vtbl v;
  memset(&v, 0, sizeof v);
  v.struct_size = sizeof v;
  return env->def_device(env->registrar, &v);
}
"""
)


@pytest.mark.parametrize("case", BAD_DEFINITIONS)
def test_bad_definitions_are_error_values(case, tmp_path, host):
    init = f"(void)define_kernel; (void)define_op; return {BAD_DEFINITIONS[case]};"
    plugin = build_plugin(tmp_path, extra=BAD, init=init, provides="ops:acme")
    got = host("load", plugin, "call", "neg")
    assert got.returncode == 0, got.stderr
    lines = got.stdout.splitlines()
    assert lines[0].startswith("error ") and str(plugin) in lines[0]
    assert lines[1] == "ok neg -1 -2 -3 -4 -5 -6 -7 -8"


def test_unknown_hint_flags_are_ignored(tmp_path, host):
    plugin = build_plugin(
        tmp_path,
        extra=BAD,
        init=DEFINE_TWICE + "return bad ? bad : flagged_kernel(env, 1u << 30);",
        provides="ops:acme",
    )
    assert host("load", plugin).stdout == "ok load\n"


def test_ten_thousand_kernels(tmp_path, host):
    plugin = build_plugin(
        tmp_path,
        extra=TWICE,
        init=DEFINE_TWICE
        + """
      for (int i = 1; !bad && i < 10000; ++i) bad = define_kernel(env, "acme::twice", i);
      return bad;""",
    )
    got = host("load", plugin, "call", "acme::twice")
    assert got.stdout == "ok load\nok acme::twice 2 4 6 8 10 12 14 16\n"


def test_ten_thousand_ops(tmp_path, host):
    plugin = build_plugin(
        tmp_path,
        extra=TWICE,
        init=DEFINE_TWICE
        + """
      for (int i = 0; !bad && i < 10000; ++i) {
        char schema[64];
        snprintf(schema, sizeof schema, "acme::op%d(Tensor x) -> Tensor", i);
        bad = define_op(env, schema);
      }
      return bad;""",
    )
    assert host("load", plugin, "call", "acme::twice", "find", "acme::op9999").stdout.splitlines()[1:] == [
        "ok acme::twice 2 4 6 8 10 12 14 16",
        "ok find",
    ]


def test_kernels_of_an_op_that_never_comes(tmp_path, host):
    plugin = build_plugin(tmp_path, extra=TWICE, init='(void)define_op; return define_kernel(env, "nobody::x", 0);')
    got = host("load", plugin, "call", "neg").stdout.splitlines()
    assert got[1] == "ok neg -1 -2 -3 -4 -5 -6 -7 -8"


def test_extra_exports_and_our_symbols_are_told(tmp_path):
    text = source(provides="ops:acme", init="(void)env; aj_abi_version(); return 0;")
    linked = [f"-L{LIBDIR}", "-ladjoin", f"-Wl,-rpath,{LIBDIR}"]
    code, verdict, _ = check(compile_plugin(tmp_path / "linked", text, flags=linked))
    assert code == 1 and "needs the symbol aj_abi_version" in verdict
    text = source(provides="ops:acme", extra="AJ_EXPORT int acme_more(void) { return 1; }")
    script = "{ global: aj_plugin_*; acme_more; local: *; };\n"
    code, verdict, _ = check(compile_plugin(tmp_path / "open", text, script=script))
    assert code == 1 and "exports 1 symbol of its own, acme_more" in verdict


def test_note_in_memory_must_be_the_note_in_the_file(tmp_path, host):
    text = source(provides="ops:acme")
    text = text.replace("AJ_EXPORT const aj_plugin_note aj_plugin_note_v1;", "", 1)
    text = text.replace("aj_plugin_note_v1 = {", "shown_note = {", 1)
    text = text.replace("used)) const", "used)) static const", 1)
    text += """
        AJ_EXPORT const aj_plugin_note aj_plugin_note_v1 = {
            AJ_PLUGIN_MAGIC, 0, 1, 0, 0, 0, 0, "evil", "", "", "", "", ""};"""
    got = host("load", compile_plugin(tmp_path, text))
    assert "the note that it exports is not the one in its file" in got.stdout


def test_disable(tmp_path, host):
    plugin = build_plugin(
        tmp_path,
        extra=TWICE
        + """
      AJ_EXPORT aj_status* aj_plugin_drain_v1(void);
      AJ_EXPORT aj_status* aj_plugin_drain_v1(void) {
        printf("drained\\n");
        fflush(stdout);
        return 0;
      }""",
        init=DEFINE_TWICE + "return bad;",
    )
    got = host(
        "load",
        plugin,
        "call",
        "acme::twice",
        "disable",
        "acme",
        "call",
        "acme::twice",
        "disable",
        "nobody",
        "load",
        plugin,
    ).stdout.splitlines()
    assert got[:4] == ["ok load", "ok acme::twice 2 4 6 8 10 12 14 16", "drained", "ok disable"]
    assert got[4].startswith("error ") and got[5].startswith("error 5: ")
    assert got[6] == "ok load"  # to ask for the file is to want it again


def test_damaged_bytes_never_kill_the_reader(tmp_path):
    """Bytes of the file changed at random: they are refused or accepted, nothing else."""
    plugin = build_plugin(tmp_path / "whole")
    whole = plugin.read_bytes()
    dice = random.Random(7)
    folder = tmp_path / "damaged"
    folder.mkdir(mode=0o755)
    for i in range(300):
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 40)):
            where = dice.randrange(64) if dice.random() < 0.3 else dice.randrange(len(damaged))
            damaged[where] = dice.randrange(256)
        if dice.random() < 0.3:
            del damaged[dice.randrange(len(damaged)) :]
        (folder / f"libaj_x{i}.so").write_bytes(damaged)
    got = adjoin("plugins", "list", "--json", ADJOIN_PLUGIN_PATH=folder)
    assert got.returncode == 0, got.stderr
    states = {e["state"] for e in json.loads(got.stdout) if e["path"].startswith(str(folder))}
    assert states <= {"found", "refused", "shadowed"}
