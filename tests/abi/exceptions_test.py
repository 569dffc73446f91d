"""tests/abi/exceptions_test.py: what a plugin throws arrives as an error value."""

import shutil

import pytest

from abi_tools import build_plugin, compile_plugin

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
static aj_status* alloc(void*, int32_t, uint64_t, uint32_t, void**) {
  return guard("shaky", [] { throw std::runtime_error("boom in mem_alloc"); });
}
static aj_status* release(void*, int32_t, void*, uint64_t, uint32_t) {
  return guard("shaky", [] { throw Own(); });
}
static void copy(TensorView x, MutView y) {
  for (int64_t i = 0; i < x.numel(); ++i) y.data<float>()[i] = x.data<float>()[i];
}
static const aj_device_vtbl shaky = [] {
  aj_device_vtbl v = {};
  v.struct_size = sizeof v;
  v.flags = AJ_DEV_HOST_MEMORY | AJ_DEV_SYNCHRONOUS;
  v.name = str("shaky");
  v.count = count;
  v.mem_alloc = alloc;
  v.mem_free = release;
  return v;
}();

AJ_PLUGIN(.name = "acme", .version = "0.1", .provides = "ops:acme;device:shaky") {
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


def test_every_callback(thrower, host):
    got = host(
        "load",
        thrower,
        "call",
        "acme::error",
        "call",
        "acme::own",
        "call",
        "acme::odd",
        "call",
        "acme::memory",
        "call",
        "acme::raise",
        "grad",
        "acme::grad",
        "grad",
        "acme::hooked",
        "device",
        "shaky",
        "call",
        "neg",
    )
    lines = got.stdout.splitlines()
    assert got.returncode == 0, got.stderr
    assert lines[0] == "ok load"
    wanted = [
        (13, "acme::error", "boom in the kernel"),
        (13, "acme::own", "an exception of the plugin's own"),
        (13, "acme::odd", "no std::exception"),
        (8, "acme::memory", "out of host memory"),
        (11, "acme::raise", "the shape [8] is not liked"),
        (13, "", "boom in the derivative"),
        (13, "", "boom in the hook"),
        (None, "", "boom in mem_alloc"),
    ]
    for line, (code, who, what) in zip(lines[1:9], wanted):
        assert line.startswith(f"error {code}: " if code else "error "), line
        assert who in line and what in line
    assert lines[9:] == ["device 'shaky'"] or lines[9].startswith(("ok neg", "error ")), lines


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
    assert host("load", plugin).stdout == f"error 10: plugin acme 0.1 ({plugin}): not started\n"
