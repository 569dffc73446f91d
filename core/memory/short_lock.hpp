// core/memory/short_lock.hpp: a lock that is nearly always held for a few instructions. It costs a
// third of a mutex, for it is given back without asking who waits; who waits looks again after ever
// longer pauses.
#pragma once
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace adjoin {

class ShortLock {
 public:
  void lock() {
    if (__builtin_expect(taken_.exchange(true, std::memory_order_acquire), 0)) wait();
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  // Whoever holds it may be taking memory from a device, which lasts.
  [[gnu::noinline]] void wait() {
    for (int looks = 0;
         taken_.load(std::memory_order_relaxed) || taken_.exchange(true, std::memory_order_acquire);
         ++looks) {
      if (looks < 32)
        sched_yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(std::min(10 * (looks - 31), 500)));
    }
  }
  std::atomic<bool> taken_{false};
};

}  // namespace adjoin
