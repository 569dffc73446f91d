"""tests/abi/words_test.py: flags and reserved words: what the core does not know is refused by name, hints are ignored.

One plugin asks it all in its init and prints a line for each word: CALL WORD BIT CODE MESSAGE.
"""

import re

import pytest

from abi_tools import INCLUDE, TWICE, build_plugin

KNOWN = {  # the bits that today's headers give a meaning, of the 16 that must be understood
    "def_op": 0x7,
    "def_kernel": 0x77,
    "def_vjp": 0x7,
    "def_device": 0x1F,
    "node_new": 0x7,
    "backward": 0xF,
    "tensor_empty": 0,
    "tensor_from_memory": 0x40,
    "tensor_to_dlpack": 0x1,
    "frontend_register": 0,
}
WIDE = {"tensor_empty", "tensor_from_memory", "tensor_to_dlpack"}  # their flags are a uint64_t
# Definitions with a reserved word: its 0 is refused when it is something else.
RESERVED = ["def_kernel", "def_vjp", "node_new", "autocast", "autocast_lists"]

ASK = (
    TWICE
    + r"""
#include <adjoin/abi/autocast.h>
static const aj_core* core;
static const aj_dispatch* ops;
static const aj_autograd* autograd;
static const aj_plugin_env* env_;
static aj_tensor* tensor;
static char name[64];
static aj_str fresh(const char* form) { /* a name that nobody has yet */
  static int n;
  snprintf(name, sizeof name, form, n++);
  aj_str s = {name, strlen(name)};
  return s;
}
static void told(const char* what, const char* word, int bit, aj_status* s) {
  aj_str m = s ? core->status_message(s) : AJ_STR_LIT("");
  printf("%s %s %d %d %.*s\n", what, word, bit, s ? core->status_code(s) : 0, (int)m.len, m.data);
  core->status_free(s);
}
static aj_status* derivative(void* self, aj_grad_call* g) { return (void)self, (void)g, (aj_status*)0; }
static void keep(void* ctx) { (void)ctx; }
static aj_status* one(void* self, int32_t* out) { return (void)self, *out = 1, (aj_status*)0; }
static aj_status* def_op(uint64_t flags, uint32_t reserved) {
  aj_op_def d;
  (void)reserved;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.flags = (uint32_t)flags;
  d.schema = fresh("acme::op%d(Tensor x) -> Tensor");
  d.kind = AJ_STR_LIT("unary");
  return ops->def_op(env_->registrar, &d);
}
static aj_status* def_kernel(uint64_t flags, uint32_t reserved) {
  static int32_t priority;
  aj_kernel_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.flags = (uint32_t)flags;
  d.reserved = reserved;
  d.priority = --priority;
  d.op = AJ_STR_LIT("acme::twice");
  d.key = AJ_STR_LIT("cpu");
  d.fn = twice;
  return ops->def_kernel(env_->registrar, &d);
}
static aj_vjp_def vjp(uint64_t flags, uint32_t reserved) {
  aj_vjp_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.flags = (uint32_t)flags;
  d.reserved = reserved;
  d.vjp = derivative;
  return d;
}
static aj_status* def_vjp(uint64_t flags, uint32_t reserved) {
  aj_vjp_def d = vjp(flags, reserved);
  aj_status* bad = define_op(env_, fresh("acme::d%d(Tensor x) -> Tensor").data);
  *strchr(name, '(') = 0;
  d.op.data = name;
  d.op.len = strlen(name);
  return bad ? bad : autograd->def_vjp(env_->registrar, &d);
}
static aj_status* def_device(uint64_t flags, uint32_t reserved) {
  aj_device_vtbl v;
  (void)reserved;
  memset(&v, 0, sizeof v);
  v.struct_size = sizeof v;
  v.flags = (uint32_t)flags | AJ_DEV_SYNCHRONOUS;
  v.name = fresh("words%d");
  v.count = one;
  return env_->def_device(env_->registrar, &v);
}
static aj_status* node_new(uint64_t flags, uint32_t reserved) {
  aj_vjp_def d = vjp(flags, reserved);
  aj_node* n = 0;
  d.op = AJ_STR_LIT("words");
  aj_status* bad = autograd->node_new(&d, 0, &tensor, 1, &n);
  core->release(n);
  return bad;
}
static aj_status* backward(uint64_t flags, uint32_t reserved) {
  aj_backward b;
  (void)reserved;
  memset(&b, 0, sizeof b);
  b.struct_size = sizeof b;
  b.flags = (uint32_t)flags;
  b.roots = &tensor;
  b.nroots = 1;
  return autograd->backward(&b);
}
static aj_status* tensor_empty(uint64_t flags, uint32_t reserved) {
  aj_tensor* t = 0;
  (void)reserved;
  aj_status* bad = core->tensor_empty(&tensor->dl, flags, &t);
  core->release(t);
  return bad;
}
static aj_status* tensor_from_memory(uint64_t flags, uint32_t reserved) {
  static float memory[1];
  DLTensor like = tensor->dl;
  aj_tensor* t = 0;
  (void)reserved;
  like.data = memory;
  aj_status* bad = core->tensor_from_memory(&like, sizeof memory, flags, 0, keep, &t);
  core->release(t);
  return bad;
}
static aj_status* tensor_to_dlpack(uint64_t flags, uint32_t reserved) {
  DLManagedTensorVersioned* m = 0;
  aj_tensor* t = 0;
  (void)reserved;
  aj_status* bad = autograd->detach(tensor, &t);
  if (!bad) bad = core->tensor_to_dlpack(t, 0, flags, &m);
  if (m) m->deleter(m);
  core->release(t);
  return bad;
}
static aj_status* frontend_register(uint64_t flags, uint32_t reserved) {
  aj_frontend f;
  int32_t id;
  (void)reserved;
  memset(&f, 0, sizeof f);
  f.struct_size = sizeof f;
  f.flags = (uint32_t)flags;
  f.name = AJ_STR_LIT("words");
  return core->frontend_register(&f, &id);
}
static aj_status* autocast(uint64_t flags, uint32_t reserved) {
  aj_autocast before, next;
  (void)flags;
  memset(&before, 0, sizeof before);
  before.struct_size = sizeof before;
  aj_status* bad = ops->autocast(kDLCPU, &before, 0);
  next = before;
  next.reserved.lanes = (uint16_t)reserved;
  return bad ? bad : ops->autocast(kDLCPU, 0, &next);
}
static aj_status* autocast_lists(uint64_t flags, uint32_t reserved) {
  static aj_autocast_lists lists;
  aj_service_def s;
  (void)flags;
  memset(&s, 0, sizeof s);
  memset(&lists, 0, sizeof lists);
  lists.struct_size = sizeof lists;
  lists.reserved = reserved;
  lists.lists = AJ_STR_LIT("dtype bfloat16");
  s.struct_size = sizeof s;
  s.slot = AJ_STR_LIT("aj.autocast/words0");
  s.name = fresh("lists%d");
  s.table = &lists;
  return env_->def_service(env_->registrar, &s);
}
/* Frontends are few: their hints are tried all at once. */
static void ask(const char* what, aj_status* (*call)(uint64_t, uint32_t), int bits, int has_reserved) {
  for (int bit = 0; bit < bits; ++bit)
    if (bit < 16 || call != frontend_register) told(what, "flags", bit, call((uint64_t)1 << bit, 0));
  if (call == frontend_register) told(what, "flags", 16, call(0xffff0000u, 0));
  told(what, "reserved", 0, call(0, 0));
  if (has_reserved) told(what, "reserved", 1, call(0, 5));
}
"""
)
ASK_INIT = r"""
  int64_t shape[1] = {1};
  float values[1] = {1};
  DLTensor like;
  env_ = env;
  core = env->core;
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  autograd = (const aj_autograd*)env->query("aj.autograd", 1);
  memset(&like, 0, sizeof like);
  like.device.device_type = kDLCPU;
  like.ndim = 1;
  like.dtype.code = kDLFloat;
  like.dtype.bits = 32;
  like.dtype.lanes = 1;
  like.shape = shape;
  aj_status* bad = core->tensor_empty(&like, 0, &tensor);
  if (!bad) bad = core->tensor_copy_bytes(tensor, values, sizeof values, 0);
  if (!bad) bad = autograd->set_requires_grad(tensor, 1);
  if (!bad) bad = define_op(env, "acme::twice(Tensor x) -> Tensor");
  if (!bad) bad = define_kernel(env, "acme::twice", 0);
  if (bad) return bad;
""" + "".join(
    f'  ask("{call}", {call}, {64 if call in WIDE else 32 if call in KNOWN else 0}, {int(call in RESERVED)});\n'
    for call in dict.fromkeys([*KNOWN, *RESERVED])
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory, host):
    """{(call, word, bit): (code, message)}"""
    plugin = build_plugin(tmp_path_factory.mktemp("words"), extra=ASK, init=ASK_INIT + "fflush(stdout); return 0;")
    got = host("load", plugin)
    assert got.returncode == 0 and got.stdout.endswith("ok load\n"), got.stdout + got.stderr
    rows = re.findall(r"^(\w+) (\w+) (\d+) (\d+) ?(.*)$", got.stdout, re.M)
    return {(call, word, int(bit)): (int(code), text) for call, word, bit, code, text in rows}


