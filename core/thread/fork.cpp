// core/thread/fork.cpp: one order of locks for a fork, outermost first.
#include "core/thread/fork.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "core/base/tls.hpp"
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
  for (const ForkHook& h : hooks().all)
    if (h.prepare) h.prepare();
  devices_fork_prepare();
  pool_fork_prepare();
  memory_fork_prepare();
}

void parent() {
  memory_fork_parent();
  pool_fork_parent();
  devices_fork_parent();
  auto& all = hooks().all;
  for (auto h = all.rbegin(); h != all.rend(); ++h)
    if (h->parent) h->parent();
  hooks().lock.unlock();
}

void child() {
  tls.thread_id = 0;  // it has another number
  memory_fork_child();
  pool_fork_child();
  devices_fork_child();
  auto& all = hooks().all;
  for (auto h = all.rbegin(); h != all.rend(); ++h)
    if (h->child) h->child();
  hooks().lock.unlock();
}

}  // namespace

void fork_hook_add(const ForkHook& hook) {
  fork_install();
  std::lock_guard held(hooks().lock);
  auto& all = hooks().all;
  all.insert(
      std::find_if(all.begin(), all.end(), [&](const ForkHook& h) { return h.order > hook.order; }),
      hook);
}

void fork_install() {
  static std::atomic<bool> done{false};
  if (done.load(std::memory_order_acquire) || done.exchange(true)) return;
  hooks();
  pthread_atfork(prepare, parent, child);
}

}  // namespace adjoin
