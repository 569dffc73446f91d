/* tests/abi/profile.c: a plugin in C99 over abi/profile.h: it writes events down, counts them, and
 * makes labels, for profile_test.py. */
#include <adjoin/abi/plugin.h>
#include <adjoin/abi/profile.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

AJ_PLUGIN_NOTE("listen", "0.1.0", "", "Apache-2.0", "ops:listen", "iface:aj.op>=0");

#define SLOTS 8
#define TEXT (8 << 20)

static const aj_core* core;
static const aj_dispatch* ops;
static const aj_profile* profile;

static aj_str text(const char* s) {
  aj_str t = {s, strlen(s)};
  return t;
}

/* A listener that writes events down: a line each. One lock: events come from several threads at
 * once. */
typedef struct notebook {
  aj_object* listening;
  pthread_mutex_t lock;
  char* text;
  size_t used;
  int dropped;
} notebook;
static notebook books[SLOTS];

static void write_down(void* self, const aj_event* e) {
  notebook* b = (notebook*)self;
  char line[512];
  int n =
      snprintf(line, sizeof line,
               "%u\t%llu\t%llu\t%.*s\t%.*s\t%d\t%d\t%d\t%u\t%u\t%llu\t%llu\t%lld\t%llu\t%llu\t%d\n",
               e->kind, (unsigned long long)e->id, (unsigned long long)e->parent, (int)e->name.len,
               e->name.data, (int)e->provider.len, e->provider.data, (int)e->device.device_type,
               (int)e->device.device_id, e->stream != 0, e->thread, e->line,
               (unsigned long long)e->begin_ns, (unsigned long long)e->end_ns, (long long)e->bytes,
               (unsigned long long)e->in_use, (unsigned long long)(uintptr_t)e->data, e->code);
  pthread_mutex_lock(&b->lock);
  if (e->struct_size >= sizeof *e && b->used + (size_t)n < TEXT) {
    memcpy(b->text + b->used, line, (size_t)n);
    b->used += (size_t)n;
  }
  pthread_mutex_unlock(&b->lock);
}
static void forget(void* self) {
  __atomic_fetch_add(&((notebook*)self)->dropped, 1, __ATOMIC_RELAXED);
}

/* A listener that counts in memory of the program: words of events, of drops, and one that asks it
 * to let go. */
typedef struct counter {
  int64_t* words;
  aj_object* listening;
} counter;

static void count_one(void* self, const aj_event* e) {
  counter* c = (counter*)self;
  (void)e;
  __atomic_fetch_add(&c->words[0], 1, __ATOMIC_RELAXED);
  if (!__atomic_exchange_n(&c->words[2], 0, __ATOMIC_ACQ_REL)) return;
  core->release(__atomic_exchange_n(&c->listening, (aj_object*)0, __ATOMIC_ACQ_REL));
}
static void count_drop(void* self) {
  counter* c = (counter*)self;
  __atomic_fetch_add(&c->words[1], 1, __ATOMIC_RELAXED);
  free(c);
}

static aj_status* give(aj_call* call, int64_t i) {
  call->rets[0].tag = AJ_INT;
  call->rets[0].aux = 0;
  call->rets[0].v.i = i;
  return 0;
}
static int64_t number(const aj_call* call, uint32_t i) { return call->args[i].v.i; }

static aj_status* listen_with(aj_listener* l, int64_t kinds, int64_t flags, aj_object** out) {
  l->struct_size = sizeof *l;
  l->kinds = (uint64_t)kinds;
  l->flags = (uint32_t)flags;
  return profile->listen(l, out);
}

/* start(kinds, flags) -> number of a notebook, which begins empty */
static aj_status* start(void* self, aj_call* call) {
  aj_listener l;
  int i = 0;
  (void)self;
  while (i < SLOTS && books[i].listening) i++;
  if (i == SLOTS)
    return core->status_new(AJ_OUT_OF_RANGE, text(""), text("no notebook is left"), "", 0);
  notebook* b = &books[i];
  if (!b->text) {
    b->text = (char*)malloc(TEXT);
    pthread_mutex_init(&b->lock, 0);
  }
  b->used = 0;
  b->dropped = 0;
  memset(&l, 0, sizeof l);
  l.self = b;
  l.event = write_down;
  l.drop = forget;
  aj_status* bad = listen_with(&l, number(call, 0), number(call, 1), &b->listening);
  return bad ? bad : give(call, i);
}

