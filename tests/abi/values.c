/* tests/abi/values.c: who owns what comes back: results and saved values are counted objects that
 * outlive what they came from. Prints a line for each; valgrind sees what the lines do not. */
#include <adjoin/abi/capi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const aj_core* core;
static const aj_dispatch* ops;
static const aj_autograd* autograd;

static void good(aj_status* bad, const char* what) {
  if (!bad) return;
  aj_str m = core->status_message(bad);
  printf("%s: error %d: %.*s\n", what, core->status_code(bad), (int)m.len, m.data);
  exit(1);
}
static aj_tensor* make(uint8_t code, uint8_t bits, int64_t n, const void* numbers) {
  DLTensor like;
  aj_tensor* t;
  memset(&like, 0, sizeof like);
  like.device.device_type = kDLCPU;
  like.ndim = 1;
  like.dtype.code = code;
  like.dtype.bits = bits;
  like.dtype.lanes = 1;
  like.shape = &n;
  good(core->tensor_empty(&like, 0, &t), "tensor_empty");
  good(core->tensor_copy_bytes(t, (void*)(uintptr_t)numbers, (uint64_t)(n * bits / 8), 0), "copy");
  return t;
}
static aj_value of(aj_tensor* t) {
  aj_value v;
  memset(&v, 0, sizeof v);
  v.tag = AJ_TENSOR;
  v.v.tensor = t;
  return v;
}
static void complex_of(const aj_value* v, const char* what) {
  double re = 0, im = 0;
  if (v->tag == AJ_COMPLEX_OBJ) good(core->complex_get(v->v.object, &re, &im), what);
  printf("%s: tag %d aux %u, %g + %g i\n", what, v->tag, v->aux, re, im);
}

/* The first result is still itself when there is a second one, and when the tensor has gone. */
static void two_items(void) {
  double first[2] = {1, 2}, second[2] = {3, 4};
  aj_value x = of(make(kDLComplex, 128, 1, first)), y = of(make(kDLComplex, 128, 1, second)), one,
           two;
  memset(&one, 0, sizeof one);
  memset(&two, 0, sizeof two);
  good(ops->call(ops->find_op(AJ_STR_LIT("item")), &x, 1, &one, 1), "item");
  good(ops->call(ops->find_op(AJ_STR_LIT("item")), &y, 1, &two, 1), "item");
  core->release(x.v.tensor);
  core->release(y.v.tensor);
  complex_of(&one, "first");
  complex_of(&two, "second");
  /* As an argument a complex object is as good as AJ_COMPLEX. */
  double ones[4] = {1, 0, 0, 1};
  aj_value args[2], sum;
  memset(&sum, 0, sizeof sum);
  args[0] = of(make(kDLComplex, 128, 2, ones));
  args[1] = one;
  good(ops->call(ops->find_op(AJ_STR_LIT("mul")), args, 2, &sum, 1), "mul");
  good(core->tensor_copy_bytes(sum.v.tensor, ones, sizeof ones, 1), "copy");
  printf("product: %g %g %g %g\n", ones[0], ones[1], ones[2], ones[3]);
  core->release(args[0].v.tensor);
  core->release(sum.v.tensor);
  core->release(one.v.object);
  core->release(two.v.object);
}

static void print_list(const aj_value* v) {
  uint32_t n = 0;
  const aj_value* items = core->list_get(v->v.object, &n);
  printf(" of %u:", n);
  for (uint32_t i = 0; i < n; ++i) {
    float number = 0;
    if (items[i].tag == AJ_TENSOR) {
      good(core->tensor_copy_bytes(items[i].v.tensor, &number, 4, 1), "copy");
      printf(" t%g", (double)number);
    } else {
      printf(" %lld", items[i].tag == AJ_INT ? (long long)items[i].v.i : -1);
    }
  }
}

/* Everything that a node saved, read when the node, its inputs and its result are gone. */
static void saved_values(const char* what, aj_node* n, aj_tensor** dead, int ndead) {
  aj_value kept[16];
  uint32_t count = 0;
  for (;; ++count) {
    aj_status* bad = autograd->node_saved(n, count, &kept[count]);
    if (core->status_code(bad) == AJ_NOT_FOUND) {
      core->status_free(bad);
      break;
    }
    good(bad, "node_saved");
  }
  core->release(n);
  for (int i = 0; i < ndead; ++i) core->release(dead[i]);
  printf("%s:", what);
  for (uint32_t i = 0; i < count; ++i) {
    printf(" tag %d", kept[i].tag);
    if (kept[i].tag == AJ_LIST_OBJ) print_list(&kept[i]);
    if (kept[i].tag == AJ_TENSOR) {
      float number = 0;
      good(core->tensor_copy_bytes(kept[i].v.tensor, &number, 4, 1), "copy");
      printf(" t%g", (double)number);
    }
    if (kept[i].tag == AJ_STRING_OBJ) {
      aj_str s = core->string_get(kept[i].v.object);
      printf(" %.*s", (int)s.len, s.data);
    }
    if (kept[i].tag >= AJ_TENSOR) core->release(kept[i].v.object);
  }
  printf("\n");
}

