// core/profile/listen.cpp: who listens, and handing them events while they come and go.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "core/base/guarded.hpp"
#include "core/base/log.hpp"
#include "core/device/device.hpp"
#include "core/guest/line.hpp"
#include "core/guest/object.hpp"
#include "core/guest/pins.hpp"
#include "core/memory/memory.hpp"
#include "core/op/registry_state.hpp"
#include "core/profile/profile.hpp"

namespace adjoin {

std::atomic<uint32_t> told_kinds{0};

namespace {

constexpr uint32_t kKinds = AJ_EVENT_CALL | AJ_EVENT_KERNEL | AJ_EVENT_MEMORY | AJ_EVENT_LABEL;
constexpr uint64_t kDeviceKeys = (1ull << 23) - 1, kHostKey = 1ull << (kDLCPU - 1);

std::atomic<uint64_t> next_id{1};
// A program, captured or written down, tells the line of each of its calls.
constexpr uint64_t kPrograms = 1ull << kCaptureBit | 1ull << kLazyBit;

std::atomic<uint64_t> line_keys{(kDeviceKeys & ~kHostKey) | kPrograms};
static_assert(sizeof line_keys == sizeof(uint64_t) && std::atomic<uint64_t>::is_always_lock_free);

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

// A listener's place, used again when it has gone; never freed, for threads walk over them without
// a lock.
struct Place {
  static constexpr uint64_t kOpen = 1ull << 32;
  std::atomic<uint64_t> users{0};              // threads inside of it, and kOpen while it listens
  std::atomic<bool> taken{true}, deaf{false};  // deaf: it let an exception out
  aj_listener listener;
  uint64_t since;
  Place* next;

