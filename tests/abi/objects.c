/* tests/abi/objects.c: ops whose arguments and results are objects of a registered type, functions
 * and streams. */
#include <adjoin/abi/plugin.h>
#include <stdio.h>
#include <string.h>

AJ_PLUGIN_NOTE("objects", "0.1.0", "", "Apache-2.0", "ops:acme", "");

static const aj_core* core;
static const aj_dispatch* ops;
static int32_t plan_type, other_type;

static void plan_dies(void* payload) {
  printf("plan %lld dies\n", (long long)*(int64_t*)payload);
  fflush(stdout);
}
static aj_status* make(int32_t type, int64_t by, aj_value* ret) {
  void* payload;
  aj_status* bad = core->object_new(type, &ret->v.object, &payload);
  if (bad) return bad;
  ret->tag = AJ_OBJECT;
  *(int64_t*)payload = by;
  return NULL;
}
static aj_status* make_plan(void* self, aj_call* call) {
  (void)self;
  return make(plan_type, call->args[1].v.i, &call->rets[0]);
}
static aj_status* make_other(void* self, aj_call* call) {
  (void)self;
  return make(other_type, 0, &call->rets[0]);
}
/* x * (the plan's number) by the op mul. */
static aj_status* run_plan(void* self, aj_call* call) {
  aj_value args[2];
  (void)self;
  memset(args, 0, sizeof args);
  args[0] = call->args[0];
  args[1].tag = AJ_INT;
  args[1].v.i =
      call->args[1].tag == AJ_NONE ? 1 : *(int64_t*)core->object_payload(call->args[1].v.object);
  return ops->call(ops->find_op(AJ_STR_LIT("mul")), args, 2, call->rets, 1);
}
/* f(x, 3, "three"), whatever it gives. */
static aj_status* apply(void* self, aj_call* call) {
  aj_value args[3];
  (void)self;
  memset(args, 0, sizeof args);
  args[0] = call->args[0];
  args[1].tag = AJ_INT;
  args[1].v.i = 3;
  args[2].tag = AJ_STRING;
  args[2].aux = 5;
  args[2].v.str = "three";
  return core->function_call(call->args[1].v.object, args, 3, &call->rets[0]);
}
/* f of one value of every tag that points to memory of somebody, and of some that do not. */
static aj_status* apply_all(void* self, aj_call* call) {
  static const int64_t ints[2] = {1, 2};
  static const double floats[2] = {0.5, 2};
  static const uint8_t bools[2] = {0, 1};
  aj_value v[9];
  aj_tensor* tensors[2] = {call->args[0].v.tensor, call->args[0].v.tensor};
  (void)self;
  memset(v, 0, sizeof v);
  v[0].tag = AJ_INTS, v[0].aux = 2, v[0].v.ints = ints;
  v[1].tag = AJ_FLOATS, v[1].aux = 2, v[1].v.floats = floats;
  v[2].tag = AJ_BOOLS, v[2].aux = 2, v[2].v.bools = bools;
  v[3].tag = AJ_TENSORS, v[3].aux = 2, v[3].v.tensors = tensors;
  v[4].tag = AJ_COMPLEX, v[4].v.c128 = floats;
  v[5].tag = AJ_DTYPE, v[5].v.dtype = tensors[0]->dl.dtype;
  v[6].tag = AJ_DEVICE, v[6].v.device = tensors[0]->dl.device;
  v[7].tag = AJ_BOOL, v[7].v.i = 1;
  return core->function_call(call->args[1].v.object, v, 9, &call->rets[0]);
}
static aj_status* twice(void* self, const aj_value* args, uint32_t nargs, aj_value* ret) {
  aj_value both[2];
  (void)self;
  if (nargs != 1)
    return core->status_new(AJ_INVALID_ARGUMENT, AJ_STR_LIT(""), AJ_STR_LIT("twice takes one"),
                            NULL, 0);
  both[0] = both[1] = args[0];
  return ops->call(ops->find_op(AJ_STR_LIT("add")), both, 2, ret, 1);
}
static void dropped(void* self) { puts((const char*)self), fflush(stdout); }
static aj_status* make_function(void* self, aj_call* call) {
  (void)self;
  call->rets[0].tag = AJ_FUNCTION;
  aj_status* bad = core->function_new(twice, (void*)"twice dies", dropped, &call->rets[0].v.object);
  if (bad) call->rets[0].tag = AJ_NONE;
  return bad;
}
/* The id of the stream's device, or -1. */
static aj_status* stream_device(void* self, aj_call* call) {
  DLDevice device;
  void* native;
  (void)self;
  call->rets[0].tag = AJ_INT;
  call->rets[0].v.i = -1;
  if (call->args[1].tag == AJ_NONE) return NULL;
  aj_status* bad = core->stream_get(call->args[1].v.object, &device, &native);
  if (!bad) call->rets[0].v.i = 100 * device.device_type + device.device_id;
  return bad;
}
static aj_status* make_stream(void* self, aj_call* call) {
  (void)self;
  call->rets[0].tag = AJ_STREAM;
  aj_status* bad =
      core->stream_new(call->args[0].v.tensor->dl.device, NULL, &call->rets[0].v.object);
  if (bad) call->rets[0].tag = AJ_NONE;
  return bad;
}

