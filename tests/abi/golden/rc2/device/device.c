/* device.c: a device whose pointers are handles, with streams and events. Its work runs when it is queued, so a stream is a
 * count of what ran there; a handle is an odd small number. */
#include "../golden.h"
#include <math.h>

AJ_PLUGIN_NOTE(NAME, "1.0", "Golden", "Apache-2.0", "device:" NAME, "");

enum { ROOMS = 1 << 14 };
static struct room {
  char* bytes;
  uint64_t size;
} rooms[ROOMS];
static int busy; /* of the table above */

static void lock(void) {
  while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) {}
}
static void unlock(void) { __atomic_store_n(&busy, 0, __ATOMIC_RELEASE); }

/* The memory behind a handle, if all of it is there. */
static char* behind(const void* handle, uint64_t offset, uint64_t bytes) {
  uintptr_t i = (uintptr_t)handle;
  if (i % 2 != 1 || i / 2 >= ROOMS || !rooms[i / 2].bytes) return NULL;
  if (offset > rooms[i / 2].size || bytes > rooms[i / 2].size - offset) return NULL;
  return rooms[i / 2].bytes + offset;
}
static aj_status* count(void* self, int32_t* out) { return (void)self, *out = 1, NULL; }
static aj_status* props(void* self, int32_t dev, aj_device_props* io) {
  aj_device_props p;
  (void)self, (void)dev;
  memset(&p, 0, sizeof p);
  p.struct_size = io->struct_size;
  p.min_alignment = 64;
  snprintf(p.name, sizeof p.name, "handles");
  memcpy(io, &p, io->struct_size < sizeof p ? io->struct_size : sizeof p);
  return NULL;
}
static aj_status* mem_alloc(void* self, int32_t dev, uint64_t bytes, uint32_t kind, void** out) {
  char* p = bytes >> 40 ? NULL : (char*)malloc(bytes);
  uintptr_t i = 0;
  (void)self, (void)dev;
  if (kind == AJ_MEM_PINNED) return *out = p, p ? NULL : fail(AJ_OUT_OF_MEMORY, NAME ": no pinned memory");
  lock();
  while (i < ROOMS && rooms[i].bytes) ++i;
  if (p && i < ROOMS) rooms[i].bytes = p, rooms[i].size = bytes;
  unlock();
  if (p && i < ROOMS) return *out = (void*)(2 * i + 1), NULL;
  free(p);
  return fail(AJ_OUT_OF_MEMORY, NAME ": out of memory");
}
static aj_status* mem_free(void* self, int32_t dev, void* p, uint64_t bytes, uint32_t kind) {
  (void)self, (void)dev;
  if (kind == AJ_MEM_PINNED) return free(p), NULL;
  char* at = behind(p, 0, bytes);
  if (!at) return fail(AJ_INTERNAL, NAME ": mem_free: no such handle");
  lock();
  rooms[(uintptr_t)p / 2].bytes = NULL;
  unlock();
  free(at);
  return NULL;
}

/* Streams and events: numbers of things that have run. */
static aj_status* stream_new(void* self, int32_t dev, int32_t priority, void** out) {
  (void)self, (void)dev, (void)priority;
  return (*out = calloc(1, sizeof(int64_t))) ? NULL : fail(AJ_OUT_OF_MEMORY, NAME ": no stream");
}
static aj_status* stream_free(void* self, int32_t dev, void* stream) { return (void)self, (void)dev, free(stream), NULL; }
static aj_status* stream_sync(void* self, int32_t dev, void* stream) { return (void)self, (void)dev, (void)stream, NULL; }
static aj_status* stream_query(void* self, int32_t dev, void* stream, int32_t* done) {
  return (void)self, (void)dev, (void)stream, *done = 1, NULL;
}
static aj_status* stream_wait(void* self, int32_t dev, void* stream, void* event) {
  (void)self, (void)dev, (void)stream;
  return event ? NULL : fail(AJ_INTERNAL, NAME ": stream_wait without an event");
}
static aj_status* event_new(void* self, int32_t dev, uint32_t flags, void** out) {
  if (flags) return fail(AJ_INVALID_ARGUMENT, NAME ": event_new: unknown flags");
  return stream_new(self, dev, 0, out);
}
static aj_status* event_record(void* self, int32_t dev, void* event, void* stream) {
  (void)self, (void)dev;
  *(int64_t*)event = stream ? *(int64_t*)stream : -1;
  return NULL;
}
static aj_status* event_query(void* self, int32_t dev, void* event, int32_t* done) { return stream_query(self, dev, event, done); }

static aj_status* copy(void* self, const aj_copy* c) {
  (void)self;
  if (c->flags & 0xffff) return fail(AJ_UNIMPLEMENTED, NAME ": copy: unknown flags");
  if (c->stream) ++*(int64_t*)c->stream;
  for (uint64_t row = 0; row < c->height && c->width; ++row) {
    uint64_t to = c->dst_offset + row * c->dst_pitch, from = c->src_offset + row * c->src_pitch;
    char* dst = c->dst_device.device_type == kDLCPU ? (char*)c->dst + to : behind(c->dst, to, c->width);
    const char* src = c->src_device.device_type == kDLCPU ? (const char*)c->src + from : behind(c->src, from, c->width);
    if (!dst || !src) return fail(AJ_INTERNAL, NAME ": copy: outside of an allocation");
    memmove(dst, src, c->width);
  }
  return NULL;
}
static aj_status* fill(void* self, int32_t dev, void* p, uint64_t offset, const void* pattern, uint64_t pattern_bytes, uint64_t bytes,
                       void* stream) {
  char* to = behind(p, offset, bytes);
  (void)self, (void)dev, (void)stream;
  if (!to) return fail(AJ_INTERNAL, NAME ": fill: outside of an allocation");
  for (uint64_t i = 0; i < bytes; ++i) to[i] = ((const char*)pattern)[i % pattern_bytes];
  return NULL;
}

