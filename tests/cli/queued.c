// tests/cli/queued.c: a device with memory of its own and a thread per stream, from the contract
// alone; FAULT breaks one promise of it.
#define _GNU_SOURCE
#include <adjoin/abi/plugin.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef FAULT
#define FAULT 0
#endif
enum {
  OTHER_STREAM = 1,
  EARLY_EVENT,
  NO_STREAM_WAIT,
  RETAINS,
  LOSES_MEMORY,
  DEADLOCK,
  EARLY_STREAM,
  UNALIGNED,
  ODD_ERROR,
  NEVER_PASSES,
  NEVER_SAYS_SO
};

#define OFF ((uintptr_t)1 << 60)  // no pointer of the host looks so: reading one there faults
#define TOTAL ((uint64_t)1 << 30)
static const aj_core* core;
static uint64_t used;
static int32_t kind_number;

typedef struct Event {
  uint64_t last, passed, refs;
} Event;
typedef struct Task {
  struct Task* next;
  void (*run)(struct Task*);
  Event* event;
  uint64_t ticket, bytes, rows, pitch[3], ndim, nops;
  void (*fn)(void*);
  void* arg;
  char *at[3], number[3][16];
  int64_t sizes[8], strides[3][8];
  int op;
  double alpha;
} Task;
typedef struct Stream {
  struct Stream* next;
  Task *head, *tail;
  int closed;
} Stream;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static Stream *streams, *first;
static int poisoned;

static aj_status* fail(int code, const char* text) {
  return core->status_new(code, (aj_str){"", 0}, (aj_str){text, strlen(text)}, __FILE__, 0);
}
static void* serve(void* arg) {
  Stream* s = arg;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!s->head && !s->closed) pthread_cond_wait(&moved, &lock);
    Task* t = s->head;
    if (!t) break;
    pthread_mutex_unlock(&lock);
    t->run(t);
    pthread_mutex_lock(&lock);
    s->head = t->next;
    free(t);
    pthread_cond_broadcast(&moved);
  }
  for (Stream** at = &streams; *at; at = &(*at)->next)
    if (*at == s) {
      *at = s->next;
      break;
    }
  pthread_mutex_unlock(&lock);
  free(s);
  return NULL;
}
static Stream* make_stream(void) {  // wants the lock
  Stream* s = calloc(1, sizeof *s);
  pthread_t thread;
  pthread_create(&thread, NULL, serve, s);
  pthread_detach(thread);
  s->next = streams;
  return streams = s;
}
static aj_status* push(void* stream, Task* t) {
  if (poisoned) {
    free(t);
    return fail(AJ_PRECONDITION, "queued: used before fork(); start the child by spawn");
  }
  pthread_mutex_lock(&lock);
  if (!stream && !first) first = make_stream();
  Stream* s = stream ? stream : first;
  if (s->head)
    s->tail->next = t;
  else
    s->head = t;
  s->tail = t;
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
  return NULL;
}
static Task* task(void (*run)(Task*)) {
  Task* t = calloc(1, sizeof *t);
  t->run = run;
  return t;
}
static void wait_all(const Stream* only) {  // wants the lock
  for (;;) {
    int busy = 0;
    for (Stream* s = streams; s; s = s->next) busy |= (!only || s == only) && s->head;
    if (!busy) return;
    pthread_cond_wait(&moved, &lock);
  }
}

