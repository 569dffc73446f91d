/* tests/abi/stranger.c: a plugin in C99, from installed headers alone: an op with rules for batches
 * and tangents, functions with a derivative of their own (custom.h), a layout, a transform. */
#include <adjoin/abi/custom.h>
#include <adjoin/abi/plugin.h>
#include <adjoin/abi/wrap.h>
#include <string.h>

AJ_PLUGIN_NOTE("st", "0.1.0", "", "Apache-2.0", "ops:st", "iface:aj.op>=0;iface:aj.autograd>=0");

#define TRY(x)             \
  do {                     \
    aj_status* bad_ = (x); \
    if (bad_) return bad_; \
  } while (0)

static const aj_core* core;
static const aj_dispatch* ops;
static const aj_transforms* transforms;
static const aj_wrappers* wraps;
static uint64_t diagonal_key;

static aj_str text(const char* s) {
  aj_str t = {s, strlen(s)};
  return t;
}
static aj_status* complain(int32_t code, const char* what) {
  return core->status_new(code, text(""), text(what), "", 0);
}
static aj_value of(aj_tensor* t) {
  aj_value v = {AJ_TENSOR, 0, {0}};
  v.v.tensor = t;
  return v;
}
static aj_value number(double f) {
  aj_value v = {AJ_FLOAT, 0, {0}};
  v.v.f = f;
  return v;
}
static aj_value whole(int64_t i) {
  aj_value v = {AJ_INT, 0, {0}};
  v.v.i = i;
  return v;
}
static aj_status* run(const char* name, const aj_value* args, uint32_t n, aj_tensor** out) {
  aj_value ret = {AJ_NONE, 0, {0}};
  const aj_op* op = ops->find_op(text(name));
  if (!op) return complain(AJ_NOT_FOUND, name);
  TRY(ops->call(op, args, n, &ret, 1));
  *out = ret.v.tensor;
  return 0;
}
static aj_status* run1(const char* name, aj_tensor* a, aj_tensor** out) {
  aj_value v = of(a);
  return run(name, &v, 1, out);
}
static aj_status* run2(const char* name, aj_tensor* a, aj_value b, aj_tensor** out) {
  aj_value v[2];
  v[0] = of(a);
  v[1] = b;
  return run(name, v, 2, out);
}
/* a * b * by, where b may be a number; a is released. */
static aj_status* times(aj_tensor* a, aj_value b, double by, aj_tensor** out) {
  aj_tensor* both = 0;
  aj_status* bad = run2("mul", a, b, &both);
  core->release(a);
  if (bad) return bad;
  bad = run2("mul", both, number(by), out);
  core->release(both);
  return bad;
}
static void grow(aj_tensor** sum, aj_tensor* part, aj_status** bad) { /* takes part */
  aj_tensor* made = 0;
  if (!*bad && *sum) *bad = run2("add", *sum, of(part), &made);
  if (!*sum) {
    *sum = part;
    return;
  }
  core->release(*sum);
  core->release(part);
  *sum = made;
}

/* The op st::twice(x) = 2 x, of a vector. Its derivatives and its batches carry factors of their
 * own, so that one sees who was asked: vjp 20, jvp 200, batch 2000. */
static aj_status* twice_shape(void* self, aj_call* c) {
  const DLTensor* x = &c->args[0].v.tensor->dl;
  (void)self;
  if (x->ndim != 1) return complain(AJ_INVALID_ARGUMENT, "a vector is wanted");
  return ops->declare(c, 0, x->dtype, x->ndim, x->shape, 0);
}
static aj_status* twice(void* self, aj_call* c) {
  const DLTensor *x = &c->args[0].v.tensor->dl, *y = &c->rets[0].v.tensor->dl;
  (void)self;
  if (x->dtype.bits != 64) return complain(AJ_WRONG_TYPE, "float64 is wanted");
  for (int64_t i = 0; i < x->shape[0]; i++)
    ((double*)y->data)[i] = 2 * ((const double*)x->data)[i * x->strides[0]];
  return 0;
}
static aj_status* twice_vjp(void* self, aj_grad_call* g) {
  (void)self;
  return run2("mul", g->grad_out[0], number(20), &g->grad_in[0]);
}
static aj_status* twice_jvp(void* self, aj_jvp_call* c) {
  (void)self;
  return c->tangents[0] ? run2("mul", c->tangents[0], number(200), &c->out[0]) : 0;
}
static aj_status* twice_batch(void* self, aj_batch_call* c) {
  aj_tensor* made = 0;
  (void)self;
  TRY(run2("mul", c->args[0].v.tensor, number(2000), &made));
  c->rets[0] = of(made);
  return 0;
}
static const aj_jvp_def twice_along = {sizeof(aj_jvp_def), 0, {"st::twice", 9}, 0, twice_jvp, 0};
static const aj_batch_def twice_rule = {sizeof(aj_batch_def), 0, {"st::twice", 9}, {0, 0},
                                        twice_batch,          0};

