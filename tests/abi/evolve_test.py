"""tests/abi/evolve_test.py: old and new meet on this libadjoin.

Plugins and frontends compiled against the candidate, against today's headers, and against the next
minor version as it could be (grow.py: each EXTENSIBLE struct has two more fields) run on this libadjoin,
whose tables end, with ADJOIN_ABI_TRUNCATE, where the candidate's do and right before an unreadable page.
newer_test.py has the other half: a libadjoin of the next minor version.
"""

import json
import shutil

import pytest

from abi_tools import DEFINE_TWICE, HERE, TWICE, adjoin, build_host, build_plugin, compile_plugin, run
from freeze import CANDIDATE
from grow import grow

LAYOUT = json.loads((HERE / CANDIDATE / "layout.json").read_text())


def test_every_extensible_struct_grows(headers):
    texts = [h.read_text() for h in sorted((headers["today"] / "adjoin/abi").glob("*.h"))]
    names = [name for text in texts for name in grow(text)[1]]
    assert set(names) >= {n for n, s in LAYOUT["structs"].items() if s["kind"] == "EXTENSIBLE"}
    with_size = {n for n, s in LAYOUT["structs"].items() if "struct_size" in [f[0] for f in s["fields"]]}
    assert with_size <= set(names)


# With GROWN, asks for what was appended before using it; without, it is a plugin of today.
CAREFUL = (
    TWICE.replace(
        "(void)self;\n",
        """(void)self;
#ifdef GROWN
  if (AJ_HAS_FIELD(call, aj_call, later_number) || AJ_HAS_FIELD(p, aj_plan, later_number))
    return complain(call->core, AJ_INTERNAL, "the frame claims fields that it has not");
#endif
""",
        1,
    )
    + """
static aj_status* derivative(void* self, aj_grad_call* g) {
  aj_value arg, ret;
  (void)self;
#ifdef GROWN
  if (AJ_HAS_FIELD(g, aj_grad_call, later_number))
    return complain(g->core, AJ_INTERNAL, "the frame claims fields that it has not");
#endif
  memset(&arg, 0, sizeof arg);
  memset(&ret, 0, sizeof ret);
  arg.tag = AJ_TENSOR;
  arg.v.tensor = g->grad_out[0];
  aj_status* bad = g->op->call(g->op->find_op(AJ_STR_LIT("acme::twice")), &arg, 1, &ret, 1);
  g->grad_in[0] = bad ? 0 : ret.v.tensor;
  return bad;
}
static aj_status* look_at_out_structs(const aj_core* core) {
  aj_dtype_info info;
  DLDataType f32 = {kDLFloat, 32, 1};
  memset(&info, 0xee, sizeof info);
  info.struct_size = sizeof info;
  aj_status* bad = core->dtype_info(f32, &info);
  if (!bad && info.bytes != 4) bad = complain(core, AJ_INTERNAL, "float32 has not 4 bytes");
#ifdef GROWN
  uint64_t later = info.later_number;
  if (!bad && later != 0 && later != 0xeeeeeeeeeeeeeeeeull)
    bad = complain(core, AJ_INTERNAL, "dtype_info wrote what it does not know");
#endif
  return bad;
}
"""
)
CAREFUL_INIT = (
    """
  const aj_autograd* a = (const aj_autograd*)env->query("aj.autograd", 1);
#ifdef GROWN
  const aj_dispatch* d = (const aj_dispatch*)env->query("aj.op", 1);
  const aj_services* s = (const aj_services*)env->query("aj.service", 1);
  printf("appended %d %d %d %d %d\\n", AJ_HAS_FIELD(env, aj_plugin_env, later_number),
         AJ_HAS_FN(env->core, aj_core, later_function), AJ_HAS_FN(d, aj_dispatch, later_function),
         AJ_HAS_FN(a, aj_autograd, later_function), AJ_HAS_FN(s, aj_services, later_function));
  fflush(stdout);
#endif
"""
    + DEFINE_TWICE
    + """
  aj_vjp_def v;
  memset(&v, 0, sizeof v);
  v.struct_size = sizeof v;
  v.op = AJ_STR_LIT("acme::twice");
  v.vjp = derivative;
  if (!bad) bad = a->def_vjp(env->registrar, &v);
  if (!bad) bad = look_at_out_structs(env->core);
  return bad;
"""
)
WORKS = ["ok load", "ok acme::twice 2 4 6 8 10 12 14 16", "ok grad 2 2 2 2 2 2 2 2"]