  void hold(void (*change)(Holder, const void*)) const {
    change(Holder::listener, reinterpret_cast<const void*>(listener.event));
    change(Holder::listener, reinterpret_cast<const void*>(listener.drop));
  }
  void leave() {
    if (users.fetch_sub(1) != 1) return;  // else it is closed and empty: the listener goes
    if (listener.drop) listener.drop(listener.self);
    hold(unpin);
    taken.store(false);
  }
  bool enter() {
    for (uint64_t n = users.load(); n & kOpen;)
      if (users.compare_exchange_weak(n, n + 1)) return true;
    return false;
  }
};
std::atomic<Place*> places{nullptr};

void tell_memory(Device* d, void* data, int64_t bytes);

// Under the registry's lock, which keeps who begins and who ends apart.
void apply_kinds() {
  uint64_t kinds = 0;
  for (Place* p = places; p; p = p->next)
    if (p->users & Place::kOpen) kinds |= p->listener.kinds;
  uint32_t changed = told_kinds.exchange(uint32_t(kinds)) ^ uint32_t(kinds);
  line_keys =
      kPrograms | (kinds & ~uint64_t(AJ_EVENT_LABEL) ? kDeviceKeys : kDeviceKeys & ~kHostKey);
  if (changed & (AJ_EVENT_CALL | AJ_EVENT_KERNEL)) tell_calls(uint32_t(kinds));
  if (changed & AJ_EVENT_MEMORY) memory_tell(kinds & AJ_EVENT_MEMORY ? tell_memory : nullptr);
}

void destroy(void* payload) {
  Place* p = *static_cast<Place**>(payload);
  std::unique_lock guard(registry().lock);
  p->users.fetch_sub(Place::kOpen - 1);  // this thread is inside: drop waits until no lock is held
  apply_kinds();
  guard.unlock();
  p->leave();
}

[[gnu::noinline]] aj_status* refuse(int32_t code, const char* what, uint64_t found,
                                    const char* wanted) {
  return fail(code, what, found, wanted);
}

aj_status* listen(const aj_listener* l, aj_object** out) {
  static_assert(AJ_END_OF(aj_listener, drop) == 40 && kKinds == 15);
  if (!l || l->struct_size < AJ_END_OF(aj_listener, drop) || !l->event)
    return refuse(AJ_INVALID_ARGUMENT, "listen: aj_listener: struct_size is ",
                  l ? l->struct_size : 0, ", at least 40 and a function `event` are needed");
  AJ_TRY(check_words("listen", "", l->flags, AJ_LISTEN_BEGIN));
  if (!l->kinds || l->kinds & ~uint64_t(kKinds))
    return refuse(AJ_INVALID_ARGUMENT, "listen: kinds are ", l->kinds,
                  "; at least one of AJ_EVENT_... is needed, and none beyond 15");
  void* payload;
  AJ_TRY(object_new(AJ_OBJECT, sizeof payload, destroy, out, &payload));
  std::lock_guard guard(registry().lock);
  Place* p = places;
  while (p && p->taken) p = p->next;
  if (!p) {
    p = new Place;
    p->next = places;
    places = p;
  }
  p->taken = true;
  p->deaf = false;
  *static_cast<Place**>(payload) = p;
  std::memcpy(&p->listener, l, sizeof *l);
  p->hold(pin);
  p->since = now_ns();
  p->users = Place::kOpen;
  apply_kinds();
  return nullptr;
}

void tell(const aj_event& e) {
  if (tls.telling) return;
  tls.telling = 1;
  for (Place* p = places.load(std::memory_order_acquire); p; p = p->next) {
    if (!p->enter()) continue;
    const aj_listener& l = p->listener;
    if (l.kinds & e.kind && e.begin_ns >= p->since && (e.end_ns || l.flags & AJ_LISTEN_BEGIN) &&
        !p->deaf)
      try {
        l.event(l.self, &e);
      } catch (...) {
        log_message(0, plugin::plugin_at(reinterpret_cast<const void*>(l.event)),
                    "its listener let an exception out, and is told no more");
        p->deaf = true;
      }
    p->leave();
  }
  tls.telling = 0;
}

void fill(aj_event* e, uint32_t kind, aj_str name) {
  *e = {};
  e->struct_size = sizeof *e;
  e->kind = kind;
  e->id = next_id.fetch_add(1, std::memory_order_relaxed);
  e->parent = tls.event;
  e->name = name;
  e->provider = {"", 0};
  if (!tls.thread_id) tls.thread_id = uint32_t(gettid());
  e->thread = tls.thread_id;
  e->line = current_line();
  e->begin_ns = now_ns();
}

void drop_label() {
  Open* o = tls.open;
  tls.open = o->outer;
  std::free(o);
}

// A label is followed by its text.
aj_status* label_begin(aj_str name, uint64_t* out) {
  *out = 0;
  if (!told(AJ_EVENT_LABEL)) return nullptr;
  register_thread();
  void* memory = std::malloc(sizeof(Open) + name.len);
  if (!memory) return refuse(AJ_OUT_OF_MEMORY, "label_begin: no memory for ", name.len, " bytes");
  auto* text = static_cast<char*>(memory) + sizeof(Open);
  std::copy_n(name.data, name.len, text);
  auto* made = new (memory) Open(AJ_EVENT_LABEL, {text, name.len});
  *out = made->event.id;
  made->tell_begin();
  return nullptr;
}

aj_status* label_end(uint64_t id) {
  if (!id) return nullptr;
  Open **at = &tls.open, *inner = nullptr;
  while (*at && (*at)->event.kind == AJ_EVENT_LABEL && (*at)->event.id != id)
    inner = *at, at = &inner->outer;
  Open* o = *at;
  if (!o || o->event.id != id || o->event.kind != AJ_EVENT_LABEL)
    return refuse(
        AJ_NOT_FOUND, "label_end: label ", id,
        " is not open here; the thread that began it ends it, in the call in which it began");
  *at = o->outer;
  (inner ? inner->event.parent : tls.event) = o->event.parent;
  o->event.end_ns = now_ns();
  tell(o->event);
  std::free(o);
  return nullptr;
}

}  // namespace

Open::Open(uint32_t kind, aj_str name) : outer(tls.open) {
  fill(&event, kind, name);
  tls.event = event.id;
  tls.open = this;
}

void Open::tell_begin() { tell(event); }

void Open::end() {
  while (tls.open != this) drop_label();
  tls.open = outer;
  tls.event = event.parent;
  event.end_ns = now_ns();
  tell(event);
}

void labels_end() {
  while (tls.open) drop_label();
}

namespace {

void tell_memory(Device* d, void* data, int64_t bytes) {
  aj_event e;
  fill(&e, AJ_EVENT_MEMORY, tls.running_op ? str(tls.running_op->schema.name) : aj_str{"", 0});
  e.provider = str(d->plugin ? d->plugin : "");
  e.device = d->id;
  e.end_ns = e.begin_ns;
  e.bytes = bytes;
  e.in_use = memory_in_use(d);
  e.data = data;
  tell(e);
}

}  // namespace

const aj_profile profile_table = {
    .struct_size = sizeof(aj_profile),
    .minor = 0,
    .listen = guarded<listen>,
    .label_begin = guarded<label_begin>,
    .label_end = guarded<label_end>,
    .now_ns = now_ns,
    .line_keys = reinterpret_cast<const uint64_t*>(&line_keys),
};

}  // namespace adjoin
