/* tests/abi/lent.c: what a kernel at a functionality key does with a tensor that it is to write.
 * Compiled twice: as a plugin whose keys "lent" (with a fallback) and "bare" (without) have one
 * kernel for each manner, and (HOST) as the program that calls them in every form, with the
 * references counted. */
#include <adjoin/abi/capi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const aj_core* core;
static const aj_dispatch* ops;

static aj_str text(const char* s) {
  aj_str t = {s, strlen(s)};
  return t;
}
static aj_value none(void) {
  aj_value v;
  memset(&v, 0, sizeof v);
  return v;
}
static aj_value of(aj_tensor* t) {
  aj_value v = none();
  v.tag = AJ_TENSOR;
  v.v.tensor = t;
  return v;
}

#ifndef HOST
AJ_PLUGIN_NOTE("lent", "0.1.0", "", "Apache-2.0", "key:lent;key:bare;key:over;key:high;ops:lent",
               "");

static aj_status* fail(int32_t code, const char* what) {
  return core->status_new(code, text(""), text(what), NULL, 0);
}
static aj_status* pass(void* self, aj_call* call) {
  (void)self;
  return ops->redispatch(call->op, call->keys, call->args, call->nargs, call->rets, call->nrets);
}
/* What it finds must be what op.h says: nothing, or a tensor that is lent. */
static aj_status* look(const aj_call* call) {
  for (uint32_t i = 0; i < call->nrets; i++)
    if (call->rets[i].tag == AJ_TENSOR ? call->rets[i].aux != AJ_VALUE_LENT
                                       : call->rets[i].tag != AJ_NONE)
      return fail(AJ_INTERNAL, "the slot is neither empty nor lent");
  return NULL;
}
static aj_status* fresh(const aj_call* call, float value, aj_tensor** out) { /* full of value */
  DLTensor like = call->args[0].v.tensor->dl;
  like.strides = NULL;
  aj_status* bad = core->tensor_empty(&like, 0, out);
  for (int64_t i = 0; !bad && i < core->tensor_numel(*out); i++)
    ((float*)(*out)->dl.data)[i] = value;
  return bad;
}
/* Writes 41 and leaves it; makes a tensor where none is given. */
static aj_status* leaves(void* self, aj_call* call) {
  aj_tensor* t;
  aj_status* bad = look(call);
  (void)self;
  if (bad) return bad;
  if (call->rets[0].tag == AJ_NONE) {
    if ((bad = fresh(call, 41, &t))) return bad;
    call->rets[0] = of(t);
    return NULL;
  }
  t = call->rets[0].v.tensor;
  for (int64_t i = 0; i < core->tensor_numel(t); i++) ((float*)t->dl.data)[i] = 41;
  return NULL;
}
static aj_status* passes(void* self, aj_call* call) {
  aj_status* bad = look(call);
  return bad ? bad : pass(self, call);
}
/* The op's value, but by a slot of its own. */
static aj_status* replaces(void* self, aj_call* call) {
  aj_value ret = none();
  aj_status* bad = look(call);
  (void)self;
  if (!bad) bad = ops->redispatch(call->op, call->keys, call->args, call->nargs, &ret, 1);
  if (!bad) call->rets[0] = ret;
  return bad;
}
/* Gives the lent tensor back as its own: with a reference, not lent any more. */
static aj_status* retains(void* self, aj_call* call) {
  aj_status* bad = leaves(self, call);
  if (bad || call->rets[0].aux != AJ_VALUE_LENT) return bad;
  core->retain(call->rets[0].v.tensor);
  call->rets[0].aux = 0;
  return NULL;
}
static aj_status* declines(void* self, aj_call* call) {
  aj_status* bad = look(call);
  (void)self;
  return bad ? bad : fail(AJ_UNIMPLEMENTED, "not by this one");
}
static aj_status* declines_late(void* self,
                                aj_call* call) { /* its own tensor stands in the slot already */
  aj_tensor* t;
  aj_status* bad = fresh(call, 99, &t);
  (void)self;
  if (bad) return bad;
  call->rets[0] = of(t);
  return fail(AJ_UNIMPLEMENTED, "not by this one, said late");
}
static aj_status* fails_late(void* self, aj_call* call) {
  aj_tensor* t;
  aj_status* bad = fresh(call, 99, &t);
  (void)self;
  if (bad) return bad;
  call->rets[0] = of(t);
  return fail(AJ_INTERNAL, "broken on the way");
}
static aj_status* fails(void* self, aj_call* call) {
  (void)self, (void)call;
  return fail(AJ_INTERNAL, "broken at once");
}
static aj_status* empties(void* self,
                          aj_call* call) { /* takes the tensor out of the slot and gives nothing */
  (void)self;
  call->rets[0] = none();
  return NULL;
}
static aj_status* numbers(void* self, aj_call* call) {
  (void)self;
  call->rets[0] = none();
  call->rets[0].tag = AJ_INT;
  return NULL;
}
/* Passes on with a factor too many: the op below fails, with the lent slot in its hands. */
static aj_status* passes_wrong(void* self, aj_call* call) {
  aj_value args[2];
  (void)self;
  args[0] = call->args[0];
  args[1] = none();
  args[1].tag = AJ_STRING;
  args[1].aux = 1;
  args[1].v.str = "?";
  return ops->redispatch(call->op, call->keys, args, 2, call->rets, 1);
}
static aj_status* passes_other_shape(
    void* self, aj_call* call) { /* the result no longer fits the tensor given */
  aj_value dims[3], ret = none(), arg;
  (void)self;
  dims[0] = call->args[0];
  dims[1] = none();
  dims[1].tag = AJ_INT;
  aj_status* bad = ops->call(ops->find_op(text("unsqueeze")), dims, 2, &ret, 1);
  if (bad) return bad;
  arg = ret;
  dims[0].tag = AJ_TENSORS;
  dims[0].aux = 2;
  aj_tensor* both[2] = {ret.v.tensor, ret.v.tensor};
  dims[0].v.tensors = both;
  ret = none();
  bad = ops->call(ops->find_op(text("cat")), dims, 1, &ret, 1);
  core->release(arg.v.tensor);
  if (bad) return bad;
  bad = ops->redispatch(call->op, call->keys, &ret, 1, call->rets, 1);
  core->release(ret.v.tensor);
  return bad;
}
/* By the whole call, the slot as it is. */
static aj_status* calls(void* self, aj_call* call) {
  (void)self;
  return ops->call(call->op, call->args, call->nargs, call->rets, call->nrets);
}
/* Passes on what is lent, with no key on its thread but what the call brings. */
static aj_status* resets(void* self, aj_call* call) {
  uint64_t include, exclude;
  aj_status* bad = look(call);
  if (bad) return bad;
  ops->thread_keys(&include, &exclude);
  ops->set_thread_keys(0, 0);
  bad = pass(self, call);
  ops->set_thread_keys(include, exclude);
  return bad;
}
/* max(x, dim): values left to below, indices replaced. */
static aj_status* two(void* self, aj_call* call) {
  aj_value rets[2], own = none();
  aj_status* bad = look(call);
  (void)self;
  rets[0] = call->rets[0];
  rets[1] = own;
  if (!bad) bad = ops->redispatch(call->op, call->keys, call->args, call->nargs, rets, 2);
  if (bad) return bad;
  call->rets[0] = rets[0];
  call->rets[1] = rets[1];
  return NULL;
}

