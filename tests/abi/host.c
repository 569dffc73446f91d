/* tests/abi/host.c: a program in C that uses libadjoin as any language would: loads plugins, calls
 * ops, takes gradients.
 *
 * Its words are commands, run in order; each prints one line that begins with "ok" or "error
 * CODE:". */
#include <adjoin/abi/capi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const aj_core* core;
static const aj_dispatch* op_table;
static const aj_autograd* autograd;
static const aj_plugins* plugins;
static const char* device_name = "cpu";

static aj_str text(const char* s) {
  aj_str t = {s, strlen(s)};
  return t;
}

static int report(aj_status* s) {
  if (!s) return 1;
  aj_str m = core->status_message(s);
  printf("error %d: %.*s", core->status_code(s), (int)m.len, m.data);
  for (const aj_status* c = core->status_cause(s); c; c = core->status_cause(c)) {
    m = core->status_message(c);
    printf("; because %.*s", (int)m.len, m.data);
  }
  printf("\n");
  core->status_free(s);
  return 0;
}

#define TRY(expr)              \
  do {                         \
    if (!report(expr)) return; \
  } while (0)

/* 1, 2, ... 8 as float32. */
static aj_status* make_input(aj_tensor** out) {
  static int64_t shape[1] = {8};
  float values[8];
  DLTensor like;
  int32_t type;
  aj_status* bad = core->device_find(text(device_name), &type);
  if (bad) return bad;
  memset(&like, 0, sizeof like);
  like.device.device_type = type;
  like.ndim = 1;
  like.dtype.code = kDLFloat;
  like.dtype.bits = 32;
  like.dtype.lanes = 1;
  like.shape = shape;
  bad = core->tensor_empty(&like, 0, out);
  if (bad) return bad;
  for (int i = 0; i < 8; ++i) values[i] = (float)(i + 1);
  return core->tensor_copy_bytes(*out, values, sizeof values, 0);
}

static aj_status* call_op(const char* name, aj_tensor* x, aj_tensor** out) {
  aj_value arg, ret;
  const aj_op* op = op_table->find_op(text(name));
  if (!op) {
    *out = NULL;
    return core->status_new(AJ_NOT_FOUND, text(""), text("no such op"), "", 0);
  }
  memset(&arg, 0, sizeof arg);
  memset(&ret, 0, sizeof ret);
  arg.tag = AJ_TENSOR;
  arg.v.tensor = x;
  aj_status* bad = op_table->call(op, &arg, 1, &ret, 1);
  *out = ret.tag == AJ_TENSOR ? ret.v.tensor : NULL;
  return bad;
}

static void print_tensor(const char* what, aj_tensor* t) {
  float values[8];
  if (!report(core->tensor_copy_bytes(t, values, sizeof values, 1))) return;
  char line[256];
  int n = snprintf(line, sizeof line, "ok %s", what);
  for (int i = 0; i < 8; ++i)
    n += snprintf(line + n, sizeof line - (size_t)n, " %g", (double)values[i]);
  puts(line); /* one call: threads do not mix their lines */
}

static void run_call(const char* name) {
  aj_tensor *x = NULL, *y = NULL;
  TRY(make_input(&x));
  TRY(call_op(name, x, &y));
  print_tensor(name, y);
  core->release(x);
  core->release(y);
}

static aj_status* failing_hook(void* self, aj_tensor** grad) {
  (void)self, (void)grad;
  return core->status_new(AJ_ABORTED, text(""), text("the hook said no"), "", 0);
}

/* d/dx of sum(op(x)), and of that again when order is 2: through create_graph, so derivatives are
 * recorded ops. */
static void run_grad(const char* name, int order, int hook) {
  aj_tensor *x = NULL, *y = NULL, *g = NULL, *ones = NULL;
  uint64_t id;
  TRY(make_input(&x));
  TRY(make_input(&ones));
  float values[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  TRY(core->tensor_copy_bytes(ones, values, sizeof values, 0));
  TRY(autograd->set_requires_grad(x, 1));
  if (hook) TRY(autograd->hook_tensor(x, AJ_HOOK_TENSOR, failing_hook, NULL, NULL, &id));
  TRY(call_op(name, x, &y));
  for (int i = 0; i < order; ++i) {
    aj_backward b;
    memset(&b, 0, sizeof b);
    b.struct_size = sizeof b;
    b.flags = i + 1 < order ? AJ_BACKWARD_CREATE_GRAPH : 0;
    b.roots = &y;
    b.grads = &ones;
    b.inputs = &x;
    b.out = &g;
    b.nroots = b.ninputs = 1;
    TRY(autograd->backward(&b));
    core->release(y);
    y = g;
  }
  print_tensor(order == 2 ? "grad2" : "grad", g);
  core->release(g);
  core->release(x);
  core->release(ones);
}

/* Later commands use the device, unless it could not be used here. */
static void run_device(const char* name) {
  const char* before = device_name;
  int32_t type, count;
  aj_tensor* x = NULL;
  TRY(core->device_find(text(name), &type));
  TRY(core->device_count(type, &count));
  device_name = name;
  if (report(make_input(&x)))
    print_tensor(name, x);
  else
    device_name = before;
  core->release(x);
}

static void run_why(const char* name) {
  aj_object* lines;
  TRY(plugins->why(text(name), &lines));
  aj_str s = core->string_get(lines);
  printf("ok why\n%.*s", (int)s.len, s.data);
  core->release(lines);
}

/* After a fork, the child must still be able to load and call. */
static void run_fork(const char* name) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    run_call(name);
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status) printf("error %d: the child died\n", status);
}

static void* call_in_thread(void* name) {
  run_call((const char*)name);
  return NULL;
}

/* The first use of an op, from eight threads at once. */
static void run_threads(const char* name) {
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, call_in_thread, (void*)name);
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
}

static void run(const char* command, const char* word) {
  if (!strcmp(command, "load")) {
    TRY(aj_load_plugin(word));
    printf("ok load\n");
  } else if (!strcmp(command, "folder")) {
    TRY(plugins->add_folder(text(word)));
    printf("ok folder\n");
  } else if (!strcmp(command, "disable")) {
    TRY(plugins->disable(text(word)));
    printf("ok disable\n");
  } else if (!strcmp(command, "find")) {
    printf(op_table->find_op(text(word)) ? "ok find\n" : "error 5: no such op\n");
  } else if (!strcmp(command, "device")) {
    run_device(word);
  } else if (!strcmp(command, "call")) {
    run_call(word);
  } else if (!strcmp(command, "grad")) {
    run_grad(word, 1, 0);
  } else if (!strcmp(command, "grad2")) {
    run_grad(word, 2, 0);
  } else if (!strcmp(command, "hook")) {
    run_grad(word, 1, 1);
  } else if (!strcmp(command, "why")) {
    run_why(word);
  } else if (!strcmp(command, "threads")) {
    run_threads(word);
  } else if (!strcmp(command, "fork")) {
    run_fork(word);
  } else {
    printf("error 3: no command %s\n", command);
  }
  fflush(stdout);
}

int main(int argc, char** argv) {
  core = (const aj_core*)aj_get_interface("aj.core", 1);
  op_table = (const aj_dispatch*)aj_get_interface("aj.op", 1);
  autograd = (const aj_autograd*)aj_get_interface("aj.autograd", 1);
  plugins = (const aj_plugins*)aj_get_interface("aj.plugins", 1);
  if (!core || !op_table || !autograd || !plugins) {
    printf("error 5: an interface is missing\n");
    return 1;
  }
  for (int i = 1; i + 1 < argc; i += 2) run(argv[i], argv[i + 1]);
  return 0;
}
