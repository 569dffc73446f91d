"""tests/abi/lifetime_test.py: nothing is unmapped under what points into it; what is disabled or gone is a clear error; a plugin
that comes back is as it was."""

import os
import re
import shutil
import sys

import pytest

from abi_tools import ADJOIN, DEFINE_TWICE, HERE, TWICE, build_host, build_plugin, compile_plugin, run, run_python


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo")
    plugin = compile_plugin(folder, (HERE / "zoo.c").read_text(), "zoo", flags=[f"-I{HERE}"])
    program = build_host(folder / "lifetime", source="lifetime.c")

    def told(*words, **extra):
        done = run(program, plugin, *words, **extra)
        assert done.returncode == 0 and done.stdout.endswith("ok\n"), done.stdout + done.stderr
        return done.stdout.splitlines()

    told.folder = folder
    return told


def test_each_thing_keeps_the_plugin_mapped(zoo):
    told = zoo("each")
    wanted = ["1 object of its types", "2 function objects", "2 hooks", "2 nodes of graphs", "1 tensor over its memory", "3 hooks",
              "1 tensor over its memory"]  # fmt: skip
    for line, what in zip(told[: len(wanted)], wanted, strict=True):
        assert re.fullmatch(rf"\d {what} points? into it", line), told


def test_services_and_devices_of_a_plugin_that_is_gone(zoo):
    told = zoo("services")
    for line in told[:6]:
        assert "zoo" in line and ("disabled" in line or "not loaded" in line), line
    assert any(line == "open: its device 'zoo' is open, and stays so until the process ends" for line in told)
    assert any(line.startswith("service: ") and len(line) > 12 for line in told)


def test_registrations_are_part_of_the_transaction(zoo, tmp_path):
    second = shutil.copy(zoo.folder / "libaj_zoo.so", tmp_path / "libaj_zoo.so")
    told = zoo("transaction", SECOND=second)
    assert "init said no" in told[0] and "not loaded now" in told[1] and "zoo8" in told[2]
    assert "8 bits" in told[3] and "registered already, by plugin 'zoo'" in told[4]
    assert told[5] == "frontend: 1 frontend points into it"


def test_a_drain_that_fails_leaves_it_mapped(zoo):
    told = zoo("drain")
    assert "its drain failed: not today" in told[0] and "it is disabled" in told[0]


def test_plugins_come_and_go_without_growth(zoo):
    rounds = 10000 if os.environ.get("ADJOIN_TEST_FULL") == "1" else 200
    (line,) = [line for line in zoo("rounds", rounds) if line.startswith("grown")]
    grown, descriptors = map(int, re.findall(r"-?\d+", line))
    assert grown < 1024 + rounds / 50 and descriptors == 0, line


def test_two_libadjoins_and_one_file(zoo, tmp_path):
    """The second core would run init again on the first one's variables."""
    from abi_tools import LIBADJOIN

    other = shutil.copy(LIBADJOIN, tmp_path / "libadjoin.so.other")
    program = f"""
import ctypes, sys
for path in ({str(LIBADJOIN)!r}, {str(other)!r}):
    core = ctypes.CDLL(path)
    core.aj_load_plugin.restype = ctypes.c_void_p
    core.aj_get_interface.restype = ctypes.c_void_p
    core.aj_get_interface(b"aj.core", 1)
    print(bool(core.aj_load_plugin({str(zoo.folder / "libaj_acme.so")!r}.encode())))
"""
    compile_plugin(zoo.folder, (HERE / "zoo.c").read_text().replace('"zoo"', '"acme"').replace("if (sscanf", "if (0) (void)at; if (0 && sscanf")
                   .replace("zoo = (struct zoo*)at;", "static struct zoo mine; zoo = &mine;"), "acme", flags=[f"-I{HERE}"])  # fmt: skip
    done = run(sys.executable, "-c", program)
    assert done.stdout.split() == ["False", "True"], done.stdout + done.stderr


def test_a_file_that_takes_an_installed_plugins_name(tmp_path, host):
    plugin = build_plugin(tmp_path, "cpu", provides="ops:x")
    got = host("load", plugin, "call", "neg").stdout.splitlines()
    assert got[0].startswith("error") and "has that name and provides 'device:cpu'" in got[0]
    assert got[1].startswith("ok neg"), got


