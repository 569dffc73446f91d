/* tests/abi/lifetime.c: loads zoo.c's plugin, uses it, takes it away, and asks what is left.
 *
 * lifetime PLUGIN CASE [ROUNDS]; prints what it saw, "ok" at the end. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zoo.h"

static const aj_core* core;
static const aj_dispatch* op_table;
static const aj_autograd* autograd;
static const aj_plugins* plugins;
static const aj_services* services;
static struct zoo zoo;
static const char* path;

static aj_str text(const char* s) {
  aj_str t = {s, strlen(s)};
  return t;
}
static int told(const char* what, aj_status* s) {
  if (!s) return 0;
  aj_str m = core->status_message(s);
  printf("%s: %.*s\n", what, (int)m.len, m.data);
  core->status_free(s);
  return 1;
}
static void need(const char* what, aj_status* s) {
  if (told(what, s)) exit(1);
}
static void want(const char* what, int good) {
  if (!good) printf("%s: it is not so\n", what), exit(1);
}
static int mapped(void) {
  char line[4096];
  FILE* f = fopen("/proc/self/maps", "r");
  int found = 0;
  while (fgets(line, sizeof line, f)) found |= strstr(line, "libaj_zoo") != NULL;
  fclose(f);
  return found;
}
static long pages(void) {
  long all = 0, rss = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  want("statm", fscanf(f, "%ld %ld", &all, &rss) == 2);
  fclose(f);
  return rss;
}
static int descriptors(void) {
  int n = 0;
  for (int fd = 0; fd < 256; ++fd) n += dup2(fd, fd) == fd;
  return n;
}
/* What keeps it mapped; "" if nothing. */
static char* unload(void) {
  static char kept[1024];
  aj_object* o = NULL;
  need("unload", plugins->unload(text("zoo"), &o));
  aj_str t = core->string_get(o);
  snprintf(kept, sizeof kept, "%.*s", (int)t.len, t.data);
  core->release(o);
  return kept;
}
static aj_tensor* tensor(const char* device) {
  static int64_t shape[1] = {4};
  aj_tensor* x = NULL;
  int32_t kind = 0;
  DLTensor like;
  memset(&like, 0, sizeof like);
  if (told("device", core->device_find(text(device), &kind))) return NULL;
  like.device.device_type = kind;
  like.ndim = 1, like.shape = shape;
  like.dtype.code = kDLFloat, like.dtype.bits = 32, like.dtype.lanes = 1;
  told("empty", core->tensor_empty(&like, 0, &x));
  return x;
}
static void use(aj_tensor* x) {
  aj_value arg, ret;
  memset(&arg, 0, sizeof arg), memset(&ret, 0, sizeof ret);
  arg.tag = AJ_TENSOR, arg.v.tensor = x;
  need("call", op_table->call(op_table->find_op(text("zoo::twice")), &arg, 1, &ret, 1));
  core->release(ret.v.tensor);
}
static void make_all(aj_tensor* x, void** out) {
  for (int kind = 0; kind < ZOO_KINDS; ++kind) need("make", zoo.make(kind, x, &out[kind]));
}
static void release_all(void** out) {
  for (int kind = 0; kind < ZOO_KINDS; ++kind) core->release(out[kind]), out[kind] = NULL;
  need("pop", autograd->pop_saved_hooks());
}

/* Each kind alone keeps it mapped, and its end lets go. */
static void one_by_one(void) {
  for (int kind = 0; kind < ZOO_KINDS; ++kind) {
    void* out = NULL;
    aj_tensor* x = tensor("cpu");
    need("grad", autograd->set_requires_grad(x, 1));
    need("make", zoo.make(kind, x, &out));
    printf("%d %s\n", kind, unload());
    want("mapped", mapped());
    core->release(out);
    if (kind == ZOO_SAVED) need("pop", autograd->pop_saved_hooks());
    core->release(x);
    want("nothing is left", !*unload() && !mapped());
    need("enable", plugins->enable(text("zoo")));
  }
  want("destroyed", zoo.destroyed == 1 && zoo.dropped == ZOO_KINDS - 1);
}

/* With everything alive, with half of it, with nothing: round after round. */
static void rounds(int n) {
  long before = 0;
  int open = descriptors();
  for (int i = 0; i < n; ++i) {
    void* out[ZOO_KINDS] = {0};
    aj_tensor* x = tensor("cpu");
    int32_t type = zoo.type;
    need("grad", autograd->set_requires_grad(x, 1));
    use(x);
    make_all(x, out);
    if (i % 2) need("disable", plugins->disable(text("zoo")));
    want("kept", *unload() && mapped());
    if (i % 3 == 0) {
      need("enable", plugins->enable(text("zoo")));
      use(x);
    }
    release_all(out);
    core->release(x);
    char* kept = unload();
    if (*kept) printf("round %d: %s\n", i, kept), exit(1);
    want("unmapped", !mapped());
    if (i % 5)
      need("enable", plugins->enable(text("zoo")));
    else
      need("load", aj_load_plugin(path));
    want("the same type", zoo.type == type);
    if (i == n / 4) before = pages();
  }
  printf("grown by %ld KiB, %d descriptors\n", (pages() - before) * 4, descriptors() - open);
}

