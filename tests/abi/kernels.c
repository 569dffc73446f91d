/* tests/abi/kernels.c: kernels that break their promises, decline, loop; a device of host memory
 * that has not even copy_. */
#include <adjoin/abi/capi.h>
#include <adjoin/abi/core.h>
#include <adjoin/abi/device.h>
#include <adjoin/abi/op.h>
#include <adjoin/abi/plugin.h>
#include <string.h>
#include <unistd.h>

AJ_PLUGIN_NOTE("vega", "0.1", "Acme Corp", "Apache-2.0", "device:vega;device:lyra;ops:vega", "");

static const aj_core* core;
static const aj_dispatch* ops;

static aj_status* fail(int32_t code, const char* text) {
  return core->status_new(code, (aj_str){"", 0}, (aj_str){text, strlen(text)}, "", 0);
}
static aj_status* like_first(void* self, aj_call* call) {
  (void)self;
  const DLTensor* t = &call->args[0].v.tensor->dl;
  return ops->declare(call, 0, t->dtype, t->ndim, t->shape, NULL);
}
static aj_status* nothing(void* self, aj_call* call) { return (void)self, (void)call, NULL; }
static aj_status* number(void* self, aj_call* call) {
  (void)self;
  call->rets[0] = (aj_value){AJ_INT, 0, {7}};
  return NULL;
}
static aj_status* no_pointer(void* self, aj_call* call) {
  (void)self;
  call->rets[0] = (aj_value){AJ_TENSOR, 0, {0}};
  return NULL;
}
static aj_status* reads_result(void* self, aj_call* call) {
  (void)self;
  *(float*)call->rets[0].v.tensor->dl.data = 1;
  return NULL;
}
static aj_status* calls_itself(void* self, aj_call* call) {
  (void)self;
  return ops->call(call->op, call->args, call->nargs, call->rets, call->nrets);
}
static aj_status* broken(void* self, aj_call* call) {
  return (void)self, (void)call, fail(AJ_INTERNAL, "broken half way");
}
static aj_status* misused(void* self, aj_call* call) {
  return (void)self, (void)call, fail(AJ_INVALID_ARGUMENT, "misused: the number must be odd");
}
static aj_status* no_utf8(void* self, aj_call* call) {
  return (void)self, (void)call, fail(AJ_INTERNAL, "caf\xe9");
}
static aj_status* polls(void* self, aj_call* call) {
  (void)self, (void)call;
  for (int i = 0; i < 2000; ++i) {
    if (core->interrupted()) return fail(AJ_CANCELLED, "stopped");
    usleep(10000);
  }
  return NULL;
}
static aj_status* sleeps(void* self, aj_call* call) {
  return (void)self, (void)call, usleep(1500000), NULL;
}
static aj_status* declines(void* self, aj_call* call) {
  return (void)self, (void)call, fail(AJ_UNIMPLEMENTED, "not for me");
}
static float value;
static aj_status* fills(void* self, aj_call* call) {
  float* out = call->plan ? call->plan->ops[0].data : call->rets[0].v.tensor->dl.data;
  int64_t n = 1;
  const DLTensor* t = &call->rets[0].v.tensor->dl;
  for (int d = 0; d < t->ndim; ++d) n *= t->shape[d];
  for (int64_t i = 0; i < n; ++i) out[i] = *(float*)self;
  return (void)value, NULL;
}
/* Another tensor in place of the one that is there, which goes, as a ret is owned. */
static aj_status* replaces(void* self, aj_call* call) {
  aj_tensor* there = call->rets[0].v.tensor;
  DLTensor like = there->dl;
  like.strides = NULL;
  aj_tensor* made;
  aj_status* bad = core->tensor_empty(&like, 0, &made);
  if (bad) return bad;
  int64_t n = 1;
  for (int d = 0; d < like.ndim; ++d) n *= like.shape[d];
  for (int64_t i = 0; i < n; ++i) ((float*)made->dl.data)[i] = *(float*)self;
  core->release(&there->obj);
  call->rets[0].v.tensor = made;
  return NULL;
}
static aj_status* vanishes(void* self, aj_call* call) {
  (void)self;
  core->release(call->rets[0].v.object);
  call->rets[0] = (aj_value){AJ_NONE, 0, {0}};
  return NULL;
}
static aj_status* vanishes_and_fails(void* self, aj_call* call) {
  aj_status* none = vanishes(self, call);
  return none ? none : fail(AJ_INTERNAL, "went away");
}
static aj_status* twice(void* self, aj_call* call) {
  (void)self;
  aj_value both[3] = {call->args[0], call->args[0], {AJ_INT, 0, {1}}};
  return ops->call(ops->find_op((aj_str){"add", 3}), both, 2, call->rets, 1);
}
static int32_t flat_only(void* self, const aj_call* call) {
  (void)self;
  return call->plan && (call->plan->flags & AJ_PLAN_FLAT);
}
static aj_status* count(void* self, int32_t* out) { return (void)self, *out = 1, NULL; }
static aj_status* stuck(void* self, int32_t dev, void* stream) {
  (void)self, (void)dev, (void)stream;
  for (unsigned left = 20; left;) left = sleep(left); /* not even a signal wakes it */
  return NULL;
}
static aj_status* never_done(void* self, int32_t dev, void* at, int32_t* done) {
  (void)self, (void)dev, (void)at;
  *done = 0;
  return NULL;
}
static aj_status* event_new(void* self, int32_t dev, uint32_t flags, void** out) {
  (void)self, (void)dev, (void)flags;
  *out = &value;
  return NULL;
}
static aj_status* event_record(void* self, int32_t dev, void* event, void* stream) {
  return (void)self, (void)dev, (void)event, (void)stream, NULL;
}
static aj_status* event_free(void* self, int32_t dev, void* event) {
  return (void)self, (void)dev, (void)event, NULL;
}

