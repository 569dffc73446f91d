"""tests/abi/evolve_test.py: old and new meet: structs with fields appended, tables that are cut.

`grow` makes the contract as its next minor version could be: each EXTENSIBLE struct gets two more
fields. A plugin compiled against that runs on this libadjoin, whose tables end, with
ADJOIN_ABI_TRUNCATE, right before an unreadable page.
"""

import os
import re
import shutil
import subprocess

import pytest

from abi_tools import DEFINE_TWICE, INCLUDE, PLUGINDIR, ROOT, TWICE, build_plugin, run

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
APPENDED = "  uint64_t later_number;\n  void (*later_function)(void);\n"


def grow(text):
    text, count = re.subn(
        r"(typedef struct (\w+) \{ /\* EXTENSIBLE.*?)(\} \2;)",
        r"\1" + APPENDED.replace("\\", r"\\") + r"\3",
        text,
        flags=re.S,
    )
    return text.replace("#define AJ_ABI_MINOR 0", "#define AJ_ABI_MINOR 1"), count


@pytest.fixture(scope="session")
def grown(tmp_path_factory):
    """An include folder with the grown contract; the kit stays."""
    folder = tmp_path_factory.mktemp("grown")
    shutil.copytree(INCLUDE / "adjoin", folder / "adjoin")
    total = 0
    for header in (folder / "adjoin/abi").glob("*.h"):
        text, count = grow(header.read_text())
        header.write_text(text)
        total += count
    assert total > 20
    return folder


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
def test_a_newer_plugin_on_this_libadjoin(truncate, tmp_path, grown, host):
    plugin = build_plugin(tmp_path, extra=CAREFUL, init=CAREFUL_INIT, include=grown, flags=["-DGROWN"])
    got = host("load", plugin, "call", "acme::twice", "grad", "acme::twice", ADJOIN_ABI_TRUNCATE=truncate)
    assert got.returncode == 0, got.stderr
    assert got.stdout.splitlines() == ["appended 0 0 0 0 0", *WORKS]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_this_plugin_on_cut_tables(compiler, tmp_path, host):
    if not shutil.which(compiler):
        pytest.skip(f"NOT TESTED: {compiler} is not installed")
    plugin = build_plugin(tmp_path, compiler=compiler, extra=CAREFUL, init=CAREFUL_INIT)
    got = host("load", plugin, "call", "acme::twice", "grad", "acme::twice", ADJOIN_ABI_TRUNCATE="1")
    assert got.returncode == 0, got.stderr
    assert got.stdout.splitlines() == WORKS


def test_a_plugin_that_wants_the_newer_contract_is_refused(tmp_path, grown, host):
    plugin = build_plugin(tmp_path, include=grown, minor_min="1")
    assert "needs ABI 1.1, this libadjoin serves 1.0" in host("load", plugin).stdout


TABLES = {
    "env": "env",
    "aj.core": "env->core",
    "aj.op": '(const aj_dispatch*)env->query("aj.op", 1)',
    "aj.autograd": '(const aj_autograd*)env->query("aj.autograd", 1)',
    "aj.service": '(const aj_services*)env->query("aj.service", 1)',
    "aj.plugins": '(const aj_plugins*)env->query("aj.plugins", 1)',
}


@pytest.mark.parametrize("table", TABLES)
def test_who_reads_too_far_is_caught(table, tmp_path, grown, host):
    """The trap works: reading an appended field without asking faults."""
    plugin = build_plugin(
        tmp_path,
        include=grown,
        init=f"return ({TABLES[table]})->later_number == 1 ? 0 : 0;".replace(
            "return (", "volatile uint64_t got = ("
        ).replace("== 1 ? 0 : 0;", "; (void)got; return 0;"),
    )
    got = host("load", plugin, ADJOIN_ABI_TRUNCATE="1")
    assert got.returncode < 0 and "crashed while it was being loaded" in got.stderr


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


@pytest.mark.skipif(not FULL, reason="builds libadjoin again from a grown contract: only with ./run test --full")
def test_this_plugin_on_a_newer_libadjoin(tmp_path, tmp_path_factory):
    tree = tmp_path_factory.mktemp("newer")
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, files):
        if name.split("/")[0] in (
            "abi",
            "core",
            "plugins",
            "frontends",
            "meson.build",
            "meson_options.txt",
        ):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    for header in (tree / "abi").glob("*.h"):
        header.write_text(grow(header.read_text())[0])
    subprocess.run(
        [
            "meson",
            "setup",
            "build",
            "-Doptimization=0",
            "-Dtests=false",
            "-Dwarning_level=0",
            "-Dpython=",
        ],
        cwd=tree,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run(["ninja", "-C", "build", "--quiet", "core/libadjoin.so"], cwd=tree, check=True)
    plugin = build_plugin(tmp_path, extra=TWICE, init=DEFINE_TWICE + "return bad;")
    program = tmp_path / "host"
    subprocess.run(
        [
            "gcc",
            f"-I{INCLUDE}",
            str(ROOT / "tests/abi/host.c"),
            "-o",
            str(program),
            f"-L{tree}/build/core",
            "-ladjoin",
            f"-Wl,-rpath,{tree}/build/core",
            "-lpthread",
        ],
        check=True,
    )

    for truncate in ("0", "1"):
        got = run(
            program,
            "load",
            plugin,
            "call",
            "acme::twice",
            "device",
            "reference",
            "grad",
            "neg",
            ADJOIN_PLUGIN_PATH=PLUGINDIR,
            ADJOIN_ABI_TRUNCATE=truncate,
        )
        assert got.returncode == 0, got.stderr
        assert got.stdout.splitlines() == [
            "ok load",
            "ok acme::twice 2 4 6 8 10 12 14 16",
            "ok reference 1 2 3 4 5 6 7 8",
            "ok grad -1 -1 -1 -1 -1 -1 -1 -1",
        ]
