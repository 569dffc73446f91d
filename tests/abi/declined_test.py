"""tests/abi/declined_test.py: who has a kernel that does not take the call, and what helps, is told as it is."""

import os

import pytest

from abi_tools import HERE, compile_plugin, run_python, source

FUNCTIONS = """
#include "broken.h"
static aj_status* body(void* self, aj_call* call) {
  (void)self;
  return ops->call(ops->find_op(text("neg")), call->args, 1, call->rets, 1);
}
"""
INIT = """
  aj_device_vtbl v = good_device();
  aj_kernel_def k = good_kernel(twice);
  aj_op_def op = good_op("slate::by_body(Tensor x) -> Tensor");
  begin(env);
  v.flags |= AJ_DEV_HOST_MEMORY;
  TRY(env->def_device(env->registrar, &v));
  k.op = text("neg");
  k.key = text("slate");
  k.dtypes = 1u << AJ_DT_FLOAT32 | 1u << AJ_DT_INT8;
  TRY(ops->def_kernel(env->registrar, &k));
  op.body = body;
  return ops->def_op(env->registrar, &op);
"""
BEGIN = """
import adjoin
adjoin.load_plugin(PLUGIN)
x = adjoin.tensor([1, 2]).to("slate")
def said(f):
    try:
        f()
    except NotImplementedError as e:
        return str(e)
    raise AssertionError("not refused")
"""
PROGRAMS = {
    "the ledger": """
adjoin.set_fallback("host")
assert (-x).tolist() == [-1, -2] and adjoin.exp(x).device.type == "slate"
reasons = {f["op"]: f["reason"] for f in map(dict, adjoin.fallbacks())} if isinstance(adjoin.fallbacks()[0], dict) else {
    f.op: f.reason for f in adjoin.fallbacks()}
assert reasons["neg"] == "no kernel for neg on slate takes this call of int64: plugin 'acme' has one for int8, float32, and it has no body"
assert reasons["exp"] == "no plugin has a kernel for exp on slate, and it has no body"
""",
    "a body that its policy keeps from serving": """
adjoin.set_fallback("error", "slate::by_body")
told = said(lambda: adjoin.ops.slate.by_body(x))
assert "and its policy keeps its body from serving; set_fallback('decompose', 'slate::by_body') lets its body serve" in told, told
adjoin.set_fallback("decompose", "slate::by_body")
assert adjoin.ops.slate.by_body(adjoin.ones(2)).tolist() == [-1, -1]
""",
    "a body whose plugin is disabled": """
f = adjoin.ops.slate.by_body
adjoin.plugin.disable("acme")
told = said(lambda: f(adjoin.ones(2)))
assert "decompose" not in told and "keeps its body" not in told and "plugin 'acme' has the op" in told, told
""",
}


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    text = source("acme", INIT, FUNCTIONS, provides="ops:slate;device:slate")
    return compile_plugin(
        tmp_path_factory.mktemp("declined"), text, "acme", "gcc", ["-w", "-D_GNU_SOURCE", "-std=gnu11", f"-I{HERE}"]
    )


@pytest.mark.parametrize("case", PROGRAMS)
def test_what_is_told(case, plugin):
    got = run_python(f"PLUGIN = {os.fspath(plugin)!r}\n" + BEGIN + PROGRAMS[case])
    assert got.returncode == 0, got.stdout + got.stderr