/* Functions: f(x, y, k) = (x x y k, exp x), kept for the derivative: x, y, k and the second result.
 * Its derivative is three times the true one. */
static aj_status* f_forward(void* self, aj_call* c) {
  aj_tensor *square = 0, *made = 0;
  aj_value x = c->args[0];
  (void)self;
  TRY(run2("mul", x.v.tensor, x, &square));
  TRY(times(square, c->args[1], c->args[2].v.f, &made));
  c->rets[0] = of(made);
  TRY(run1("exp", x.v.tensor, &made));
  c->rets[1] = of(made);
  return 0;
}
static aj_status* f_vjp(void* self, aj_grad_call* g) {
  aj_tensor *x = g->saved[0].v.tensor, *y = g->saved[1].v.tensor, *part = 0;
  const double k = g->saved[2].v.f;
  aj_status* bad = 0;
  (void)self;
  if (g->needs[0] && g->grad_out[0]) { /* 2 x y k g */
    TRY(run2("mul", x, of(y), &part));
    TRY(times(part, of(g->grad_out[0]), 6 * k, &part));
    grow(&g->grad_in[0], part, &bad);
  }
  if (g->needs[0] && g->grad_out[1]) { /* exp x g */
    TRY(run2("mul", g->saved[3].v.tensor, of(g->grad_out[1]), &part));
    TRY(times(part, number(1), 3, &part));
    grow(&g->grad_in[0], part, &bad);
  }
  if (!bad && g->needs[1] && g->grad_out[0]) { /* x x k g */
    TRY(run2("mul", x, of(x), &part));
    bad = times(part, of(g->grad_out[0]), 3 * k, &g->grad_in[1]);
  }
  return bad;
}
static aj_status* f_jvp(void* self,
                        aj_jvp_call* c) { /* the true one, of the first argument alone */
  aj_tensor* part = 0;
  (void)self;
  if (!c->tangents[0]) return 0;
  TRY(run2("mul", c->args[0].v.tensor, c->args[1], &part));
  TRY(times(part, of(c->tangents[0]), 2 * c->args[2].v.f, &c->out[0]));
  return run2("mul", c->rets[1].v.tensor, of(c->tangents[0]), &c->out[1]);
}
static aj_status* f_batch(void* self, aj_batch_call* c);
static const aj_save f_saves[] = {
    {AJ_SAVE_ARG, 0, 0}, {AJ_SAVE_ARG, 1, 0}, {AJ_SAVE_ARG, 2, 0}, {AJ_SAVE_RESULT, 1, 0}};
static aj_vjp_def f_pull;
static aj_jvp_def f_push;
static aj_batch_def f_rule;
static aj_custom_def f_kinds[4]; /* sample by sample; by parts; by a rule; by parts, with a jvp */

