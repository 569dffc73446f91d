"""tests/packages/answers_test.py: what frontends/docs/answers.md says of failing callbacks, of calling back, and of shared names is so."""

import subprocess
import sys
import textwrap

import pytest

from abi_tools import LIBADJOIN, LIBDIR, clean_environment, compile_plugin

ASK = """
#include <adjoin/kit/kit.hpp>
using namespace adjoin;
using namespace adjoin::kit;
static aj_status* like(void*, aj_call* call) {
  const DLTensor& x = call->args[0].v.tensor->dl;
  return dispatch().declare(call, 0, x.dtype, x.ndim, x.shape, nullptr);
}
static aj_status* replaces(void*, aj_call* call) {  // gives another result, then fails
  core().release(call->rets[0].v.tensor);
  call->rets[0] = aj_value{};
  DLTensor x = call->args[0].v.tensor->dl;
  x.strides = nullptr;
  aj_status* s = core().tensor_empty(&x, 0, &call->rets[0].v.tensor);
  if (s) return s;
  call->rets[0].tag = AJ_TENSOR;
  return fail(AJ_INTERNAL, "half done");
}
static aj_status* fine(void*, aj_call* call) {
  const DLTensor &x = call->args[0].v.tensor->dl, &y = call->rets[0].v.tensor->dl;
  memcpy(y.data, x.data, size_t(call->args[0].v.tensor->dl.shape[0]) * 8);
  return nullptr;
}
static aj_status* half_way(void*, aj_grad_call* g) {  // fills one gradient, then fails
  core().retain(g->grad_out[0]);
  g->grad_in[0] = g->grad_out[0];
  return fail(AJ_INTERNAL, "half a derivative");
}
AJ_PLUGIN_NOTE("ask", "1", "", "", "ops:ask", "");
AJ_PLUGIN_INIT {
  bind(env->query);
  for (const char* name : {"replaces", "half"}) {
    std::string schema = std::string("ask::") + name + "(Tensor input, Tensor other) -> Tensor", op = std::string("ask::") + name;
    aj_op_def d = {};
    d.struct_size = sizeof d, d.schema = str(schema), d.infer = like;
    if (aj_status* s = dispatch().def_op(env->registrar, &d)) return s;
    aj_kernel_def k = {};
    k.struct_size = sizeof k, k.op = str(op), k.key = str("cpu"), k.fn = *name == 'r' ? replaces : fine;
    if (aj_status* s = dispatch().def_kernel(env->registrar, &k)) return s;
  }
  aj_vjp_def v = {};
  v.struct_size = sizeof v, v.op = str("ask::half"), v.vjp = half_way;
  return autograd().def_vjp(env->registrar, &v);
}
"""

# Both plugins want the dtype; the second one's init also wants an op of ask, which loads it, and does not see its own.
SHARES = """
#include <adjoin/kit/kit.hpp>
using namespace adjoin::kit;
AJ_PLUGIN_NOTE("NAME", "1", "", "", "ops:NAME", "");
AJ_PLUGIN_INIT {
  bind(env->query);
  DLDataType wide;
  aj_status* s = core().dtype_find(str("decimal128"), &wide);
  if (s) core().status_free(s), s = core().dtype_register(str("decimal128"), 128, AJ_CLASS_OPAQUE, &wide);
  if (s) return s;
  if (!dispatch().find_op(str("ask::half"))) return fail(AJ_NOT_FOUND, "ask::half is not found in init");
  aj_op_def d = {};
  d.struct_size = sizeof d, d.schema = str("NAME::same(Tensor input) -> Tensor");
  d.body = [](void*, aj_call* call) -> aj_status* {
    core().retain(call->args[0].v.tensor);
    call->rets[0] = call->args[0];
    return nullptr;
  };
  if (aj_status* failed = dispatch().def_op(env->registrar, &d)) return failed;
  return dispatch().find_op(str("NAME::same")) ? fail(AJ_INTERNAL, "an op before its time") : nullptr;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    for name, source in (
        ("ask", ASK),
        ("first", SHARES.replace("NAME", "first")),
        ("second", SHARES.replace("NAME", "second")),
    ):
        compile_plugin(folder, source, name, "g++", ["-std=c++20"], suffix=".cpp")
    return folder


def python(folder, text):
    env = clean_environment(PYTHONPATH=LIBDIR / "adjoin/python", ADJOIN_PLUGIN_PATH=folder)
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_what_a_failed_callback_had_made_is_released(folder):
    python(folder, """
        import adjoin as T
        x, y = T.ones(1000, dtype=T.float64, requires_grad=True), T.ones(1000, dtype=T.float64)
        def fails(f, text):
            try:
                f()
            except RuntimeError as e:
                assert text in str(e), e
            else:
                raise AssertionError(text)
        def round():
            fails(lambda: T.ops.ask.replaces(y, y), "half done")
            fails(lambda: T.ops.ask.half(x, y).sum().backward(), "half a derivative")
        round()
        before = T.memory.memory_allocated()
        for _ in range(50):
            round()
        assert T.memory.memory_allocated() == before, (before, T.memory.memory_allocated())
        """)  # fmt: skip


def test_hooks_may_do_everything(folder):
    python(folder, """
        import adjoin as T
        x = T.ones(3, requires_grad=True)
        told = []
        def hook(g):
            told.append(T.ops.first.same(g))        # loads a plugin
            z = T.ones(2, requires_grad=True)
            with T.enable_grad():
                (z * z).sum().backward()            # another pass
            handle.remove()
            x.register_hook(lambda g: told.append(1))
        handle = x.register_hook(hook)
        (x * 2).sum().backward()
        assert len(told) == 1                       # the new one waits
        (x * 2).sum().backward()
        assert told[1:] == [1]
        """)  # fmt: skip


def test_plugins_share_a_dtype_and_init_finds_ops_of_others(folder):
    python(
        folder,
        """
        import adjoin as T
        x = T.ones(3)
        assert T.ops.first.same(x).tolist() == T.ops.second.same(x).tolist() == [1, 1, 1]
        """,
    )


def test_visit_may_call_the_loader(folder):
    """In a process of its own: the library is loaded by ctypes alone."""
    code = f"""
        import ctypes
        lib = ctypes.CDLL({str(LIBADJOIN)!r})
        visit_type = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        lib.aj_list_plugins.restype = lib.aj_load_plugin.restype = ctypes.c_void_p
        seen = []
        @visit_type
        def inner(self, info):
            seen.append("inner")
            return 0
        @visit_type
        def visit(self, info):
            seen.append("outer")
            assert lib.aj_load_plugin({str(folder / "libaj_ask.so")!r}.encode()) is None
            assert lib.aj_list_plugins(inner, None) is None
            return 1
        assert lib.aj_list_plugins(visit, None) is None
        assert seen[0] == "outer" and "inner" in seen and seen.count("outer") == 1
        """
    python(folder, code)
