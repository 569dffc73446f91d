/* tests/abi/checked.c: a plugin that defines and makes what it must not: names of types, wrappers,
 * layouts, results. What init may say is printed; the ops are called from Python (checked_test.py).
 */
#include <adjoin/abi/plugin.h>
#include <adjoin/abi/wrap.h>
#include <stdio.h>
#include <string.h>

AJ_PLUGIN_NOTE("bag", "0.1.0", "", "Apache-2.0", "ops:bag", "");

#define TRY(x)             \
  do {                     \
    aj_status* bad_ = (x); \
    if (bad_) return bad_; \
  } while (0)

static const aj_core* core;
static const aj_dispatch* ops;
static const aj_autograd* autograd;
static const aj_wrappers* wraps;
static uint64_t key;
static int32_t plan_type, other_type;

static aj_str text(const char* s) {
  aj_str t = {s, strlen(s)};
  return t;
}
static void say(const char* what, aj_status* s) {
  aj_str m = s ? core->status_message(s) : text("");
  printf("%s: %d %.*s\n", what, s ? core->status_code(s) : 0, (int)m.len, m.data);
  core->status_free(s);
}
static aj_status* wrap(aj_tensor* x, int32_t layout, int no_shape, aj_tensor* view_of,
                       aj_value* ret) {
  aj_wrap w;
  memset(&w, 0, sizeof w);
  w.struct_size = sizeof w;
  w.key = key;
  w.like = x->dl;
  w.like.strides = NULL;
  w.like.byte_offset = 0;
  if (no_shape) w.like.shape = NULL;
  w.payload = &x->obj;
  w.layout = layout;
  w.view_of = view_of;
  aj_tensor* t;
  TRY(wraps->tensor_wrap(&w, &t));
  ret->tag = AJ_TENSOR;
  ret->v.tensor = t;
  return NULL;
}
static aj_status* make(void* self, aj_call* call) { /* (x, layout, no_shape) */
  (void)self;
  return wrap(call->args[0].v.tensor, (int32_t)call->args[1].v.i, (int)call->args[2].v.i, NULL,
              &call->rets[0]);
}
static aj_status* opaque(void* self, aj_call* call) {
  (void)self;
  return wrap(call->args[0].v.tensor, AJ_LAYOUT_OPAQUE, 0, NULL, &call->rets[0]);
}
static aj_status* same_grad(void* self, aj_grad_call* g) {
  (void)self;
  core->retain(g->grad_in[0] = g->grad_out[0]);
  return NULL;
}
static aj_status* no_view(void* self, aj_call* call) {
  (void)self;
  return wrap(call->args[0].v.tensor, AJ_LAYOUT_OPAQUE, 0, NULL, &call->rets[0]);
}
static aj_status* a_view(void* self, aj_call* call) {
  (void)self;
  return wrap(call->args[0].v.tensor, AJ_LAYOUT_OPAQUE, 0, call->args[0].v.tensor, &call->rets[0]);
}
static aj_status* settle(void* self, aj_tensor* t, aj_tensor** out) {
  (void)self;
  core->retain(*out = (aj_tensor*)wraps->tensor_payload(t, key));
  return NULL;
}
static aj_status* object_of(int32_t type, aj_value* ret) {
  void* payload;
  TRY(core->object_new(type, &ret->v.object, &payload));
  ret->tag = AJ_OBJECT;
  return NULL;
}
static aj_status* give_plan(void* self, aj_call* call) {
  return (void)self, object_of(plan_type, &call->rets[0]);
}
static aj_status* give_other(void* self, aj_call* call) {
  return (void)self, object_of(other_type, &call->rets[0]);
}

/* Ops whose result is what they write: it stands in the slot already. */
static aj_status* mark(void* self, aj_call* call) {
  aj_tensor* t = call->rets[0].v.tensor;
  (void)self;
  if (call->rets[0].tag != AJ_TENSOR || t != call->args[0].v.tensor)
    return core->status_new(AJ_INTERNAL, text(""), text("the slot does not hold the argument"),
                            NULL, 0);
  *(float*)t->dl.data = 7;
  return NULL;
}
static aj_status* as_it_is(void* self, aj_call* call) {
  const DLTensor* x = &call->args[0].v.tensor->dl;
  (void)self;
  return ops->declare(call, 0, x->dtype, x->ndim, x->shape, NULL);
}
static aj_status* as_a_number(void* self, aj_call* call) {
  (void)self;
  return ops->declare(call, 0, call->args[0].v.tensor->dl.dtype, 0, NULL, NULL);
}
static aj_status* kernel_at(const aj_plugin_env* env, const char* op, const char* key_name,
                            aj_kernel_fn fn) {
  aj_kernel_def k;
  memset(&k, 0, sizeof k);
  k.struct_size = sizeof k;
  k.op = text(op);
  k.key = text(key_name);
  k.fn = fn;
  return ops->def_kernel(env->registrar, &k);
}
static aj_status* define_mark(const aj_plugin_env* env, const char* schema, const char* name,
                              aj_status* (*infer)(void*, aj_call*)) {
  aj_op_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.schema = text(schema);
  d.infer = infer;
  TRY(ops->def_op(env->registrar, &d));
  return kernel_at(env, name, "cpu", mark);
}

