/* tests/abi/zoo.c: a plugin that leaves things behind: whatever may point into a plugin's code, on
 * request.
 *
 * Its options say where the program's struct zoo is, and what init defines. */
#include "zoo.h"

#include <adjoin/abi/capi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

AJ_PLUGIN_NOTE("zoo", "1.0", "", "", "ops:zoo", "");

static const aj_core* core;
static const aj_autograd* autograd;
static struct zoo* zoo;
static int32_t type;

static aj_str text(const char* s) {
  aj_str t = {s, strlen(s)};
  return t;
}
static aj_status* fail(const char* what) {
  return core->status_new(AJ_INTERNAL, text(""), text(what), "", 0);
}

static void destroy(void* payload) { zoo->destroyed += *(int*)payload; }
static void drop(void* self) { (void)self, ++zoo->dropped; }
static aj_status* call(void* self, const aj_value* args, uint32_t n, aj_value* ret) {
  (void)self, (void)args, (void)n, (void)ret;
  return NULL;
}
static aj_status* tensor_hook(void* self, aj_tensor** io) {
  (void)self, (void)io;
  return NULL;
}
static aj_status* pack(void* self, aj_tensor* t, aj_object** out) {
  (void)self, core->retain(t), *out = (aj_object*)t;
  return NULL;
}
static aj_status* unpack(void* self, aj_object* packed, aj_tensor** out) {
  (void)self, core->retain(packed), *out = (aj_tensor*)packed;
  return NULL;
}
static aj_status* vjp(void* self, aj_grad_call* g) {
  (void)self, (void)g;
  return NULL;
}
static void deleter(DLManagedTensorVersioned* m) {
  ++zoo->dropped;
  free(m);
}

static aj_status* make(int kind, aj_tensor* x, void** out) {
  static float memory[4];
  static int64_t shape[1] = {4};
  DLTensor like;
  memset(&like, 0, sizeof like);
  like.data = memory, like.ndim = 1, like.shape = shape;
  like.device.device_type = kDLCPU;
  like.dtype.code = kDLFloat, like.dtype.bits = 32, like.dtype.lanes = 1;
  void* payload;
  aj_vjp_def def;
  switch (kind) {
    case ZOO_OBJECT: {
      aj_status* bad = core->object_new(type, (aj_object**)out, &payload);
      if (!bad) *(int*)payload = 1;
      return bad;
    }
    case ZOO_FUNCTION:
      return core->function_new(call, NULL, drop, (aj_object**)out);
    case ZOO_HOOK:
      return autograd->hook_tensor(x, AJ_HOOK_TENSOR, tensor_hook, NULL, drop, NULL);
    case ZOO_NODE:
      memset(&def, 0, sizeof def);
      def.struct_size = sizeof def, def.op = text("zoo"), def.vjp = vjp, def.drop = drop;
      return autograd->node_new(&def, memory, &x, 1, (aj_node**)out);
    case ZOO_MEMORY:
      return core->tensor_from_memory(&like, sizeof memory, 0, memory, drop, (aj_tensor**)out);
    case ZOO_SAVED:
      return autograd->push_saved_hooks(pack, unpack, NULL, drop);
    case ZOO_DLPACK: {
      DLManagedTensorVersioned* m = calloc(1, sizeof *m);
      m->version.major = DLPACK_MAJOR_VERSION, m->deleter = deleter, m->dl_tensor = like;
      return core->tensor_from_dlpack(m, (aj_tensor**)out);
    }
  }
  return fail("no such kind");
}

static aj_status* count(void* self, int32_t* out) {
  (void)self, *out = 1;
  return NULL;
}
static aj_status* mem_alloc(void* self, int32_t id, uint64_t bytes, uint32_t flags, void** out) {
  (void)self, (void)id, (void)flags;
  return *out = aligned_alloc(64, (bytes + 64) / 64 * 64), NULL;
}
static aj_status* mem_free(void* self, int32_t id, void* p, uint64_t bytes, uint32_t kind) {
  (void)self, (void)id, (void)bytes, (void)kind, free(p);
  return NULL;
}
static aj_status* twice(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  (void)self;
  for (int64_t i = 0; i < p->sizes[0]; ++i)
    *(float*)((char*)p->ops[0].data + i * p->ops[0].strides[0]) =
        2 * *(const float*)((const char*)p->ops[1].data + i * p->ops[1].strides[0]);
  return NULL;
}
static aj_status* define_op(const aj_plugin_env* env) {
  const aj_dispatch* d = env->query("aj.op", 1);
  aj_op_def op;
  aj_kernel_def k;
  memset(&op, 0, sizeof op);
  op.struct_size = sizeof op, op.schema = text("zoo::twice(Tensor x) -> Tensor"),
  op.kind = text("unary");
  aj_status* bad = d->def_op(env->registrar, &op);
  if (bad) return bad;
  memset(&k, 0, sizeof k);
  k.struct_size = sizeof k, k.flags = AJ_KERNEL_INNER, k.op = text("zoo::twice"),
  k.key = text("cpu");
  k.dtypes = 1u << AJ_DT_FLOAT32, k.fn = twice;
  return d->def_kernel(env->registrar, &k);
}

AJ_EXPORT aj_status* aj_plugin_drain_v1(void);
AJ_EXPORT aj_status* aj_plugin_drain_v1(void) { return zoo->bad_drain ? fail("not today") : NULL; }

AJ_PLUGIN_INIT {
  static const uint32_t table[2] = {sizeof table, 0};
  static aj_device_vtbl device;
  static aj_frontend frontend;
  DLDataType dtype;
  unsigned long at = 0;
  core = env->core;
  autograd = env->query("aj.autograd", 1);
  if (sscanf(env->options.data, "at=%lx", &at) != 1) return fail("zoo: no options");
  zoo = (struct zoo*)at;
  zoo->make = make;
  aj_status* bad = core->type_register(text("zoo.animal"), 64, destroy, &type);
  zoo->type = type;
  if (!bad) bad = core->dtype_register(text("zoo8"), 8, AJ_CLASS_FLOAT, &dtype);
  if (!bad) zoo->dtype = dtype;
  if (!bad) bad = define_op(env);
  if (!bad && zoo->device) {
    memset(&device, 0, sizeof device);
    device.struct_size = sizeof device, device.flags = AJ_DEV_HOST_MEMORY | AJ_DEV_SYNCHRONOUS;
    device.name = text("zoo"), device.count = count, device.mem_alloc = mem_alloc,
    device.mem_free = mem_free;
    bad = env->def_device(env->registrar, &device);
  }
  if (!bad && zoo->service) {
    aj_service_def d = {sizeof d, 1, text("zoo.slot"), text("zoo"), table};
    bad = env->def_service(env->registrar, &d);
  }
  if (!bad && zoo->frontend) {
    memset(&frontend, 0, sizeof frontend);
    frontend.struct_size = sizeof frontend, frontend.name = text("zoo"), frontend.drop = drop;
    bad = core->frontend_register(&frontend, &zoo->frontend_id);
  }
  return bad ? bad : zoo->bad_init ? fail("init said no") : NULL;
}