/* One walk for all kernels of plans in float32; an operand's element begins at its tensor's offset. self is a letter. */
static float one(char what, const float* v) {
  switch (what) {
    case '+': return v[0] + v[1] * v[2];
    case '-': return v[0] - v[1] * v[2];
    case '*': return v[0] * v[1];
    case '/': return v[0] / v[1];
    case 'n': return -v[0];
    case 'r': return v[0] < 0 ? 0 : v[0];
    case 'e': return expf(v[0]);
    default: return v[0]; /* c, f: copy_, fill_ */
  }
}
static aj_status* walk(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  const char what = *(const char*)self;
  const int alpha = what == '+' || what == '-';
  if (what == '/' && call->nargs > 2 && call->args[2].tag != AJ_NONE) return fail(AJ_UNIMPLEMENTED, "div: no rounding");
  if (call->stream) ++*(int64_t*)call->stream;
  for (int64_t i = 0; i < p->numel; ++i) {
    float v[3] = {0, 0, 1}, *to = NULL;
    for (uint32_t k = 0; k < p->nops; ++k) {
      const aj_operand* o = &p->ops[k];
      uint64_t byte = o->tensor ? o->tensor->dl.byte_offset : 0;
      int64_t left = i;
      char* at = (char*)o->data;
      for (uint32_t d = 0; d < p->ndim && o->tensor; left /= p->sizes[d++]) byte += (uint64_t)(left % p->sizes[d] * o->strides[d]);
      if (o->tensor && o->tensor->dl.device.device_type == call->device.device_type) at = behind(o->data, byte, 4);
      else if (o->tensor) at += byte;
      if (!at) return fail(AJ_INTERNAL, NAME ": outside of an allocation");
      if (k == 0) to = (float*)at;
      else memcpy(&v[k - 1], at, 4);
    }
    if (alpha && call->nargs > 2 && call->args[2].tag == AJ_INT) v[2] = (float)call->args[2].v.i;
    else if (alpha && call->nargs > 2 && call->args[2].tag == AJ_FLOAT) v[2] = (float)call->args[2].v.f;
    *to = one(what, v);
  }
  return NULL;
}
static aj_status* product(void* self, aj_call* call) { /* mm of dense float32 */
  const aj_tensor *a = call->args[0].v.tensor, *b = call->args[1].v.tensor, *c = call->rets[0].v.tensor;
  const int64_t m = a->dl.shape[0], k = a->dl.shape[1], n = b->dl.shape[1];
  (void)self;
  if (!(a->obj.flags & b->obj.flags & c->obj.flags & AJ_TENSOR_DENSE)) return fail(AJ_UNIMPLEMENTED, "dense factors alone");
  const float* x = (const float*)behind(a->dl.data, a->dl.byte_offset, (uint64_t)(m * k) * 4);
  const float* y = (const float*)behind(b->dl.data, b->dl.byte_offset, (uint64_t)(k * n) * 4);
  float* z = (float*)behind(c->dl.data, c->dl.byte_offset, (uint64_t)(m * n) * 4);
  if (!x || !y || !z) return fail(AJ_INTERNAL, NAME ": mm: outside of an allocation");
  for (int64_t i = 0; i < m * n; ++i) {
    float total = 0;
    for (int64_t j = 0; j < k; ++j) total += x[i / n * k + j] * y[j * n + i % n];
    z[i] = total;
  }
  return NULL;
}

AJ_PLUGIN_INIT {
  static aj_device_vtbl d;
  static const struct {
    const char *op, *what;
  } kernels[] = {{"copy_", "c"}, {"fill_", "f"}, {"add", "+"}, {"sub", "-"}, {"mul", "*"},
                 {"div", "/"},   {"neg", "n"},   {"relu", "r"}, {"exp", "e"}};
  reach(env);
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.flags = AJ_DEV_OPAQUE_POINTERS;
  d.name = text(NAME);
  d.count = count;
  d.props = props;
  d.mem_alloc = mem_alloc;
  d.mem_free = mem_free;
  d.stream_new = stream_new;
  d.stream_free = stream_free;
  d.stream_sync = stream_sync;
  d.stream_query = stream_query;
  d.stream_wait = stream_wait;
  d.event_new = event_new;
  d.event_free = stream_free;
  d.event_record = event_record;
  d.event_query = event_query;
  d.event_sync = stream_sync;
  d.copy = copy;
  d.fill = fill;
  TRY(env->def_device(env->registrar, &d));
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; ++i) {
    aj_kernel_def k;
    memset(&k, 0, sizeof k);
    k.struct_size = sizeof k;
    k.op = text(kernels[i].op);
    k.key = text(NAME);
    k.dtypes = 1ull << AJ_DT_FLOAT32;
    k.fn = walk;
    k.self = (void*)(uintptr_t)kernels[i].what;
    TRY(ops->def_kernel(env->registrar, &k));
  }
  return def_kernel(env, "mm", NAME, 1ull << AJ_DT_FLOAT32, 0, 0, product, NULL);
}
