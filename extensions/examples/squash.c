/* squash.c: an op with its kernel and its derivative in C: x / (1 + |x|). */
#include <adjoin/abi/plugin.h>

AJ_PLUGIN_NOTE("squash", "1.0.0", "", "", "ops:squash", "");

/* The core hands out the walk, or parts of it to several threads; sizes are innermost first. */
static aj_status* forward(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  for (int64_t i = 0; i < p->numel; ++i) {
    char *to = p->ops[0].data, *from = p->ops[1].data;
    for (int64_t d = 0, rest = i; d < p->ndim; rest /= p->sizes[d++]) {
      to += rest % p->sizes[d] * p->ops[0].strides[d];
      from += rest % p->sizes[d] * p->ops[1].strides[d];
    }
    double x = p->compute.bits == 32 ? *(float*)from : *(double*)from;
    double y = x / (1 + (x < 0 ? -x : x));
    p->compute.bits == 32 ? (*(float*)to = (float)y) : (*(double*)to = y);
  }
  return (void)self, NULL;
}

static aj_status* apply(aj_grad_call* g, const char* op, aj_value a, aj_value b, aj_value* out) {
  aj_value args[2] = {a, b};
  const aj_str name = {op, 3};
  return g->op->call(g->op->find_op(name), args, b.tag == AJ_NONE ? 1 : 2, out, 1);
}

/* g * (1 - |y|)^2, by ops: they can be differentiated again. */
static aj_status* backward(void* self, aj_grad_call* g) {
  aj_value one = {AJ_INT, 0, {1}}, none = {0}, t[4] = {{0}}, grad = {AJ_TENSOR, 0, {0}};
  (void)self;
  grad.v.tensor = g->grad_out[0];
  aj_status* bad = apply(g, "abs", g->saved[0], none, &t[0]);
  if (!bad) bad = apply(g, "sub", one, t[0], &t[1]);
  if (!bad) bad = apply(g, "mul", grad, t[1], &t[2]);
  if (!bad) bad = apply(g, "mul", t[2], t[1], &t[3]);
  for (int i = 0; i < 3; ++i) g->core->release(t[i].v.tensor);
  g->grad_in[0] = t[3].v.tensor;
  return bad;
}

AJ_PLUGIN_INIT {
  const aj_dispatch* op = env->query("aj.op", 1);
  const aj_autograd* tape = env->query("aj.autograd", 1);
  static const aj_save save = {AJ_SAVE_RESULT, 0, 0};
  const aj_str name = AJ_STR_LIT("squash::squash"), cpu = AJ_STR_LIT("cpu");
  const uint64_t dtypes = 1 << AJ_DT_FLOAT32 | 1 << AJ_DT_FLOAT64;
  aj_op_def def = {sizeof def, 0, .kind = AJ_STR_LIT("unary_float")};
  def.schema = AJ_STR_LIT("squash::squash(Tensor input) -> Tensor");
  aj_kernel_def k = {sizeof k, AJ_KERNEL_INNER, name, cpu, .dtypes = dtypes, .fn = forward};
  aj_vjp_def vjp = {sizeof vjp, AJ_VJP_MATERIALIZE, name, &save, 1, .vjp = backward};
  aj_status* bad = op->def_op(env->registrar, &def);
  if (!bad) bad = op->def_kernel(env->registrar, &k);
  return bad ? bad : tape->def_vjp(env->registrar, &vjp);
}
