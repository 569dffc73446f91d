/* tests/abi/wrap.c: a plugin in C99 over abi/wrap.h: the key "later", whose tensors are computed
 * when somebody reads them, and the key "coo", whose tensors are places and values. */
#include <adjoin/abi/plugin.h>
#include <adjoin/abi/wrap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

AJ_PLUGIN_NOTE("wt", "0.1.0", "", "Apache-2.0", "ops:wt", "iface:aj.op>=0;iface:aj.autograd>=0");

#define TRY(x)             \
  do {                     \
    aj_status* bad_ = (x); \
    if (bad_) return bad_; \
  } while (0)
#define MAX 8

static const aj_core* core;
static const aj_dispatch* ops;
static const aj_wrappers* wraps;
static uint64_t later_key, coo_key, box_key;
static int32_t result_type, coo_type;

static aj_str text(const char* s) {
  aj_str t = {s, strlen(s)};
  return t;
}
static aj_status* complain(int32_t code, const char* what) {
  return core->status_new(code, text(""), text(what), "", 0);
}
static aj_value whole(int64_t i) {
  aj_value v = {AJ_INT, 0, {0}};
  v.v.i = i;
  return v;
}
static aj_value of(aj_tensor* t) {
  aj_value v = {AJ_TENSOR, 0, {0}};
  v.v.tensor = t;
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
static aj_status* run2(const char* name, aj_tensor* a, aj_tensor* b, aj_tensor** out) {
  aj_value v[2];
  v[0] = of(a);
  v[1] = of(b);
  return run(name, v, 2, out);
}
static aj_status* give(aj_call* call, aj_tensor* t) {
  call->rets[0] = of(t);
  return 0;
}

/* Deferred values: a step is an op with its arguments; a payload is one result of a step. Steps
 * wait in a list, in the order in which they were asked for; one that nobody can ask for any more
 * leaves it. For one thread. */
typedef struct step {
  const aj_op* op;
  aj_object* args[MAX]; /* of a result: its payload; else a tensor; else NULL */
  aj_value plain[MAX];
  uint32_t nargs, nrets, refs;
  aj_tensor* values[MAX];
  int done;
  struct step *before, *after;
} step;
typedef struct result {
  step* of;
  uint32_t i;
} result;
static step* first;
static step* last;
static int64_t flushes, steps_run, steps_dropped;

static void unlink_step(step* s) {
  if (s->before)
    s->before->after = s->after;
  else if (first == s)
    first = s->after;
  if (s->after)
    s->after->before = s->before;
  else if (last == s)
    last = s->before;
  s->before = s->after = 0;
}
static void drop_args(step* s) {
  for (uint32_t i = 0; i < s->nargs; i++) core->release(s->args[i]);
  s->nargs = 0;
}
static void result_destroy(void* payload) {
  step* s = ((result*)payload)->of;
  if (!s || --s->refs) return;
  if (!s->done) {
    unlink_step(s);
    steps_dropped++;
  }
  drop_args(s);
  for (uint32_t i = 0; i < s->nrets; i++) core->release(s->values[i]);
  free(s);
}
static result* result_of(aj_object* o) { return (result*)core->object_payload(o); }

static aj_status* run_step(step* s) {
  aj_value args[MAX], rets[MAX];
  memset(rets, 0, sizeof rets);
  for (uint32_t i = 0; i < s->nargs; i++) {
    args[i] = s->plain[i];
    if (!s->args[i]) continue;
    result* r = s->args[i]->type == result_type ? result_of(s->args[i]) : 0;
    args[i] = of(r ? r->of->values[r->i] : (aj_tensor*)s->args[i]);
  }
  TRY(ops->call(s->op, args, s->nargs, rets, s->nrets));
  for (uint32_t i = 0; i < s->nrets; i++) s->values[i] = rets[i].v.tensor;
  s->done = 1;
  steps_run++;
  unlink_step(s);
  drop_args(s);
  return 0;
}
static aj_status* flush(void) {
  flushes += first != 0;
  while (first) TRY(run_step(first));
  return 0;
}
static aj_status* later_settle(void* self, aj_tensor* t, aj_tensor** out) {
  (void)self;
  TRY(flush());
  result* r = result_of(wraps->tensor_payload(t, later_key));
  TRY(wraps->tensor_fulfil(t, r->of->values[r->i]));
  core->retain(t);
  *out = t;
  return 0;
}

/* The op now, on values. */
static aj_status* run_now(aj_call* call) {
  aj_value args[MAX];
  aj_tensor* held[MAX] = {0};
  aj_status* bad = 0;
  for (uint32_t i = 0; i < call->nargs && !bad; i++) {
    args[i] = call->args[i];
    if (args[i].tag != AJ_TENSOR) continue;
    bad = wraps->tensor_strided(args[i].v.tensor, text("later"), &held[i]);
    args[i].v.tensor = held[i];
  }
  if (!bad) bad = ops->redispatch(call->op, call->keys, args, call->nargs, call->rets, call->nrets);
  for (uint32_t i = 0; i < MAX; i++) core->release(held[i]);
  return bad;
}
static int can_wait(aj_call* call) {
  aj_op_info info;
  info.struct_size = sizeof info;
  core->status_free(ops->op_info(call->op, &info));
  if (info.kind.len == 4 && !memcmp(info.kind.data, "view", 4))
    return 0; /* writes to it must reach its base */
  if (call->nargs > MAX || call->nrets > MAX) return 0;
  for (uint32_t i = 0; i < call->nargs; i++) {
    aj_param p;
    p.struct_size = sizeof p;
    core->status_free(ops->op_param(call->op, i, &p));
    int32_t tag = call->args[i].tag;
    if (p.flags & AJ_PARAM_WRITTEN || (tag >= AJ_STRING && tag <= AJ_TENSORS)) return 0;
  }
  for (uint32_t i = 0; i < call->nrets; i++)
    if (call->rets[i].tag == AJ_TENSOR && call->rets[i].v.tensor->obj.flags & AJ_TENSOR_STRIDED)
      return 0;
  return 1;
}
/* Shapes come from the op itself, on tensors without bytes. */
static aj_status* shapes(aj_call* call, aj_value* rets) {
  aj_value args[MAX];
  aj_tensor* held[MAX] = {0};
  aj_status* bad = 0;
  int32_t meta = 0;
  TRY(core->device_find(text("meta"), &meta));
  for (uint32_t i = 0; i < call->nargs && !bad; i++) {
    args[i] = call->args[i];
    if (args[i].tag != AJ_TENSOR) continue;
    DLTensor like = args[i].v.tensor->dl;
    like.device.device_type = meta;
    like.device.device_id = 0;
    bad = core->tensor_empty(&like, 0, &held[i]);
    args[i].v.tensor = held[i];
  }
  if (!bad) bad = ops->call(call->op, args, call->nargs, rets, call->nrets);
  for (uint32_t i = 0; i < MAX; i++) core->release(held[i]);
  for (uint32_t i = 0; i < call->nrets && !bad; i++)
    if (rets[i].tag != AJ_TENSOR) bad = complain(AJ_UNIMPLEMENTED, "a list");
  for (uint32_t i = 0; i < call->nrets && bad; i++)
    if (rets[i].tag >= AJ_TENSOR) core->release(rets[i].v.object);
  return bad;
}
static aj_status* wrap_result(step* s, uint32_t i, const DLTensor* like, DLDevice device,
                              aj_tensor** out) {
  aj_object* payload;
  result* r;
  aj_wrap w;
  TRY(core->object_new(result_type, &payload, (void**)&r));
  r->of = s;
  r->i = i;
  s->refs++;
  memset(&w, 0, sizeof w);
  w.struct_size = sizeof w;
  w.key = later_key;
  w.like = *like;
  w.like.device = device;
  w.payload = payload;
  aj_status* bad = wraps->tensor_wrap(&w, out);
  core->release(payload);
  return bad;
}
static aj_status* later(void* self, aj_call* call) {
  aj_value rets[MAX];
  (void)self;
  memset(rets, 0, sizeof rets);
  if (!can_wait(call)) return run_now(call);
  aj_status* unknown = shapes(call, rets);
  if (unknown) { /* its shape depends on values, or it is wrong: the op says which */
    core->status_free(unknown);
    return run_now(call);
  }
  step* s = (step*)calloc(1, sizeof *s);
  s->op = call->op;
  s->nargs = call->nargs;
  s->nrets = call->nrets;
  for (uint32_t i = 0; i < call->nargs; i++) {
    s->plain[i] = call->args[i];
    if (call->args[i].tag != AJ_TENSOR) continue;
    aj_object* deferred = wraps->tensor_payload(call->args[i].v.tensor, later_key);
    s->args[i] = deferred ? deferred : &call->args[i].v.tensor->obj;
    core->retain(s->args[i]);
  }
  s->before = last;
  if (last)
    last->after = s;
  else
    first = s;
  last = s;
  for (uint32_t i = 0; i < call->nrets; i++) {
    aj_tensor* made = 0;
    TRY(wrap_result(s, i, &rets[i].v.tensor->dl, call->device, &made));
    core->release(rets[i].v.tensor);
    call->rets[i] = of(made);
  }
  return 0;
}
static aj_status* later_of(void* self,
                           aj_call* call) { /* wt::later: a value that is there already */
  step* s = (step*)calloc(1, sizeof *s);
  aj_tensor* t = 0;
  (void)self;
  TRY(run1("clone", call->args[0].v.tensor, &s->values[0]));
  s->nrets = 1;
  s->done = 1;
  TRY(wrap_result(s, 0, &s->values[0]->dl, call->device, &t));
  return give(call, t);
}
static aj_status* same_grad(void* self, aj_grad_call* g) {
  (void)self;
  core->retain(g->grad_in[0] = g->grad_out[0]);
  return 0;
}
static aj_status* counts(void* self,
                         aj_call* call) { /* flushes, steps run, dropped, waiting; sets them to 0 */
  int64_t waiting = 0, n = 4, *to;
  DLTensor like = {0, call->device, 1, {kDLInt, 64, 1}, &n, 0, 0};
  aj_tensor* t = 0;
  (void)self;
  for (step* s = first; s; s = s->after) waiting++;
  TRY(core->tensor_empty(&like, 0, &t));
  to = (int64_t*)t->dl.data;
  to[0] = flushes;
  to[1] = steps_run;
  to[2] = steps_dropped;
  to[3] = waiting;
  flushes = steps_run = steps_dropped = 0;
  return give(call, t);
}

/* Sparse matrices: row and column of each value, float32. */
typedef struct coo {
  aj_tensor *places, *values; /* int64 [2, n], float32 [n]; both dense */
} coo;
static void coo_destroy(void* payload) {
  core->release(((coo*)payload)->places);
  core->release(((coo*)payload)->values);
}
static coo* coo_of(const aj_tensor* t) {
  aj_object* o = wraps->tensor_payload(t, coo_key);
  return o ? (coo*)core->object_payload(o) : 0;
}
static aj_status* new_coo(aj_tensor* places, aj_tensor* values, int64_t rows, int64_t columns,
                          int32_t layout, aj_tensor** out) {
  aj_object* payload;
  coo* c;
  int64_t shape[2];
  aj_wrap w;
  shape[0] = rows;
  shape[1] = columns;
  TRY(core->object_new(coo_type, &payload, (void**)&c));
  aj_status* bad = run1("contiguous", places, &c->places);
  if (!bad) bad = run1("contiguous", values, &c->values);
  memset(&w, 0, sizeof w);
  w.struct_size = sizeof w;
  w.key = coo_key;
  w.like = values->dl;
  w.like.ndim = 2;
  w.like.shape = shape;
  w.like.strides = 0;
  w.payload = payload;
  w.layout = layout;
  if (!bad) bad = wraps->tensor_wrap(&w, out);
  core->release(payload);
  return bad;
}
static aj_status* like_coo(const aj_tensor* t, aj_tensor* values, aj_tensor** out) {
  return new_coo(coo_of(t)->places, values, t->dl.shape[0], t->dl.shape[1], AJ_LAYOUT_SPARSE_COO,
                 out);
}
static aj_status* zeros(DLDevice device, int64_t rows, int64_t columns, aj_tensor** out) {
  int64_t shape[2];
  shape[0] = rows;
  shape[1] = columns;
  DLTensor like = {0, device, 2, {kDLFloat, 32, 1}, shape, 0, 0};
  TRY(core->tensor_empty(&like, 0, out));
  memset((*out)->dl.data, 0, (size_t)(rows * columns) * sizeof(float));
  return 0;
}
static const int64_t* rows_of(const coo* c) { return (const int64_t*)c->places->dl.data; }
static const int64_t* columns_of(const coo* c) { return rows_of(c) + c->places->dl.shape[1]; }
static const float* floats(const aj_tensor* t) { return (const float*)t->dl.data; }
static int64_t count(const coo* c) { return c->values->dl.shape[0]; }

static aj_status* make_coo(void* self, aj_call* call) {
  aj_tensor* t = 0;
  (void)self;
  TRY(new_coo(call->args[0].v.tensor, call->args[1].v.tensor, call->args[2].v.i, call->args[3].v.i,
              AJ_LAYOUT_SPARSE_COO, &t));
  return give(call, t);
}
static aj_status* make_ragged(void* self, aj_call* call) {
  aj_tensor* t = 0;
  (void)self;
  TRY(new_coo(call->args[1].v.tensor, call->args[0].v.tensor,
              core->tensor_numel(call->args[1].v.tensor) - 1, -1, AJ_LAYOUT_JAGGED, &t));
  return give(call, t);
}
static aj_status* values_of(void* self, aj_call* call) {
  aj_tensor* t = coo_of(call->args[0].v.tensor)->values;
  (void)self;
  core->retain(t);
  return give(call, t);
}
static aj_status* densify(const aj_tensor* s, aj_tensor** out) {
  coo* c = coo_of(s);
  TRY(zeros(s->dl.device, s->dl.shape[0], s->dl.shape[1], out));
  for (int64_t i = 0; i < count(c); i++)
    ((float*)(*out)->dl.data)[rows_of(c)[i] * s->dl.shape[1] + columns_of(c)[i]] +=
        floats(c->values)[i];
  return 0;
}
static aj_status* to_dense(void* self, aj_call* call) {
  aj_tensor* t = 0;
  (void)self;
  TRY(densify(call->args[0].v.tensor, &t));
  return give(call, t);
}
static aj_status* transposed(void* self, aj_call* call) {
  aj_tensor *s = call->args[0].v.tensor, *places = 0, *t = 0;
  aj_value args[2];
  int64_t dim = 0;
  (void)self;
  args[0] = of(coo_of(s)->places);
  args[1].tag = AJ_INTS;
  args[1].aux = 1;
  args[1].v.ints = &dim;
  TRY(run("flip", args, 2, &places));
  aj_status* bad =
      new_coo(places, coo_of(s)->values, s->dl.shape[1], s->dl.shape[0], AJ_LAYOUT_SPARSE_COO, &t);
  core->release(places);
  return bad ? bad : give(call, t);
}
static aj_status* scaled(void* self, aj_call* call) { /* mul: by a number */
  aj_tensor *s = call->args[0].v.tensor, *values = 0, *t = 0;
  aj_value args[2];
  (void)self;
  if (!coo_of(s) || call->args[1].tag == AJ_TENSOR)
    return complain(AJ_UNIMPLEMENTED, "mul: coo times a number is there");
  args[0] = of(coo_of(s)->values);
  args[1] = call->args[1];
  TRY(run("mul", args, 2, &values));
  aj_status* bad = like_coo(s, values, &t);
  core->release(values);
  return bad ? bad : give(call, t);
}
static aj_status* product(void* self, aj_call* call) { /* mm(sparse, dense) */
  aj_tensor *s = call->args[0].v.tensor, *d = 0, *t = 0;
  coo* c = coo_of(s);
  (void)self;
  if (!c || coo_of(call->args[1].v.tensor))
    return complain(AJ_UNIMPLEMENTED, "mm: coo @ dense is there");
  TRY(run1("contiguous", call->args[1].v.tensor, &d));
  int64_t m = d->dl.shape[1];
  aj_status* bad = zeros(s->dl.device, s->dl.shape[0], m, &t);
  for (int64_t i = 0; !bad && i < count(c); i++) {
    float* to = (float*)t->dl.data + rows_of(c)[i] * m;
    const float* from = floats(d) + columns_of(c)[i] * m;
    for (int64_t j = 0; j < m; j++) to[j] += floats(c->values)[i] * from[j];
  }
  core->release(d);
  return bad ? bad : give(call, t);
}
static aj_status* sampled(aj_tensor* s, aj_tensor* g, aj_tensor* d,
                          aj_tensor** out) { /* (g @ d.T) where s has values */
  coo* c = coo_of(s);
  aj_tensor *gc = 0, *dc = 0, *values = 0;
  TRY(run1("contiguous", g, &gc));
  TRY(run1("contiguous", d, &dc));
  TRY(run1("clone", c->values, &values));
  int64_t m = d->dl.shape[1];
  for (int64_t i = 0; i < count(c); i++) {
    float sum = 0;
    for (int64_t j = 0; j < m; j++)
      sum += floats(gc)[rows_of(c)[i] * m + j] * floats(dc)[columns_of(c)[i] * m + j];
    ((float*)values->dl.data)[i] = sum;
  }
  aj_status* bad = like_coo(s, values, out);
  core->release(gc);
  core->release(dc);
  core->release(values);
  return bad;
}
static aj_status* product_vjp(void* self, aj_grad_call* g) {
  aj_tensor *s = g->saved[0].v.tensor, *flipped = 0;
  (void)self;
  if (g->needs[0]) TRY(sampled(s, g->grad_out[0], g->saved[1].v.tensor, &g->grad_in[0]));
  if (!g->needs[1]) return 0;
  TRY(run1("wt::transposed", s, &flipped));
  aj_status* bad = run2("mm", flipped, g->grad_out[0], &g->grad_in[1]);
  core->release(flipped);
  return bad;
}
static aj_status* make_vjp(void* self,
                           aj_grad_call* g) { /* of wt::coo: what stands at its places */
  aj_tensor* grad = g->grad_out[0];
  (void)self;
  if (!g->needs[1]) return 0;
  if (coo_of(grad)) return run1("wt::values", grad, &g->grad_in[1]);
  return complain(AJ_UNIMPLEMENTED, "wt::coo: its gradient is sparse");
}
static aj_status* values_vjp(void* self, aj_grad_call* g) {
  (void)self;
  return like_coo(g->saved[0].v.tensor, g->grad_out[0], &g->grad_in[0]);
}
static aj_status* scaled_vjp(void* self, aj_grad_call* g) {
  aj_value args[2];
  (void)self;
  args[0] = of(g->grad_out[0]);
  args[1] = g->saved[0];
  return g->needs[0] ? run("mul", args, 2, &g->grad_in[0]) : 0;
}
/* wt::rows(w, index): rows of a matrix; the gradient of w is sparse. */
static aj_status* rows(void* self, aj_call* call) {
  aj_value args[3];
  aj_tensor* t = 0;
  (void)self;
  args[0] = call->args[0];
  args[1] = whole(0);
  args[2] = call->args[1];
  TRY(run("index_select", args, 3, &t));
  return give(call, t);
}
static aj_status* rows_vjp(void* self, aj_grad_call* g) {
  aj_tensor *index = g->saved[0].v.tensor, *grad = 0, *places = 0, *values = 0;
  const int64_t* shape = g->saved[1].v.ints;
  int64_t n = core->tensor_numel(index), m = shape[1], both[2];
  (void)self;
  both[0] = 2;
  both[1] = n * m;
  DLTensor like = {0, index->dl.device, 2, {kDLInt, 64, 1}, both, 0, 0};
  TRY(core->tensor_empty(&like, 0, &places));
  int64_t* to = (int64_t*)places->dl.data;
  for (int64_t i = 0; i < n * m; i++) {
    to[i] = ((const int64_t*)index->dl.data)[i / m];
    to[n * m + i] = i % m;
  }
  TRY(run1("contiguous", g->grad_out[0], &grad));
  aj_value args[2];
  int64_t flat = -1;
  args[0] = of(grad);
  args[1].tag = AJ_INTS;
  args[1].aux = 1;
  args[1].v.ints = &flat;
  TRY(run("reshape", args, 2, &values));
  aj_status* bad = new_coo(places, values, shape[0], m, AJ_LAYOUT_SPARSE_COO, &g->grad_in[0]);
  core->release(grad);
  core->release(places);
  core->release(values);
  return bad;
}
static aj_status* joined(aj_tensor* a, aj_tensor* b, int64_t dim, aj_tensor** out) {
  aj_value args[2];
  aj_tensor* both[2];
  both[0] = a;
  both[1] = b;
  args[0].tag = AJ_TENSORS;
  args[0].aux = 2;
  args[0].v.tensors = both;
  args[1] = whole(dim);
  return run("cat", args, 2, out);
}
static aj_status* coo_add(void* self, aj_tensor* a, aj_tensor* b, aj_tensor** sum) {
  aj_tensor *places = 0, *values = 0, *dense = 0;
  coo *x = coo_of(a), *y = coo_of(b);
  (void)self;
  if (x && y) {
    TRY(joined(x->places, y->places, 1, &places));
    TRY(joined(x->values, y->values, 0, &values));
    aj_status* bad =
        new_coo(places, values, a->dl.shape[0], a->dl.shape[1], AJ_LAYOUT_SPARSE_COO, sum);
    core->release(places);
    core->release(values);
    return bad;
  }
  TRY(densify(x ? a : b, &dense));
  aj_status* bad = run2("add", x ? b : a, dense, sum);
  core->release(dense);
  return bad;
}
static aj_status* coo_describe(void* self, aj_tensor* t, aj_object** out) {
  char line[64];
  (void)self;
  snprintf(line, sizeof line, "%lld values, size=(%lld, %lld)", (long long)count(coo_of(t)),
           (long long)t->dl.shape[0], (long long)t->dl.shape[1]);
  return core->string_new(text(line), out);
}
static aj_status* coo_copy(void* self, aj_tensor* t, aj_tensor** out) {
  aj_tensor* values = 0;
  (void)self;
  TRY(run1("clone", coo_of(t)->values, &values));
  aj_status* bad = like_coo(t, values, out);
  core->release(values);
  return bad;
}
static aj_status* coo_parts(void* self, aj_tensor* t, aj_object** out) {
  aj_value items[5];
  (void)self;
  items[0].tag = AJ_STRING_OBJ;
  items[0].aux = 0;
  TRY(core->string_new(text("wt::coo"), &items[0].v.object));
  items[1] = of(coo_of(t)->places);
  items[2] = of(coo_of(t)->values);
  items[3] = whole(t->dl.shape[0]);
  items[4] = whole(t->dl.shape[1]);
  aj_status* bad = core->list_new(items, 5, out);
  core->release(items[0].v.object);
  return bad;
}

/* Boxes: the payload is a strided tensor, which ops are run on. */
static aj_tensor* inside(aj_tensor* t) {
  aj_object* o = wraps->tensor_payload(t, box_key);
  return o ? (aj_tensor*)o : t;
}
static aj_status* new_box(aj_tensor* x, aj_tensor* view_of, aj_tensor** out) {
  aj_wrap w;
  memset(&w, 0, sizeof w);
  w.struct_size = sizeof w;
  w.key = box_key;
  w.like = x->dl;
  if (view_of)
    w.like.byte_offset =
        view_of->dl.byte_offset + (uint64_t)((char*)x->dl.data - (char*)inside(view_of)->dl.data);
  w.payload = &x->obj;
  w.view_of = view_of;
  w.version_of = x;
  return wraps->tensor_wrap(&w, out);
}
static aj_status* box(void* self, aj_call* call) {
  aj_tensor* t = 0;
  (void)self;
  TRY(new_box(call->args[0].v.tensor, 0, &t));
  return give(call, t);
}
static aj_status* box_settle(void* self, aj_tensor* t, aj_tensor** out) {
  (void)self;
  core->retain(*out = inside(t));
  return 0;
}
static aj_status* in_box(void* self, aj_call* call) {
  aj_value args[MAX], rets[MAX];
  (void)self;
  if (call->nargs > MAX || call->nrets > 1)
    return complain(AJ_UNIMPLEMENTED, "box: too many arguments or results");
  for (uint32_t i = 0; i < call->nargs; i++) {
    args[i] = call->args[i];
    if (args[i].tag == AJ_TENSOR) args[i].v.tensor = inside(args[i].v.tensor);
  }
  aj_value given = call->rets[0];
  rets[0] = given;
  if (given.tag == AJ_TENSOR) rets[0].v.tensor = inside(given.v.tensor);
  TRY(ops->redispatch(call->op, call->keys, args, call->nargs, rets, 1));
  if (rets[0].tag != AJ_TENSOR) return (call->rets[0] = rets[0]), (aj_status*)0;
  aj_tensor *made = rets[0].v.tensor, *t = 0,
            *first_arg = call->args[0].tag == AJ_TENSOR ? call->args[0].v.tensor : 0;
  aj_status* bad = 0;
  if (given.tag == AJ_TENSOR)
    core->retain(t = given.v.tensor);
  else if (first_arg && made == inside(first_arg))
    core->retain(t = first_arg);
  else
    bad = new_box(made, made->obj.flags & AJ_TENSOR_VIEW && first_arg ? first_arg : 0, &t);
  core->release(made);
  return bad ? bad : give(call, t);
}

static aj_status* op(const aj_plugin_env* env, const char* schema) {
  aj_op_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.flags = AJ_OP_ALLOCATES;
  d.schema = text(schema);
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
static aj_status* vjp(const aj_plugin_env* env, const char* name, const char* key,
                      const aj_save* save, uint32_t nsave, aj_status* (*fn)(void*, aj_grad_call*)) {
  const aj_autograd* autograd = (const aj_autograd*)env->query("aj.autograd", 1);
  aj_vjp_def v;
  memset(&v, 0, sizeof v);
  v.struct_size = sizeof v;
  v.flags = fn == product_vjp ? AJ_VJP_ONCE : 0;
  v.op = text(name);
  v.key = text(key);
  v.save = save;
  v.nsave = nsave;
  v.vjp = fn;
  return autograd->def_vjp(env->registrar, &v);
}

AJ_PLUGIN_INIT {
  static const aj_save both[2] = {{AJ_SAVE_ARG, 0, 0}, {AJ_SAVE_ARG, 1, 0}},
                       second[1] = {{AJ_SAVE_ARG, 1, 0}},
                       looked[2] = {{AJ_SAVE_ARG, 1, 0}, {AJ_SAVE_SHAPE, 0, 0}};
  aj_wrapper_def later_def, coo_def, box_def;
  core = env->core;
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  wraps = (const aj_wrappers*)env->query("x.wrap", 1);
  if (!wraps) return complain(AJ_UNIMPLEMENTED, "wt: libadjoin has no x.wrap");
  TRY(core->type_register(text("wt.result"), sizeof(result), result_destroy, &result_type));
  TRY(core->type_register(text("wt.coo"), sizeof(coo), coo_destroy, &coo_type));
  TRY(ops->def_key(env->registrar, text("later"), AJ_KEY_BELOW_AUTOGRAD, &later_key));
  TRY(ops->def_key(env->registrar, text("coo"), AJ_KEY_BELOW_AUTOGRAD, &coo_key));
  memset(&later_def, 0, sizeof later_def);
  later_def.struct_size = sizeof later_def;
  later_def.key = text("later");
  later_def.settle = later_settle;
  TRY(wraps->def_wrapper(env->registrar, &later_def));
  memset(&coo_def, 0, sizeof coo_def);
  coo_def.struct_size = sizeof coo_def;
  coo_def.key = text("coo");
  coo_def.describe = coo_describe;
  coo_def.copy = coo_copy;
  coo_def.parts = coo_parts;
  coo_def.add_gradient = coo_add;
  coo_def.hint = text("call wt.to_dense() first");
  TRY(wraps->def_wrapper(env->registrar, &coo_def));

  TRY(ops->def_key(env->registrar, text("box"), AJ_KEY_BELOW_AUTOGRAD, &box_key));
  memset(&box_def, 0, sizeof box_def);
  box_def.struct_size = sizeof box_def;
  box_def.key = text("box");
  box_def.settle = box_settle;
  TRY(wraps->def_wrapper(env->registrar, &box_def));
  TRY(op(env, "wt::box(Tensor x) -> Tensor"));
  TRY(ops->def_fallback(env->registrar, text("box"), in_box, 0));
  TRY(kernel(env, "wt::box", "cpu", box));
  TRY(op(env, "wt::later(Tensor x) -> Tensor"));
  TRY(op(env, "wt::counts(Tensor x) -> Tensor"));
  TRY(op(env, "wt::coo(Tensor places, Tensor values, int rows, int columns) -> Tensor"));
  TRY(op(env, "wt::ragged(Tensor values, Tensor offsets) -> Tensor"));
  TRY(op(env, "wt::values(Tensor s) -> Tensor"));
  TRY(op(env, "wt::to_dense(Tensor s) -> Tensor"));
  TRY(op(env, "wt::transposed(Tensor s) -> Tensor"));
  TRY(op(env, "wt::rows(Tensor w, Tensor index) -> Tensor"));
  TRY(ops->def_fallback(env->registrar, text("later"), later, 0));
  TRY(kernel(env, "wt::later", "cpu", later_of));
  TRY(kernel(env, "wt::counts", "cpu", counts));
  TRY(kernel(env, "wt::coo", "cpu", make_coo));
  TRY(kernel(env, "wt::ragged", "cpu", make_ragged));
  TRY(kernel(env, "wt::rows", "cpu", rows));
  TRY(kernel(env, "wt::values", "coo", values_of));
  TRY(kernel(env, "wt::to_dense", "coo", to_dense));
  TRY(kernel(env, "wt::transposed", "coo", transposed));
  TRY(kernel(env, "mul", "coo", scaled));
  TRY(kernel(env, "mm", "coo", product));
  TRY(vjp(env, "wt::later", "", 0, 0, same_grad));
  TRY(vjp(env, "wt::coo", "", 0, 0, make_vjp));
  TRY(vjp(env, "wt::values", "coo", both, 1, values_vjp));
  TRY(vjp(env, "wt::rows", "", looked, 2, rows_vjp));
  TRY(vjp(env, "mul", "coo", second, 1, scaled_vjp));
  return vjp(env, "mm", "coo", both, 2, product_vjp);
}