/* x as the dtype. */
static aj_status* named(void* self, aj_call* call) {
  aj_value args[2];
  (void)self;
  args[0] = call->args[0], args[1] = call->args[2];
  return ops->call(ops->find_op(AJ_STR_LIT("to")), args, 2, call->rets, 1);
}

static aj_status* define(const aj_plugin_env* env, const char* schema, const char* name,
                         aj_kernel_fn fn) {
  aj_op_def op;
  aj_kernel_def kernel;
  memset(&op, 0, sizeof op);
  memset(&kernel, 0, sizeof kernel);
  op.struct_size = sizeof op;
  op.flags = AJ_OP_ALLOCATES;
  op.schema.data = schema;
  op.schema.len = strlen(schema);
  kernel.struct_size = sizeof kernel;
  kernel.op.data = name;
  kernel.op.len = strlen(name);
  kernel.key = AJ_STR_LIT("cpu");
  kernel.fn = fn;
  aj_status* bad = ops->def_op(env->registrar, &op);
  return bad ? bad : ops->def_kernel(env->registrar, &kernel);
}

AJ_PLUGIN_INIT {
  core = env->core;
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  aj_status* bad =
      core->type_register(AJ_STR_LIT("acme::plan"), sizeof(int64_t), plan_dies, &plan_type);
  if (!bad)
    bad = core->type_register(AJ_STR_LIT("acme::other"), sizeof(int64_t), NULL, &other_type);
#define OP(name, rest, fn) \
  if (!bad) bad = define(env, "acme::" name rest, "acme::" name, fn)
  OP("make_plan", "(Tensor like, int by=2) -> Object<acme::plan>", make_plan);
  OP("make_other", "(Tensor like) -> Object<acme::other>", make_other);
  OP("run_plan", "(Tensor x, Object<acme::plan> plan) -> Tensor", run_plan);
  OP("run_maybe", "(Tensor x, Object<acme::plan>? plan=None) -> Tensor", run_plan);
  OP("run_any", "(Tensor x, Object plan) -> Tensor", run_plan);
  OP("apply", "(Tensor x, Function f) -> Operand?", apply);
  OP("apply_all", "(Tensor x, Function f) -> Operand?", apply_all);
  OP("make_function", "(Tensor like) -> Function", make_function);
  OP("stream_device", "(Tensor x, Stream? stream=None) -> int", stream_device);
  OP("make_stream", "(Tensor like) -> Stream", make_stream);
  OP("named", "(Tensor x, str[]? names=None, dtype dtype=float64) -> Tensor", named);
  return bad;
}
