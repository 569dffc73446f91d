// core/device/wait.cpp: waits for a device's work in slices where it can be asked, so that the user
// can stop it.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "core/base/log.hpp"
#include "core/device/device.hpp"
#include "core/guest/caught.hpp"
#include "core/guest/frontend.hpp"

namespace adjoin {
namespace {

constexpr int64_t kSpinNs = 200'000, kAskNs = 50'000'000;

// The pauses of somebody who waits: short ones first.
class Pauses {
 public:
  aj_status* pause(const Device* d) {
    int64_t waited = now() - begin_;
    if (waited < kSpinNs) return sched_yield(), nullptr;
    if (!parked_) parked_ = std::make_unique<Parked>();  // other threads of the language go on
    if (waited >= ask_) {
      ask_ = waited + kAskNs;
      if (frontend_interrupted())
        return fail_kind(AJ_CANCELLED, "KeyboardInterrupt", d->id,
                         ": the wait for its work was interrupted by the user");
      if (!told_ && patience_ns() && waited >= patience_ns()) {
        told_ = true;
        std::fprintf(stderr,
                     "adjoin: %s: plugin '%s': what is queued there has been waited for for %d s "
                     "and is not done yet\n",
                     device_text(d->id).c_str(), std::string(d->plugin).c_str(),
                     int(waited / 1'000'000'000));
      }
    }
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(std::clamp<int64_t>(waited / 16, 20'000, 1'000'000)));
    return nullptr;
  }

 private:
  static int64_t now() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }
  int64_t begin_ = now(), ask_ = kAskNs;
  bool told_ = false;
  std::unique_ptr<Parked> parked_;
};

// Work that fails late tells its op and its device; who says neither is named.
aj_status* named(const Device* d, aj_status* s) {
  if (!s || s->is_static || s->code == AJ_CANCELLED || is_about_the_call(s->code)) return s;
  if (s->message.find(d->plugin) != std::string::npos) return s;
  return prefix(s, text(d->id, ": plugin '", d->plugin, "': "));
}

// Asks until it is done, where it can be asked, then waits.
template <class Query, class Wait>
aj_status* wait_for(Device* d, bool asks, Query query, Wait wait) {
  int32_t done = !asks;
  aj_status* fault = nullptr;
  for (Pauses pauses; !done;) {
    aj_status* s = query(&done);
    // What was queued behind a fault may still run: who is told of it may read and free that
    // memory. A device that says it again has ended.
    if (s && fault) return free_status(s), named(d, fault);
    if (s) fault = s, done = 0;
    if (!done)
      if (aj_status* stopped = pauses.pause(d)) return free_status(fault), stopped;
  }
  aj_status* s = wait();
  if (!fault) return named(d, s);
  return free_status(s), named(d, fault);
}

}  // namespace

aj_status* stream_wait_for(Device* d, void* stream) {
  const aj_device_vtbl& v = d->vtbl;
  if ((d->flags & AJ_DEV_SYNCHRONOUS) || !v.stream_sync) return nullptr;
  return wait_for(
      d, v.stream_query,
      [&](int32_t* done) { return v.stream_query(v.self, d->id.device_id, stream, done); },
      [&] {
        std::optional<Parked> parked;  // other streams were not asked
        if (!stream && streams_in_use.load(std::memory_order_relaxed)) parked.emplace();
        return v.stream_sync(v.self, d->id.device_id, stream);
      });
}

aj_status* event_wait_for(Device* d, void* event) {
  const aj_device_vtbl& v = d->vtbl;
  return wait_for(
      d, v.event_query,
      [&](int32_t* done) { return v.event_query(v.self, d->id.device_id, event, done); },
      [&] { return v.event_sync(v.self, d->id.device_id, event); });
}

}  // namespace adjoin