static const char* tags = "";
static aj_status* def_op(const aj_plugin_env* env, const char* schema, const char* kind,
                         uint32_t flags, aj_status* (*infer)(void*, aj_call*), aj_kernel_fn body) {
  aj_op_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.flags = flags;
  d.schema = (aj_str){schema, strlen(schema)};
  d.kind = (aj_str){kind, strlen(kind)};
  d.tags = (aj_str){tags, strlen(tags)};
  d.infer = infer;
  d.body = body;
  return ops->def_op(env->registrar, &d);
}
static aj_status* def_kernel(const aj_plugin_env* env, const char* op, const char* key,
                             aj_kernel_fn fn, float* self, int32_t priority, uint32_t flags,
                             int32_t (*can_run)(void*, const aj_call*)) {
  aj_kernel_def k;
  memset(&k, 0, sizeof k);
  k.struct_size = sizeof k;
  k.flags = flags;
  k.op = (aj_str){op, strlen(op)};
  k.key = (aj_str){key, strlen(key)};
  k.priority = priority;
  k.fn = fn;
  k.self = self;
  k.can_run = can_run;
  return ops->def_kernel(env->registrar, &k);
}

#define TRY(x)            \
  do {                    \
    aj_status* bad = (x); \
    if (bad) return bad;  \
  } while (0)
#define PLANNED(name, kind, params, fn)                                                  \
  TRY(def_op(env, "vega::" name "(Tensor x" params ") -> Tensor", kind, 0, NULL, NULL)); \
  TRY(def_kernel(env, "vega::" name, "cpu", fn, &two, 0, 0, NULL))
#define UNARY(name, infer, flags, fn)                                                   \
  TRY(def_op(env, "vega::" name "(Tensor x) -> Tensor", "custom", flags, infer, NULL)); \
  TRY(def_kernel(env, "vega::" name, "cpu", fn, NULL, 0, 0, NULL))