static void services_and_devices(void) {
  aj_service_def d;
  int32_t type, n;
  aj_object* g = NULL;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  need("device_find", core->device_find(text("zoo"), &type));
  need("disable", plugins->disable(text("zoo")));
  want("gone", told("find", core->device_find(text("zoo"), &n)) &&
                   told("count", core->device_count(type, &n)));
  want("no tensor", !tensor("zoo"));
  DLDevice device = {type, 0};
  want("gone", told("generator", core->generator_default(device, &g)));
  want("gone", told("type", core->type_find(text("zoo.animal"), &n)));
  want("unloaded", !*unload() && !mapped());
  want("gone", told("count", core->device_count(type, &n)));
  pid_t child = fork(); /* the hooks of an unmapped device are not called */
  if (!child) _exit(0);
  waitpid(child, &n, 0);
  want("forked", n == 0);
  need("enable", plugins->enable(text("zoo")));
  need("type", core->type_find(text("zoo.animal"), &n));
  want("the same", n == zoo.type);
  need("count", core->device_count(type, &n));
  aj_tensor* x = tensor("zoo");
  need("disable", plugins->disable(text("zoo")));
  want("no tensor", !tensor("zoo"));
  printf("open: %s\n", unload());
  need("enable", plugins->enable(text("zoo")));
  aj_tensor* y = tensor("zoo");
  want("again", x && y);
  core->release(x), core->release(y);
  uint64_t revision = services->revision();
  need("service", services->at(text("zoo.slot"), 0, &d));
  printf("service: %s\n", unload());
  want("moved", services->revision() != revision);
}

static void transaction(void) {
  zoo.bad_init = 1;
  zoo.frontend = 1;
  want("init", told("init", aj_load_plugin(path)));
  int32_t n;
  DLDataType dtype;
  want("no type", told("type", core->type_find(text("zoo.animal"), &n)));
  want("no dtype", told("dtype", core->dtype_find(text("zoo8"), &dtype)));
  /* A second file of the same contents. */
  zoo.bad_init = 0;
  int32_t type = zoo.type, frontend = zoo.frontend_id;
  need("load", aj_load_plugin(getenv("SECOND")));
  want("the same numbers", type == zoo.type && frontend == zoo.frontend_id);
  need("dtype", core->dtype_find(text("zoo8"), &dtype));
  need("again", core->dtype_register(text("zoo8"), 8, AJ_CLASS_FLOAT, &dtype));
  want("the same dtype", dtype.code == zoo.dtype.code);
  want("another", told("dtype", core->dtype_register(text("zoo8"), 16, AJ_CLASS_FLOAT, &dtype)));
  want("another", told("type", core->type_register(text("zoo.animal"), 64, NULL, &n)));
  printf("frontend: %s\n", unload());
}

int main(int argc, char** argv) {
  char options[64];
  setvbuf(stdout, NULL, _IONBF, 0);
  core = aj_get_interface("aj.core", 1);
  op_table = aj_get_interface("aj.op", 1);
  autograd = aj_get_interface("aj.autograd", 1);
  plugins = aj_get_interface("aj.plugins", 1);
  services = aj_get_interface("aj.service", 1);
  want("words", argc > 2);
  snprintf(options, sizeof options, "at=%lx", (unsigned long)&zoo);
  setenv("ADJOIN_OPTIONS_ZOO", options, 1);
  path = argv[1];
  zoo.device = zoo.service = !strcmp(argv[2], "services");
  if (!strcmp(argv[2], "transaction")) return transaction(), puts("ok"), 0;
  need("load", aj_load_plugin(path));
  if (!strcmp(argv[2], "each")) one_by_one();
  if (!strcmp(argv[2], "services")) services_and_devices();
  if (!strcmp(argv[2], "rounds")) rounds(atoi(argv[3]));
  if (!strcmp(argv[2], "drain")) {
    aj_object* o = NULL;
    zoo.bad_drain = 1;
    want("refused", told("drain", plugins->unload(text("zoo"), &o)) && mapped());
    want("still", told("drain", plugins->unload(text("zoo"), &o)) && mapped());
    need("enable", plugins->enable(text("zoo")));
    use(tensor("cpu"));
    zoo.bad_drain = 0;
    want("gone", !*unload() && !mapped());
  }
  puts("ok");
  return 0;
}
