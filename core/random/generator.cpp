// core/random/generator.cpp: generators are 16 bytes of state: a seed and how many blocks were
// drawn.
#include "core/random/generator.hpp"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <mutex>
#include <vector>

#include "core/device/device.hpp"
#include "core/guest/object.hpp"
#include "core/thread/fork.hpp"

namespace adjoin {
namespace {

struct State {
  DLDevice device;
  uint64_t seed, offset;
};

// One lock for all: a draw is two words, and each op draws once.
struct Defaults {
  std::mutex lock;
  std::vector<aj_object*> all;
  bool seeded = false;
  uint64_t seed = 0;  // for default generators that do not exist yet
};
Defaults& defaults() {
  static auto* d = [] {
    auto* made = new Defaults;
    fork_hook_add({kForkLeaf, [] { defaults().lock.lock(); }, [] { defaults().lock.unlock(); },
                   [] { defaults().lock.unlock(); }});
    return made;
  }();
  return *d;
}

uint64_t unpredictable_seed() {
  uint64_t seed;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed)
    return seed >> 1;  // fits a signed integer
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t(t.tv_sec) * 1'000'000'007u ^ uint64_t(t.tv_nsec) ^ uint64_t(getpid()) << 40) >>
         1;
}

aj_status* check(aj_object* g, const char* who, State** out) {
  if (!g || g->type != AJ_GENERATOR)
    return fail(AJ_WRONG_TYPE, who, ": wanted a generator, got ",
                g ? text("an object of type ", g->type) : "nothing");
  *out = static_cast<State*>(object_payload(g));
  return nullptr;
}

aj_status* make(DLDevice device, uint64_t seed, aj_object** out) {
  void* payload;
  AJ_TRY(object_new(AJ_GENERATOR, sizeof(State), nullptr, out, &payload));
  *static_cast<State*>(payload) = {device, seed, 0};
  return nullptr;
}

// Borrowed; wants the lock. Needs no open device: a seed may be set before a plugin is loaded.
aj_status* default_of(Defaults& d, DLDevice device, aj_object** out) {
  for (aj_object* g : d.all) {
    DLDevice have = static_cast<State*>(object_payload(g))->device;
    if (have.device_type == device.device_type && have.device_id == device.device_id)
      return *out = g, nullptr;
  }
  AJ_TRY(make(device, d.seeded ? d.seed : unpredictable_seed(), out));
  d.all.push_back(*out);
  return nullptr;
}

}  // namespace

aj_status* generator_new(DLDevice device, aj_object** out) {
  Device* d;
  AJ_TRY(device_open(device, &d));
  return make(d->id, unpredictable_seed(), out);
}

aj_status* generator_default(DLDevice device, aj_object** out) {
  Device* d;
  AJ_TRY(device_open(device, &d));
  std::lock_guard held(defaults().lock);
  AJ_TRY(default_of(defaults(), device, out));
  any_retain(*out);
  return nullptr;
}

aj_status* generator_get(aj_object* g, uint64_t* seed, uint64_t* offset) {
  State* s;
  AJ_TRY(check(g, "generator_get", &s));
  std::lock_guard held(defaults().lock);
  *seed = s->seed;
  *offset = s->offset;
  return nullptr;
}

aj_status* generator_set(aj_object* g, uint64_t seed, uint64_t offset) {
  State* s;
  AJ_TRY(check(g, "generator_set", &s));
  if (offset >> 63)  // the highest bit says that a draw is a graph's
    return fail(AJ_INVALID_ARGUMENT, "generator_set: the offset must be below 2^63, it is ",
                offset);
  std::lock_guard held(defaults().lock);
  s->seed = seed;
  s->offset = offset;
  return nullptr;
}

aj_status* generator_draw(aj_object* g, uint64_t blocks, uint64_t* seed, uint64_t* offset) {
  Defaults& d = defaults();
  std::lock_guard held(d.lock);
  if (!g) AJ_TRY(default_of(d, {kDLCPU, 0}, &g));
  State* s;
  AJ_TRY(check(g, "generator_draw", &s));
  *seed = s->seed;
  *offset = s->offset;
  s->offset += blocks;
  return nullptr;
}

DLDevice generator_device(aj_object* g) {
  if (!g || g->type != AJ_GENERATOR) return {};
  return static_cast<State*>(object_payload(g))->device;
}

aj_status* manual_seed(uint64_t seed) {
  Defaults& d = defaults();
  std::lock_guard held(d.lock);
  d.seeded = true;
  d.seed = seed;
  for (aj_object* g : d.all) {
    auto* s = static_cast<State*>(object_payload(g));
    s->seed = seed;
    s->offset = 0;
  }
  return nullptr;
}

}  // namespace adjoin
