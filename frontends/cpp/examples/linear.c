/* frontends/cpp/examples/linear.c: the contract from C, as the author of a binding meets it:
 * plugins, tensors, ops, gradients, and a linear model that learns. C99; nothing but the installed
 * headers and libadjoin:
 *
 *   cc -std=c99 -Wall -Wextra -pedantic linear.c -o linear $(adjoin config --cflags --libs)
 *   ./linear [PLUGIN.so]
 */
#include <adjoin/abi/capi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything but four symbols is reached through tables. A binding gets them once; they live as
 * long as the process. */
static const aj_core* core;
static const aj_dispatch* ops;
static const aj_autograd* autograd;

/* A status is an error that its receiver owns: a binding copies kind (a Python class name), code
 * and message into an exception of its language, and frees it. NULL is success. This program ends
 * at the first one. */
static void check(aj_status* s) {
  aj_str kind, message;
  if (!s) return;
  kind = core->status_kind(s);
  message = core->status_message(s);
  fprintf(stderr, "%.*s: %.*s\n", (int)kind.len, kind.data, (int)message.len, message.data);
  core->status_free(s);
  exit(1);
}

/* Strings are counted, not ended by NUL. */
static aj_str text(const char* s) {
  aj_str t;
  t.data = s;
  t.len = strlen(s);
  return t;
}

/* An argument is a tagged value of 16 bytes; what it points to is borrowed for the call. */
static aj_value none(void) {
  aj_value v;
  memset(&v, 0, sizeof v); /* AJ_NONE is 0: not given, or the default */
  return v;
}
static aj_value tensor(aj_tensor* t) {
  aj_value v = none();
  v.tag = t ? AJ_TENSOR : AJ_NONE;
  v.v.tensor = t;
  return v;
}
static aj_value number(double x) {
  aj_value v = none();
  v.tag = AJ_FLOAT;
  v.v.f = x;
  return v;
}

/* Calls an op by name. A binding looks the op up once and keeps the pointer: it lives as long as
 * the process. A result that is AJ_NONE is made by the core, and comes back with a reference that
 * is ours to release. Arguments that the schema has and the call has not take their defaults. */
static aj_tensor* call(const char* name, const aj_value* args, uint32_t nargs) {
  const aj_op* op =
      ops->find_op(text(name)); /* loads the plugin that provides it, if it is not built in */
  aj_value result = none();
  if (!op) {
    fprintf(stderr, "there is no op '%s'\n", name);
    exit(1);
  }
  check(ops->call(op, args, nargs, &result, 1));
  return result.v.tensor;
}
static aj_tensor* call1(const char* name, aj_tensor* a) {
  aj_value args[1];
  args[0] = tensor(a);
  return call(name, args, 1);
}
static aj_tensor* call2(const char* name, aj_tensor* a, aj_value b) {
  aj_value args[2];
  args[0] = tensor(a);
  args[1] = b;
  return call(name, args, 2);
}

/* A tensor of float32 in memory of the core's, with a copy of `from`. tensor_from_memory would
 * share it instead. */
static aj_tensor* make(const float* from, int64_t rows, int64_t columns) {
  int64_t shape[2];
  int32_t type;
  DLTensor like; /* device, dtype, shape; strides NULL is C order */
  aj_tensor* t;
  shape[0] = rows;
  shape[1] = columns;
  memset(&like, 0, sizeof like);
  check(core->device_find(text("cpu"), &type)); /* names are identity; this loads the plugin, too */
  like.device.device_type = (DLDeviceType)type;
  like.dtype.code = kDLFloat;
  like.dtype.bits = 32;
  like.dtype.lanes = 1;
  like.ndim = 2;
  like.shape = shape;
  check(core->tensor_empty(&like, 0, &t));
  check(core->tensor_copy_bytes(t, (void*)(uintptr_t)from,
                                (uint64_t)(rows * columns) * sizeof *from, 0));
  return t;
}

/* The one element of a tensor, from whichever device it is on. */
static float item(aj_tensor* t) {
  float x;
  check(core->tensor_copy_bytes(t, &x, sizeof x, 1));
  return x;
}