static aj_status* define(const aj_plugin_env* env, const char* schema, const char* name,
                         aj_kernel_fn kernel, aj_kernel_fn body) {
  aj_op_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.flags = body ? 0 : AJ_OP_ALLOCATES;
  d.schema = text(schema);
  d.body = body;
  TRY(ops->def_op(env->registrar, &d));
  return kernel ? kernel_at(env, name, "cpu", kernel) : NULL;
}

AJ_PLUGIN_INIT {
  static const char* const names[] = {"",          "two words", "bag<plan>",  "bag,plan",
                                      "bag(plan)", "bag\tplan", "b\xc3\xa4g", "bag::plan"};
  char longest[130];
  int32_t type;
  aj_wrapper_def w;
  aj_vjp_def v;
  core = env->core;
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  autograd = (const aj_autograd*)env->query("aj.autograd", 1);
  wraps = (const aj_wrappers*)env->query("x.wrap", 1);
  for (size_t i = 0; i + 1 < sizeof names / sizeof *names; i++)
    say("type", core->type_register(text(names[i]), 8, NULL, &type));
  memset(longest, 'x', sizeof longest);
  longest[129] = 0;
  say("type", core->type_register(text(longest), 8, NULL, &type));
  longest[128] = 0;
  say("long", core->type_register(text(longest), 8, NULL, &type));
  say("good", core->type_register(text("bag::plan"), 8, NULL, &plan_type));
  TRY(core->type_register(text("bag.other-1_x"), 8, NULL, &other_type));

  TRY(ops->def_key(env->registrar, text("bag"), AJ_KEY_BELOW_AUTOGRAD, &key));
  memset(&w, 0, sizeof w);
  w.struct_size = sizeof w;
  w.key = text("bag");
  w.settle = settle;
  say("wrapper", wraps->def_wrapper(env->registrar, &w));
  say("again", wraps->def_wrapper(env->registrar, &w));
  fflush(stdout);

  TRY(define(env, "bag::make(Tensor x, int layout, int no_shape) -> Tensor", "bag::make", make,
             NULL));
  TRY(define_mark(env, "bag::mark_(Tensor(a!) x) -> Tensor(a!)", "bag::mark_", NULL));
  TRY(define_mark(env, "bag::mark_declared_(Tensor(a!) x) -> Tensor(a!)", "bag::mark_declared_",
                  as_it_is));
  TRY(define_mark(env, "bag::mark_odd_(Tensor(a!) x) -> Tensor(a!)", "bag::mark_odd_",
                  as_a_number));
  TRY(define(env, "bag::body(Tensor x) -> Tensor", "bag::body", NULL, opaque));
  TRY(define(env, "bag::with_vjp(Tensor x) -> Tensor", "bag::with_vjp", NULL, opaque));
  memset(&v, 0, sizeof v);
  v.struct_size = sizeof v;
  v.op = text("bag::with_vjp");
  v.vjp = same_grad;
  TRY(autograd->def_vjp(env->registrar, &v));
  TRY(kernel_at(env, "unsqueeze", "bag", no_view));
  TRY(kernel_at(env, "squeeze.dim", "bag", a_view));
  TRY(kernel_at(env, "t", "bag", no_view));
  TRY(define(env, "bag::plan(Tensor x) -> Object<bag::plan>", "bag::plan", give_plan, NULL));
  TRY(define(env, "bag::wrong(Tensor x) -> Object<bag::plan>", "bag::wrong", give_other, NULL));
  TRY(define(env, "bag::any(Tensor x) -> Object", "bag::any", give_other, NULL));
  TRY(define(env, "bag::plan_body(Tensor x) -> Object<bag::plan>", "bag::plan_body", NULL,
             give_plan));
  return define(env, "bag::wrong_body(Tensor x) -> Object<bag::plan>", "bag::wrong_body", NULL,
                give_other);
}
