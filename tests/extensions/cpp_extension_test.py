"""tests/extensions/cpp_extension_test.py: load and load_inline: caching, many processes at once, errors, hot reload, setuptools."""

import functools
import os
import shutil
import subprocess
import sys
import threading

import pytest

import adjoin as T
from adjoin.utils import cpp_extension
from adjoin.utils.cpp_extension import load

load_inline = functools.partial(cpp_extension.load_inline, use_pch=True)

C = """
#include <adjoin/abi/plugin.h>
#include "factor.h"
AJ_PLUGIN_NOTE("NAME", "0", "", "", "ops:NAME", "");
static aj_status* infer(void* s, aj_call* c) {
  const DLTensor* t = &c->args[0].v.tensor->dl;
  const aj_dispatch* op = s;
  return op->declare(c, 0, t->dtype, t->ndim, t->shape, 0);
}
static aj_status* run(void* s, aj_call* c) {
  const float* x = c->args[0].v.tensor->dl.data;
  float* y = c->rets[0].v.tensor->dl.data;
  for (int64_t i = 0; i < c->args[0].v.tensor->dl.shape[0]; ++i) y[i] = FACTOR * x[i];
  return (void)s, NULL;
}
AJ_PLUGIN_INIT {
  const aj_dispatch* op = env->query("aj.op", 1);
  aj_op_def def = {sizeof def, .infer = infer, .self = (void*)op};
  def.schema = AJ_STR_LIT("NAME::scaled(Tensor input) -> Tensor");
  aj_kernel_def k = {sizeof k, .op = AJ_STR_LIT("NAME::scaled"), .key = AJ_STR_LIT("cpu"), .fn = run};
  aj_status* bad = op->def_op(env->registrar, &def);
  return bad ? bad : op->def_kernel(env->registrar, &k);
}
"""


def plugin_in_c(folder, name, factor):
    (folder / f"{name}.c").write_text(C.replace("NAME", name))
    (folder / "factor.h").write_text(f"#define FACTOR {factor}\n")
    os.utime(folder / "factor.h", (1, 1))  # written before the compiler began
    os.utime(folder / f"{name}.c", (1, 1))
    return folder / f"{name}.c"


def test_load_compiles_once(extensions, tmp_path, monkeypatch):
    source = plugin_in_c(tmp_path, "once", 2)
    found = load("once", [source])
    assert found.scaled(T.ones(2)).tolist() == [2, 2] and found.__all__ == ["scaled"]
    monkeypatch.setattr(cpp_extension.Recipe, "_commands", None)  # whoever compiles now fails
    assert load("once", source).__file__ == found.__file__
    assert load("once", source, is_python_module=False) == found.__file__


def test_a_header_counts_and_the_new_code_takes_over(extensions, tmp_path):
    source = plugin_in_c(tmp_path, "header", 2)
    held = load("header", source).scaled
    plugin_in_c(tmp_path, "header", 5)
    load("header", source)
    assert held(T.ones(2)).tolist() == [5, 5]
    plugin_in_c(tmp_path, "header", 2)
    load("header", source)  # built before, comes back
    assert held(T.ones(2)).tolist() == [2, 2]


def test_ten_processes_compile_once(extensions, tmp_path):
    source = plugin_in_c(tmp_path, "many", 3)
    counter = tmp_path / "cc"
    counter.write_text(f'#!/bin/sh\necho x >>{tmp_path}/runs\nsleep 0.2\nexec cc "$@"\n')
    counter.chmod(0o755)
    program = f"""
import adjoin as T
from adjoin.utils.cpp_extension import load
assert load("many", {str(source)!r}).scaled(T.ones(1)).item() == 3
"""
    line = [sys.executable, "-c", program]
    running = [subprocess.Popen(line, env={**os.environ, "CC": str(counter)}) for _ in range(10)]
    assert [p.wait() for p in running] == [0] * 10
    assert (tmp_path / "runs").read_text().split() == ["x"]


@pytest.mark.parametrize("functions", ["twice", {"twice": "two of them"}])
def test_inline(extensions, functions):
    source = """
    // twice(of comments, no parameters are read)
    at::Tensor twice(const torch::Tensor& x, double by = 2.0, std::optional<Tensor> bias = std::nullopt) {
      return bias ? x * by + *bias : x * by;
    }
    """
    found = cpp_extension.load_inline("inlined", source, functions=functions)
    (info,) = T._C.op_info("inlined::twice")
    assert info["schema"] == "inlined::twice(Tensor x, float by=2.0, Tensor? bias=None) -> Tensor"
    x = T.randn(3, dtype=T.float64, requires_grad=True)
    assert T.autograd.gradcheck(lambda x: found.twice(x, by=3.0, bias=x * x), (x,))
    assert found.twice(T.empty(2, 3, device="meta")).shape == (2, 3)
    assert T.ops.inlined.twice(T.ones(2)).tolist() == [2, 2]