/* stop(number) -> how often it was dropped: 1 */
static aj_status* stop(void* self, aj_call* call) {
  notebook* b = &books[number(call, 0)];
  (void)self;
  core->release(b->listening);
  b->listening = 0;
  return give(call, b->dropped);
}

static aj_status* events(void* self, aj_call* call) {
  notebook* b = &books[number(call, 0)];
  (void)self;
  pthread_mutex_lock(&b->lock);
  aj_str all = {b->text, b->used};
  call->rets[0].tag = AJ_STRING_OBJ;
  call->rets[0].aux = 0;
  aj_status* bad = core->string_new(all, &call->rets[0].v.object);
  b->used = 0;
  pthread_mutex_unlock(&b->lock);
  return bad;
}

/* count(kinds, address of three words) */
static aj_status* count(void* self, aj_call* call) {
  aj_listener l;
  counter* c = (counter*)calloc(1, sizeof *c);
  aj_object* made = 0;
  (void)self;
  c->words = (int64_t*)(intptr_t)number(call, 1);
  memset(&l, 0, sizeof l);
  l.self = c;
  l.event = count_one;
  l.drop = count_drop;
  aj_status* bad = listen_with(&l, number(call, 0), 0, &made);
  if (bad) return free(c), bad;
  __atomic_store_n(&c->listening, made, __ATOMIC_RELEASE);
  return give(call, 0);
}

/* wrong(n): the n-th wrong way to listen */
static aj_status* wrong(void* self, aj_call* call) {
  aj_listener l;
  aj_object* made = 0;
  int64_t n = number(call, 0);
  (void)self;
  memset(&l, 0, sizeof l);
  l.struct_size = n == 0 ? 0 : n == 1 ? AJ_END_OF(aj_listener, event) : sizeof l;
  l.kinds = n == 2   ? 0
            : n == 3 ? 1u << 4 | AJ_EVENT_CALL
            : n == 4 ? (uint64_t)1 << 63
                     : AJ_EVENT_CALL;
  l.flags = n == 5 ? 1u << 1 : n == 6 ? 1u << 16 : 0;
  l.event = n == 7 ? 0 : write_down;
  l.self = &books[0];
  aj_status* bad = profile->listen(n == 8 ? 0 : &l, &made);
  if (!bad) core->release(made);
  return bad ? bad : give(call, 0);
}

static aj_status* label(void* self, aj_call* call) {
  uint64_t made = 7;
  aj_str name = {call->args[0].v.str, call->args[0].aux};
  (void)self;
  aj_status* bad = profile->label_begin(name, &made);
  return bad ? bad : give(call, (int64_t)made);
}
static aj_status* end(void* self, aj_call* call) {
  aj_status* bad = profile->label_end((uint64_t)number(call, 0));
  (void)self;
  return bad ? bad : give(call, 0);
}
static aj_status* now(void* self, aj_call* call) {
  (void)self;
  return give(call, (int64_t)profile->now_ns());
}

static aj_status* op(const aj_plugin_env* env, const char* schema, aj_kernel_fn body) {
  aj_op_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.flags = AJ_OP_ALLOCATES;
  d.schema = text(schema);
  d.body = body;
  return ops->def_op(env->registrar, &d);
}

AJ_PLUGIN_INIT {
  static const struct {
    const char* schema;
    aj_kernel_fn body;
  } all[] = {{"listen::start(int kinds, int flags=0) -> int", start},
             {"listen::stop(int book) -> int", stop},
             {"listen::events(int book) -> str", events},
             {"listen::count(int kinds, int words) -> int", count},
             {"listen::wrong(int n) -> int", wrong},
             {"listen::label(str name) -> int", label},
             {"listen::end(int label) -> int", end},
             {"listen::now() -> int", now}};
  core = env->core;
  ops = (const aj_dispatch*)env->query("aj.op", 1);
  profile = (const aj_profile*)env->query("x.profile", 1);
  if (!profile || !AJ_HAS_FN(profile, aj_profile, now_ns))
    return core->status_new(AJ_UNIMPLEMENTED, text(""), text("listen: libadjoin has no x.profile"),
                            "", 0);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    aj_status* bad = op(env, all[i].schema, all[i].body);
    if (bad) return bad;
  }
  return 0;
}

AJ_EXPORT aj_status* aj_plugin_drain_v1(void);
AJ_EXPORT aj_status* aj_plugin_drain_v1(void) { return 0; }