/* The samples stand in front, and the function is one of each element: it is applied to all. */
static aj_status* f_batch(void* self, aj_batch_call* c) {
  aj_value args[3], sizes[2];
  aj_tensor* wide = 0;
  int64_t shape[2];
  (void)self;
  if (c->target || c->ndims != 3 || c->dims[2] != -1)
    return complain(AJ_INTERNAL, "f_batch: what it was told is wrong");
  memcpy(args, c->args, sizeof args);
  const int alone = c->dims[0] == 0 ? 1 : 0;
  if (c->dims[alone] != 0) { /* all samples share it */
    if (args[alone].v.tensor->dl.ndim != 1)
      return complain(AJ_INTERNAL, "f_batch: a vector is wanted");
    shape[0] = c->size;
    shape[1] = args[alone].v.tensor->dl.shape[0];
    sizes[0] = args[alone];
    sizes[1].tag = AJ_INTS;
    sizes[1].aux = 2;
    sizes[1].v.ints = shape;
    TRY(run("expand", sizes, 2, &wide));
    args[alone] = of(wide);
  }
  aj_status* bad = transforms->custom_apply(&f_kinds[2], args, 3, c->rets, c->nrets);
  core->release(wide);
  return bad;
}
/* st::f(x, y, k, kind): what makes the function an op that Python finds. */
static aj_status* f_body(void* self, aj_call* c) {
  (void)self;
  if (c->args[3].v.i < 0 || c->args[3].v.i > 3)
    return complain(AJ_INVALID_ARGUMENT, "kind is 0 to 3");
  return transforms->custom_apply(&f_kinds[c->args[3].v.i], c->args, 3, c->rets, 2);
}
/* st::bare(x): a function that has only a forward. */
static aj_status* bare_forward(void* self, aj_call* c) {
  aj_tensor* made = 0;
  (void)self;
  TRY(run1("sin", c->args[0].v.tensor, &made));
  c->rets[0] = of(made);
  return 0;
}
static aj_custom_def bare;
static aj_status* bare_body(void* self, aj_call* c) {
  (void)self;
  return transforms->custom_apply(&bare, c->args, 1, c->rets, 1);
}
/* st::wrong(x, what): definitions that are refused. */
static aj_status* wrong_body(void* self, aj_call* c) {
  aj_custom_def d = bare;
  aj_value list = c->args[0];
  aj_tensor* items[1];
  (void)self;
  items[0] = c->args[0].v.tensor;
  switch (c->args[1].v.i) {
    case 0:
      d.struct_size = 8;
      break;
    case 1:
      d.flags = 64;
      break;
    case 2:
      d.forward = 0;
      break;
    case 3:
      d.batch = &f_rule;
      d.flags = AJ_CUSTOM_MAP_PARTS;
      break;
    case 4:
      list.tag = AJ_TENSORS;
      list.aux = 1;
      list.v.tensors = items;
      break;
    default:
      return transforms->custom_apply(0, &list, 1, c->rets, 1);
  }
  return transforms->custom_apply(&d, &list, 1, c->rets, 1);
}

/* A transform: st::slopes(x, kind) is the Jacobian of the sum of both results of f, at the vector x
 * and y = x + 1, k = 0.5: the tangents of all unit vectors at once. */
static aj_status* f_along(aj_tensor* x, int64_t kind, int32_t level, aj_tensor** tangent) {
  aj_tensor *y = 0, *sum = 0, *value = 0;
  aj_value args[3], rets[2];
  memset(rets, 0, sizeof rets);
  TRY(run2("add", x, number(1), &y));
  args[0] = of(x);
  args[1] = of(y);
  args[2] = number(0.5);
  aj_status* bad = transforms->custom_apply(&f_kinds[kind], args, 3, rets, 2);
  if (!bad) bad = run2("add", rets[0].v.tensor, rets[1], &sum);
  if (!bad) bad = transforms->undual(sum, level, &value, tangent);
  aj_tensor* made[] = {y, rets[0].v.tensor, rets[1].v.tensor, sum, value};
  for (unsigned i = 0; i < sizeof made / sizeof *made; i++) core->release(made[i]);
  return bad;
}
static aj_status* closed(int32_t level, aj_status* bad) {
  aj_status* left = transforms->leave(level);
  if (!bad) return left;
  core->status_free(left);
  return bad;
}
static aj_status* rows_of(aj_tensor* x, aj_tensor* unit, int32_t batch, int64_t kind,
                          aj_tensor** rows) {
  aj_tensor *direction = 0, *point = 0, *both = 0, *tangent = 0;
  int32_t along = 0;
  aj_status* bad = transforms->batched(unit, 0, batch, &direction);
  if (!bad) bad = transforms->lift(x, batch, &point);
  if (!bad) bad = transforms->enter(AJ_LEVEL_DUAL, 1, AJ_RANDOM_ERROR, &along);
  if (along) {
    bad = transforms->dual(point, direction, along, &both);
    if (!bad) bad = f_along(both, kind, along, &tangent);
    bad = closed(along, bad);
  }
  if (!bad) bad = transforms->unbatched(tangent, 0, batch, rows);
  aj_tensor* made[] = {direction, point, both, tangent};
  for (unsigned i = 0; i < sizeof made / sizeof *made; i++) core->release(made[i]);
  return bad;
}
static aj_status* slopes_body(void* self, aj_call* c) {
  aj_tensor *x = c->args[0].v.tensor, *ones = 0, *unit = 0, *rows = 0;
  int32_t batch = 0;
  (void)self;
  if (x->dl.ndim != 1) return complain(AJ_INVALID_ARGUMENT, "a vector is wanted");
  TRY(run1("ones_like", x, &ones));
  aj_status* bad = run1("diag", ones, &unit);
  core->release(ones);
  if (!bad) bad = transforms->enter(AJ_LEVEL_BATCH, x->dl.shape[0], AJ_RANDOM_ERROR, &batch);
  if (!bad) bad = closed(batch, rows_of(x, unit, batch, c->args[1].v.i, &rows));
  core->release(unit);
  c->rets[0] = of(rows);
  return bad;
}