def test_types_of_functions(extensions):
    source = """
    std::tuple<Tensor, Tensor> pair(Tensor x, std::vector<int64_t> sizes, const std::string& word, int n, bool on) {
      return {on ? x + n : x - n, x.defined() && word == "w" ? adjoin::full(sizes, 1.5) : x};
    }
    void written(Tensor& x) { add_(x, 1); }
    int64_t count(const std::vector<Tensor>& all) { return int64_t(all.size()); }
    std::vector<Tensor> list(Tensor x) { return {x + 1, x + 2}; }
    """
    f = load_inline("types", source, functions=["pair", "written", "count", "list"])
    a, b = f.pair(T.ones(1), [2, 2], "w", 3, True)
    assert a.item() == 4 and b.tolist() == [[1.5, 1.5], [1.5, 1.5]]
    x = T.ones(2)
    before = x._version
    assert f.written(x) is None and x.tolist() == [2, 2] and x._version > before
    assert f.count([x, x]) == 2 and [t.tolist() for t in f.list(x)] == [[3, 3], [4, 4]]
    with pytest.raises(RuntimeError, match="does not fit"):
        f.pair(x, [1], "w", 1 << 40, True)
    with pytest.raises(TypeError):
        f.count(x, x, x)


def test_a_changed_signature_is_a_new_op_and_old_graphs_live(extensions):
    one = load_inline("changes", "Tensor f(Tensor x) { return x * x; }", functions="f")
    held = one.f
    x = T.ones(2, requires_grad=True)
    y = held(x).sum()
    two = load_inline("changes", "Tensor f(Tensor x, double by) { return x * by; }", functions="f")
    assert two.f(x, by=4.0).tolist() == [4, 4] and held(x, 5.0).tolist() == [5, 5]
    y.backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(TypeError, match="by"):
        held(x)


DERIVATIVE = """
#include <adjoin/kit/kit.hpp>
using namespace adjoin;
using namespace adjoin::kit;
struct Times { template <class T> T operator()(T x) const { return FACTOR * x; } };
AJ_PLUGIN(.name = "taped", .provides = "ops:taped") {
  plugin.op("taped::f(Tensor input) -> Tensor", "").kind("unary_float").kernel("cpu", unary<Times, floating>)
      .vjp([](Tensor g) { return g * FACTOR; });
}
"""


def test_graphs_keep_the_derivative_they_were_recorded_with(extensions, tmp_path):
    (tmp_path / "taped.cpp").write_text(DERIVATIVE)
    f = load("taped", tmp_path / "taped.cpp", extra_cflags=["-DFACTOR=2"]).f
    x = T.ones(2, requires_grad=True)
    y = f(x)
    load("taped", tmp_path / "taped.cpp", extra_cflags=["-DFACTOR=7"])
    z = f(x)
    assert y.tolist() == [2, 2] and z.tolist() == [7, 7]
    assert T.autograd.grad(y.sum(), x)[0].tolist() == [2, 2]
    assert T.autograd.grad(z.sum(), x)[0].tolist() == [7, 7]


def test_reloading_while_another_thread_calls(extensions):
    source = "Tensor f(Tensor x) { return x + %d; }"
    f = load_inline("busy", source % 0, functions="f").f
    load_inline("busy", source % 1, functions="f")
    x, seen, over = T.zeros(1), set(), threading.Event()

    def call():
        while not over.is_set():
            seen.add(f(x).item())

    threads = [threading.Thread(target=call) for _ in range(3)]
    for t in threads:
        t.start()
    for i in range(60):
        load_inline("busy", source % (i % 2), functions="f")
    over.set()
    for t in threads:
        t.join()
    assert seen == {0, 1}


def test_an_error_shows_ones_own_line_and_keeps_what_was(extensions):
    f = load_inline("errs", "Tensor f(Tensor x) { return x + 1; }", functions="f").f
    with pytest.raises(cpp_extension.CompileError) as caught:
        load_inline("errs", "\nTensor f(Tensor x) {\n  return x +* 1;\n}", functions="f")
    assert str(caught.value).splitlines()[1].startswith("  errs.cpp:3: error:")
    with pytest.raises(cpp_extension.CompileError, match="function\\(\\): an op takes"):
        load_inline("errs", "struct S {};\nTensor f(S) { return Tensor(); }", functions="f")
    bad = """
    #include <adjoin/kit/kit.hpp>
    AJ_PLUGIN(.name = "errs", .provides = "ops:errs") { adjoin::kit::raise(3, "no luck today"); }
    """
    with pytest.raises(RuntimeError, match="no luck today"):
        load_inline("errs", bad)
    assert f(T.ones(1)).item() == 2


def test_who_writes_methods_is_told_of_functions(extensions):
    with pytest.raises(cpp_extension.CompileError, match=r"ops are functions: transpose\(x, 0, 1\)"):
        cpp_extension.load_inline("methods", "Tensor f(Tensor x) { return x.transpose(0, 1); }", functions="f")


def test_an_error_in_our_headers_is_told_first(extensions):
    with pytest.raises(
        cpp_extension.CompileError, match=r"(?s)not compile:\n  function\(\): an op takes and returns Tensor.*own words"
    ):
        cpp_extension.load_inline("types", "Tensor f(Tensor x, FILE*) { return x; }", functions="f")
    with pytest.raises(
        cpp_extension.CompileError, match=r"(?s)a function returns Tensor, a list of Tensors.*own words"
    ):
        cpp_extension.load_inline("types", 'std::string f(double) { return "one"; }', functions="f")


