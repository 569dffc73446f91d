/* tests/abi/broken.h: what the plugins of broken_test.py have in common: good parts, of which each
 * replaces one by a bad one. C99 and C++20. The plugin is called "acme"; its ops, its device and
 * its key are called "slate", so that a message with "acme" names the plugin and nothing else. */
#include <adjoin/abi/capi.h>
#include <adjoin/abi/wrap.h>
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNUSED __attribute__((unused)) static
#define TRY(x)             \
  do {                     \
    aj_status* bad_ = (x); \
    if (bad_) return bad_; \
  } while (0)
static const aj_core* core;
static const aj_dispatch* ops;
static const aj_autograd* tape;
static const aj_wrappers* wraps;
static uint64_t slate_key;
static int32_t slate_type, other_type;

UNUSED aj_str text(const char* s) {
  aj_str t = {s, s ? strlen(s) : 0};
  return t;
}
UNUSED aj_status* fails(const char* what) {
  return core->status_new(AJ_INTERNAL, text(""), text(what), "", 0);
}
UNUSED void begin(const aj_plugin_env* env) {
  core = env->core;
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  tape = (const aj_autograd*)env->query("aj.autograd", 1);
  wraps = (const aj_wrappers*)env->query("x.wrap", 1);
}

/* slate::go(x) = 2 x, or what a row makes of it. */
UNUSED aj_status* twice(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  (void)self;
  for (int64_t i = 0; i < p->sizes[0]; ++i)
    *(float*)((char*)p->ops[0].data + i * p->ops[0].strides[0]) =
        2 * *(const float*)((const char*)p->ops[1].data + i * p->ops[1].strides[0]);
  return 0;
}
UNUSED aj_status* nothing(void* self, aj_call* call) {
  return (void)self, (void)call, (aj_status*)0;
}
UNUSED aj_op_def good_op(const char* schema) {
  aj_op_def op;
  memset(&op, 0, sizeof op);
  op.struct_size = sizeof op;
  op.schema = text(schema);
  return op;
}
UNUSED aj_kernel_def good_kernel(aj_kernel_fn fn) {
  aj_kernel_def k;
  memset(&k, 0, sizeof k);
  k.struct_size = sizeof k;
  k.op = text("slate::go");
  k.key = text("cpu");
  k.fn = fn;
  return k;
}
UNUSED aj_status* add_kernel(const aj_plugin_env* env, aj_kernel_fn fn) {
  aj_kernel_def k = good_kernel(fn);
  return ops->def_kernel(env->registrar, &k);
}
UNUSED aj_status* add_op(const aj_plugin_env* env, const char* schema, const char* kind,
                         uint32_t flags) {
  aj_op_def op = good_op(schema);
  op.kind = text(kind);
  op.flags = flags;
  return ops->def_op(env->registrar, &op);
}
UNUSED aj_status* pointwise(const aj_plugin_env* env, aj_kernel_fn fn) {
  TRY(add_op(env, "slate::go(Tensor x) -> Tensor", "unary", 0));
  return add_kernel(env, fn);
}
UNUSED aj_status* allocating(const aj_plugin_env* env, aj_kernel_fn fn) {
  TRY(add_op(env, "slate::go(Tensor x) -> Tensor", "", AJ_OP_ALLOCATES));
  return add_kernel(env, fn);
}
UNUSED aj_status* inferred(const aj_plugin_env* env, const char* schema, const char* kind,
                           aj_status* (*infer)(void*, aj_call*)) {
  aj_op_def op = good_op(schema);
  op.kind = text(kind);
  op.infer = infer;
  TRY(ops->def_op(env->registrar, &op));
  return add_kernel(env, nothing);
}
UNUSED aj_vjp_def good_vjp(aj_status* (*fn)(void*, aj_grad_call*)) {
  aj_vjp_def v;
  memset(&v, 0, sizeof v);
  v.struct_size = sizeof v;
  v.op = text("slate::go");
  v.vjp = fn;
  return v;
}
UNUSED aj_status* same_grad(void* self, aj_grad_call* g) {
  (void)self;
  core->retain(g->grad_in[0] = g->grad_out[0]);
  return 0;
}
UNUSED aj_status* derived(const aj_plugin_env* env, aj_status* (*fn)(void*, aj_grad_call*)) {
  aj_vjp_def v = good_vjp(fn);
  TRY(pointwise(env, twice));
  return tape->def_vjp(env->registrar, &v);
}
UNUSED aj_tensor* argument(const aj_call* call) { return call->args[0].v.tensor; }
UNUSED aj_status* give(aj_call* call, aj_tensor* t) {
  call->rets[0].tag = AJ_TENSOR;
  call->rets[0].aux = 0;
  call->rets[0].v.tensor = t;
  return 0;
}
UNUSED aj_status* give_argument(aj_call* call) {
  core->retain(argument(call));
  return give(call, argument(call));
}

