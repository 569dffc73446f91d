"""tests/abi/abi_tools.py: builds plugins against what is installed, runs what may die."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


def find_prefix():
    if "ADJOIN_PREFIX" in os.environ:
        return Path(os.environ["ADJOIN_PREFIX"])
    found = sorted((ROOT / "build/release/stage").glob("**/bin/adjoin"))
    if not found:
        pytest.fail("adjoin is not installed: run ./run build, or set ADJOIN_PREFIX", pytrace=False)
    return found[0].parents[1]


PREFIX = find_prefix()
ADJOIN = PREFIX / "bin/adjoin"


def config(item):
    return subprocess.run([ADJOIN, "config", "--" + item], capture_output=True, text=True, check=True).stdout.strip()


INCLUDE = Path(config("includedir"))
LIBDIR = Path(config("libdir"))
PLUGINDIR = Path(config("plugindir"))
LIBADJOIN = LIBDIR / "libadjoin.so"

needs_clang = pytest.mark.skipif(not shutil.which("clang"), reason="NOT TESTED: clang is not installed")


def clean_environment(**extra):
    """Without what the user's shell says about plugins."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("ADJOIN_")}
    env["XDG_DATA_HOME"] = "/nonexistent"
    env.update({k: str(v) for k, v in extra.items()})
    return env


def run(*words, timeout=600, **extra):
    return subprocess.run(
        [str(w) for w in words],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=clean_environment(**extra),
    )


def adjoin(*words, **extra):
    return run(ADJOIN, *words, **extra)


def run_python(program, **extra):
    """A program that imports the installed package, in a process of its own."""
    path = os.pathsep.join(filter(None, [str(PREFIX / "lib/adjoin/python"), os.environ.get("PYTHONPATH")]))
    return run(sys.executable, "-c", program, timeout=120, **{"PYTHONPATH": path, **extra})


# For a sanitizer build of libadjoin: ADJOIN_HOST_FLAGS="-fsanitize=address,undefined".
HOST_FLAGS = os.environ.get("ADJOIN_HOST_FLAGS", "").split()


def build_host(out, include=INCLUDE, libdir=LIBDIR, source="host.c"):
    """A program in C over libadjoin; host.c loads plugins and calls ops as any frontend does."""
    options = ["-std=c11", "-Wall", "-Wextra", "-O1", f"-I{include}", *HOST_FLAGS]
    linked = [f"-L{libdir}", "-ladjoin", f"-Wl,-rpath,{libdir}", "-lpthread"]
    subprocess.run(["gcc", *options, str(HERE / source), "-o", str(out), *linked], check=True)
    return out


NOTE = """
#include <adjoin/abi/capi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
AJ_EXPORT const aj_plugin_note aj_plugin_note_v1;
__attribute__((section(AJ_PLUGIN_SECTION), used)) const aj_plugin_note aj_plugin_note_v1 = {
    %(magic)s, %(struct_size)s, %(major)s, %(minor_min)s, %(minor_built)s, %(machine)s,
    %(build_flags)s,
    "%(name)s", "%(version)s", "Acme Corp", "Apache-2.0", "%(provides)s", "%(requires)s"};
"""
INIT = """
__attribute__((unused)) static aj_status* complain(
    const aj_core* core, int32_t code, const char* what) {
  aj_str kind = AJ_STR_LIT(""), message = {what, strlen(what)};
  return core->status_new(code, kind, message, "", 0);
}
%(extra)s
AJ_PLUGIN_INIT {
  (void)env;
  %(init)s
}
"""
# An op of one kernel: acme::twice(x) = 2 x, and what registering it takes.
TWICE = """
static aj_status* twice(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  (void)self;
  for (int64_t i = 0; i < p->sizes[0]; ++i)
    *(float*)((char*)p->ops[0].data + i * p->ops[0].strides[0]) =
        2 * *(const float*)((const char*)p->ops[1].data + i * p->ops[1].strides[0]);
  return 0;
}
static aj_status* define_op(const aj_plugin_env* env, const char* schema) {
  const aj_dispatch* d = (const aj_dispatch*)env->query("aj.op", 1);
  aj_op_def op;
  memset(&op, 0, sizeof op);
  op.struct_size = sizeof op;
  op.schema.data = schema;
  op.schema.len = strlen(schema);
  op.kind = AJ_STR_LIT("unary");
  return d->def_op(env->registrar, &op);
}
static aj_status* define_kernel(const aj_plugin_env* env, const char* op, int32_t priority) {
  const aj_dispatch* d = (const aj_dispatch*)env->query("aj.op", 1);
  aj_kernel_def k;
  memset(&k, 0, sizeof k);
  k.struct_size = sizeof k;
  k.flags = AJ_KERNEL_INNER;
  k.op.data = op;
  k.op.len = strlen(op);
  k.key = AJ_STR_LIT("cpu");
  k.dtypes = 1u << AJ_DT_FLOAT32;
  k.priority = priority;
  k.fn = twice;
  return d->def_kernel(env->registrar, &k);
}
"""
DEFINE_TWICE = """
  aj_status* bad = define_op(env, "acme::twice(Tensor x) -> Tensor");
  if (!bad) bad = define_kernel(env, "acme::twice", 0);
"""


def source(name="acme", init="return 0;", extra="", **note):
    values = {
        "magic": "AJ_PLUGIN_MAGIC",
        "struct_size": "sizeof(aj_plugin_note)",
        "major": "AJ_ABI_MAJOR",
        "minor_min": "0",
        "minor_built": "AJ_ABI_MINOR",
        "machine": "0",
        "build_flags": "0",
        "version": "0.1",
        "provides": f"device:{name};ops:{name}",
        "requires": "",
    }
    values.update(note, name=name)
    return NOTE % values + (INIT % {"init": init, "extra": extra} if init is not None else extra)


VERSION_SCRIPT = "{ global: aj_plugin_note_v1; aj_plugin_init_v1; aj_plugin_drain_v1; local: *; };\n"


def compile_plugin(
    folder,
    text,
    name="acme",
    compiler="gcc",
    flags=(),
    include=INCLUDE,
    suffix=".c",
    script=VERSION_SCRIPT,
):
    """libaj_NAME.so from a source text; stricter than a stranger would compile."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    file = folder / f"{name}{suffix}"
    file.write_text(text)
    (folder / "plugin.map").write_text(script)
    out = folder / f"libaj_{name}.so"
    options = ["-shared", "-fPIC", "-O1", "-g0", "-Wall", "-Wextra", f"-I{include}"]
    options += [f"-Wl,--version-script={folder}/plugin.map", str(file), "-o", str(out), *flags]
    subprocess.run([compiler, *options], check=True)
    out.chmod(0o644)
    return out


def build_plugin(folder, name="acme", compiler="gcc", flags=(), include=INCLUDE, **text):
    return compile_plugin(folder, source(name=name, **text), name, compiler, flags, include)