/* A layout: square matrices of which the diagonal alone is kept, a vector, which is the payload
 * itself. */
static aj_tensor* kept(const aj_tensor* t) {
  return (aj_tensor*)wraps->tensor_payload(t, diagonal_key);
}
static aj_status* new_diagonal(aj_tensor* v, aj_tensor** out) {
  int64_t shape[2];
  aj_wrap w;
  if (v->dl.ndim != 1) return complain(AJ_INVALID_ARGUMENT, "a vector is wanted");
  shape[0] = shape[1] = v->dl.shape[0];
  memset(&w, 0, sizeof w);
  w.struct_size = sizeof w;
  w.key = diagonal_key;
  w.like = v->dl;
  w.like.ndim = 2;
  w.like.shape = shape;
  w.like.strides = 0;
  w.like.byte_offset = 0;
  w.payload = &v->obj;
  w.layout = AJ_LAYOUT_OPAQUE;
  return wraps->tensor_wrap(&w, out);
}
static aj_status* diagonal(void* self, aj_call* c) {
  aj_tensor* t = 0;
  (void)self;
  TRY(new_diagonal(c->args[0].v.tensor, &t));
  c->rets[0] = of(t);
  return 0;
}
static aj_status* diagonal_vjp(void* self, aj_grad_call* g) {
  (void)self;
  return run1("diagonal", g->grad_out[0], &g->grad_in[0]);
}
static aj_status* settle(void* self, aj_tensor* t, aj_tensor** out) {
  (void)self;
  return run1("diag", kept(t), out);
}
static aj_status* scaled_rows(aj_tensor* d, aj_tensor* x, aj_tensor** out) {
  aj_tensor* column = 0;
  TRY(run2("unsqueeze", d, whole(1), &column));
  aj_status* bad = run2("mul", column, of(x), out);
  core->release(column);
  return bad;
}
static aj_status* product(void* self, aj_call* c) { /* mm(diagonal, dense) */
  aj_tensor *d = kept(c->args[0].v.tensor), *made = 0;
  (void)self;
  if (!d || kept(c->args[1].v.tensor))
    return complain(AJ_UNIMPLEMENTED, "mm: a diagonal times a dense matrix is there");
  TRY(scaled_rows(d, c->args[1].v.tensor, &made));
  c->rets[0] = of(made);
  return 0;
}
static aj_status* product_vjp(void* self, aj_grad_call* g) {
  aj_tensor *both = 0, *x = g->saved[1].v.tensor, *d = g->saved[0].v.tensor;
  aj_status* bad = 0;
  (void)self;
  if (g->needs[0]) {
    aj_tensor* flat = 0;
    int64_t last = 1;
    aj_value args[2];
    TRY(run2("mul", g->grad_out[0], of(x), &both));
    args[0] = of(both);
    args[1].tag = AJ_INTS;
    args[1].aux = 1;
    args[1].v.ints = &last;
    bad = run("sum", args, 2, &flat);
    if (!bad) bad = run1("diag", flat, &g->grad_in[0]);
    core->release(both);
    core->release(flat);
  }
  return !bad && g->needs[1] ? run2("mm", d, of(g->grad_out[0]), &g->grad_in[1]) : bad;
}