/* The device "slate": memory of the host that is not the host's to use. */
UNUSED aj_status* count(void* self, int32_t* out) { return (void)self, *out = 1, (aj_status*)0; }
UNUSED aj_status* mem_alloc(void* self, int32_t dev, uint64_t bytes, uint32_t kind, void** out) {
  (void)self, (void)dev, (void)kind;
  *out = aligned_alloc(64, (bytes + 64) / 64 * 64);
  return 0;
}
UNUSED aj_status* mem_free(void* self, int32_t dev, void* p, uint64_t bytes, uint32_t kind) {
  (void)self, (void)dev, (void)bytes, (void)kind;
  free(p);
  return 0;
}
UNUSED aj_status* copy(void* self, const aj_copy* c) {
  (void)self;
  memcpy(c->dst, c->src, c->width * c->height);
  return 0;
}
UNUSED aj_device_vtbl good_device(void) {
  aj_device_vtbl v;
  memset(&v, 0, sizeof v);
  v.struct_size = sizeof v;
  v.flags = AJ_DEV_SYNCHRONOUS;
  v.name = text("slate");
  v.count = count;
  v.mem_alloc = mem_alloc;
  v.mem_free = mem_free;
  v.copy = copy;
  return v;
}
#define DEVICE(change)              \
  aj_device_vtbl v = good_device(); \
  change;                           \
  return env->def_device(env->registrar, &v)

UNUSED aj_status* service(const aj_plugin_env* env, const char* slot, const void* table) {
  aj_service_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.priority = 1000;
  d.slot = text(slot);
  d.name = text("slate");
  d.table = table;
  return env->def_service(env->registrar, &d);
}

/* slate::go(x) is a tensor of the key "slate" with x inside. */
UNUSED aj_status* wrap(void* self, aj_call* call) {
  aj_tensor *x = argument(call), *out = 0;
  aj_wrap w;
  (void)self;
  memset(&w, 0, sizeof w);
  w.struct_size = sizeof w;
  w.key = slate_key;
  w.like = x->dl;
  w.like.strides = 0;
  w.payload = &x->obj;
  w.layout = AJ_LAYOUT_OPAQUE;
  TRY(wraps->tensor_wrap(&w, &out));
  return give(call, out);
}
UNUSED aj_status* settle(void* self, aj_tensor* t, aj_tensor** out) {
  (void)self;
  core->retain(*out = (aj_tensor*)wraps->tensor_payload(t, slate_key));
  return 0;
}
UNUSED aj_status* wrappers(const aj_plugin_env* env, aj_wrapper_def* d) {
  aj_vjp_def v = good_vjp(same_grad);
  TRY(ops->def_key(env->registrar, text("slate"), AJ_KEY_BELOW_AUTOGRAD, &slate_key));
  d->struct_size = sizeof *d;
  d->key = text("slate");
  TRY(wraps->def_wrapper(env->registrar, d));
  TRY(allocating(env, wrap));
  return tape->def_vjp(env->registrar, &v);
}
#define WRAPPER(change)    \
  aj_wrapper_def d;        \
  memset(&d, 0, sizeof d); \
  d.settle = settle;       \
  change;                  \
  return wrappers(env, &d)

UNUSED aj_status* new_tensor(const aj_tensor* like, int64_t size, DLDataType dtype,
                             aj_tensor** out) {
  DLTensor dl;
  memset(&dl, 0, sizeof dl);
  dl.device = like->dl.device;
  dl.ndim = 1;
  dl.dtype = dtype;
  dl.shape = &size;
  return core->tensor_empty(&dl, 0, out);
}