static aj_status* other(void* self,
                        aj_call* call) { /* a new tensor, where the first argument is written */
  aj_tensor* t;
  aj_status* bad = fresh(call, 17, &t);
  (void)self;
  if (!bad) call->rets[0] = of(t);
  return bad;
}
static int32_t never(void* self, const aj_call* call) { return (void)self, (void)call, 0; }

static const struct {
  const char* op;
  aj_kernel_fn fn;
} kernels[] = {{"neg", leaves},      {"abs", passes},        {"exp", replaces},
               {"tanh", retains},    {"sin", declines},      {"cos", declines_late},
               {"sqrt", fails_late}, {"square", fails},      {"sign", empties},
               {"floor", numbers},   {"ceil", passes_wrong}, {"round", passes_other_shape},
               {"trunc", calls},     {"expm1", resets},      {"arctan", resets},
               {"max.dim", two},     {"zero_", passes},      {"fill_", other}};

AJ_PLUGIN_INIT {
  static const char* const keys[] = {"lent", "bare", "high"}; /* the last one above the tape */
  uint64_t mask;
  core = env->core;
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  aj_status* bad = NULL;
  for (int i = 0; i < 3 && !bad; i++) {
    bad = ops->def_key(env->registrar, text(keys[i]),
                       i < 2 ? AJ_KEY_BELOW_AUTOGRAD : AJ_KEY_ABOVE_AUTOGRAD, &mask);
    if (!bad && i == 0) bad = ops->def_fallback(env->registrar, text(keys[i]), pass, NULL);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels && !bad; k++) {
      aj_kernel_def d;
      memset(&d, 0, sizeof d);
      d.struct_size = sizeof d;
      d.op = text(kernels[k].op);
      d.key = text(keys[i]);
      d.dtypes = 1u << AJ_DT_FLOAT32;
      d.fn = kernels[k].fn;
      bad = ops->def_kernel(env->registrar, &d);
    }
  }
  /* An op that only the keys serve: by one candidate that does not want to be asked, and one that
   * declines. */
  aj_op_def op;
  aj_kernel_def d;
  memset(&op, 0, sizeof op);
  op.struct_size = sizeof op;
  op.schema = text("lent::only(Tensor x) -> Tensor");
  op.kind = text("unary");
  if (!bad) bad = ops->def_op(env->registrar, &op);
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.op = text("lent::only");
  for (int i = 0; i < 6 && !bad; i++) {
    d.key = text(keys[i / 2]);
    d.priority = i % 2;
    d.fn = i % 2 ? fails : declines;
    d.can_run = i % 2 ? never : NULL;
    bad = ops->def_kernel(env->registrar, &d);
  }
  /* Above the tape, around the others: the slot passes through two hands; and the same kernels
   * there. */
  if (!bad) bad = ops->def_key(env->registrar, text("over"), AJ_KEY_ABOVE_AUTOGRAD, &mask);
  if (!bad) bad = ops->def_fallback(env->registrar, text("over"), passes, NULL);
  return bad;
}

