/* frontend.c: a program that reaches libadjoin by dlopen alone, as a language does: its words on tensors, its lines, its lock,
 * plugins, ops, gradients, hooks, nodes of its own, DLPack, keys, the list of plugins. Prints a line for each thing that held.
 *
 * frontend LIBADJOIN KEY_PLUGIN KEY_NAME */
#include <adjoin/abi/capi.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const aj_core* core;
static const aj_dispatch* ops;
static const aj_autograd* autograd;
static const aj_plugins* plugins;

static aj_str text(const char* s) {
  aj_str t = {s, strlen(s)};
  return t;
}
static void good(aj_status* bad, const char* what) {
  if (!bad) return;
  aj_str m = core->status_message(bad);
  printf("%s: error %d: %.*s\n", what, core->status_code(bad), (int)m.len, m.data);
  exit(1);
}
static void holds(int truth, const char* what) {
  printf("%s %s\n", truth ? "holds:" : "BROKEN:", what);
  if (!truth) exit(1);
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
static aj_tensor* make(float a, float b, float c) {
  float values[3] = {a, b, c};
  int64_t n = 3;
  DLTensor like = {NULL, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0};
  aj_tensor* t;
  good(core->tensor_empty(&like, 0, &t), "tensor_empty");
  good(core->tensor_copy_bytes(t, values, sizeof values, 0), "tensor_copy_bytes");
  return t;
}
static int is(aj_tensor* t, float a, float b, float c) {
  float v[3];
  good(core->tensor_copy_bytes(t, v, sizeof v, 1), "tensor_copy_bytes");
  return v[0] == a && v[1] == b && v[2] == c;
}
static aj_tensor* call(const char* name, aj_value a, aj_value b, aj_value ret) {
  aj_value args[2];
  const aj_op* op = ops->find_op(text(name));
  holds(op != NULL, name);
  args[0] = a;
  args[1] = b;
  good(ops->call(op, args, b.tag == AJ_NONE ? 1 : 2, &ret, 1), name);
  return ret.v.tensor;
}

/* The frontend's side. */
static int dropped, changed, parked;
static void* park(void) { return ++parked, &parked; }
static void unpark(void* p) { (void)p; }
static void drop(void* word) { dropped += *(int*)word; }
static void dtype_changed(void* word) { changed += *(int*)word; }
static aj_status* describe_line(uint32_t line, aj_object** out) {
  char told[32];
  snprintf(told, sizeof told, "golden:%u", line);
  return core->string_new(text(told), out);
}
static int32_t interrupted(void) { return 0; }

static void words(void) {
  static aj_frontend f;
  static int one = 1, ten = 10;
  int32_t id, again;
  aj_tensor *t = make(1, 2, 3), *u;
  f.struct_size = sizeof f;
  f.name = AJ_STR_LIT("golden");
  f.park = park;
  f.unpark = unpark;
  f.drop = drop;
  f.describe_line = describe_line;
  f.interrupted = interrupted;
  f.dtype_changed = dtype_changed;
  good(core->frontend_register(&f, &id), "frontend_register");
  aj_status* twice = core->frontend_register(&f, &again);
  holds(twice != NULL || again == id, "a second registration is refused or the same");
  core->status_free(twice);
  holds(core->frontend_word(t, id) == NULL, "a new tensor has no word");
  core->set_frontend_word(t, id, &one, 1);
  holds(core->frontend_word(t, id) == &one, "the word is there");
  core->release(t);
  holds(dropped == 1, "a word that the tensor owned is dropped with it");
  t = make(1, 2, 3);
  core->set_frontend_word(t, id, &ten, 0);
  good(autograd->detach(t, &u), "detach");
  holds(core->frontend_word(u, id) == NULL, "an alias has no word");
  core->release(u);
  core->release(t);
  holds(dropped == 1, "a borrowed word is not dropped");
}

static aj_status* triple(void* self, aj_tensor** inout_grad) { /* what replaces a gradient is given; what was lent is not ours */
  aj_value args[2], ret = none();
  (void)self;
  args[0] = of(*inout_grad);
  args[1] = none();
  args[1].tag = AJ_INT;
  args[1].v.i = 3;
  aj_status* bad = ops->call(ops->find_op(AJ_STR_LIT("mul")), args, 2, &ret, 1);
  if (!bad) *inout_grad = ret.v.tensor;
  return bad;
}
static int hooks_dropped, payloads_dropped;
static void drop_hook(void* self) { (void)self, ++hooks_dropped; }
static void drop_payload(void* payload) { payloads_dropped += *(int*)payload; }
static aj_status* node_vjp(void* self, aj_grad_call* g) { /* saved: a tensor; the payload is a factor */
  aj_value args[2], ret = none();
  (void)self;
  if (g->nsaved != 1 || g->saved[0].tag != AJ_TENSOR || *(int*)g->payload != 7)
    return core->status_new(AJ_INTERNAL, text(""), text("the node lost what it saved"), NULL, 0);
  args[0] = of(g->grad_out[0]);
  args[1] = g->saved[0];
  aj_status* bad = ops->call(ops->find_op(AJ_STR_LIT("mul")), args, 2, &ret, 1);
  if (!bad) g->grad_in[0] = ret.v.tensor;
  return bad;
}
static aj_tensor* gradient(aj_tensor* y, aj_tensor* x, uint32_t flags) {
  aj_tensor *g = NULL, *ones = make(1, 1, 1);
  aj_backward b;
  memset(&b, 0, sizeof b);
  b.struct_size = sizeof b;
  b.flags = flags;
  b.roots = &y;
  b.grads = &ones;
  b.inputs = &x;
  b.out = &g;
  b.nroots = b.ninputs = 1;
  good(autograd->backward(&b), "backward");
  core->release(ones);
  return g;
}
static void tape(void) {
  static int seven = 7;
  uint64_t id;
  uint32_t result;
  aj_node *node, *made;
  aj_tensor *x = make(1, 2, 3), *y, *g, *z, *h;
  aj_value saved, all;
  aj_vjp_def def;
  good(autograd->set_requires_grad(x, 1), "set_requires_grad");
  core->set_line(41, 0);
  y = call("square", of(x), none(), none());
  good(autograd->tensor_node(y, &node, &result), "tensor_node");
  holds(node && result == 0 && autograd->node_line(node) == 41, "the node knows the user's line");
  good(autograd->node_saved(node, 0, &all), "node_saved");
  holds(all.tag >= AJ_TENSOR, "what a node saved comes back owned");
  core->release(all.v.object);
  core->release(node);
  good(autograd->hook_tensor(x, AJ_HOOK_TENSOR, triple, NULL, drop_hook, &id), "hook_tensor");
  g = gradient(y, x, AJ_BACKWARD_CREATE_GRAPH);
  holds(is(g, 6, 12, 18), "a hook replaces a gradient");
  good(autograd->hook_remove(id), "hook_remove");
  h = gradient(g, x, 0);
  holds(is(h, 6, 6, 6), "the gradient of a gradient");
  core->release(h);
  core->release(g);
  core->release(y);

  memset(&def, 0, sizeof def);
  def.struct_size = sizeof def;
  def.op = AJ_STR_LIT("golden_node");
  def.vjp = node_vjp;
  def.drop = drop_payload;
  good(autograd->node_new(&def, &seven, &x, 1, &made), "node_new");
  y = make(5, 5, 5);
  saved = of(y);
  good(autograd->node_save(made, &saved, 0), "node_save");
  z = make(9, 9, 9);
  good(autograd->node_attach(made, 0, z, 0), "node_attach");
  core->release(made);
  core->release(y);
  g = gradient(z, x, 0);
  holds(is(g, 5, 5, 5), "a node of a frontend");
  core->release(g);
  core->release(z);
  holds(payloads_dropped == 7, "its payload is dropped with it");
  core->release(x);
  holds(hooks_dropped == 1, "a hook is dropped once");
}

static int32_t visit(void* self, const aj_plugin_info* info) {
  int* found = (int*)self;
  *found += info->state == AJ_PLUGIN_LOADED && AJ_HAS_FIELD(info, aj_plugin_info, ops);
  return 0;
}
typedef const void* (*get_interface_fn)(const char*, uint32_t);
typedef aj_status* (*load_plugin_fn)(const char*);
typedef aj_status* (*list_plugins_fn)(int32_t (*)(void*, const aj_plugin_info*), void*);

static void keys(const char* plugin, const char* name, load_plugin_fn load, list_plugins_fn list) {
  uint64_t include, exclude, mask;
  char key[64];
  int loaded = 0;
  uint32_t n = 0;
  aj_tensor *x = make(1, 2, 3), *one = make(1, 1, 1), *out = make(0, 0, 0), *y;
  aj_object* counts;
  aj_value ret = none();
  good(load(plugin), "aj_load_plugin");
  good(list(visit, &loaded), "aj_list_plugins");
  holds(loaded >= 1, "the list has the loaded plugin");
  snprintf(key, sizeof key, "%s_above", name);
  mask = ops->key_mask(text(key));
  holds(mask != 0 && (mask & (mask - 1)) == 0, "the key has a bit");
  ops->thread_keys(&include, &exclude);
  ops->set_thread_keys(include | mask, exclude);
  y = call("add", of(x), of(one), none());
  holds(is(y, 3, 4, 5), "a kernel at the key changed the arguments");
  core->release(y);
  y = call("neg", of(x), none(), of(out));
  holds(y == out && is(out, -1, -2, -3), "out= at the key");
  core->release(y);
  y = call("exp", of(out), none(), of(out));
  holds(y == out && out->dl.shape[0] == 3, "in place at the key");
  core->release(y);
  y = call("sin", of(x), none(), none());
  core->release(y);
  ops->set_thread_keys(include, exclude);
  snprintf(key, sizeof key, "%s::counts", name);
  good(ops->call(ops->find_op(text(key)), NULL, 0, &ret, 1), key);
  counts = ret.v.object;
  holds(ret.tag == AJ_LIST_OBJ && core->list_get(counts, &n)[0].v.i >= 1 && core->list_get(counts, &n)[1].v.i == 4 && n == 2,
        "four kernels at the key, and the fallback, were met");
  core->release(counts);
  core->release(out);
  core->release(one);
  core->release(x);
  good(plugins->unload(text(name), &counts), "unload");
  holds(core->string_get(counts).len == 0, "the plugin is unmapped");
  core->release(counts);
}
static void dlpack(void) {
  DLManagedTensorVersioned* m;
  aj_tensor *x = make(1, 2, 3), *y;
  good(core->tensor_to_dlpack(x, NULL, AJ_DLPACK_NO_SYNC, &m), "tensor_to_dlpack");
  holds(m->version.major == 1 && m->dl_tensor.shape[0] == 3 && !m->dl_tensor.byte_offset, "a tensor goes out");
  good(core->tensor_from_dlpack(m, &y), "tensor_from_dlpack");
  ((float*)y->dl.data)[1] = 7;
  core->tensor_bump_version(y);
  holds(is(x, 1, 7, 3), "and comes back with the same memory");
  core->release(x);
  core->release(y);
}

int main(int argc, char** argv) {
  get_interface_fn query;
  load_plugin_fn load;
  list_plugins_fn list;
  uint32_t (*version)(void);
  void* library = argc == 4 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  holds(library != NULL, "libadjoin is there");
  *(void**)&query = dlsym(library, "aj_get_interface");
  *(void**)&load = dlsym(library, "aj_load_plugin");
  *(void**)&list = dlsym(library, "aj_list_plugins");
  *(void**)&version = dlsym(library, "aj_abi_version");
  holds(query && load && list && version && version() >> 16 == AJ_ABI_MAJOR, "its four symbols, and the major version");
  core = (const aj_core*)query("aj.core", 1);
  ops = (const aj_dispatch*)query("aj.op", 1);
  autograd = (const aj_autograd*)query("aj.autograd", 1);
  plugins = (const aj_plugins*)query("aj.plugins", 1);
  holds(core && ops && autograd && plugins && !query("aj.core", 99) && !query("x.never", 1), "its tables");
  words();
  tape();
  keys(argv[2], argv[3], load, list);
  dlpack();
  puts("all held");
  return 0;
}
