"""tests/abi/transform_test.py: a stranger's plugin in C with a rule for batches (abi/transform.h), and one that refuses them."""

import os
import subprocess
import sys

import pytest

from abi_tools import PREFIX, clean_environment, compile_plugin

SOURCE = """
#include <adjoin/abi/transform.h>

AJ_PLUGIN_NOTE("tr", "0.1.0", "", "Apache-2.0", "ops:tr", "iface:aj.op>=0");

static const aj_dispatch* ops;

/* tr::twice: its kernel knows one sample alone: a vector. */
static aj_status* shape(void* self, aj_call* c) {
  const DLTensor* x = &c->args[0].v.tensor->dl;
  (void)self;
  if (x->ndim != 1) return c->core->status_new(AJ_INVALID_ARGUMENT, AJ_STR_LIT(""), AJ_STR_LIT("a vector is wanted"), "", 0);
  return ops->declare(c, 0, x->dtype, x->ndim, x->shape, 0);
}
static aj_status* twice(void* self, aj_call* c) {
  const DLTensor *x = &c->args[0].v.tensor->dl, *y = &c->rets[0].v.tensor->dl;
  (void)self;
  for (int64_t i = 0; i < x->shape[0]; i++) ((float*)y->data)[i] = 2 * ((const float*)x->data)[i * x->strides[0]];
  return NULL;
}
/* Its rule: an op on all samples. 3 in place of 2 shows that it was the rule that served. */
static aj_status* batch(void* self, aj_batch_call* c) {
  aj_value args[2];
  (void)self;
  if (c->ndims != 1 || c->dims[0] != 0)
    return c->core->status_new(AJ_INTERNAL, AJ_STR_LIT(""), AJ_STR_LIT("no batch"), "", 0);
  args[0] = c->args[0];
  args[1].tag = AJ_INT;
  args[1].aux = 0;
  args[1].v.i = 3;
  return c->op->call(c->op->find_op(AJ_STR_LIT("mul")), args, 2, c->rets, 1);
}
static aj_batch_def rule, refusal;

AJ_PLUGIN_INIT {
  static const char* names[] = {"tr::twice(Tensor input) -> Tensor", "tr::never(Tensor input) -> Tensor",
                                "tr::plain(Tensor input) -> Tensor"};
  static const char* idents[] = {"tr::twice", "tr::never", "tr::plain"};
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  for (int i = 0; i < 3; i++) {
    aj_op_def d = {0};
    aj_kernel_def k = {0};
    aj_status* s;
    d.struct_size = sizeof d;
    d.schema.data = names[i];
    while (names[i][d.schema.len]) d.schema.len++;
    d.infer = shape;
    k.struct_size = sizeof k;
    k.op.data = idents[i];
    k.op.len = 9;
    k.key = AJ_STR_LIT("cpu");
    k.fn = twice;
    if ((s = ops->def_op(env->registrar, &d)) || (s = ops->def_kernel(env->registrar, &k))) return s;
  }
  rule.struct_size = refusal.struct_size = sizeof rule;
  rule.op = AJ_STR_LIT("tr::twice");
  rule.batch = batch;
  refusal.op = AJ_STR_LIT("tr::never");
  refusal.reason = AJ_STR_LIT("samples would meet");
  aj_status* s = aj_def_batch(env, &rule);
  return s ? s : aj_def_batch(env, &refusal);
}
"""

PROGRAM = """
import adjoin
from adjoin.func import loops, vmap
tr = adjoin.ops.tr
tr.twice(adjoin.ones(3))
assert "libaj_transform" not in open("/proc/self/maps").read()  # a rule does not load the extension
x = adjoin.randn(4, 3)
assert vmap(tr.twice)(x).equal(x * 3)
assert vmap(vmap(tr.twice))(x.reshape(2, 2, 3)).equal((x * 3).reshape(2, 2, 3))
assert vmap(tr.plain)(x).equal(x * 2)  # no rule, no body: sample by sample
assert [line[:4] for line in loops()] == [("tr::plain", "it has neither a rule nor a body", 1, 4)]
try:
    vmap(tr.never)(x)
except NotImplementedError as e:
    assert "never" in str(e) and "samples would meet" in str(e), e
else:
    raise AssertionError("not refused")
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transform")
    compile_plugin(folder, SOURCE, name="tr", flags=["-std=c99", "-Wpedantic", "-Werror"])
    return folder


def test_rules_of_a_stranger(plugin):
    env = clean_environment(ADJOIN_PLUGIN_PATH=plugin)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PREFIX / "lib/adjoin/python"), env.get("PYTHONPATH")]))
    got = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=env, timeout=300)
    assert got.returncode == 0, got.stdout + got.stderr