@pytest.mark.parametrize("truncate", ["0", "1"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("version", ["candidate", "today", "next"])
def test_a_plugin_on_this_libadjoin(version, compiler, truncate, tmp_path, headers, host):
    if not shutil.which(compiler):
        pytest.skip(f"NOT TESTED: {compiler} is not installed")
    how = {"include": headers[version], "compiler": compiler, "flags": ["-DGROWN"] if version == "next" else []}
    plugin = build_plugin(tmp_path, extra=CAREFUL, init=CAREFUL_INIT, **how)
    got = host("load", plugin, "call", "acme::twice", "grad", "acme::twice", ADJOIN_ABI_TRUNCATE=truncate)
    assert got.returncode == 0, got.stderr
    assert got.stdout.splitlines() == (["appended 0 0 0 0 0"] if version == "next" else []) + WORKS


@pytest.mark.parametrize("version", ["candidate", "next"])
def test_a_frontend_on_this_libadjoin(version, tmp_path, headers):
    plugin = build_plugin(tmp_path, extra=CAREFUL, init=CAREFUL_INIT)
    program = build_host(tmp_path / "host", include=headers[version])
    got = run(program, "load", plugin, "call", "acme::twice", "grad", "acme::twice", "grad2", "mul")
    assert got.stdout.splitlines()[:3] == WORKS, got.stdout + got.stderr


@pytest.mark.parametrize("version", ["candidate", "next"])
def test_nothing_is_written_behind_a_struct(version, tmp_path, headers):
    got = run(build_host(tmp_path / "clamp", include=headers[version], source="clamp.c"))
    assert got.returncode == 0 and got.stdout.count(" ok\n") == 8, got.stdout + got.stderr


def test_a_plugin_that_wants_the_newer_contract_is_refused(tmp_path, headers, host):
    plugin = build_plugin(tmp_path, include=headers["next"], minor_min="1")
    assert "needs ABI 1.1, this libadjoin serves 1.0" in host("load", plugin).stdout


NOTE_SIZE = LAYOUT["structs"]["aj_plugin_note"]["size"]
NOTES = {  # what struct_size says, what the host answers
    "as long as the next one": ("sizeof(aj_plugin_note)", "ok load"),
    "of the candidate in a longer section": (f"{NOTE_SIZE}", "ok load"),
    "longer than its section": ("sizeof(aj_plugin_note) + 8", "its struct_size is"),
    "too short by a byte": (f"{NOTE_SIZE - 1}", "its struct_size is"),
    "of the first candidate": ("600", "built for the first candidate of the contract; compile it again"),
    "shorter than that": ("599", "its struct_size is 599"),
}


@pytest.mark.parametrize("case", NOTES)
def test_notes_of_another_length(case, tmp_path, headers, host):
    """A note may grow at its end; what it says of its size must be true."""
    size, told = NOTES[case]
    how = {"include": headers["next"], "flags": ["-DGROWN", "-Wno-missing-field-initializers"], "struct_size": size}
    plugin = build_plugin(tmp_path, extra=CAREFUL, init=CAREFUL_INIT, **how)
    got = host("load", plugin)
    assert told in got.stdout and got.returncode == 0, got.stdout + got.stderr


FIRST_CANDIDATE = """
__attribute__((section(".adjoin.plugin"), used)) static const struct {
  char magic[8];
  unsigned struct_size;
  unsigned short abi_major, minor_min, minor_built, machine;
  unsigned build_flags;
  char name[64], version[32], vendor[64], license[32], provides[256], requires_[128];
} note = {"AJPLUG1", sizeof note, 1, 0, 0, 0, 0, "acme", "0.1", "Acme Corp", "Apache-2.0", "ops:acme", ""};
_Static_assert(sizeof note == 600, "the first candidate's note");
__attribute__((visibility("default"))) const void* aj_plugin_note_v1 = &note;
__attribute__((visibility("default"))) void* aj_plugin_init_v1(void* env) { return (void)env, (void*)0; }
"""


def test_a_plugin_of_the_first_candidate_is_told_what_to_do(tmp_path, host):
    plugin = compile_plugin(tmp_path, FIRST_CANDIDATE)
    told = "built for the first candidate of the contract; compile it again"
    assert told in host("load", plugin).stdout
    assert told in adjoin("plugins", "list", ADJOIN_PLUGIN_PATH=tmp_path).stdout


@pytest.mark.parametrize("target,told", [("0", "ok load"), ("1", "needs ABI 1.1, this libadjoin serves 1.0")])
def test_a_target_is_what_the_note_says(target, told, tmp_path, headers, host):
    """ADJOIN_TARGET_MINOR hides nothing: what is newer compiles at any target, and is asked for when it runs."""
    text = """
        #include <adjoin/abi/plugin.h>
        AJ_PLUGIN_NOTE("acme", "0.1.0", "Acme Corp", "Apache-2.0", "ops:acme", "");
        AJ_PLUGIN_INIT {
          if (AJ_HAS_FN(env->core, aj_core, later_function)) env->core->later_function();
          return 0;
        }"""
    flags = [f"-DADJOIN_TARGET_MINOR={target}", "-Wno-missing-field-initializers"]
    plugin = compile_plugin(tmp_path, text, include=headers["next"], flags=flags)
    assert told in host("load", plugin).stdout


TABLES = {
    "env": "env",
    "aj.core": "env->core",
    "aj.op": '(const aj_dispatch*)env->query("aj.op", 1)',
    "aj.autograd": '(const aj_autograd*)env->query("aj.autograd", 1)',
    "aj.service": '(const aj_services*)env->query("aj.service", 1)',
    "aj.plugins": '(const aj_plugins*)env->query("aj.plugins", 1)',
}


@pytest.mark.parametrize("table", TABLES)
def test_who_reads_too_far_is_caught(table, tmp_path, headers, host):
    """The trap works: reading an appended field without asking faults."""
    plugin = build_plugin(
        tmp_path,
        include=headers["next"],
        init=f"return ({TABLES[table]})->later_number == 1 ? 0 : 0;".replace(
            "return (", "volatile uint64_t got = ("
        ).replace("== 1 ? 0 : 0;", "; (void)got; return 0;"),
    )
    got = host("load", plugin, ADJOIN_ABI_TRUNCATE="1")
    assert got.returncode < 0 and "crashed while it was being loaded" in got.stderr


STRUCTS = ["aj_plugin_env", "aj_core", "aj_dispatch", "aj_autograd", "aj_services", "aj_plugins"]


def test_cut_tables_are_the_candidates(tmp_path, host):
    asked = ", ".join(f"(unsigned)({table})->struct_size" for table in TABLES.values())
    plugin = build_plugin(tmp_path, init=f'printf("{" %u" * len(TABLES)}\\n", {asked}); fflush(stdout); return 0;')
    sizes = host("load", plugin, ADJOIN_ABI_TRUNCATE="1").stdout.splitlines()[0].split()
    assert dict(zip(STRUCTS, map(int, sizes))) == {name: LAYOUT["structs"][name]["size"] for name in STRUCTS}


def test_installed_plugins_on_cut_tables(host):
    for device in ("cpu", "reference"):
        got = host("device", device, "call", "neg", "grad", "neg", ADJOIN_ABI_TRUNCATE="1")
        assert got.returncode == 0, got.stderr
        assert got.stdout.splitlines() == [
            f"ok {device} 1 2 3 4 5 6 7 8",
            "ok neg -1 -2 -3 -4 -5 -6 -7 -8",
            "ok grad -1 -1 -1 -1 -1 -1 -1 -1",
        ]


def test_pretending_an_older_minor(tmp_path, host):
    plugin = build_plugin(tmp_path, init='printf("minor %u\\n", (unsigned)env->minor); fflush(stdout); return 0;')
    assert host("load", plugin, ADJOIN_ABI_PRETEND_MINOR="0").stdout == "minor 0\nok load\n"