static aj_status* count(void* self, int32_t* out) {
  (void)self;
  *out = 1;
  return NULL;
}
static aj_status* mem_alloc(void* self, int32_t dev, uint64_t bytes, uint32_t kind, void** out) {
  (void)self;
  if (poisoned)
    return fail(AJ_PRECONDITION, "queued: used before fork(); start the child by spawn");
  if (FAULT == ODD_ERROR) return fail(AJ_INTERNAL, "queued: the driver does not answer");
  if (FAULT == DEADLOCK) {
    aj_memory_stats stats = {.struct_size = sizeof stats};
    aj_status* s = core->memory_stats((DLDevice){kind_number, dev}, &stats);
    s = s ? s : core->memory_release((DLDevice){kind_number, dev});
    if (s) core->status_free(s);
  }
  if (kind == AJ_MEM_DEVICE && (bytes > TOTAL || used + bytes > TOTAL))
    return fail(AJ_OUT_OF_MEMORY, "queued: full");
  if (kind == AJ_MEM_DEVICE) used += bytes;  // the core's lock is held
  char* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *out = kind == AJ_MEM_DEVICE ? (void*)((uintptr_t)p + OFF + (FAULT == UNALIGNED ? 4 : 0)) : p;
  return NULL;
}
static aj_status* mem_free(void* self, int32_t dev, void* p, uint64_t bytes, uint32_t kind) {
  (void)self, (void)dev;
  if (poisoned) return NULL;
  pthread_mutex_lock(&lock);
  wait_all(NULL);
  pthread_mutex_unlock(&lock);
  if (FAULT == LOSES_MEMORY) return NULL;
  if (kind == AJ_MEM_DEVICE) used -= bytes;
  munmap(kind == AJ_MEM_DEVICE ? (void*)(((uintptr_t)p - OFF) & ~(uintptr_t)63) : p, bytes);
  return NULL;
}
static aj_status* mem_info(void* self, int32_t dev, uint64_t* free_bytes, uint64_t* total) {
  (void)self, (void)dev;
  *total = TOTAL;
  *free_bytes = TOTAL - used;
  return NULL;
}
static aj_status* stream_new(void* self, int32_t dev, int32_t priority, void** out) {
  (void)self, (void)dev, (void)priority;
  pthread_mutex_lock(&lock);
  *out = make_stream();
  pthread_mutex_unlock(&lock);
  return NULL;
}
static aj_status* stream_free(void* self, int32_t dev, void* stream) {
  (void)self, (void)dev;
  pthread_mutex_lock(&lock);
  ((Stream*)stream)->closed = 1;
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
  return NULL;
}
static aj_status* stream_sync(void* self, int32_t dev, void* stream) {
  (void)self, (void)dev;
  if (poisoned)
    return fail(AJ_PRECONDITION, "queued: used before fork(); start the child by spawn");
  pthread_mutex_lock(&lock);
  if (FAULT != EARLY_STREAM || !stream) wait_all(stream);
  pthread_mutex_unlock(&lock);
  return NULL;
}
static aj_status* stream_query(void* self, int32_t dev, void* stream, int32_t* done) {
  (void)self, (void)dev;
  pthread_mutex_lock(&lock);
  Stream* s = stream ? stream : first;
  *done = !s || !s->head;
  pthread_mutex_unlock(&lock);
  return NULL;
}
static void drop_event(Event* e) {
  if (--e->refs == 0) free(e);
}
static void run_wait(Task* t) {
  pthread_mutex_lock(&lock);
  while (t->event->passed < t->ticket) pthread_cond_wait(&moved, &lock);
  drop_event(t->event);
  pthread_mutex_unlock(&lock);
}
static void run_record(Task* t) {
  pthread_mutex_lock(&lock);
  if (FAULT != NEVER_PASSES && t->event->passed < t->ticket) t->event->passed = t->ticket;
  drop_event(t->event);
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
}
static aj_status* push_event(void* stream, Event* e, int record) {
  Task* t = task(record ? run_record : run_wait);
  pthread_mutex_lock(&lock);
  t->event = e;
  e->refs++;
  t->ticket = record ? ++e->last : e->last;
  pthread_mutex_unlock(&lock);
  return push(stream, t);
}
static aj_status* event_record(void* self, int32_t dev, void* event, void* stream) {
  (void)self, (void)dev;
  return push_event(stream, event, 1);
}
static aj_status* stream_wait(void* self, int32_t dev, void* stream, void* event) {
  (void)self, (void)dev;
  return FAULT == NO_STREAM_WAIT ? NULL : push_event(stream, event, 0);
}
static aj_status* event_new(void* self, int32_t dev, uint32_t flags, void** out) {
  (void)self, (void)dev, (void)flags;
  Event* e = calloc(1, sizeof *e);
  e->refs = 1;
  *out = e;
  return NULL;
}
static aj_status* event_free(void* self, int32_t dev, void* event) {
  (void)self, (void)dev;
  pthread_mutex_lock(&lock);
  drop_event(event);
  pthread_mutex_unlock(&lock);
  return NULL;
}
static aj_status* event_query(void* self, int32_t dev, void* event, int32_t* done) {
  (void)self, (void)dev;
  pthread_mutex_lock(&lock);
  *done = FAULT != NEVER_SAYS_SO && ((Event*)event)->passed >= ((Event*)event)->last;
  pthread_mutex_unlock(&lock);
  return NULL;
}
static aj_status* event_sync(void* self, int32_t dev, void* event) {
  (void)self, (void)dev;
  Event* e = event;
  pthread_mutex_lock(&lock);
  for (uint64_t last = e->last; FAULT != EARLY_EVENT && e->passed < last;)
    pthread_cond_wait(&moved, &lock);
  pthread_mutex_unlock(&lock);
  return NULL;
}
static void run_host_fn(Task* t) { t->fn(t->arg); }
static aj_status* stream_host_fn(void* self, int32_t dev, void* stream, void (*fn)(void*),
                                 void* arg) {
  (void)self, (void)dev;
  Task* t = task(run_host_fn);
  t->fn = fn;
  t->arg = arg;
  return push(stream, t);
}
static void run_copy(Task* t) {
  for (uint64_t r = 0; r < t->rows; r++)
    memcpy(t->at[0] + r * t->pitch[0], t->at[1] + r * t->pitch[1], t->bytes);
}
static aj_status* copy(void* self, const aj_copy* c) {
  (void)self;
  Task* t = task(run_copy);
  t->at[0] = (char*)((uintptr_t)c->dst - (c->dst_device.device_type == kDLCPU ? 0 : OFF));
  t->at[1] = (char*)((uintptr_t)c->src - (c->src_device.device_type == kDLCPU ? 0 : OFF));
  t->bytes = c->width, t->rows = c->width ? c->height : 0, t->pitch[0] = c->dst_pitch,
  t->pitch[1] = c->src_pitch;
  if (c->stream || (c->flags & AJ_COPY_QUEUED) || poisoned) return push(c->stream, t);
  run_copy(t);
  free(t);
  return NULL;
}
static void fork_child(void* self) {
  (void)self;
  poisoned = streams != NULL;
}

