// core/thread/fork.cpp: one order of locks for a fork, outermost first.
#include "core/thread/fork.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "core/base/tls.hpp"

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
}

void parent() {
  auto& all = hooks().all;
  for (auto h = all.rbegin(); h != all.rend(); ++h)
    if (h->parent) h->parent();
  hooks().lock.unlock();
}

void child() {
  tls.thread_id = 0;  // it has another number
  auto& all = hooks().all;
  for (auto h = all.rbegin(); h != all.rend(); ++h)
    if (h->child) h->child();
  hooks().lock.unlock();
}

// Makes fork() call the core. Cheap when it has been done.
void fork_install() {
  static std::atomic<bool> done{false};
  if (done.load(std::memory_order_acquire) || done.exchange(true)) return;
  hooks();
  pthread_atfork(prepare, parent, child);
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

}  // namespace adjoin
