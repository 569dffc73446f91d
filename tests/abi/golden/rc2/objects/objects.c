/* objects.c: a type and a dtype of its own, objects, functions, texts, lists and complex numbers as arguments and results,
 * memory that it lends, DLPack, random numbers, a prepared form, the thread pool. */
#include "../golden.h"

AJ_PLUGIN_NOTE(NAME, "1.0", "Golden", "Apache-2.0", "ops:" NAME, "");

static int32_t plan_type;
static DLDataType code_dtype;
static int64_t plans_alive, memory_alive, functions_alive, packs;

/* An object holds a factor. */
typedef struct plan {
  double by;
} plan;
static void plan_dies(void* payload) { __atomic_fetch_sub(&plans_alive, ((plan*)payload)->by != 0, __ATOMIC_RELAXED); }
static aj_status* make_plan(void* self, aj_call* call) {
  aj_object* o;
  plan* p;
  (void)self;
  TRY(core->object_new(plan_type, &o, (void**)&p));
  if (p->by != 0) return fail(AJ_INTERNAL, "object_new: the payload is not zeros");
  p->by = call->args[0].v.f;
  __atomic_fetch_add(&plans_alive, p->by != 0, __ATOMIC_RELAXED);
  call->rets[0] = object(AJ_OBJECT, o);
  return NULL;
}
static double factor(const aj_value* v) {
  if (v->tag == AJ_NONE) return 1;
  if (v->tag != AJ_OBJECT || v->v.object->type != plan_type) return -1;
  return ((const plan*)core->object_payload(v->v.object))->by;
}
static aj_status* planned(void* self, aj_call* call) {
  aj_tensor* out;
  (void)self;
  TRY(run("mul", call->args[0], real(factor(&call->args[1])), &out));
  aj_status* bad = core->tensor_copy_bytes(call->rets[0].v.tensor, out->dl.data, (uint64_t)core->tensor_numel(out) * 4, 0);
  core->release(out);
  return bad;
}
static aj_status* planned_vjp(void* self, aj_grad_call* g) { /* the object was kept for it */
  (void)self;
  return run("mul", of(g->grad_out[0]), real(factor(&g->saved[0])), &g->grad_in[0]);
}
static aj_status* alive(void* self, aj_call* call) { /* plans, lent memory, functions; packs since the last call */
  aj_value items[4];
  (void)self;
  items[0] = whole(plans_alive);
  items[1] = whole(memory_alive);
  items[2] = whole(functions_alive);
  items[3] = whole(__atomic_exchange_n(&packs, 0, __ATOMIC_RELAXED));
  call->rets[0].tag = AJ_LIST_OBJ;
  return core->list_new(items, 4, &call->rets[0].v.object);
}

/* Functions: one that is called, one that is made. */
static aj_status* apply(void* self, aj_call* call) {
  aj_value args[2];
  (void)self;
  args[0] = call->args[0];
  args[1] = real(0.5);
  return core->function_call(call->args[1].v.object, args, 2, &call->rets[0]);
}
static aj_status* add_number(void* self, const aj_value* args, uint32_t nargs, aj_value* ret) {
  if (nargs != 1 || args[0].tag != AJ_TENSOR) return fail(AJ_WRONG_TYPE, "adder: one tensor is wanted");
  TRY(run("add", args[0], real(*(double*)self), &ret->v.tensor));
  ret->tag = AJ_TENSOR;
  return NULL;
}
static void drop_function(void* self) {
  free(self);
  __atomic_fetch_sub(&functions_alive, 1, __ATOMIC_RELAXED);
}
static aj_status* adder(void* self, aj_call* call) {
  double* by = (double*)malloc(sizeof *by);
  aj_object* f;
  (void)self;
  *by = call->args[0].v.f;
  __atomic_fetch_add(&functions_alive, 1, __ATOMIC_RELAXED);
  aj_status* bad = core->function_new(add_number, by, drop_function, &f);
  if (bad) drop_function(by);
  else call->rets[0] = object(AJ_FUNCTION, f);
  return bad;
}