@pytest.mark.parametrize("call", KNOWN)
def test_unknown_low_flags_are_refused_by_name(call, answers):
    for bit in range(16):
        code, text = answers[call, "flags", bit]
        if not KNOWN[call] >> bit & 1:
            assert code == 12 and call.removeprefix("tensor_") in text and re.search(rf"\b{1 << bit}\b", text), (
                bit,
                text,
            )


@pytest.mark.parametrize("call", KNOWN)
def test_unknown_hints_are_ignored(call, answers):
    assert answers[call, "reserved", 0] == (0, ""), "the same without a flag"
    for bit in range(16, 64 if call in WIDE else 32):
        assert answers.get((call, "flags", bit), (0, "")) == (0, ""), bit
    assert (call, "flags", 16) in answers


@pytest.mark.parametrize("call", RESERVED)
def test_reserved_words_are_zero(call, answers):
    code, text = answers[call, "reserved", 1]
    assert answers[call, "reserved", 0] == (0, "")
    assert code == 3 and call.removesuffix("_lists") in text and "reserved" in text and "5" in text, text


def test_known_flags_are_those_of_the_headers():
    """A new flag has its row here."""
    enums = {"def_op": "OP", "def_kernel": "KERNEL", "def_vjp": "VJP", "def_device": "DEV", "backward": "BACKWARD"}
    for call, word in enums.items():
        text = "".join(h.read_text() for h in (INCLUDE / "adjoin/abi").glob("*.h"))
        bits = [int(b) for b in re.findall(rf"\bAJ_{word}_\w+ = 1u << (\d+)", text)]
        assert sum(1 << b for b in bits if b < 16) == KNOWN[call], call
