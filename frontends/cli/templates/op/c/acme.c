/* acme.c: the op acme::acme with its kernel for the processor and its derivative, in C. */
#include <adjoin/abi/plugin.h>
#include <string.h>

AJ_PLUGIN_NOTE("acme", "0.1.0", "", "", "ops:acme", "iface:aj.op>=0;iface:aj.autograd>=0");

/* The core gives the whole walk, or any part of it, from any thread. Operands are of the compute
 * dtype, since the kernel does not say that it casts; by is the second argument. */
static aj_status* forward(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  const aj_operand *y = &p->ops[0], *x = &p->ops[1];
  const double by = call->args[1].v.f;
  int64_t index[64] = {0}, to = 0, from = 0;
  (void)self;
  for (int64_t i = 0; i < p->numel; ++i) {
    if (p->compute.bits == 32) {
      float v = *(const float*)((const char*)x->data + from);
      *(float*)((char*)y->data + to) = v / ((float)by + (v < 0 ? -v : v));
    } else {
      double v = *(const double*)((const char*)x->data + from);
      *(double*)((char*)y->data + to) = v / (by + (v < 0 ? -v : v));
    }
    for (uint32_t d = 0; d < p->ndim; ++d) { /* to the next element: strides are bytes */
      to += y->strides[d];
      from += x->strides[d];
      if (++index[d] < p->sizes[d]) break;
      to -= y->strides[d] * p->sizes[d];
      from -= x->strides[d] * p->sizes[d];
      index[d] = 0;
    }
  }
  return 0;
}

static aj_value tensor_value(aj_tensor* t) {
  aj_value v;
  memset(&v, 0, sizeof v);
  v.tag = AJ_TENSOR;
  v.v.tensor = t;
  return v;
}

/* *out = op(a, b), b absent for an op of one argument; a call of ops, so that it can be
 * differentiated again. */
static aj_status* apply(const aj_grad_call* g, aj_str op, aj_value a, const aj_value* b,
                        aj_tensor** out) {
  aj_value args[2], ret;
  memset(&ret, 0, sizeof ret);
  args[0] = a;
  if (b) args[1] = *b;
  aj_status* bad = g->op->call(g->op->find_op(op), args, b ? 2 : 1, &ret, 1);
  *out = bad ? 0 : ret.v.tensor;
  return bad;
}

/* g * by / (by + |x|)^2 */
static aj_status* backward(void* self, aj_grad_call* g) {
  const aj_value by = g->saved[1];
  aj_value second;
  aj_tensor *size = 0, *d = 0, *dd = 0, *scaled = 0;
  (void)self;
  aj_status* bad = apply(g, AJ_STR_LIT("abs"), g->saved[0], 0, &size);
  if (!bad) bad = apply(g, AJ_STR_LIT("add"), tensor_value(size), &by, &d);
  second = tensor_value(d);
  if (!bad) bad = apply(g, AJ_STR_LIT("mul"), second, &second, &dd);
  if (!bad) bad = apply(g, AJ_STR_LIT("mul"), tensor_value(g->grad_out[0]), &by, &scaled);
  second = tensor_value(dd);
  if (!bad) bad = apply(g, AJ_STR_LIT("div"), tensor_value(scaled), &second, &g->grad_in[0]);
  g->core->release(size);
  g->core->release(d);
  g->core->release(dd);
  g->core->release(scaled);
  return bad;
}

AJ_PLUGIN_INIT {
  const aj_dispatch* op = (const aj_dispatch*)env->query("aj.op", 1);
  const aj_autograd* autograd = (const aj_autograd*)env->query("aj.autograd", 1);
  static const aj_save saves[2] = {{AJ_SAVE_ARG, 0, 0}, {AJ_SAVE_ARG, 1, 0}};
  aj_op_def def;
  aj_kernel_def kernel;
  aj_vjp_def vjp;
  memset(&def, 0, sizeof def);
  memset(&kernel, 0, sizeof kernel);
  memset(&vjp, 0, sizeof vjp);
  def.struct_size = sizeof def;
  def.schema = AJ_STR_LIT("acme::acme(Tensor input, *, float by=1.0) -> Tensor");
  def.doc = AJ_STR_LIT("input / (by + |input|).");
  def.kind = AJ_STR_LIT("unary_float");
  kernel.struct_size = sizeof kernel;
  kernel.flags = AJ_KERNEL_INNER;
  kernel.op = AJ_STR_LIT("acme::acme");
  kernel.key = AJ_STR_LIT("cpu");
  kernel.dtypes = 1u << AJ_DT_FLOAT32 | 1u << AJ_DT_FLOAT64;
  kernel.fn = forward;
  vjp.struct_size = sizeof vjp;
  vjp.op = AJ_STR_LIT("acme::acme");
  vjp.flags = AJ_VJP_MATERIALIZE;
  vjp.save = saves;
  vjp.nsave = 2;
  vjp.vjp = backward;
  aj_status* bad = op->def_op(env->registrar, &def);
  if (!bad) bad = op->def_kernel(env->registrar, &kernel);
  if (!bad) bad = autograd->def_vjp(env->registrar, &vjp);
  return bad;
}