static int32_t show(void* self, const aj_plugin_info* p) {
  (void)self;
  printf("plugin %.*s %.*s\n", (int)p->name.len, p->name.data, (int)p->version.len,
         p->version.data);
  return 0; /* anything else ends the walk */
}

/* param -= rate * param.grad. The result given is the first argument: that is the form in place.
 * Recording is off meanwhile: a leaf that requires a gradient must not be changed by a recorded op.
 */
static void descend(aj_tensor* param, double rate) {
  aj_tensor* grad;
  aj_value args[3], result = tensor(param);
  int32_t before = autograd->set_grad_mode(0);
  check(autograd->grad(param,
                       &grad)); /* a reference of ours, or NULL where backward did not come by */
  args[0] = tensor(param);
  args[1] = tensor(grad);
  args[2] = number(rate);
  check(ops->call(ops->find_op(text("sub")), args, 3, &result, 1)); /* sub(input, other, alpha) */
  core->release(result.v.tensor); /* results are owned, this one too */
  core->release(grad);
  check(autograd->set_grad(param, NULL));
  autograd->set_grad_mode(before);
}

/* mean((x w + b - y)^2), recorded since w and b require gradients; intermediate results are
 * released at once: what the derivative needs the tape keeps. */
static aj_tensor* loss_of(aj_tensor* x, aj_tensor* y, aj_tensor* w, aj_tensor* b) {
  aj_tensor* product = call2("matmul", x, tensor(w));
  aj_tensor* guess = call2("add", product, tensor(b));
  aj_tensor* error = call2("sub", guess, tensor(y));
  aj_tensor* square = call2("mul", error, tensor(error));
  aj_tensor* loss = call1("mean", square);
  core->release(product); /* retain and release take tensors and all other objects */
  core->release(guess);
  core->release(error);
  core->release(square);
  return loss;
}

/* y = 3 x0 - 2 x1 + 1, and 60 steps to find that out. */
static void train(void) {
  enum { rows = 64, steps = 60 };
  float points[rows][2], wanted[rows], zero[2] = {0, 0};
  aj_tensor *x, *y, *w, *b;
  int i;
  for (i = 0; i < rows; ++i) {
    points[i][0] = (float)(i % 8) / 4 - 0.875f;
    points[i][1] = (float)(i / 8) / 4 - 0.875f;
    wanted[i] = 3 * points[i][0] - 2 * points[i][1] + 1;
  }
  x = make(&points[0][0], rows, 2);
  y = make(wanted, rows, 1);
  w = make(zero, 2, 1);
  b = make(zero, 1, 1);
  check(autograd->set_requires_grad(w, 1));
  check(autograd->set_requires_grad(b, 1));
  for (i = 0; i < steps; ++i) {
    aj_tensor* loss = loss_of(x, y, w, b);
    aj_backward run; /* structs that grow begin with their size: both sides touch what both know */
    memset(&run, 0, sizeof run);
    run.struct_size = sizeof run;
    run.roots = &loss;
    run.nroots = 1;
    check(autograd->backward(&run)); /* gradients go to .grad of the leaves */
    if (i % 10 == 0 || i == steps - 1) printf("step %d: loss %.8g\n", i, (double)item(loss));
    core->release(loss);
    descend(w, 0.5);
    descend(b, 0.5);
  }
  {
    float found[2];
    check(core->tensor_copy_bytes(w, found, sizeof found, 1));
    printf("w %.5f %.5f b %.5f\n", (double)found[0], (double)found[1], (double)item(b));
  }
  core->release(x);
  core->release(y);
  core->release(w);
  core->release(b);
}

int main(int argc, char** argv) {
  if (aj_abi_version() >> 16 != AJ_ABI_MAJOR) return 1; /* another major is another contract */
  core = (const aj_core*)aj_get_interface("aj.core", AJ_ABI_MAJOR);
  ops = (const aj_dispatch*)aj_get_interface("aj.op", AJ_ABI_MAJOR);
  autograd = (const aj_autograd*)aj_get_interface("aj.autograd", AJ_ABI_MAJOR);
  if (!core || !ops || !autograd) return 1;
  /* Installed plugins load when their device or op is first named; a file of one's own is loaded
   * like this. */
  if (argc > 1) check(aj_load_plugin(argv[1]));
  check(aj_list_plugins(show, NULL));
  train();
  return 0;
}
