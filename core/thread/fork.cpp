// core/thread/fork.cpp: one order of locks for a fork, outermost first: added hooks, devices, the pool, memory.
#include "core/thread/fork.hpp"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "core/device/device.hpp"
#include "core/memory/memory.hpp"
#include "core/thread/pool.hpp"

namespace adjoin {
namespace {

struct Hooks {
  std::mutex lock;
  std::vector<ForkHook> all;
};
Hooks& hooks() {
  static auto* h = new Hooks;
  return *h;
}

void prepare() {
  hooks().lock.lock();
  auto& all = hooks().all;
  for (auto h = all.rbegin(); h != all.rend(); ++h)
    if (h->prepare) h->prepare();
  devices_fork_prepare();
  pool_fork_prepare();
  memory_fork_prepare();
}

void parent() {
  memory_fork_parent();
  pool_fork_parent();
  devices_fork_parent();
  for (const ForkHook& h : hooks().all)
    if (h.parent) h.parent();
  hooks().lock.unlock();
}

void child() {
  memory_fork_child();
  pool_fork_child();
  devices_fork_child();
  for (const ForkHook& h : hooks().all)
    if (h.child) h.child();
  hooks().lock.unlock();
}

}  // namespace

void fork_hook_add(const ForkHook& hook) {
  std::lock_guard held(hooks().lock);
  hooks().all.push_back(hook);
}

void fork_install() {
  static std::atomic<bool> done{false};
  if (done.load(std::memory_order_acquire) || done.exchange(true)) return;
  hooks();
  pthread_atfork(prepare, parent, child);
}

}  // namespace adjoin