static aj_status* no_gradient(void* self, aj_grad_call* g) {
  return (void)self, (void)g, (aj_status*)0;
}

static void saved_by_a_custom_node(void) {
  float a[1] = {5}, b[1] = {6};
  double z[2] = {1, 2}, fs[2] = {0.5, 0.25};
  int64_t ints[3] = {7, 8, 9};
  aj_tensor* t[2] = {make(kDLFloat, 32, 1, a), make(kDLFloat, 32, 1, b)};
  aj_vjp_def def;
  aj_value v[5];
  aj_node* n;
  memset(&def, 0, sizeof def);
  memset(v, 0, sizeof v);
  def.struct_size = sizeof def;
  def.op = AJ_STR_LIT("keeper");
  def.vjp = no_gradient;
  good(autograd->set_requires_grad(t[0], 1), "set_requires_grad");
  good(autograd->node_new(&def, NULL, t, 2, &n), "node_new");
  v[0].tag = AJ_TENSORS, v[0].aux = 2, v[0].v.tensors = t;
  v[1].tag = AJ_INTS, v[1].aux = 3, v[1].v.ints = ints;
  v[2].tag = AJ_STRING, v[2].aux = 4, v[2].v.str = "word";
  v[3].tag = AJ_COMPLEX, v[3].v.c128 = z;
  v[4].tag = AJ_FLOATS, v[4].aux = 2, v[4].v.floats = fs;
  for (int i = 0; i < 5; ++i) good(autograd->node_save(n, &v[i], 0), "node_save");
  ints[0] = z[0] = fs[0] = 100; /* copies were taken */
  saved_values("custom", n, t, 2);
}

/* `name` of two tensors [1]: an op that keeps a list, and shapes. */
static void saved_by_an_op(const char* name) {
  float a[1] = {5}, b[1] = {6};
  aj_tensor* t[3] = {make(kDLFloat, 32, 1, a), make(kDLFloat, 32, 1, b), NULL};
  aj_str s = {name, strlen(name)};
  aj_value args[2], ret;
  aj_node* n;
  uint32_t result;
  memset(args, 0, sizeof args);
  memset(&ret, 0, sizeof ret);
  good(autograd->set_requires_grad(t[0], 1), "set_requires_grad");
  if (!strcmp(name, "mul") || !strcmp(name, "expand")) {
    int64_t* shape = (int64_t[]){3};
    args[0] = of(t[0]);
    args[1] = of(t[1]);
    if (*name == 'e') args[1].tag = AJ_INTS, args[1].aux = 1, args[1].v.ints = shape;
  } else {
    args[0].tag = AJ_TENSORS, args[0].aux = 2, args[0].v.tensors = t;
    args[1].tag = AJ_INT;
  }
  good(ops->call(ops->find_op(s), args, 2, &ret, 1), name);
  t[2] = ret.v.tensor;
  good(autograd->tensor_node(t[2], &n, &result), "tensor_node");
  saved_values(name, n, t, 3);
}

/* Texts and numbers of somebody cannot be put into a list. */
static void lists_own(void) {
  double z[2] = {1, 2};
  int64_t ints[1] = {1};
  aj_value v[3];
  aj_object* o = NULL;
  memset(v, 0, sizeof v);
  v[0].tag = AJ_STRING, v[0].aux = 1, v[0].v.str = "x";
  v[1].tag = AJ_INTS, v[1].aux = 1, v[1].v.ints = ints;
  v[2].tag = AJ_COMPLEX, v[2].v.c128 = z;
  for (int i = 0; i < 3; ++i) {
    aj_status* bad = core->list_new(&v[i], 1, &o);
    printf("list of tag %d: code %d\n", v[i].tag, core->status_code(bad));
    core->status_free(bad);
    core->release(o);
    o = NULL;
  }
}

