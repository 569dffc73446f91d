/* op.c: ops in C: walks over plans, candidates that decline, derivatives and what they save, views, writing forms, a body,
 * shapes that depend on data, an error with its cause. */
#include "../golden.h"

AJ_PLUGIN_NOTE(NAME, "1.0", "Golden", "Apache-2.0", "ops:" NAME, "iface:aj.op>=0;iface:aj.autograd>=0");
AJ_PLUGIN_OPS(NAME "::squash(Tensor x, *, float by=1.0) -> Tensor\n"
              NAME "::product(Tensor x, Tensor y) -> Tensor\n");

/* The offsets of element i of a plan, innermost dimension first. */
static void at(const aj_plan* p, int64_t i, int64_t* byte) {
  for (uint32_t k = 0; k < p->nops; ++k) byte[k] = 0;
  for (uint32_t d = 0; d < p->ndim; ++d, i /= p->sizes[d - 1])
    for (uint32_t k = 0; k < p->nops; ++k) byte[k] += i % p->sizes[d] * p->ops[k].strides[d];
}
static double get(const aj_plan* p, uint32_t k, const int64_t* byte) {
  const char* from = (const char*)p->ops[k].data + byte[k];
  return p->compute.bits == 32 ? (double)*(const float*)from : *(const double*)from;
}
static void put(const aj_plan* p, const int64_t* byte, double v) {
  char* to = (char*)p->ops[0].data + byte[0];
  if (p->compute.bits == 32) *(float*)to = (float)v;
  else *(double*)to = v;
}

/* x / (by + |x|). Saved: the result, by, and more: a list of by twice. */
static aj_status* squash(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  int64_t byte[16];
  (void)self;
  for (int64_t i = 0; i < p->numel; ++i) {
    at(p, i, byte);
    double x = get(p, 1, byte);
    put(p, byte, x / (call->args[1].v.f + (x < 0 ? -x : x)));
  }
  return NULL;
}
static aj_status* squash_more(void* self, const aj_call* done, struct aj_saver* s) {
  aj_value items[2], list;
  aj_object* o;
  (void)self;
  items[0] = items[1] = done->args[1];
  TRY(core->list_new(items, 2, &o));
  list = object(AJ_LIST_OBJ, o);
  aj_status* bad = autograd->save(s, &list);
  core->release(o);
  return bad;
}
/* g (1 - |y|)^2 / by, by ops: it can be differentiated again. */
static aj_status* squash_vjp(void* self, aj_grad_call* g) {
  aj_tensor *size = NULL, *rest = NULL, *square = NULL, *scaled = NULL;
  uint32_t n = 0;
  const aj_value* list = g->nsaved == 3 && g->saved[2].tag == AJ_LIST_OBJ ? core->list_get(g->saved[2].v.object, &n) : NULL;
  (void)self;
  if (n != 2 || list[1].tag != AJ_FLOAT || list[1].v.f != g->saved[1].v.f) return fail(AJ_INTERNAL, "squash: the saved list changed");
  aj_status* bad = run("abs", g->saved[0], none(), &size);
  if (!bad) bad = run("sub", of(size), whole(1), &rest);
  if (!bad) bad = run("square", of(rest), none(), &square);
  if (!bad) bad = run("mul", of(square), of(g->grad_out[0]), &scaled);
  if (!bad) bad = run("div", of(scaled), g->saved[1], &g->grad_in[0]);
  core->release(size);
  core->release(rest);
  core->release(square);
  core->release(scaled);
  return bad;
}