AJ_PLUGIN_INIT {
  static float one = 1, two = 2;
  core = env->core;
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  UNARY("empty", NULL, AJ_OP_ALLOCATES, nothing);
  UNARY("number", NULL, AJ_OP_ALLOCATES, number);
  UNARY("no_pointer", NULL, AJ_OP_ALLOCATES, no_pointer);
  UNARY("undeclared", nothing, 0, reads_result);
  UNARY("broken", like_first, 0, broken);
  UNARY("misused", like_first, 0, misused);
  UNARY("no_utf8", like_first, 0, no_utf8);
  UNARY("polls", like_first, 0, polls);
  UNARY("sleeps", like_first, 0, sleeps);
  UNARY("kernel_in_kernel", like_first, 0, calls_itself);
  UNARY("refuses", like_first, 0, declines);
  TRY(def_op(env, "vega::no_view(Tensor(a) x) -> Tensor(a)", "view", 0, nothing, NULL));
  TRY(def_op(env, "vega::body_of_body(Tensor x) -> Tensor", "custom", 0, NULL, calls_itself));
  TRY(def_op(env, "vega::body_of_nothing(Tensor x) -> Tensor", "custom", 0, NULL, nothing));
  TRY(def_op(env, "vega::next(Tensor x) -> Tensor", "custom", 0, like_first, NULL));
  TRY(def_kernel(env, "vega::next", "cpu", declines, NULL, 9, 0, NULL));
  TRY(def_kernel(env, "vega::next", "cpu", fills, &two, 1, 0, NULL));
  TRY(def_op(env, "vega::to_body(Tensor x) -> Tensor", "custom", 0, NULL, twice));
  TRY(def_kernel(env, "vega::to_body", "cpu", declines, NULL, 9, 0, NULL));
  TRY(def_op(env, "vega::pointwise(Tensor x, Operand y) -> Tensor", "binary", 0, NULL, NULL));
  TRY(def_kernel(env, "vega::pointwise", "cpu", fills, &one, 9, AJ_KERNEL_CALL_DEPENDENT,
                 flat_only));
  TRY(def_kernel(env, "vega::pointwise", "cpu", fills, &two, 1, 0, NULL));
  TRY(def_op(env, "vega::flat(Tensor x, Operand y) -> Tensor", "binary", 0, NULL, NULL));
  TRY(def_kernel(env, "vega::flat", "cpu", fills, &one, 9, AJ_KERNEL_CALL_DEPENDENT, flat_only));

  PLANNED("other", "unary", "", replaces);
  PLANNED("other_of_two", "binary", ", Operand y", replaces);
  PLANNED("other_sum", "reduce", ", dim[]? dim=None, bool keepdim=False", replaces);
  PLANNED("vanished", "unary", "", vanishes);
  PLANNED("vanished_too", "unary", "", vanishes_and_fails);
  TRY(def_op(env, "vega::new(Tensor x) -> Tensor", "custom", 0, like_first, NULL));
  TRY(def_kernel(env, "vega::new", "cpu", replaces, &two, 0, 0, NULL));
  tags = "autocast:low";
  TRY(def_op(env, "vega::low(Tensor x) -> Tensor", "custom", 0, like_first, NULL));
  TRY(def_kernel(env, "vega::low", "cpu", nothing, NULL, 0, 0, NULL));
  tags = "autocast:float32";
  TRY(def_op(env, "vega::high(Tensor x) -> Tensor", "custom", 0, like_first, NULL));
  TRY(def_kernel(env, "vega::high", "cpu", nothing, NULL, 0, 0, NULL));

  aj_device_vtbl d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.flags = AJ_DEV_HOST_MEMORY | AJ_DEV_HOST_THREADS | AJ_DEV_SYNCHRONOUS;
  d.name = AJ_STR_LIT("vega");
  d.count = count;
  TRY(env->def_device(env->registrar, &d));
  d.flags = AJ_DEV_HOST_MEMORY;
  d.name = AJ_STR_LIT("lyra");
  d.stream_sync = stuck;
  d.stream_query = never_done;
  d.event_sync = stuck;
  d.event_query = never_done;
  d.event_new = event_new;
  d.event_record = event_record;
  d.event_free = event_free;
  return env->def_device(env->registrar, &d);
}