static void dropped(void* ctx) { *(int*)ctx += 1; }
/* A shape must fit into the memory that is lent; who is refused keeps it. */
static void memory(const char* what, int64_t n, int64_t stride, uint64_t offset, uint64_t bytes) {
  static char room[4096];
  int drops = 0;
  DLTensor like;
  aj_tensor* t = NULL;
  memset(&like, 0, sizeof like);
  like.device.device_type = kDLCPU;
  like.ndim = 1;
  like.dtype.code = kDLFloat;
  like.dtype.bits = 32;
  like.dtype.lanes = 1;
  like.shape = &n;
  like.strides = stride ? &stride : NULL;
  like.data = room + 2048;
  like.byte_offset = offset;
  aj_status* bad = core->tensor_from_memory(&like, bytes, 0, &drops, dropped, &t);
  printf("%s: code %d", what, core->status_code(bad));
  if (t)
    printf(" byte_offset %d at %d", (int)t->dl.byte_offset, (int)((char*)t->dl.data - room - 2048));
  core->status_free(bad);
  core->release(t);
  printf(" drops %d\n", drops);
}

/* What base.h promises of every tensor's dl. */
static void rules(const char* what, aj_tensor* t) {
  int strided = (t->obj.flags & AJ_TENSOR_STRIDED) != 0;
  int64_t n = 1;
  for (int32_t i = 0; i < t->dl.ndim; ++i) n *= t->dl.shape[i];
  int strides = t->dl.ndim == 0 || t->dl.strides != NULL;
  printf("rules %s: strided %d strides %d offset %d elements %d\n", what, strided, strides,
         (int)t->dl.byte_offset, n == core->tensor_numel(t));
}
static void data_rules(void) {
  static const struct {
    const char *op, *what;
    int64_t args[3];
    int nargs;
  } views[] = {{"select", "selected", {0, 1}, 2},      {"transpose", "transposed", {0, 1}, 2},
               {"unsqueeze", "unsqueezed", {0}, 1},    {"narrow", "narrowed", {0, 1, 2}, 3},
               {"narrow", "empty part", {0, 1, 0}, 3}, {"flatten", "flattened", {0}, 0}};
  float numbers[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {3, 2};
  aj_tensor *x = make(kDLFloat, 32, 6, numbers), *y, *t;
  DLTensor like = x->dl;
  like.ndim = 2;
  like.shape = shape;
  like.strides = NULL;
  good(core->tensor_view(x, &like, 0, &y), "tensor_view");
  rules("view", y);
  for (size_t i = 0; i < sizeof views / sizeof *views; ++i) {
    aj_value args[4], ret;
    aj_str name = {views[i].op, strlen(views[i].op)};
    memset(args, 0, sizeof args);
    memset(&ret, 0, sizeof ret);
    args[0] = of(y);
    for (int k = 0; k < views[i].nargs; ++k)
      args[k + 1].tag = AJ_INT, args[k + 1].v.i = views[i].args[k];
    good(ops->call(ops->find_op(name), args, (uint32_t)views[i].nargs + 1, &ret, 1), views[i].what);
    rules(views[i].what, ret.v.tensor);
    core->release(ret.v.tensor);
  }
  like.ndim = 0;
  good(core->tensor_empty(&like, 0, &t), "tensor_empty");
  rules("of no dimension", t);
  core->release(t);
  like.ndim = 2;
  good(core->device_find(AJ_STR_LIT("meta"), (int32_t*)&like.device.device_type), "meta");
  good(core->tensor_empty(&like, 0, &t), "tensor_empty");
  rules("meta", t);
  core->release(t);
  core->release(y);
  core->release(x);
}

int main(void) {
  core = (const aj_core*)aj_get_interface("aj.core", 1);
  ops = (const aj_dispatch*)aj_get_interface("aj.op", 1);
  autograd = (const aj_autograd*)aj_get_interface("aj.autograd", 1);
  two_items();
  saved_by_a_custom_node();
  saved_by_an_op("mul");
  saved_by_an_op("expand");
  saved_by_an_op("cat");
  saved_by_an_op("stack");
  lists_own();
  data_rules();
  memory("fits", 4, 0, 0, 16);
  memory("4000 bytes in 16", 1000, 0, 0, 16);
  memory("one more", 5, 0, 0, 16);
  memory("behind an offset", 4, 0, 4, 16);
  memory("at an offset", 3, 0, 4, 16);
  memory("far steps", 2, 4, 0, 16);
  memory("backward steps", 4, -1, 0, 16);
  memory("none", 0, 0, 0, 0);
  memory("a number of elements that wraps", (int64_t)1 << 62, 0, 0, 16);
  return 0;
}
