/* tests/abi/handles.c: a device of handles (AJ_DEV_OPAQUE_POINTERS): its pointers are odd small
 * numbers, so whoever computes with one is caught at once. It has copies, one kernel of its own
 * (neg), and handles::look, which tells what a tensor's prefix says. */
#include <adjoin/abi/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

AJ_PLUGIN_NOTE("handles", "0.1.0", "", "Apache-2.0", "device:handles;ops:handles", "");

enum { ROOMS = 4096 };
static struct {
  char* bytes;
  uint64_t size;
} rooms[ROOMS];
static const aj_core* core;
static const aj_dispatch* ops;

static aj_status* wrong(const char* who, const void* handle, uint64_t offset, uint64_t bytes) {
  char text[160];
  int n =
      snprintf(text, sizeof text, "%s: %llu bytes at %llu of handle %p are not in an allocation",
               who, (unsigned long long)bytes, (unsigned long long)offset, handle);
  aj_str message = {text, (uint64_t)n};
  return core->status_new(AJ_INTERNAL, AJ_STR_LIT(""), message, NULL, 0);
}
/* The memory behind a handle, if all of it is there. */
static char* behind(const void* handle, uint64_t offset, uint64_t bytes) {
  uintptr_t i = (uintptr_t)handle;
  if (i % 2 != 1 || i / 2 >= ROOMS || !rooms[i / 2].bytes) return NULL;
  if (offset > rooms[i / 2].size || bytes > rooms[i / 2].size - offset) return NULL;
  return rooms[i / 2].bytes + offset;
}

static aj_status* count(void* self, int32_t* out) {
  (void)self;
  *out = 1;
  return NULL;
}
static aj_status* mem_alloc(void* self, int32_t dev, uint64_t bytes, uint32_t kind, void** out) {
  (void)self, (void)dev, (void)kind;
  for (uintptr_t i = 0; i < ROOMS; ++i)
    if (!rooms[i].bytes) {
      rooms[i].bytes = malloc(bytes);
      rooms[i].size = bytes;
      if (!rooms[i].bytes) break;
      memset(rooms[i].bytes, 0xcd, bytes);
      *out = (void*)(2 * i + 1);
      return NULL;
    }
  return core->status_new(AJ_OUT_OF_MEMORY, AJ_STR_LIT(""), AJ_STR_LIT("handles: no room is left"),
                          NULL, 0);
}
static aj_status* mem_free(void* self, int32_t dev, void* p, uint64_t bytes, uint32_t kind) {
  (void)self, (void)dev, (void)kind;
  char* room = behind(p, 0, bytes);
  if (!room || rooms[(uintptr_t)p / 2].size != bytes) return wrong("mem_free", p, 0, bytes);
  free(room);
  rooms[(uintptr_t)p / 2].bytes = NULL;
  return NULL;
}
static aj_status* copy(void* self, const aj_copy* c) {
  (void)self;
  int ours = c->dst_device.device_type, theirs = c->src_device.device_type;
  for (uint64_t row = 0; row < c->height; ++row) {
    uint64_t to = c->dst_offset + row * c->dst_pitch, from = c->src_offset + row * c->src_pitch;
    char* dst = ours == kDLCPU ? (char*)c->dst + to : behind(c->dst, to, c->width);
    const char* src =
        theirs == kDLCPU ? (const char*)c->src + from : behind(c->src, from, c->width);
    if (!dst) return wrong("copy to", c->dst, to, c->width);
    if (!src) return wrong("copy from", c->src, from, c->width);
    memcpy(dst, src, c->width);
  }
  return NULL;
}
static aj_status* fill(void* self, int32_t dev, void* p, uint64_t offset, const void* pattern,
                       uint64_t pattern_bytes, uint64_t bytes, void* stream) {
  (void)self, (void)dev, (void)stream;
  char* to = behind(p, offset, bytes);
  if (!to) return wrong("fill", p, offset, bytes);
  for (uint64_t i = 0; i < bytes; ++i) to[i] = ((const char*)pattern)[i % pattern_bytes];
  return NULL;
}