enum { ADD, MUL, NEG, COPY };
static void run_plan(Task* t) {
  int64_t n = 1;
  for (uint64_t d = 0; d < t->ndim; d++) n *= t->sizes[d];
  for (int64_t i = 0; i < n; i++) {
    char* p[3] = {t->at[0], t->at[1], t->at[t->nops - 1]};
    int64_t rest = i;
    for (uint64_t d = 0; d < t->ndim; rest /= t->sizes[d++])
      for (uint64_t k = 0; k < 3; k++)
        p[k] += rest % t->sizes[d] * t->strides[k < t->nops ? k : t->nops - 1][d];
    float a = *(float*)p[1], b = *(float*)p[2];
    *(float*)p[0] = t->op == ADD   ? a + (float)t->alpha * b
                    : t->op == MUL ? a * b
                    : t->op == NEG ? -a
                                   : a;
  }
}
static aj_status* pointwise(void* self, aj_call* call) {
  const aj_plan* plan = call->plan;
  if (plan->ndim > 8) return fail(AJ_UNIMPLEMENTED, "queued: more than 8 dimensions");
  Task* t = task(run_plan);
  t->op = (int)(intptr_t)self;
  t->ndim = plan->ndim, t->nops = plan->nops;
  if (t->op == ADD)
    t->alpha = call->args[2].tag == AJ_FLOAT ? call->args[2].v.f : (double)call->args[2].v.i;
  for (uint32_t d = 0; d < plan->ndim; d++) t->sizes[d] = plan->sizes[d];
  for (uint32_t k = 0; k < plan->nops; k++) {
    const aj_operand* o = &plan->ops[k];
    memcpy(t->strides[k], o->strides, plan->ndim * sizeof *o->strides);
    t->at[k] = o->flags & AJ_OPERAND_NUMBER ? memcpy(t->number[k], o->data, 4)
                                            : (char*)((uintptr_t)o->data - OFF);
  }
  if (FAULT == RETAINS && t->op == MUL) core->retain(plan->ops[0].tensor);
  return push(FAULT == OTHER_STREAM && t->op == MUL ? NULL : call->stream, t);
}
static int32_t floats(void* self, const aj_call* call) {  // a copy may come from any dtype
  (void)self;
  const aj_tensor* from =
      call->args[1].tag == AJ_TENSOR ? call->args[1].v.tensor : call->args[0].v.tensor;
  return from->dl.dtype.code == kDLFloat && from->dl.dtype.bits == 32;
}

AJ_PLUGIN_NOTE("queued", "1", "tests", "Apache-2.0", "device:queued", "");
AJ_PLUGIN_INIT {
  static const aj_device_vtbl device = {.struct_size = sizeof device,
                                        .name = {"queued", 6},
                                        .count = count,
                                        .mem_alloc = mem_alloc,
                                        .mem_free = mem_free,
                                        .mem_info = mem_info,
                                        .stream_new = stream_new,
                                        .stream_free = stream_free,
                                        .stream_sync = stream_sync,
                                        .stream_query = stream_query,
                                        .stream_wait = stream_wait,
                                        .stream_host_fn = stream_host_fn,
                                        .event_new = event_new,
                                        .event_free = event_free,
                                        .event_record = event_record,
                                        .event_query = event_query,
                                        .event_sync = event_sync,
                                        .copy = copy,
                                        .fork_child = fork_child};
  static const char* const ops[] = {"add", "mul", "neg", "copy_", "mull"};
  core = env->core;
  const aj_dispatch* op = env->query("aj.op", 1);
  aj_status* bad = env->def_device(env->registrar, &device);
  for (intptr_t i = 0; i < 5 && !bad; i++) {
    aj_kernel_def d = {.struct_size = sizeof d,
                       .op = {ops[i], strlen(ops[i])},
                       .key = AJ_STR_LIT("queued"),
                       .fn = pointwise,
                       .dtypes = 1u << AJ_DT_FLOAT32,
                       .self = (void*)i,
                       .can_run = i == COPY ? floats : NULL};
    bad = op->def_kernel(env->registrar, &d);
  }
  if (!bad) bad = core->device_find(device.name, &kind_number);
  return bad;
}
