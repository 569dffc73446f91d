// core/memory/pinned.cpp: blocks of pinned memory by address, and the events that say when queued
// copies have left them.
#include "core/memory/pinned.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <vector>

#include "core/thread/fork.hpp"

namespace adjoin {
namespace {

struct Mark {  // the last use on a stream; one event each, recorded again
  Device* device;
  void* stream;
  void* event;
};

struct Pinned {
  Device* owner;
  char* p;
  uint64_t bytes;
  bool idle = false;
  std::vector<Mark> marks;
};

struct Pool {
  std::mutex lock;
  std::map<const char*, Pinned*> blocks;  // by address
};

Pool& pool() {
  static auto* one = [] {
    auto* p = new Pool;
    fork_hook_add({kForkLeaf, [] { pool().lock.lock(); }, [] { pool().lock.unlock(); },
                   [] { pool().lock.unlock(); }});
    return p;
  }();
  return *one;
}

// The ones below want the lock.
Pinned* find(Pool& all, const void* p) {
  auto next = all.blocks.upper_bound(static_cast<const char*>(p));
  if (next == all.blocks.begin()) return nullptr;
  Pinned* b = std::prev(next)->second;
  return static_cast<const char*>(p) < b->p + b->bytes ? b : nullptr;
}

// An event that answers with an error has passed too.
bool passed(Pinned& b) {
  std::erase_if(b.marks, [](Mark& m) {
    const aj_device_vtbl& v = m.device->vtbl;
    int32_t done = 1, dev = m.device->id.device_id;
    if (aj_status* s = v.event_query(v.self, dev, m.event, &done)) free_status(s), done = 1;
    if (done) free_status(v.event_free(v.self, dev, m.event));
    return done != 0;
  });
  return b.marks.empty();
}

Pinned* take_idle(Pool& all, Device* owner, uint64_t bytes) {
  for (auto& [p, b] : all.blocks)
    if (b->idle && b->owner == owner && b->bytes == bytes && passed(*b)) {
      b->idle = false;
      return b;
    }
  return nullptr;
}

aj_status* take(Device* owner, uint64_t wanted, Pinned** out) {
  Pool& all = pool();
  uint64_t bytes = std::bit_ceil(std::max<uint64_t>(wanted, 4096));
  const aj_device_vtbl& v = owner->vtbl;
  for (int round = 0;; ++round) {
    {
      std::lock_guard held(all.lock);
      if ((*out = take_idle(all, owner, bytes))) return nullptr;
    }
    void* p = nullptr;
    aj_status* s = v.mem_alloc(v.self, owner->id.device_id, bytes, AJ_MEM_PINNED, &p);
    if (!s) {
      std::lock_guard held(all.lock);
      *out = all.blocks[static_cast<char*>(p)] =
          new Pinned{owner, static_cast<char*>(p), bytes, false, {}};
      return nullptr;
    }
    if (round || s->code != AJ_OUT_OF_MEMORY) return prefix(s, "pin_memory: ");
    free_status(s);
    pinned_release(owner->id.device_type);
  }
}

}  // namespace

aj_status* pinned_take(Device* owner, uint64_t wanted, PinnedBlock* out) {
  Pinned* b = nullptr;
  AJ_TRY(take(owner, wanted, &b));
  *out = {b, b->p, b->bytes};
  return nullptr;
}

void pinned_give(void* block) {
  std::lock_guard held(pool().lock);
  static_cast<Pinned*>(block)->idle = true;
}

bool pinned_find(const void* p) {
  Pool& all = pool();
  std::lock_guard held(all.lock);
  return find(all, p) != nullptr;
}

aj_status* pinned_use(const void* p, Device* d, void* stream) {
  Pool& all = pool();
  const aj_device_vtbl& v = d->vtbl;
  std::lock_guard held(all.lock);
  Pinned* b = find(all, p);
  if (!b) return nullptr;
  auto is = [&](const Mark& m) { return m.device == d && m.stream == stream; };
  auto mark = std::find_if(b->marks.begin(), b->marks.end(), is);
  if (mark == b->marks.end()) {
    if (!v.event_new || !v.event_record) return v.stream_sync(v.self, d->id.device_id, stream);
    void* event = nullptr;
    AJ_TRY(v.event_new(v.self, d->id.device_id, 0, &event));
    mark = b->marks.insert(mark, {d, stream, event});
  }
  return v.event_record(v.self, d->id.device_id, mark->event, stream);
}

void pinned_release(int32_t device_type) {
  Pool& all = pool();
  std::lock_guard held(all.lock);
  std::erase_if(all.blocks, [&](auto& entry) {
    Pinned* b = entry.second;
    if (!b->idle || b->owner->id.device_type != device_type || !passed(*b)) return false;
    const aj_device_vtbl& v = b->owner->vtbl;
    free_status(v.mem_free(v.self, b->owner->id.device_id, b->p, b->bytes, AJ_MEM_PINNED));
    delete b;
    return true;
  });
}

}  // namespace adjoin
