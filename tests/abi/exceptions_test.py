"""tests/abi/exceptions_test.py: what a plugin throws arrives as an error value."""

import shutil

import pytest

from abi_tools import DEFINE_TWICE, TWICE, build_plugin, compile_plugin, source

THROWS = r"""
#include <adjoin/kit/kit.hpp>
#include <new>
#include <stdexcept>
using namespace adjoin::kit;
using adjoin::Tensor;

struct Own : std::exception {
  const char* what() const noexcept override { return "an exception of the plugin's own"; }
};
static aj_status* hook(void*, aj_tensor**) {
  return guard("acme", [] { throw std::runtime_error("boom in the hook"); });
}
static aj_status* count(void*, int32_t* out) { return *out = 1, nullptr; }
static aj_status* bad_alloc(void*, int32_t, uint64_t, uint32_t, void**) {
  return guard("shaky", [] { throw std::runtime_error("boom in mem_alloc"); });
}
static aj_status* good_alloc(void*, int32_t, uint64_t bytes, uint32_t, void** out) {
  *out = std::aligned_alloc(64, (bytes + 64) / 64 * 64);
  return nullptr;
}
static aj_status* bad_free(void*, int32_t, void*, uint64_t, uint32_t) {
  return guard("clumsy", [] { throw Own(); });
}
static aj_status* bad_copy(void*, const aj_copy*) {
  return guard("clumsy", [] { throw std::runtime_error("boom in copy"); });
}
static void copy(TensorView x, MutView y) {
  for (int64_t i = 0; i < x.numel(); ++i) y.data<float>()[i] = x.data<float>()[i];
}
static aj_device_vtbl device(const char* name, decltype(aj_device_vtbl::mem_alloc) alloc) {
  aj_device_vtbl v = {};
  v.struct_size = sizeof v;
  v.flags = AJ_DEV_SYNCHRONOUS;
  v.name = str(name);
  v.count = count;
  v.mem_alloc = alloc;
  v.mem_free = bad_free;
  v.copy = bad_copy;
  return v;
}
static const aj_device_vtbl shaky = device("shaky", bad_alloc);
static const aj_device_vtbl clumsy = device("clumsy", good_alloc);

AJ_PLUGIN(.name = "acme", .version = "0.1", .provides = "ops:acme;device:shaky;device:clumsy") {
  plugin.op("acme::error(Tensor x) -> Tensor", "").kind("unary")
      .kernel("cpu", [](TensorView, MutView) { throw std::runtime_error("boom in the kernel"); });
  plugin.op("acme::own(Tensor x) -> Tensor", "").kind("unary")
      .kernel("cpu", [](TensorView, MutView) { throw Own(); });
  plugin.op("acme::odd(Tensor x) -> Tensor", "").kind("unary")
      .kernel("cpu", [](TensorView, MutView) { throw 7; });
  plugin.op("acme::memory(Tensor x) -> Tensor", "").kind("unary")
      .kernel("cpu", [](TensorView, MutView) { throw std::bad_alloc(); });
  plugin.op("acme::raise(Tensor x) -> Tensor", "").kind("unary")
      .kernel("cpu", [](TensorView x, MutView) {
        raise(AJ_OUT_OF_RANGE, "the shape ", x, " is not liked");
      });
  plugin.op("acme::grad(Tensor x) -> Tensor", "").kind("unary")
      .kernel("cpu", [](TensorView x, MutView y) { copy(x, y); })
      .vjp([](Tensor) -> Tensor { throw std::runtime_error("boom in the derivative"); });
  plugin.op("acme::hooked(Tensor x) -> Tensor", "").kind("unary")
      .kernel("cpu", [](TensorView x, MutView y) {
        uint64_t id;
        copy(x, y);
        check(autograd().hook_tensor(x.get(), AJ_HOOK_TENSOR, hook, nullptr, nullptr, &id));
      })
      .vjp([](Tensor g) { return g; });
  plugin.device(shaky);
  plugin.device(clumsy);
}
"""
WAYS = {
    "shared": ("g++", []),
    "static": ("g++", ["-static-libstdc++", "-static-libgcc"]),
    "clang": ("clang++", []),
    "clang static": ("clang++", ["-static-libstdc++", "-static-libgcc"]),
}


@pytest.fixture(scope="module", params=WAYS)
def thrower(request, tmp_path_factory):
    compiler, flags = WAYS[request.param]
    if not shutil.which(compiler):
        pytest.skip(f"NOT TESTED: {compiler} is not installed")
    return compile_plugin(
        tmp_path_factory.mktemp("throws"),
        THROWS,
        compiler=compiler,
        flags=["-std=c++20", *flags],
        suffix=".cpp",
    )


