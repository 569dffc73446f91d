"""tests/abi/endless_test.py: a kernel whose calls lead back to it is refused before the stack ends, with op, key and plugin."""

import pytest

from abi_tools import build_plugin, run_python

EXTRA = """
static const aj_dispatch* ops;
static uint64_t key, above;
static aj_str text(const char* s) { aj_str t = {s, strlen(s)}; return t; }
/* Its own key stands among those that it passes on. */
static aj_status* again(void* self, aj_call* call) {
  return ops->redispatch(call->op, call->keys | *(uint64_t*)self, call->args, call->nargs, call->rets, call->nrets);
}
/* By the whole call, with nothing excluded. */
static aj_status* bare(void* self, aj_call* call) {
  uint64_t in, out;
  ops->thread_keys(&in, &out);
  ops->set_thread_keys(in | *(uint64_t*)self, 0);
  aj_status* bad = ops->call(call->op, call->args, call->nargs, call->rets, call->nrets);
  ops->set_thread_keys(in, out);
  return bad;
}
/* Two that lead to each other. */
static aj_status* other(void* self, aj_call* call) {
  uint64_t in, out;
  ops->thread_keys(&in, &out);
  ops->set_thread_keys(in, 0);
  aj_status* bad = ops->call(ops->find_op(text((const char*)self)), call->args, call->nargs, call->rets, call->nrets);
  ops->set_thread_keys(in, out);
  return bad;
}
/* A device's kernel that calls its op. */
static aj_status* same(void* self, aj_call* call) {
  aj_value ret;
  (void)self;
  memset(&ret, 0, sizeof ret);
  return ops->call(call->op, call->args, call->nargs, &ret, 1);
}
static aj_status* kernel(const aj_plugin_env* env, const char* op, const char* at, aj_kernel_fn fn, void* self) {
  aj_kernel_def k;
  memset(&k, 0, sizeof k);
  k.struct_size = sizeof k;
  k.op = text(op);
  k.key = text(at);
  k.fn = fn;
  k.self = self;
  return ops->def_kernel(env->registrar, &k);
}
static aj_status* op(const aj_plugin_env* env, const char* schema, const char* kind) {
  aj_op_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.schema = text(schema);
  d.kind = text(kind);
  return ops->def_op(env->registrar, &d);
}
#define TRY(x) do { aj_status* bad_ = (x); if (bad_) return bad_; } while (0)
"""
INIT = """
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  TRY(ops->def_key(env->registrar, text("loop"), AJ_KEY_BELOW_AUTOGRAD, &key));
  TRY(ops->def_key(env->registrar, text("loopall"), AJ_KEY_ABOVE_AUTOGRAD, &above));
  TRY(kernel(env, "neg", "loop", again, &key));
  TRY(kernel(env, "abs", "loop", bare, &key));
  TRY(kernel(env, "sin", "loop", other, (void*)"cos"));
  TRY(kernel(env, "cos", "loop", other, (void*)"sin"));
  TRY(ops->def_fallback(env->registrar, text("loopall"), again, &above));
  TRY(op(env, "acme::go(Tensor x) -> Tensor", "unary"));
  TRY(kernel(env, "acme::go", "cpu", same, 0));
  TRY(op(env, "acme::all(Tensor x, dim[] dim, bool keepdim=False) -> Tensor", "reduce"));
  return kernel(env, "acme::all", "cpu", same, 0);
"""
LOOK = """
import sys, threading
import adjoin
adjoin.load_plugin(sys.argv[1] if len(sys.argv) > 1 else PLUGIN)
x = adjoin.tensor([1.0, -2.0])
def told(f):
    try:
        print("gave", f())
    except RuntimeError as e:
        print(e)
def under(name, f):
    with adjoin.plugin.key(name):
        told(f)
def look():
    CALL
look()
t = threading.Thread(target=look)  # with another stack
t.start()
t.join()
assert (-x).tolist() == [-1, 2] and x.cos().shape == (2,)
print("alive")
"""
AT = ": the kernel of plugin 'acme' at key '{}' leads back to itself until the stack ends; "
KEY = AT + "pass call->keys on, and leave its key in what the thread excludes"
DEVICE = AT.format("cpu") + "it calls the op that it serves"
WAYS = {
    "under('loop', lambda: x.neg())": {"neg" + KEY.format("loop")},
    "under('loop', lambda: adjoin.neg(x, out=adjoin.zeros(2)))": {"neg" + KEY.format("loop")},
    "under('loop', lambda: x.clone().neg_())": {"neg" + KEY.format("loop")},
    "under('loop', lambda: x.abs())": {"abs" + KEY.format("loop")},
    "under('loop', lambda: x.sin())": {"sin" + KEY.format("loop"), "cos" + KEY.format("loop")},
    "under('loopall', lambda: x.exp())": {"exp" + KEY.format("loopall")},
    "told(lambda: adjoin.ops.acme.go(x))": {"go" + DEVICE},
    "told(lambda: adjoin.ops.acme.all(x, [0]))": {"all" + DEVICE},
}


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    provides = "ops:acme;key:loop;key:loopall"
    return build_plugin(
        tmp_path_factory.mktemp("endless"), flags=["-Werror"], init=INIT, extra=EXTRA, provides=provides
    )


@pytest.mark.parametrize("way", WAYS)
def test_it_is_refused_with_op_key_and_plugin(way, plugin):
    got = run_python(f"PLUGIN = {str(plugin)!r}\n" + LOOK.replace("CALL", way))
    assert got.returncode == 0, (got.returncode, got.stderr[-2000:])
    *told, last = got.stdout.splitlines()
    assert last == "alive" and len(told) == 2 and set(told) <= WAYS[way], got.stdout[-2000:]
