/* tests/abi/cube.c: a plugin in C99: the op cube::cube with a kernel for the cpu and a derivative
 * made of dispatched ops. */
#include <adjoin/abi/plugin.h>
#include <string.h>

AJ_PLUGIN_NOTE("cube", "0.1.0", "", "Apache-2.0", "ops:cube",
               "iface:aj.op>=0;iface:aj.autograd>=0");

/* The core gives the whole walk, or any part of it, from any thread. */
static aj_status* cube(void* self, aj_call* call) {
  const aj_operand* y = &call->plan->ops[0];
  const aj_operand* x = &call->plan->ops[1];
  int64_t index[64] = {0};
  (void)self;
  for (int64_t i = 0; i < call->plan->numel; ++i) {
    int64_t to = 0, from = 0;
    for (uint32_t d = 0; d < call->plan->ndim; ++d) {
      to += index[d] * y->strides[d];
      from += index[d] * x->strides[d];
    }
    if (call->plan->compute.bits == 32) {
      float v = *(const float*)((const char*)x->data + from);
      *(float*)((char*)y->data + to) = v * v * v;
    } else {
      double v = *(const double*)((const char*)x->data + from);
      *(double*)((char*)y->data + to) = v * v * v;
    }
    for (uint32_t d = 0; d < call->plan->ndim && ++index[d] == call->plan->sizes[d]; ++d)
      index[d] = 0;
  }
  return 0;
}

static aj_value of_tensor(aj_tensor* t) {
  aj_value v;
  memset(&v, 0, sizeof v);
  v.tag = AJ_TENSOR;
  v.v.tensor = t;
  return v;
}

static aj_status* mul(const aj_grad_call* g, aj_value a, aj_value b, aj_tensor** out) {
  aj_value args[2], ret;
  memset(&ret, 0, sizeof ret);
  args[0] = a;
  args[1] = b;
  aj_status* bad = g->op->call(g->op->find_op(AJ_STR_LIT("mul")), args, 2, &ret, 1);
  *out = bad ? 0 : ret.v.tensor;
  return bad;
}

/* 3 x x g: calls of ops, so that it can be differentiated again. */
static aj_status* cube_vjp(void* self, aj_grad_call* g) {
  aj_value three;
  aj_tensor *xx = 0, *xxg = 0;
  (void)self;
  memset(&three, 0, sizeof three);
  three.tag = AJ_FLOAT;
  three.v.f = 3;
  aj_status* bad = mul(g, g->saved[0], g->saved[0], &xx);
  if (!bad) bad = mul(g, of_tensor(xx), of_tensor(g->grad_out[0]), &xxg);
  if (!bad) bad = mul(g, of_tensor(xxg), three, &g->grad_in[0]);
  g->core->release(xx);
  g->core->release(xxg);
  return bad;
}

AJ_PLUGIN_INIT {
  const aj_dispatch* op = (const aj_dispatch*)env->query("aj.op", 1);
  const aj_autograd* autograd = (const aj_autograd*)env->query("aj.autograd", 1);
  static const aj_save saves[1] = {{AJ_SAVE_ARG, 0, 0}};
  aj_op_def def;
  aj_kernel_def kernel;
  aj_vjp_def vjp;
  memset(&def, 0, sizeof def);
  memset(&kernel, 0, sizeof kernel);
  memset(&vjp, 0, sizeof vjp);
  def.struct_size = sizeof def;
  def.schema = AJ_STR_LIT("cube::cube(Tensor x) -> Tensor");
  def.doc = AJ_STR_LIT("x * x * x");
  def.kind = AJ_STR_LIT("unary");
  kernel.struct_size = sizeof kernel;
  kernel.flags = AJ_KERNEL_INNER;
  kernel.op = AJ_STR_LIT("cube::cube");
  kernel.key = AJ_STR_LIT("cpu");
  kernel.dtypes = 1u << AJ_DT_FLOAT32 | 1u << AJ_DT_FLOAT64;
  kernel.fn = cube;
  vjp.struct_size = sizeof vjp;
  vjp.op = AJ_STR_LIT("cube::cube");
  vjp.save = saves;
  vjp.nsave = 1;
  vjp.vjp = cube_vjp;
  aj_status* bad = op->def_op(env->registrar, &def);
  if (!bad) bad = op->def_kernel(env->registrar, &kernel);
  if (!bad) bad = autograd->def_vjp(env->registrar, &vjp);
  return bad;
}