#else
static aj_tensor* make(void) {
  float values[3] = {0.25f, -1, 4};
  int64_t n = 3;
  DLTensor like = {NULL, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0};
  aj_tensor* t;
  if (core->tensor_empty(&like, 0, &t)) exit(1);
  memcpy(t->dl.data, values, sizeof values);
  return t;
}
static void print(const aj_tensor* t) {
  for (int64_t i = 0; i < core->tensor_numel(t); i++)
    t->dl.dtype.code == kDLInt ? printf(" %lld", (long long)((int64_t*)t->dl.data)[i])
                               : printf(" %.3f", (double)((float*)t->dl.data)[i]);
}
/* One call in one form; the result is checked for its tag, its aux, and who owns what afterwards.
 */
static void one(const char* name, const char* form, int second) {
  const aj_op* op = ops->find_op(text(name));
  aj_tensor *x = make(), *out = make();
  uint64_t version = core->tensor_version(form[0] == 'i' ? x : out);
  aj_value args[2], ret = form[0] == 'n' ? none() : of(form[0] == 'i' ? x : out);
  args[0] = of(x);
  args[1] = none();
  args[1].tag = AJ_FLOAT;
  args[1].v.f = 7;
  aj_status* bad = ops->call(op, args, second ? 2 : 1, &ret, 1);
  aj_tensor* target = form[0] == 'i' || second || name[strlen(name) - 1] == '_' ? x : out;
  printf("%s %s:", name, form);
  if (bad) {
    aj_str m = core->status_message(bad);
    printf(" error %d %.*s", core->status_code(bad), (int)m.len, m.data);
    core->status_free(bad);
  } else {
    if (ret.tag != AJ_TENSOR || ret.aux)
      printf(" BROKEN tag %d aux %u", ret.tag, ret.aux);
    else {
      print(ret.v.tensor);
      if (form[0] != 'n' && ret.v.tensor != target) printf(" BROKEN another tensor");
      uint64_t writes = strcmp(name, "arctan")
                            ? 1
                            : 2; /* a body's result is copied: by a call that counts as well */
      if (form[0] != 'n' && core->tensor_version(target) != version + writes)
        printf(" BROKEN version %llu",
               (unsigned long long)(core->tensor_version(target) - version));
      core->release(ret.v.tensor);
    }
  }
  if (!core->tensor_unique(x) || !core->tensor_unique(out)) printf(" BROKEN references");
  core->release(x);
  core->release(out);
  printf("\n");
}
static void pair(void) {
  aj_tensor *x = make(), *m, *values = make(), *places;
  int64_t shape[2] = {1, 3}, n = 1;
  DLTensor like = {NULL, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  aj_value args[2], rets[2];
  if (core->tensor_view(x, &like, 0, &m)) exit(1);
  core->release(values);
  like.ndim = 1;
  like.shape = &n;
  if (core->tensor_empty(&like, 0, &values)) exit(1);
  like.dtype.code = kDLInt;
  like.dtype.bits = 64;
  if (core->tensor_empty(&like, 0, &places)) exit(1);
  args[0] = of(m);
  args[1] = none();
  args[1].tag = AJ_INT;
  args[1].v.i = 1;
  rets[0] = of(values);
  rets[1] = of(places);
  aj_status* bad = ops->call(ops->find_op(text("max.dim")), args, 2, rets, 2);
  printf("max.dim out:");
  if (bad) {
    aj_str m_ = core->status_message(bad);
    printf(" error %.*s", (int)m_.len, m_.data);
    core->status_free(bad);
  } else {
    print(values);
    print(places);
    if (rets[0].v.tensor != values || rets[1].v.tensor != places || rets[0].aux || rets[1].aux)
      printf(" BROKEN slots");
    core->release(rets[0].v.tensor);
    core->release(rets[1].v.tensor);
  }
  if (!core->tensor_unique(values) || !core->tensor_unique(places)) printf(" BROKEN references");
  printf("\n");
  core->release(values);
  core->release(places);
  core->release(m);
  core->release(x);
}

int main(int argc, char** argv) {
  static const char* const names[] = {"neg",   "abs",    "exp",    "tanh",      "sin",  "cos",
                                      "sqrt",  "square", "sign",   "floor",     "ceil", "round",
                                      "trunc", "expm1",  "arctan", "lent::only"};
  static const char* const forms[] = {"new", "out", "in place"};
  uint64_t include, exclude;
  core = (const aj_core*)aj_get_interface("aj.core", 1);
  ops = (const aj_dispatch*)aj_get_interface("aj.op", 1);
  if (argc < 3 || aj_load_plugin(argv[1])) return 1;
  ops->thread_keys(&include, &exclude);
  for (int i = 2; i < argc; i++) include |= ops->key_mask(text(argv[i]));
  ops->set_thread_keys(include, exclude);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    for (int f = 0; f < 3; f++) one(names[i], forms[f], 0);
  one("zero_", "new", 0);
  one("fill_", "new", 1);
  pair();
  printf("done\n");
  return 0;
}
#endif
