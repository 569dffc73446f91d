/* key.c: two dispatch keys, "NAME.above" and "NAME.below" the tape: fallbacks that count and pass on, kernels that leave the
 * tensor to be written in its slot, pass it on, replace it, decline; arguments that are changed on the way. */
#include "../golden.h"

AJ_PLUGIN_NOTE(NAME, "1.0", "Golden", "Apache-2.0", "ops:" NAME ";key:" NAME "_above;key:" NAME "_below", "");

static int64_t passed, served;

static aj_status* pass(void* self, aj_call* call) {
  (void)self;
  __atomic_fetch_add(&passed, 1, __ATOMIC_RELAXED);
  return ops->redispatch(call->op, call->keys, call->args, call->nargs, call->rets, call->nrets);
}
/* add: the second argument twice; what is to be written is passed on in its slot. */
static aj_status* add_twice(void* self, aj_call* call) {
  aj_value args[3];
  aj_tensor* twice = NULL;
  (void)self;
  __atomic_fetch_add(&served, 1, __ATOMIC_RELAXED);
  if (call->args[1].tag != AJ_TENSOR || call->nargs != 3) return fail(AJ_UNIMPLEMENTED, "add: not a number");
  TRY(run("mul", call->args[1], whole(2), &twice));
  args[0] = call->args[0];
  args[1] = of(twice);
  args[2] = call->args[2];
  aj_status* bad = ops->redispatch(call->op, call->keys, args, 3, call->rets, 1);
  core->release(twice);
  return bad;
}
/* neg of dense float32: written here and left there, or made here. */
static aj_status* negate(void* self, aj_call* call) {
  const aj_tensor* x = call->args[0].v.tensor;
  aj_tensor* out = call->rets[0].v.tensor;
  (void)self;
  __atomic_fetch_add(&served, 1, __ATOMIC_RELAXED);
  if (!(x->obj.flags & AJ_TENSOR_DENSE)) return fail(AJ_UNIMPLEMENTED, "neg: dense");
  if (call->rets[0].tag == AJ_NONE) TRY(core->tensor_empty(&x->dl, 0, &out));
  else if (call->rets[0].aux != AJ_VALUE_LENT || !(out->obj.flags & AJ_TENSOR_DENSE)) return fail(AJ_INTERNAL, "neg: the slot is not lent");
  for (int64_t i = 0; i < core->tensor_numel(x); ++i) ((float*)out->dl.data)[i] = -((const float*)x->dl.data)[i];
  if (call->rets[0].tag == AJ_NONE) call->rets[0] = of(out);
  return NULL;
}
/* exp: always a tensor of its own, which the core copies where one was given. */
static aj_status* replace(void* self, aj_call* call) {
  aj_value ret = none();
  (void)self;
  __atomic_fetch_add(&served, 1, __ATOMIC_RELAXED);
  TRY(ops->redispatch(call->op, call->keys, call->args, call->nargs, &ret, 1));
  call->rets[0] = ret;
  return NULL;
}
static aj_status* decline(void* self, aj_call* call) {
  (void)self, (void)call;
  __atomic_fetch_add(&served, 1, __ATOMIC_RELAXED);
  return fail(AJ_UNIMPLEMENTED, "sin: never");
}
static aj_status* counts(void* self, aj_call* call) {
  aj_value items[2];
  (void)self;
  items[0] = whole(__atomic_exchange_n(&passed, 0, __ATOMIC_RELAXED));
  items[1] = whole(__atomic_exchange_n(&served, 0, __ATOMIC_RELAXED));
  call->rets[0].tag = AJ_LIST_OBJ;
  return core->list_new(items, 2, &call->rets[0].v.object);
}

AJ_PLUGIN_INIT {
  static const char* const keys[2] = {NAME "_above", NAME "_below"};
  static const int32_t places[2] = {AJ_KEY_ABOVE_AUTOGRAD, AJ_KEY_BELOW_AUTOGRAD};
  uint64_t mask;
  reach(env);
  for (int i = 0; i < 2; ++i) {
    TRY(ops->def_key(env->registrar, text(keys[i]), places[i], &mask));
    TRY(ops->def_fallback(env->registrar, text(keys[i]), pass, NULL));
    TRY(def_kernel(env, "add", keys[i], 0, 0, 0, add_twice, NULL));
    TRY(def_kernel(env, "neg", keys[i], 1ull << AJ_DT_FLOAT32, 0, 0, negate, NULL));
    TRY(def_kernel(env, "exp", keys[i], 0, 0, 0, replace, NULL));
    TRY(def_kernel(env, "sin", keys[i], 0, 0, 0, decline, NULL));
  }
  TRY(def_op(env, NAME "::counts() -> int[]", "", AJ_OP_ALLOCATES, NULL, NULL));
  return def_kernel(env, NAME "::counts", "cpu", 0, 0, 0, counts, NULL);
}
