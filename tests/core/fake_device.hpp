// tests/core/fake_device.hpp: devices for tests of the core: one on the host, one that behaves like
// an accelerator.
#pragma once
#include <adjoin/abi/plugin.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/device/device.hpp"

namespace adjoin::test {

constexpr bool kThreadSanitizer = (AJ_BUILD_FLAGS_ & AJ_BUILD_TSAN) != 0;

struct FakeEvent {
  bool done = false;
};

struct Fake {
  std::atomic<int> allocs{0}, frees{0}, idles{0}, copies{0}, syncs{0}, forks{0};
  std::atomic<uint64_t> live{0}, idle_bytes{0};
  uint64_t capacity = UINT64_MAX;
  int devices = 1;
  std::set<FakeEvent*> events;  // every event that exists
  bool events_pass = true;      // a new event has passed at once

  void pass_all() {
    for (FakeEvent* e : events) e->done = true;
  }
};

inline Fake& fake_of(void* self) { return *static_cast<Fake*>(self); }

inline aj_status* fake_count(void* self, int32_t* out) {
  *out = fake_of(self).devices;
  return nullptr;
}

inline aj_status* fake_alloc(void* self, int32_t, uint64_t bytes, uint32_t, void** out) {
  Fake& f = fake_of(self);
  if (f.live + bytes > f.capacity)
    return fail(AJ_OUT_OF_MEMORY, "fake: ", bytes, " bytes are not there");
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return fail(AJ_OUT_OF_MEMORY, "fake: mmap refused ", bytes, " bytes");
  f.allocs++;
  f.live += bytes;
  *out = p;
  return nullptr;
}

inline aj_status* fake_free(void* self, int32_t, void* p, uint64_t bytes, uint32_t) {
  Fake& f = fake_of(self);
  f.frees++;
  f.live -= bytes;
  munmap(p, bytes);
  return nullptr;
}

inline aj_status* fake_idle(void* self, int32_t, void* p, uint64_t bytes) {
  Fake& f = fake_of(self);
  f.idles++;
  f.idle_bytes += bytes;
  madvise(p, bytes, MADV_DONTNEED);
  return nullptr;
}

inline aj_status* fake_copy(void* self, const aj_copy* c) {
  fake_of(self).copies++;
  std::memcpy(c->dst, c->src, c->width * c->height);
  return nullptr;
}

inline aj_status* fake_sync(void* self, int32_t, void*) {
  fake_of(self).syncs++;
  return nullptr;
}

inline aj_status* fake_event_new(void* self, int32_t, uint32_t, void** out) {
  auto* e = new FakeEvent{fake_of(self).events_pass};
  fake_of(self).events.insert(e);
  *out = e;
  return nullptr;
}
inline aj_status* fake_event_free(void* self, int32_t, void* event) {
  fake_of(self).events.erase(static_cast<FakeEvent*>(event));
  delete static_cast<FakeEvent*>(event);
  return nullptr;
}
inline aj_status* fake_event_record(void*, int32_t, void*, void*) { return nullptr; }
inline aj_status* fake_event_query(void*, int32_t, void* event, int32_t* done) {
  *done = static_cast<FakeEvent*>(event)->done;
  return nullptr;
}
inline aj_status* fake_event_sync(void*, int32_t, void* event) {
  static_cast<FakeEvent*>(event)->done = true;
  return nullptr;
}

inline aj_device_vtbl host_vtbl(Fake* fake, const char* name, int32_t priority = 0) {
  aj_device_vtbl v{};
  v.struct_size = sizeof v;
  v.flags = AJ_DEV_HOST_MEMORY | AJ_DEV_HOST_THREADS | AJ_DEV_SYNCHRONOUS;
  v.name = str(name);
  v.priority = priority;
  v.self = fake;
  v.count = fake_count;
  v.mem_alloc = fake_alloc;
  v.mem_free = fake_free;
  v.mem_idle = fake_idle;
  v.fork_child = [](void* self) { fake_of(self).forks++; };
  return v;
}

inline aj_device_vtbl accelerator_vtbl(Fake* fake, const char* name, int32_t priority = 0) {
  aj_device_vtbl v = host_vtbl(fake, name, priority);
  v.flags = 0;
  v.mem_idle = nullptr;
  v.stream_sync = fake_sync;
  v.event_new = fake_event_new;
  v.event_free = fake_event_free;
  v.event_record = fake_event_record;
  v.event_query = fake_event_query;
  v.event_sync = fake_event_sync;
  v.copy = fake_copy;
  return v;
}

// A process has 23 kinds: each test program registers a few, once.
struct FakeKind {
  Fake fake;
  Device* device = nullptr;
  explicit FakeKind(const char* name, bool host) {
    aj_device_vtbl v = host ? host_vtbl(&fake, name) : accelerator_vtbl(&fake, name);
    int32_t type = 0;
    if (device_kind_add(&v, "test") || !(type = device_kind_peek(name)) ||
        device_open({DLDeviceType(type), 0}, &device))
      std::abort();
  }
};
inline FakeKind& fake_host() {
  static auto* k = new FakeKind("fakehost", true);
  return *k;
}
inline FakeKind& fake_accelerator() {
  static auto* k = new FakeKind("fakeacc", false);
  return *k;
}

inline std::string take_message(aj_status* s) {
  if (!s) return {};
  std::string m = s->message;
  free_status(s);
  return m;
}

}  // namespace adjoin::test