/* Elements of an operand begin at its tensor's byte_offset; strides are bytes. */
static aj_status* neg(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  int64_t index[64] = {0};
  (void)self;
  for (int64_t i = 0; i < p->numel; ++i) {
    char* at[2];
    for (int k = 0; k < 2; ++k) {
      int64_t byte = (int64_t)p->ops[k].tensor->dl.byte_offset;
      for (uint32_t d = 0; d < p->ndim; ++d) byte += index[d] * p->ops[k].strides[d];
      at[k] = behind(p->ops[k].data, (uint64_t)byte, 4);
      if (!at[k] || p->ops[k].data != p->ops[k].tensor->dl.data)
        return wrong("neg", p->ops[k].data, (uint64_t)byte, 4);
    }
    float v;
    memcpy(&v, at[1], 4);
    v = -v;
    memcpy(at[0], &v, 4);
    for (uint32_t d = 0; d < p->ndim && ++index[d] == p->sizes[d]; ++d) index[d] = 0;
  }
  return NULL;
}

/* handle, byte_offset, flags; what tensor_storage says: handle, bytes, offset. */
enum { FACTS = 6 };
static aj_status* look_infer(void* self, aj_call* call) {
  DLDataType type = {kDLInt, 64, 1};
  int64_t shape[1] = {FACTS};
  (void)self;
  return ops->declare(call, 0, type, 1, shape, NULL);
}
static aj_status* look(void* self, aj_call* call) {
  const aj_tensor* x = call->args[0].v.tensor;
  const aj_tensor* y = call->rets[0].v.tensor;
  void* handle;
  uint64_t bytes, offset, id;
  (void)self;
  aj_status* bad = core->tensor_storage(x, &handle, &bytes, &offset, &id);
  if (bad) return bad;
  int64_t facts[FACTS] = {(int64_t)(uintptr_t)x->dl.data,
                          (int64_t)x->dl.byte_offset,
                          x->obj.flags,
                          (int64_t)(uintptr_t)handle,
                          (int64_t)bytes,
                          (int64_t)offset};
  char* to = behind(y->dl.data, y->dl.byte_offset, sizeof facts);
  if (!to) return wrong("look", y->dl.data, y->dl.byte_offset, sizeof facts);
  memcpy(to, facts, sizeof facts);
  return NULL;
}

AJ_PLUGIN_INIT {
  static aj_device_vtbl device;
  aj_op_def op;
  aj_kernel_def kernel;
  core = env->core;
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  device.struct_size = sizeof device;
  device.flags = AJ_DEV_OPAQUE_POINTERS | AJ_DEV_SYNCHRONOUS;
#ifdef DLPACK_TYPE
  device.dlpack_type = DLPACK_TYPE;
#endif
  device.name = AJ_STR_LIT("handles");
  device.count = count;
  device.mem_alloc = mem_alloc;
  device.mem_free = mem_free;
  device.copy = copy;
  device.fill = fill;
  aj_status* bad = env->def_device(env->registrar, &device);
  memset(&op, 0, sizeof op);
  op.struct_size = sizeof op;
  op.schema = AJ_STR_LIT("handles::look(Tensor x) -> Tensor");
  op.infer = look_infer;
  if (!bad) bad = ops->def_op(env->registrar, &op);
  memset(&kernel, 0, sizeof kernel);
  kernel.struct_size = sizeof kernel;
  kernel.op = AJ_STR_LIT("handles::look");
  kernel.key = AJ_STR_LIT("handles");
  kernel.fn = look;
  if (!bad) bad = ops->def_kernel(env->registrar, &kernel);
  kernel.flags = AJ_KERNEL_INNER;
  kernel.op = AJ_STR_LIT("neg");
  kernel.dtypes = 1u << AJ_DT_FLOAT32;
  kernel.fn = neg;
  if (!bad) bad = ops->def_kernel(env->registrar, &kernel);
  return bad;
}