def test_functions_of_files(extensions, tmp_path):
    (tmp_path / "half.cpp").write_text(
        "#include <adjoin/kit/ops.hpp>\nadjoin::Tensor half(adjoin::Tensor x) { return x / 2; }\n"
    )
    found = load("files", [tmp_path / "half.cpp"], functions="half")
    assert found.half(x=T.ones(1)).item() == 0.5
    (tmp_path / "half.cpp").write_text(
        "#include <torch/extension.h>\nadjoin::Tensor half(adjoin::Tensor x) { return y; }\n"
    )
    with pytest.raises(
        cpp_extension.CompileError, match="half.cpp:1: fatal error.*\n.*\n.*there is no torch/extension.h"
    ):
        load("files", [tmp_path / "half.cpp"], functions="half")
    assert found.half(T.ones(1)).item() == 0.5


def test_a_missing_compiler_is_named(extensions, tmp_path, monkeypatch):
    from adjoin.utils import _compile

    _compile.find_compiler.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(RuntimeError, match="no compiler for c\\+\\+.*apt-get install g\\+\\+.*CXX"):
        load_inline("never", "Tensor f(Tensor x) { return x; }", functions="f")
    _compile.find_compiler.cache_clear()


def test_wrong_use(extensions, tmp_path):
    for name in ("sp ace", "../up"):
        with pytest.raises(ValueError, match="no name|becomes a plugin"):
            load_inline(name, "", functions="f")
    with pytest.raises(ValueError, match="no function 'g' in the sources of 'some'"):
        load_inline("some", "Tensor f(Tensor x) { return x; }", functions="g")
    with pytest.raises(FileNotFoundError, match="there is no such source"):
        load("gone", tmp_path / "gone.cpp")
    (tmp_path / "t.txt").write_text("")
    with pytest.raises(ValueError, match="ending '.txt' is not known"):
        load("text", tmp_path / "t.txt")
    with pytest.raises(RuntimeError, match="provides.*device"):
        load_inline("cpu", "Tensor f(Tensor x) { return x; }", functions="f")


SETUP = """
from setuptools import setup
from adjoin.utils.cpp_extension import BuildExtension, CppExtension
setup(name="mine", version="1", packages=["mine"], ext_modules=[CppExtension("mine.built", ["built.c"])],
      cmdclass={"build_ext": BuildExtension})
"""


def test_setuptools(extensions, tmp_path):
    pytest.importorskip("setuptools")
    plugin_in_c(tmp_path, "built", 4)
    (tmp_path / "setup.py").write_text(SETUP)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/__init__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert cpp_extension.open_plugin(tmp_path / "mine/libaj_built.so").scaled(T.ones(1)).item() == 4


@pytest.mark.skipif(
    not shutil.which("nvcc") and not os.path.exists("/usr/local/cuda/bin/nvcc"), reason="nvcc is not installed"
)
def test_cuda_sources_are_built(extensions, tmp_path):
    cuda = "__global__ void fill(float* x) { x[threadIdx.x] = 7; }\nint launch_size() { return 32; }\n"
    found = load_inline(
        "gpu", "int launch_size();\nint64_t size(Tensor) { return launch_size(); }", cuda_sources=cuda, functions="size"
    )
    assert found.size(T.ones(1)) == 32


def test_what_a_new_version_leaves_out_is_gone(extensions):
    source = "Tensor f(Tensor x) { return x + 1; }\nTensor g(Tensor x) { return x + 2; }"
    one = load_inline("fewer", source, functions=["f", "g"])
    held = one.g
    two = load_inline("fewer", source, functions=["f"])
    assert two.__all__ == ["f"] and two.f(T.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="replaced by a version without it"):
        held(T.ones(1))
    assert load_inline("fewer", source, functions=["f", "g"]).g(T.ones(1)).item() == 3


def test_a_plugin_built_by_hand_is_reloaded_from_the_same_path(extensions, tmp_path):
    def build(factor):
        source = plugin_in_c(tmp_path, "hand", factor)
        words = subprocess.run(
            ["adjoin", "config", "--cflags", "--ldflags"], capture_output=True, text=True, check=True
        )
        line = ["cc", "-shared", "-fPIC", *words.stdout.split(), str(source), "-o", str(tmp_path / "libaj_hand.so")]
        subprocess.run(line, check=True)

    build(2)
    T.load_plugin(str(tmp_path / "libaj_hand.so"))
    assert T.ops.hand.scaled(T.ones(1)).item() == 2
    for factor in (5, 6):
        build(factor)
        T.plugin.load(str(tmp_path / "libaj_hand.so"), reload=True)
        assert T.ops.hand.scaled(T.ones(1)).item() == factor
    assert T.plugin.available()["hand"] == "loaded"
    T.plugin.disable("hand")
    T.plugin.enable("hand")
    assert T.ops.hand.scaled(T.ones(1)).item() == 6  # the last one comes back
