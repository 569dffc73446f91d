/* tests/python/distributed/over_store.c: an engine that a stranger wrote from installed headers:
 * every collective goes through the store. Each process puts what it gives there, and takes what it
 * needs. */
#include <adjoin/abi/comm.h>
#include <adjoin/abi/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

AJ_PLUGIN_NOTE("over_store", "0.1.0", "stranger", "MIT", "service:aj.comm/cpu", "");

static const aj_core* core;

typedef struct comm {
  aj_store store;
  int32_t rank, size;
  char name[200], why[300];
  volatile int aborted;
} comm;
typedef struct work {
  comm* comm;
  aj_coll c;
  int32_t done;
} work;

static aj_status* refuse(int32_t code, const char* text) {
  return core->status_new(code, AJ_STR_LIT(""), (aj_str){text, strlen(text)}, NULL, 0);
}

static aj_status* caps(void* self, DLDevice device, aj_comm_caps* io) {
  (void)self, (void)device;
  io->flags = AJ_COMM_TAGGED | AJ_COMM_DETERMINISTIC;
  io->kinds = 1u << AJ_COLL_BARRIER | 1u << AJ_COLL_BROADCAST | 1u << AJ_COLL_ALL_REDUCE |
              1u << AJ_COLL_ALL_GATHER | 1u << AJ_COLL_SEND | 1u << AJ_COLL_RECV;
  io->dtypes[AJ_RED_SUM] = 1u << AJ_DT_FLOAT64;
  io->engine = AJ_STR_LIT("over_store");
  return NULL;
}

static aj_status* open_comm(void* self, const aj_comm_config* c, void** out) {
  (void)self;
  comm* made = calloc(1, sizeof *made);
  made->store = *c->store;
  made->rank = c->rank, made->size = c->size;
  snprintf(made->name, sizeof made->name, "%.*s", (int)c->name.len, c->name.data);
  *out = made;
  return NULL;
}
static aj_status* ready(void* c, int32_t* done) {
  (void)c;
  *done = 1;
  return NULL;
}

static aj_str key_of(const work* w, int32_t rank, char* room, size_t bytes) {
  int n = snprintf(room, bytes, "%s/%u/%llu/%d", w->comm->name, w->c.fingerprint,
                   (unsigned long long)w->c.seq, rank);
  return (aj_str){room, (uint64_t)n};
}

static aj_status* start(void* self, const aj_coll* c, uint32_t n, void** out) {
  char room[300];
  if (n != 1) return refuse(AJ_UNIMPLEMENTED, "over_store: one at a time");
  if (((comm*)self)->aborted) return refuse(AJ_ABORTED, ((comm*)self)->why);
  work* w = calloc(1, sizeof *w);
  w->comm = self, w->c = *c;
  uint64_t bytes = c->in ? c->count * c->dtype.bits / 8 : 0;
  aj_str key = key_of(w, w->comm->rank, room, sizeof room);
  aj_status* s = NULL;
  if (c->kind != AJ_COLL_RECV)
    s = w->comm->store.set(w->comm->store.self, key, (aj_str){c->in, bytes});
  if (s)
    free(w);
  else
    *out = w;
  return s;
}

/* What the process of that rank gave; AJ_DEADLINE: nothing yet. */
static aj_status* take(work* w, int32_t rank, int64_t timeout_ms, aj_object** out) {
  char room[300];
  return w->comm->store.get(w->comm->store.self, key_of(w, rank, room, sizeof room), timeout_ms,
                            out);
}

static aj_status* finish(work* w, int64_t timeout_ms) {
  const aj_coll* c = &w->c;
  uint64_t bytes = c->count * c->dtype.bits / 8;
  int one = c->kind == AJ_COLL_BROADCAST || c->kind == AJ_COLL_RECV;
  aj_object* given[64] = {0};
  aj_status* s = NULL;
  if (w->done) return NULL;
  for (int32_t r = 0; r < w->comm->size && !s; r++)
    if (c->kind != AJ_COLL_SEND && (!one || r == c->peer)) s = take(w, r, timeout_ms, &given[r]);
  for (int32_t r = 0; r < w->comm->size && !s; r++) {
    const char* from = given[r] ? core->string_get(given[r]).data : NULL;
    if (!from || !c->out) continue;
    if (one) memcpy(c->out, from, bytes);
    if (c->kind == AJ_COLL_ALL_GATHER) memcpy((char*)c->out + (uint64_t)r * bytes, from, bytes);
    if (c->kind == AJ_COLL_ALL_REDUCE)
      for (uint64_t i = 0; i < c->count; i++) {
        double x;
        memcpy(&x, from + i * sizeof x, sizeof x);
        ((double*)c->out)[i] = r ? ((double*)c->out)[i] + x : x;
      }
  }
  for (int32_t r = 0; r < w->comm->size; r++) core->release(given[r]);
  if (!s) w->done = 1;
  return s;
}

/* The store cannot be woken, so it is asked for a moment at a time. */
static aj_status* wait_work(void* w, int64_t timeout_ms) {
  for (;; timeout_ms -= 20) {
    if (((work*)w)->comm->aborted) return refuse(AJ_ABORTED, ((work*)w)->comm->why);
    aj_status* s = finish(w, timeout_ms < 20 ? timeout_ms : 20);
    if (!s || core->status_code(s) != AJ_DEADLINE || timeout_ms <= 20) return s;
    core->status_free(s);
  }
}
static aj_status* test(void* w, int32_t* done) {
  aj_status* s = finish(w, 0);
  *done = ((work*)w)->done;
  if (s && core->status_code(s) == AJ_DEADLINE) core->status_free(s), s = NULL;
  return s;
}
static void drop(void* w) { free(w); }
static aj_status* abort_comm(void* self, aj_str why) {
  comm* c = self;
  snprintf(c->why, sizeof c->why, "%.*s", (int)why.len, why.data);
  c->aborted = 1;
  return NULL;
}
static aj_status* close_comm(void* c, int64_t timeout_ms) {
  return (void)timeout_ms, (void)c, NULL;
}

static const aj_comm table = {
    sizeof(aj_comm), 0,    {"over_store", 10}, NULL, caps,       open_comm,  ready,
    start,           test, wait_work,          drop, abort_comm, close_comm, NULL};

AJ_PLUGIN_INIT {
  core = env->core;
  aj_service_def d = {sizeof d, -1, AJ_STR_LIT("aj.comm/cpu"), AJ_STR_LIT("over_store"), &table};
  return env->def_service(env->registrar, &d);
}