def test_why_an_op_is_not_there(tmp_path):
    build_plugin(
        tmp_path, "sick", init='return complain(env->core, AJ_UNAVAILABLE, "no licence");', provides="ops:sick"
    )
    program = "import adjoin\ntry:\n    adjoin.ops.sick.heal\nexcept AttributeError as e:\n    print(e)"
    done = run(sys.executable, "-c", program, ADJOIN_PLUGIN_PATH=tmp_path)
    assert "no op named 'sick" in done.stdout and "plugin sick 0.1" in done.stdout and "no licence" in done.stdout, done


DRAIN = "AJ_EXPORT aj_status* aj_plugin_drain_v1(void); AJ_EXPORT aj_status* aj_plugin_drain_v1(void) { return 0; }"


@pytest.mark.parametrize("body", ["x.exp()", "t.ops.acme.twice(x)"])
def test_idle_workers_are_not_inside(body, tmp_path):
    """What a worker has taken over from the thread that opened a region ends with its part."""
    plugin = build_plugin(tmp_path, extra=DRAIN + TWICE, init=DEFINE_TWICE + "return bad;", provides="ops:acme")
    program = f"""
import adjoin as t
t.set_num_threads(4)
x = t.ones(5_000_000)
t.load_plugin({str(plugin)!r})
t.ops.acme.twice(t.ones(3))
for again in range(20):
    {body}
print(repr(t.plugin.unload("acme")))
"""
    done = run_python(program)
    assert done.stdout == "''\n", done.stdout + done.stderr


def test_an_op_whose_plugin_is_disabled_says_so(tmp_path):
    plugin = build_plugin(tmp_path, extra=DRAIN + TWICE, init=DEFINE_TWICE + "return bad;", provides="ops:acme")
    program = f"""
import adjoin as t
t.load_plugin({str(plugin)!r})
twice = t.ops.acme.twice
for end in (t.plugin.disable, t.plugin.unload):
    end("acme")
    try:
        twice(t.ones(3))
    except NotImplementedError as e:
        print(e)
"""
    done = run_python(program)
    told = done.stdout.splitlines()
    assert len(told) == 2 and f"plugin acme 0.1 ({plugin}): disabled: disabled by request" in told[0], done
    assert f"plugin acme 0.1 ({plugin}): disabled: unloaded by request" in told[1], done


def test_check_counts_kernels_at_a_plugins_own_key(tmp_path):
    init = """
  const aj_dispatch* d = (const aj_dispatch*)env->query("aj.op", 1);
  uint64_t key;
  aj_status* bad = d->def_key(env->registrar, (aj_str){"acme", 4}, AJ_KEY_BELOW_AUTOGRAD, &key);
  const char* ops[] = {"neg", "exp", "sin"};
  for (int i = 0; !bad && i < 3; ++i) {
    aj_kernel_def k;
    memset(&k, 0, sizeof k);
    k.struct_size = sizeof k, k.op.data = ops[i], k.op.len = 3, k.key = (aj_str){"acme", 4}, k.fn = twice;
    bad = d->def_kernel(env->registrar, &k);
  }
  return bad;"""
    plugin = build_plugin(tmp_path, extra=TWICE, init=init, flags=["-Wno-unused-function"], provides="key:acme")
    done = run(ADJOIN, "plugins", "check", plugin)
    assert done.returncode == 0 and "registers 0 ops, kernels for 3 ops\n" in done.stdout, done


def test_check_names_a_key_that_no_installed_plugin_has(tmp_path):
    """A kernel for a device of somebody else's is no fault; a misspelt key is one: see broken_test.py."""
    kernel = TWICE.replace('k.key = AJ_STR_LIT("cpu")', 'k.key = AJ_STR_LIT("teapot")')
    plugin = build_plugin(tmp_path, extra=kernel, init=DEFINE_TWICE + "return bad;", provides="ops:acme")
    done = run(ADJOIN, "plugins", "check", plugin)
    assert done.returncode == 0 and "op, has 1 kernel at teapot, which no installed plugin has\n" in done.stdout, done


def test_check_counts_kernels_of_a_plugins_own_ops(tmp_path):
    plugin = build_plugin(tmp_path, extra=TWICE, init=DEFINE_TWICE + "return bad;", provides="ops:acme")
    done = run(ADJOIN, "plugins", "check", plugin)
    assert done.returncode == 0 and "1 op, kernels for 1 op" in done.stdout, done