/* x * y by three candidates: one that declines after it was called, one for flat plans alone, one for all. */
static int64_t flat_calls, not_saved;
static aj_status* declines(void* self, aj_call* call) {
  (void)self, (void)call;
  return fail(AJ_UNIMPLEMENTED, "not this one");
}
static int32_t is_flat(void* self, const aj_call* call) {
  (void)self;
  return call->plan && call->plan->flags & AJ_PLAN_FLAT && call->plan->flags & AJ_PLAN_SAME_DTYPE;
}
static aj_status* product(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  int64_t byte[16];
  (void)self;
  for (int64_t i = 0; i < p->numel; ++i) {
    at(p, i, byte);
    put(p, byte, get(p, 1, byte) * get(p, 2, byte));
  }
  return NULL;
}
static aj_status* product_flat(void* self, aj_call* call) {
  if (call->plan->ndim != 1) return fail(AJ_INTERNAL, "product: the plan is not flat");
  __atomic_fetch_add(&flat_calls, 1, __ATOMIC_RELAXED);
  return product(self, call);
}
static aj_status* product_vjp(void* self, aj_grad_call* g) {
  (void)self;
  for (int i = 0; i < 2; ++i) { /* saved[1 - i] serves input i, and is None where that needed no gradient when it was recorded */
    if (g->saved[1 - i].tag == AJ_NONE) __atomic_fetch_add(&not_saved, 1, __ATOMIC_RELAXED);
    if (!g->needs[i]) continue;
    if (g->saved[1 - i].tag != AJ_TENSOR) return fail(AJ_INTERNAL, "product: what is needed was not saved");
    TRY(run("mul", of(g->grad_out[0]), g->saved[1 - i], &g->grad_in[i]));
  }
  return NULL;
}
static aj_status* counts(void* self, aj_call* call) { /* flat calls, what was not saved; from 0 again */
  aj_value items[2];
  (void)self;
  items[0] = whole(__atomic_exchange_n(&flat_calls, 0, __ATOMIC_RELAXED));
  items[1] = whole(__atomic_exchange_n(&not_saved, 0, __ATOMIC_RELAXED));
  call->rets[0].tag = AJ_LIST_OBJ;
  return core->list_new(items, 2, &call->rets[0].v.object);
}

/* Columns of a matrix, and its two halves: views. */
static aj_status* columns(void* self, aj_call* call) {
  const DLTensor* x = &call->args[0].v.tensor->dl;
  int64_t shape[2], first = call->args[1].v.i;
  (void)self;
  if (x->ndim != 2 || first < 0 || call->args[2].v.i < 0 || first + call->args[2].v.i > x->shape[1])
    return fail(AJ_INVALID_ARGUMENT, NAME "::columns: they are not in the matrix");
  shape[0] = x->shape[0];
  shape[1] = call->args[2].v.i;
  return ops->declare_view(call, 0, 1, 0, x->dtype, 2, shape, x->strides, first * x->strides[1]);
}
static aj_status* halves(void* self, aj_call* call) {
  const DLTensor* x = &call->args[0].v.tensor->dl;
  int64_t shape[8];
  (void)self;
  if (x->ndim < 1 || x->ndim > 8 || x->shape[0] % 2) return fail(AJ_INVALID_ARGUMENT, NAME "::halves: the size must be even");
  memcpy(shape, x->shape, sizeof(int64_t) * (size_t)x->ndim);
  shape[0] /= 2;
  for (uint32_t i = 0; i < 2; ++i)
    TRY(ops->declare_view(call, i, 2, 0, x->dtype, x->ndim, shape, x->strides, (int64_t)i * shape[0] * x->strides[0]));
  return NULL;
}

/* x += y, for dense float32: what is written is the first argument, and the result. */
static aj_status* accumulate(void* self, aj_call* call) {
  aj_tensor *x = call->args[0].v.tensor, *y = call->args[1].v.tensor;
  (void)self;
  if (!(x->obj.flags & y->obj.flags & AJ_TENSOR_DENSE) || core->tensor_numel(x) != core->tensor_numel(y))
    return fail(AJ_INVALID_ARGUMENT, NAME "::accumulate: dense tensors of one size are wanted");
  for (int64_t i = 0; i < core->tensor_numel(x); ++i) ((float*)x->dl.data)[i] += ((const float*)y->dl.data)[i];
  core->retain(x);
  call->rets[0] = of(x);
  return NULL;
}
static aj_status* accumulate_vjp(void* self, aj_grad_call* g) {
  (void)self;
  for (int i = 0; i < 2; ++i)
    if (g->needs[i]) core->retain(g->grad_in[i] = g->grad_out[0]);
  return NULL;
}

/* x / (1 + |x|) by other ops. */
static aj_status* soft(void* self, aj_call* call) {
  aj_tensor *size = NULL, *more = NULL, *out = NULL;
  (void)self;
  aj_status* bad = run("abs", call->args[0], none(), &size);
  if (!bad) bad = run("add", of(size), whole(1), &more);
  if (!bad) bad = run("div", call->args[0], of(more), &out);
  core->release(size);
  core->release(more);
  if (!bad) call->rets[0] = of(out);
  return bad;
}

