// core/plugin/hot/watch.cpp: a thread that looks, now and then, at what each thread says of itself
// in any case: the kernel it runs, or the function of a device's table, and how many it has run.
#include "core/plugin/watch.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <system_error>
#include <thread>

#include "core/base/log.hpp"
#include "core/op/op.hpp"
#include "core/thread/quiet.hpp"

namespace adjoin {
namespace {

using Clock = std::chrono::steady_clock;

struct Seen {
  uint32_t kernels = 0;
  Clock::time_point since;
  bool told = false;
};

void look(Tls* thread, void* with) {
  auto& all = *static_cast<std::map<Tls*, Seen>*>(with);
  const Kernel* k = __atomic_load_n(&thread->running_kernel, __ATOMIC_RELAXED);
  const aj_op* op = __atomic_load_n(&thread->running_op, __ATOMIC_RELAXED);
  const char* function = __atomic_load_n(&thread->device_call, __ATOMIC_ACQUIRE);
  const char* plugin = __atomic_load_n(&thread->device_plugin, __ATOMIC_RELAXED);
  uint32_t kernels = __atomic_load_n(&thread->kernels, __ATOMIC_RELAXED);
  if (!function || !plugin) function = plugin = nullptr;
  auto [at, fresh] = all.try_emplace(thread);
  Seen& seen = at->second;
  if (fresh || (!function && (!k || !op)) || seen.kernels != kernels) {
    seen = {kernels, Clock::now(), false};
    return;
  }
  auto waited =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - seen.since).count();
  if (seen.told || waited < patience_ns() || (!function && k->provider.empty())) return;
  seen.told = true;
  std::string who = function ? text("plugin '", plugin, "': its ", function)
                             : text("plugin '", k->provider, "' on ", k->key, ": its kernel");
  std::string line =
      text("adjoin: ", op ? op->schema.name + ": " : "", who, " has been running for ",
           waited / 1'000'000'000, " s and has not come back yet\n");
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) seen.told = true;
}

void watch() {
  register_thread();  // who unmaps a plugin has to know every thread
  std::map<Tls*, Seen> seen;
  for (auto pause = std::chrono::nanoseconds(std::min<int64_t>(patience_ns() / 4, 1'000'000'000));
       ;) {
    std::this_thread::sleep_for(pause);
    each_thread(look, &seen);
  }
}

}  // namespace

void watch_kernels() {
  static std::atomic<bool> started{false};
  if (patience_ns() == 0 || started.exchange(true)) return;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // the program's signals are not for it
  try {
    std::thread(watch).detach();
  } catch (const std::system_error&) {  // no thread to be had: then nobody warns
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

}  // namespace adjoin