CALLBACKS = [  # command, code, who is named, what arrives
    ("call acme::error", 13, "error: ", "boom in the kernel"),
    ("call acme::own", 13, "own: ", "an exception of the plugin's own"),
    ("call acme::odd", 13, "odd: ", "no std::exception"),
    ("call acme::memory", 8, "memory: ", "out of host memory"),
    ("call acme::raise", 11, "raise: ", "the shape [8] is not liked"),
    ("grad acme::grad", 13, "", "boom in the derivative"),
    ("grad acme::hooked", 13, "", "boom in the hook"),
    ("device shaky", 13, "shaky", "boom in mem_alloc"),
    ("device clumsy", 13, "clumsy", "boom in copy"),
]


def test_every_callback(thrower, host):
    words = " ".join(command for command, *_ in CALLBACKS).split()
    got = host("load", thrower, *words, "call", "neg")
    lines = got.stdout.splitlines()
    assert got.returncode == 0, got.stderr
    assert lines[0] == "ok load" and lines[-1] == "ok neg -1 -2 -3 -4 -5 -6 -7 -8"
    assert len(lines) == len(CALLBACKS) + 2
    for line, (command, code, who, what) in zip(lines[1:], CALLBACKS):
        assert line.startswith(f"error {code}: ") and who in line and what in line, (command, line)


@pytest.mark.parametrize("way", ["shared", "static"])
@pytest.mark.parametrize(
    "what,said",
    [
        ('throw std::runtime_error("boom in init");', "its init threw an exception: boom in init"),
        ("throw 7;", "its init threw something that is no std::exception"),
    ],
)
def test_a_raw_exception_out_of_init(way, what, said, tmp_path, host):
    compiler, flags = WAYS[way]
    text = f"""
        #include <adjoin/abi/plugin.h>
        #include <stdexcept>
        AJ_PLUGIN_NOTE("acme", "0.1", "", "", "ops:acme", "");
        AJ_PLUGIN_INIT {{ (void)env; {what} }}"""
    plugin = compile_plugin(
        tmp_path,
        text,
        compiler=compiler,
        flags=["-std=c++20", "-Wno-return-type", *flags],
        suffix=".cpp",
    )
    got = host("load", plugin, "call", "neg")
    assert got.returncode == 0, got.stderr
    lines = got.stdout.splitlines()
    assert lines[0].startswith("error 13: ") and said in lines[0] and str(plugin) in lines[0]
    assert lines[1] == "ok neg -1 -2 -3 -4 -5 -6 -7 -8"


@pytest.mark.parametrize("way", ["shared", "static"])
def test_a_raw_exception_out_of_a_kernel(way, tmp_path, host):
    compiler, flags = WAYS[way]
    thrown = TWICE.replace("(void)self;", '(void)self; throw std::runtime_error("raw boom");', 1)
    text = "#include <stdexcept>\n" + source(extra=thrown, init=DEFINE_TWICE + "return bad;")
    note = "AJ_EXPORT const aj_plugin_note aj_plugin_note_v1;"
    text = text.replace(note, f'extern "C" {{ extern {note} }}', 1)
    flags = ["-std=c++20", "-Wno-missing-field-initializers", *flags]
    plugin = compile_plugin(tmp_path, text, compiler=compiler, flags=flags, suffix=".cpp")
    lines = host("load", plugin, "call", "acme::twice", "call", "neg").stdout.splitlines()
    assert lines[1].startswith("error 13: ") and "'acme'" in lines[1] and "raw boom" in lines[1]
    assert lines[2] == "ok neg -1 -2 -3 -4 -5 -6 -7 -8"


def test_a_raw_exception_out_of_a_constructor(tmp_path, host):
    text = """
        #include <adjoin/abi/plugin.h>
        #include <stdexcept>
        AJ_PLUGIN_NOTE("acme", "0.1", "", "", "ops:acme", "");
        static struct Thrower {
          Thrower() { throw std::runtime_error("boom in a constructor"); }
        } thrower;
        AJ_PLUGIN_INIT { (void)env; return nullptr; }"""
    plugin = compile_plugin(tmp_path, text, compiler="g++", flags=["-std=c++20"], suffix=".cpp")
    got = host("load", plugin)
    # dlopen is C code: the exception comes through it or ends the process; the plugin is named.
    assert "acme 0.1" in got.stdout + got.stderr


def test_what_a_hook_refuses_arrives(host):
    assert host("hook", "neg").stdout == "error 10: the hook said no\n"


def test_exceptions_do_not_leak_statuses_of_others(tmp_path, host):
    plugin = build_plugin(
        tmp_path,
        provides="ops:acme",
        init="""
      aj_status* inner = complain(env->core, AJ_UNAVAILABLE, "no driver");
      aj_status* outer = complain(env->core, AJ_ABORTED, "not started");
      return env->core->status_with_cause(outer, inner);""",
    )
    assert host("load", plugin).stdout == f"error 10: plugin acme 0.1 ({plugin}): not started; because no driver\n"
