// core/thread/quiet.cpp: an epoch without a counter on the path of a call: each thread already says
// which op it runs, and membarrier(2) makes every core tell the truth about it.
#include "core/thread/quiet.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "core/thread/fork.hpp"

namespace adjoin {
namespace {

struct Threads {
  std::mutex lock;
  std::vector<Tls*> all;
};
Threads& threads() {
  static Threads* one = [] {
    fork_hook_add({kForkLeaf, [] { threads().lock.lock(); }, [] { threads().lock.unlock(); },
                   [] {
                     threads().lock.unlock();
                     std::erase_if(threads().all, [](Tls* t) { return t != &tls; });
                   }});
    return new Threads;
  }();
  return *one;
}

bool barrier() {
  static const bool registered =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return registered && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

size_t threads_of_process() {
  std::error_code error;
  std::filesystem::directory_iterator at("/proc/self/task", error), end;
  size_t n = 0;
  for (; !error && at != end; at.increment(error)) ++n;
  return error ? SIZE_MAX : n;
}

// Whoever is seen outside of calls once is out, whatever it calls next. `awaited` is touched under
// the lock alone.
bool anybody_inside() {
  bool any = false;
  for (Tls* t : threads().all) {
    if (!__atomic_load_n(&t->running_op, __ATOMIC_ACQUIRE)) t->awaited = 0;
    any |= t->awaited;
  }
  return any;
}

}  // namespace

void quiet_add(Tls* thread) {
  std::lock_guard held(threads().lock);
  threads().all.push_back(thread);
}

void quiet_remove(Tls* thread) {
  std::lock_guard held(threads().lock);
  std::erase(threads().all, thread);
}

void each_thread(void (*f)(Tls* thread, void* with), void* with) {
  std::lock_guard held(threads().lock);
  for (Tls* t : threads().all) f(t, with);
}

std::string wait_until_quiet() {
  register_thread();
  if (!barrier()) return "the kernel has no membarrier(2), so nobody knows who is inside a call";
  using Clock = std::chrono::steady_clock;
  each_thread([](Tls* t, void*) { t->awaited = 1; }, nullptr);
  for (auto deadline = Clock::now() + std::chrono::seconds(2);;) {
    {
      std::lock_guard held(threads().lock);
      size_t all = threads_of_process();
      if (all > threads().all.size())
        return std::to_string(all - threads().all.size()) +
               " threads of the process are not known to libadjoin and may be inside a call";
      if (!anybody_inside()) return {};
    }
    if (Clock::now() > deadline) return "a call has not come to its end within 2 s";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace adjoin
