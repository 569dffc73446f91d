"""tests/abi/gradient_lock_test.py: what a key does with gradients may read .grad of the same leaf, and several threads may add to one."""

import os
import subprocess
import sys

import pytest

from abi_tools import HERE, PREFIX, clean_environment, compile_plugin, source

# add_gradient and copy of the key read the gradient of the leaf that slate::watch was told; the sum is made of the payloads. Both
# let others run meanwhile.
FUNCTIONS = """
#include "broken.h"
static aj_tensor* leaf;
static int reads;
static aj_status* nap(void* self, aj_call* call) { usleep(1000); return twice(self, call); }
static aj_status* watch(void* self, aj_call* call) {
  (void)self;
  core->retain(leaf = argument(call)); /* for ever */
  return give_argument(call);
}
static aj_status* rest(aj_tensor* like) { /* parks Python's lock */
  aj_value arg, ret;
  memset(&arg, 0, sizeof arg), memset(&ret, 0, sizeof ret);
  arg.tag = AJ_TENSOR;
  arg.v.tensor = like;
  TRY(ops->call(ops->find_op(text("slate::nap")), &arg, 1, &ret, 1));
  core->release(ret.v.tensor);
  return 0;
}
static aj_status* look(aj_tensor* inside) {
  aj_tensor* now = 0;
  if (leaf) TRY(tape->grad(leaf, &now));
  core->release(now);
  reads++;
  return rest(inside);
}
static aj_status* shown(aj_tensor* x, aj_tensor** out) { /* of the key "slate", with x inside */
  aj_wrap w;
  memset(&w, 0, sizeof w);
  w.struct_size = sizeof w;
  w.key = slate_key;
  w.like = x->dl;
  w.like.strides = 0;
  w.payload = &x->obj;
  w.layout = AJ_LAYOUT_OPAQUE;
  return wraps->tensor_wrap(&w, out);
}
static aj_tensor* in(aj_tensor* t) {
  aj_object* p = wraps->tensor_payload(t, slate_key);
  return p ? (aj_tensor*)p : t;
}
static aj_status* add_gradient(void* self, aj_tensor* a, aj_tensor* b, aj_tensor** sum) {
  aj_value args[2], ret;
  (void)self;
  TRY(look(in(a)));
  memset(args, 0, sizeof args), memset(&ret, 0, sizeof ret);
  args[0].tag = args[1].tag = AJ_TENSOR;
  args[0].v.tensor = in(a);
  args[1].v.tensor = in(b);
  TRY(ops->call(ops->find_op(text("add")), args, 2, &ret, 1));
  aj_status* bad = shown(ret.v.tensor, sum);
  core->release(ret.v.tensor);
  return bad;
}
static aj_status* copied(void* self, aj_tensor* t, aj_tensor** out) {
  (void)self;
  TRY(look(in(t)));
  return shown(in(t), out);
}
static aj_status* told(void* self, aj_call* call) {
  (void)self, (void)call;
  call->rets[0].tag = AJ_INT;
  call->rets[0].v.i = reads;
  return 0;
}
static aj_status* more(const aj_plugin_env* env, const char* schema, const char* name, const char* kind, aj_kernel_fn fn, uint32_t flags) {
  aj_kernel_def k = good_kernel(fn);
  TRY(add_op(env, schema, kind, *kind ? 0 : AJ_OP_ALLOCATES));
  k.op = text(name);
  k.flags = flags;
  return ops->def_kernel(env->registrar, &k);
}
"""
INIT = """
  aj_wrapper_def d;
  begin(env);
  memset(&d, 0, sizeof d);
  d.settle = settle;
  d.copy = copied;
  d.add_gradient = add_gradient;
  TRY(wrappers(env, &d));
  TRY(more(env, "slate::nap(Tensor x) -> Tensor", "slate::nap", "unary", nap, AJ_KERNEL_BLOCKS_HOST));
  TRY(more(env, "slate::watch(Tensor x) -> Tensor", "slate::watch", "", watch, 0));
  return more(env, "slate::reads(Tensor x) -> int", "slate::reads", "", told, 0);
"""
BEGIN = """
import sys, threading
import adjoin
adjoin.load_plugin(sys.argv[1])
slate = adjoin.ops.slate
"""
PROGRAMS = {
    "it reads .grad": """
leaf = adjoin.zeros(4).requires_grad_()
slate.watch(leaf)
for i in range(3):
    leaf.backward(slate.go(adjoin.full((4,), 2.0 ** i)))
assert leaf.grad.tolist() == [7] * 4 and slate.reads(leaf) >= 2, (leaf.grad, slate.reads(leaf))
leaf.backward(adjoin.ones(4))
assert leaf.grad.tolist() == [8] * 4
leaf.grad = adjoin.ones(4)
leaf.backward(slate.go(adjoin.ones(4)))
assert leaf.grad.tolist() == [2] * 4
""",
    "the first one is copied": """
wrapped = slate.go(adjoin.zeros(4)).detach().requires_grad_()
slate.watch(wrapped)
kept = slate.go(adjoin.ones(4))
wrapped.backward(kept)
wrapped.backward(kept)
assert wrapped.grad.tolist() == [2] * 4 and slate.reads(adjoin.ones(1)) >= 1
""",
    "several threads": """
leaf = adjoin.zeros(4).requires_grad_()
slate.watch(leaf)
wide = sys.argv[2] == "mixed"
def add(worker):
    for i in range(20):
        g = adjoin.ones(4)
        leaf.backward(g if wide and worker % 2 else slate.go(g))
workers = [threading.Thread(target=add, args=(i,)) for i in range(4)]
for w in workers:
    w.start()
for w in workers:
    w.join()
assert leaf.grad.tolist() == [80] * 4, leaf.grad.tolist()
""",
}


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    text = source("acme", INIT, FUNCTIONS, provides="ops:slate;key:slate")
    flags = ["-w", "-D_GNU_SOURCE", "-std=gnu11", f"-I{HERE}"]
    return compile_plugin(tmp_path_factory.mktemp("lock"), text, "acme", "gcc", flags)


@pytest.mark.parametrize("kind", ["alike", "mixed"])
@pytest.mark.parametrize("case", PROGRAMS)
def test_gradients_are_added_without_a_lock(case, kind, plugin):
    path = os.pathsep.join(filter(None, [str(PREFIX / "lib/adjoin/python"), os.environ.get("PYTHONPATH")]))
    words = [sys.executable, "-c", BEGIN + PROGRAMS[case] + "print('held')", str(plugin), kind]
    got = subprocess.run(words, capture_output=True, text=True, env=clean_environment(PYTHONPATH=path), timeout=60)
    assert got.returncode == 0 and got.stdout == "held\n", got.stdout + got.stderr
