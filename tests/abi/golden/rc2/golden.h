/* golden.h: what the plugins in C share: the tables that they reached, and values. NAME is the plugin's name and its space. */
#ifndef GOLDEN_H
#define GOLDEN_H
#include <adjoin/abi/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(x)               \
  do {                       \
    aj_status* bad_ = (x);   \
    if (bad_) return bad_;   \
  } while (0)
#define UNUSED __attribute__((unused))

static const aj_core* core;
static const aj_dispatch* ops;
static const aj_autograd* autograd;

UNUSED static aj_str text(const char* s) {
  aj_str t = {s, strlen(s)};
  return t;
}
UNUSED static aj_status* fail(int32_t code, const char* what) { return core->status_new(code, text(""), text(what), "golden", 1); }
UNUSED static aj_value none(void) {
  aj_value v;
  memset(&v, 0, sizeof v);
  return v;
}
UNUSED static aj_value of(aj_tensor* t) {
  aj_value v = none();
  v.tag = AJ_TENSOR;
  v.v.tensor = t;
  return v;
}
UNUSED static aj_value object(int32_t tag, aj_object* o) {
  aj_value v = none();
  v.tag = tag;
  v.v.object = o;
  return v;
}
UNUSED static aj_value whole(int64_t i) {
  aj_value v = none();
  v.tag = AJ_INT;
  v.v.i = i;
  return v;
}
UNUSED static aj_value real(double f) {
  aj_value v = none();
  v.tag = AJ_FLOAT;
  v.v.f = f;
  return v;
}
/* *out = op(a, b); b may be none(). */
UNUSED static aj_status* run(const char* name, aj_value a, aj_value b, aj_tensor** out) {
  aj_value args[2], ret = none();
  const aj_op* op = ops->find_op(text(name));
  if (!op) return fail(AJ_NOT_FOUND, name);
  args[0] = a;
  args[1] = b;
  TRY(ops->call(op, args, b.tag == AJ_NONE ? 1 : 2, &ret, 1));
  *out = ret.v.tensor;
  return NULL;
}
UNUSED static aj_status* like_first(void* self, aj_call* call) {
  const DLTensor* x = &call->args[0].v.tensor->dl;
  (void)self;
  return ops->declare(call, 0, x->dtype, x->ndim, x->shape, NULL);
}

static void reach(const aj_plugin_env* env) {
  core = env->core;
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  autograd = (const aj_autograd*)env->query("aj.autograd", 1);
}
UNUSED static aj_status* def_op(const aj_plugin_env* env, const char* schema, const char* kind, uint32_t flags,
                                aj_status* (*infer)(void*, aj_call*), aj_kernel_fn body) {
  aj_op_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.flags = flags;
  d.schema = text(schema);
  d.kind = text(kind);
  d.infer = infer;
  d.body = body;
  return ops->def_op(env->registrar, &d);
}
UNUSED static aj_status* def_kernel(const aj_plugin_env* env, const char* op, const char* key, uint64_t dtypes, uint32_t flags,
                                    int32_t priority, aj_kernel_fn fn, int32_t (*can_run)(void*, const aj_call*)) {
  aj_kernel_def k;
  memset(&k, 0, sizeof k);
  k.struct_size = sizeof k;
  k.flags = flags;
  k.op = text(op);
  k.key = text(key);
  k.dtypes = dtypes;
  k.priority = priority;
  k.fn = fn;
  k.can_run = can_run;
  return ops->def_kernel(env->registrar, &k);
}
UNUSED static aj_status* def_vjp(const aj_plugin_env* env, const char* op, uint32_t flags, const aj_save* save, uint32_t nsave,
                                 aj_status* (*save_more)(void*, const aj_call*, struct aj_saver*),
                                 aj_status* (*vjp)(void*, aj_grad_call*)) {
  aj_vjp_def v;
  memset(&v, 0, sizeof v);
  v.struct_size = sizeof v;
  v.flags = flags;
  v.op = text(op);
  v.save = save;
  v.nsave = nsave;
  v.save_more = save_more;
  v.vjp = vjp;
  return autograd->def_vjp(env->registrar, &v);
}

/* Nothing of ours runs on after a call. */
AJ_EXPORT aj_status* aj_plugin_drain_v1(void);
AJ_EXPORT aj_status* aj_plugin_drain_v1(void) { return NULL; }

#define FLOATS (1ull << AJ_DT_FLOAT32 | 1ull << AJ_DT_FLOAT64)
#endif