/* What points to somebody's memory comes back as an object. */
static aj_status* told(void* self, aj_call* call) {
  const aj_tensor* x = call->args[0].v.tensor;
  aj_dtype_info info;
  char line[96];
  (void)self;
  info.struct_size = sizeof info;
  TRY(core->dtype_info(x->dl.dtype, &info));
  snprintf(line, sizeof line, "%d dimensions of %.*s on %.*s", x->dl.ndim, (int)info.name.len, info.name.data,
           (int)core->device_name(x->dl.device.device_type).len, core->device_name(x->dl.device.device_type).data);
  call->rets[0].tag = AJ_STRING_OBJ;
  return core->string_new(text(line), &call->rets[0].v.object);
}
static aj_status* corner(void* self, aj_call* call) { /* numel + dimensions i */
  const aj_tensor* x = call->args[0].v.tensor;
  (void)self;
  call->rets[0].tag = AJ_COMPLEX_OBJ;
  return core->complex_new((double)core->tensor_numel(x), x->dl.ndim, &call->rets[0].v.object);
}

/* Lent memory: 0, 1, 2, ... */
static void drop_memory(void* memory) {
  free(memory);
  __atomic_fetch_sub(&memory_alive, 1, __ATOMIC_RELAXED);
}
static aj_status* lent(void* self, aj_call* call) {
  int64_t n = call->args[0].v.i;
  float* memory = (float*)malloc((size_t)n * sizeof *memory);
  DLTensor like = {memory, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0};
  (void)self;
  for (int64_t i = 0; i < n; ++i) memory[i] = (float)i;
  __atomic_fetch_add(&memory_alive, 1, __ATOMIC_RELAXED);
  call->rets[0].tag = AJ_TENSOR;
  aj_status* bad = core->tensor_from_memory(&like, (uint64_t)n * sizeof *memory, 0, memory, drop_memory, &call->rets[0].v.tensor);
  if (!bad) return NULL;
  call->rets[0] = none();
  drop_memory(memory);
  return bad;
}
static aj_status* through_dlpack(void* self, aj_call* call) {
  DLManagedTensorVersioned* m;
  aj_tensor* t;
  (void)self;
  TRY(core->tensor_to_dlpack(call->args[0].v.tensor, NULL, 0, &m));
  if (m->version.major != 1 || m->dl_tensor.ndim != call->args[0].v.tensor->dl.ndim) return fail(AJ_INTERNAL, "dlpack: another tensor");
  TRY(core->tensor_from_dlpack(m, &t));
  aj_status* bad = run("clone", of(t), none(), &call->rets[0].v.tensor);
  core->release(t);
  if (!bad) call->rets[0].tag = AJ_TENSOR;
  return bad;
}
static aj_status* codes(void* self, aj_call* call) {
  int64_t n = call->args[0].v.i;
  DLTensor like = {NULL, {kDLCPU, 0}, 1, {0, 0, 0}, &n, NULL, 0};
  (void)self;
  like.dtype = code_dtype;
  call->rets[0].tag = AJ_TENSOR;
  aj_status* bad = core->tensor_empty(&like, 0, &call->rets[0].v.tensor);
  if (bad) call->rets[0] = none();
  return bad;
}

/* Element i from seed, offset and i alone. */
static aj_status* noise(void* self, aj_call* call) {
  aj_tensor* out = call->rets[0].v.tensor;
  int64_t n = core->tensor_numel(out);
  uint64_t seed, offset;
  (void)self;
  TRY(core->generator_draw(call->args[1].tag == AJ_GENERATOR ? call->args[1].v.object : NULL, (uint64_t)(n + 3) / 4, &seed, &offset));
  for (int64_t i = 0; i < n; ++i) ((float*)out->dl.data)[i] = (float)((seed * 31 + offset * 4 + (uint64_t)i) % 997);
  return NULL;
}