/* The elements above 0 of a dense float32 tensor. */
static aj_status* positive(void* self, aj_call* call) {
  const aj_tensor* x = call->args[0].v.tensor;
  aj_tensor *dense = NULL, *out = NULL;
  int64_t n = 0, total = core->tensor_numel(x);
  DLTensor like = x->dl;
  (void)self;
  TRY(run("contiguous", call->args[0], none(), &dense));
  const float* from = (const float*)dense->dl.data;
  for (int64_t i = 0; i < total; ++i) n += from[i] > 0;
  like.ndim = 1;
  like.shape = &n;
  like.strides = NULL;
  aj_status* bad = core->tensor_empty(&like, 0, &out);
  for (int64_t i = 0, k = 0; !bad && i < total; ++i)
    if (from[i] > 0) ((float*)out->dl.data)[k++] = from[i];
  core->release(dense);
  if (!bad) call->rets[0] = of(out);
  return bad;
}
static aj_status* refuse(void* self, aj_call* call) {
  (void)self, (void)call;
  aj_status* cause = fail(AJ_UNAVAILABLE, "the golden key is lost");
  return core->status_with_cause(core->status_new(AJ_NOT_FOUND, text("KeyError"), text("no key fits"), "op.c", 7), cause);
}

AJ_PLUGIN_INIT {
  static const aj_save squash_saves[2] = {{AJ_SAVE_RESULT, 0, 0}, {AJ_SAVE_ARG, 1, 0}};
  static const aj_save product_saves[2] = {{AJ_SAVE_ARG, 0, 1 << 1}, {AJ_SAVE_ARG, 1, 1 << 0}};
  const uint64_t single = 1ull << AJ_DT_FLOAT32;
  reach(env);
  TRY(def_op(env, NAME "::squash(Tensor x, *, float by=1.0) -> Tensor", "unary_float", 0, NULL, NULL));
  TRY(def_kernel(env, NAME "::squash", "cpu", FLOATS, AJ_KERNEL_INNER, 0, squash, NULL));
  TRY(def_vjp(env, NAME "::squash", AJ_VJP_MATERIALIZE, squash_saves, 2, squash_more, squash_vjp));
  TRY(def_op(env, NAME "::product(Tensor x, Tensor y) -> Tensor", "binary", 0, NULL, NULL));
  TRY(def_kernel(env, NAME "::product", "cpu", FLOATS, 0, 9, declines, NULL));
  TRY(def_kernel(env, NAME "::product", "cpu", FLOATS, AJ_KERNEL_INNER | AJ_KERNEL_CALL_DEPENDENT, 5, product_flat, is_flat));
  TRY(def_kernel(env, NAME "::product", "cpu", FLOATS, AJ_KERNEL_INNER, 1, product, NULL));
  TRY(def_vjp(env, NAME "::product", AJ_VJP_MATERIALIZE, product_saves, 2, NULL, product_vjp));
  TRY(def_op(env, NAME "::counts() -> int[]", "", AJ_OP_ALLOCATES, NULL, NULL));
  TRY(def_kernel(env, NAME "::counts", "cpu", 0, 0, 0, counts, NULL));
  TRY(def_op(env, NAME "::columns(Tensor(a) x, int first, int count) -> Tensor(a)", "view", 0, columns, NULL));
  TRY(def_op(env, NAME "::halves(Tensor(a) x) -> Tensor(a)[]", "view", 0, halves, NULL));
  TRY(def_op(env, NAME "::accumulate(Tensor(a!) x, Tensor y) -> Tensor(a!)", "", AJ_OP_ALLOCATES, NULL, NULL));
  TRY(def_kernel(env, NAME "::accumulate", "cpu", single, 0, 0, accumulate, NULL));
  TRY(def_vjp(env, NAME "::accumulate", AJ_VJP_MATERIALIZE, NULL, 0, NULL, accumulate_vjp));
  TRY(def_op(env, NAME "::soft(Tensor x) -> Tensor", "", AJ_OP_BODY_RECORDS, NULL, soft));
  TRY(def_op(env, NAME "::positive(Tensor x) -> Tensor", "", AJ_OP_ALLOCATES, NULL, NULL));
  TRY(def_kernel(env, NAME "::positive", "cpu", single, AJ_KERNEL_BLOCKS_HOST, 0, positive, NULL));
  TRY(def_vjp(env, NAME "::positive", AJ_VJP_NO_GRAD_RESULTS, NULL, 0, NULL, NULL));
  TRY(def_op(env, NAME "::refuse(Tensor x) -> Tensor", "", 0, like_first, NULL));
  return def_kernel(env, NAME "::refuse", "cpu", 0, 0, 0, refuse, NULL);
}