static aj_status* op(const aj_plugin_env* env, const char* schema, aj_kernel_fn body,
                     uint32_t flags) {
  aj_op_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.schema = text(schema);
  d.body = body;
  d.flags = flags;
  return ops->def_op(env->registrar, &d);
}
static aj_status* kernel(const aj_plugin_env* env, const char* name, const char* key,
                         aj_kernel_fn fn) {
  aj_kernel_def k;
  memset(&k, 0, sizeof k);
  k.struct_size = sizeof k;
  k.op = text(name);
  k.key = text(key);
  k.fn = fn;
  return ops->def_kernel(env->registrar, &k);
}
static aj_status* derivative(const aj_plugin_env* env, const char* name, const char* key,
                             const aj_save* save, uint32_t n,
                             aj_status* (*fn)(void*, aj_grad_call*)) {
  const aj_autograd* autograd = (const aj_autograd*)env->query("aj.autograd", 1);
  aj_vjp_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.op = text(name);
  d.key = text(key);
  d.save = save;
  d.nsave = n;
  d.vjp = fn;
  return autograd->def_vjp(env->registrar, &d);
}

static void define_functions(void) {
  f_pull.struct_size = sizeof f_pull;
  f_pull.op = text("f");
  f_pull.save = f_saves;
  f_pull.nsave = 4;
  f_pull.vjp = f_vjp;
  f_push.struct_size = sizeof f_push;
  f_push.jvp = f_jvp;
  f_rule.struct_size = sizeof f_rule;
  f_rule.batch = f_batch;
  for (int i = 0; i < 4; i++) {
    f_kinds[i].struct_size = sizeof f_kinds[i];
    f_kinds[i].name = text("st.f");
    f_kinds[i].forward = f_forward;
    f_kinds[i].vjp = &f_pull;
  }
  f_kinds[1].flags = f_kinds[3].flags = AJ_CUSTOM_MAP_PARTS;
  f_kinds[2].batch = &f_rule;
  f_kinds[3].jvp = &f_push;
  bare.struct_size = sizeof bare;
  bare.name = text("st.bare");
  bare.forward = bare_forward;
}

AJ_PLUGIN_INIT {
  static const aj_save both[] = {{AJ_SAVE_ARG, 0, 0}, {AJ_SAVE_ARG, 1, 0}};
  aj_op_def d;
  aj_wrapper_def w;
  core = env->core;
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  wraps = (const aj_wrappers*)env->query("x.wrap", 1);
  transforms = (const aj_transforms*)env->query("x.transform", 1);
  if (!transforms || !AJ_HAS_FN(transforms, aj_transforms, custom_apply))
    return core->status_new(AJ_UNAVAILABLE, text(""), text("libaj_transform is too old"), "", 0);
  define_functions();

  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.schema = text("st::twice(Tensor x) -> Tensor");
  d.infer = twice_shape;
  TRY(ops->def_op(env->registrar, &d));
  TRY(kernel(env, "st::twice", "cpu", twice));
  TRY(derivative(env, "st::twice", "", 0, 0, twice_vjp));
  TRY(aj_def_jvp(env, &twice_along));
  TRY(aj_def_batch(env, &twice_rule));

  TRY(op(env, "st::f(Tensor x, Tensor y, float k=1.0, int kind=0) -> (Tensor, Tensor)", f_body,
         AJ_OP_BODY_RECORDS));
  TRY(op(env, "st::bare(Tensor x) -> Tensor", bare_body, AJ_OP_BODY_RECORDS));
  TRY(op(env, "st::wrong(Tensor x, int what) -> Tensor", wrong_body, AJ_OP_BODY_RECORDS));
  TRY(op(env, "st::slopes(Tensor x, int kind=0) -> Tensor", slopes_body, AJ_OP_BODY_RECORDS));

  TRY(ops->def_key(env->registrar, text("diagonal"), AJ_KEY_BELOW_AUTOGRAD, &diagonal_key));
  memset(&w, 0, sizeof w);
  w.struct_size = sizeof w;
  w.key = text("diagonal");
  w.settle = settle;
  TRY(wraps->def_wrapper(env->registrar, &w));
  TRY(op(env, "st::diagonal(Tensor x) -> Tensor", diagonal, 0));
  TRY(derivative(env, "st::diagonal", "", 0, 0, diagonal_vjp));
  TRY(kernel(env, "mm", "diagonal", product));
  return derivative(env, "mm", "diagonal", both, 2, product_vjp);
}