/* 2 w @ x: 2 w is prepared once for the contents of w, rows go over the threads. */
typedef struct work {
  const float *w, *x;
  float* out;
  int64_t columns;
} work;
static aj_status* some_rows(void* self, int64_t lo, int64_t hi) {
  const work* k = (const work*)self;
  for (int64_t i = lo; i < hi; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < k->columns; ++j) sum += k->w[i * k->columns + j] * k->x[j];
    k->out[i] = sum;
  }
  return NULL;
}
static aj_status* rows_infer(void* self, aj_call* call) {
  const DLTensor *w = &call->args[0].v.tensor->dl, *x = &call->args[1].v.tensor->dl;
  (void)self;
  if (w->ndim != 2 || x->ndim != 1 || w->shape[1] != x->shape[0])
    return fail(AJ_INVALID_ARGUMENT, NAME "::rows: a matrix and a vector of its columns are wanted");
  return ops->declare(call, 0, w->dtype, 1, w->shape, NULL);
}
static aj_status* rows(void* self, aj_call* call) {
  static const char key[] = NAME " rows 1";
  aj_tensor *w = call->args[0].v.tensor, *x = call->args[1].v.tensor, *out = call->rets[0].v.tensor, *form = NULL;
  (void)self;
  if (!(w->obj.flags & x->obj.flags & AJ_TENSOR_DENSE)) return fail(AJ_UNIMPLEMENTED, "dense tensors are wanted");
  uint64_t ticket = core->prepared_find(w, key, sizeof key, &form);
  if (!form) {
    __atomic_fetch_add(&packs, 1, __ATOMIC_RELAXED);
    TRY(run("mul", of(w), whole(2), &form));
    if (ticket) core->prepared_keep(w, ticket, key, sizeof key, form);
  }
  work k = {(const float*)form->dl.data, (const float*)x->dl.data, (float*)out->dl.data, w->dl.shape[1]};
  aj_status* bad = w->dl.shape[0] ? core->parallel_for(w->dl.shape[0], 16, some_rows, &k) : NULL;
  core->release(form);
  return bad;
}

AJ_PLUGIN_INIT {
  static const aj_save saves[1] = {{AJ_SAVE_ARG, 1, 0}};
  const uint64_t single = 1ull << AJ_DT_FLOAT32;
  const uint32_t makes = AJ_OP_ALLOCATES;
  reach(env);
  TRY(core->type_register(text(NAME "::plan"), sizeof(plan), plan_dies, &plan_type));
  TRY(core->dtype_register(text("golden_code"), 8, AJ_CLASS_OPAQUE, &code_dtype));
#define OP(name, rest, flags, dtypes, infer, fn)                           \
  TRY(def_op(env, NAME "::" name rest, "", flags, infer, NULL));           \
  TRY(def_kernel(env, NAME "::" name, "cpu", dtypes, 0, 0, fn, NULL))
  OP("plan", "(float by=2.0) -> Object<" NAME "::plan>", makes, 0, NULL, make_plan);
  OP("planned", "(Tensor x, Object<" NAME "::plan>? plan=None) -> Tensor", 0, single, like_first, planned);
  TRY(def_vjp(env, NAME "::planned", AJ_VJP_MATERIALIZE, saves, 1, NULL, planned_vjp));
  OP("alive", "() -> int[]", makes, 0, NULL, alive);
  OP("apply", "(Tensor x, Function f) -> Tensor", makes, 0, NULL, apply);
  OP("adder", "(float by) -> Function", makes, 0, NULL, adder);
  OP("told", "(Tensor x) -> str", makes, 0, NULL, told);
  OP("corner", "(Tensor x) -> Scalar", makes, 0, NULL, corner);
  OP("lent", "(int n) -> Tensor", makes, 0, NULL, lent);
  OP("through_dlpack", "(Tensor x) -> Tensor", makes, 0, NULL, through_dlpack);
  OP("codes", "(int n) -> Tensor", makes, 0, NULL, codes);
  OP("noise", "(Tensor like, *, Generator? generator=None) -> Tensor", 0, single, like_first, noise);
  OP("rows", "(Tensor w, Tensor x) -> Tensor", 0, single, rows_infer, rows);
  return NULL;
}
