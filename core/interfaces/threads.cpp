// core/interfaces/threads.cpp: what each thread is given when it first keeps something, and what is
// given back when it ends.
#include <pthread.h>

#include "core/base/tls.hpp"
#include "core/device/device.hpp"
#include "core/memory/memory.hpp"
#include "core/memory/small.hpp"
#include "core/op/autocast.hpp"
#include "core/plugin/crash.hpp"
#include "core/profile/profile.hpp"
#include "core/thread/fork.hpp"
#include "core/thread/pool.hpp"
#include "core/thread/quiet.hpp"

namespace adjoin {
namespace {

// A key of pthreads, because its destructor runs after those of thread_local objects, which may
// still free tensors.
pthread_key_t end_key;

void thread_end(void*) {
  autocast_thread_end();
  labels_end();
  tls.registered = 0;
  quiet_remove(&tls);
  for (FreeList& list : tls.small) list.limit = 0;
  memory_thread_end();
  small_thread_end();
  crash_stack_end();
}

int begin_threads() {
  pthread_key_create(&end_key, thread_end);
  fork_hook_add({kForkDevices, devices_fork_prepare, devices_fork_parent, devices_fork_child});
  fork_hook_add({kForkPool, pool_fork_prepare, pool_fork_parent, pool_fork_child});
  fork_hook_add({kForkMemory, memory_fork_prepare, memory_fork_parent, memory_fork_child});
  return 0;
}

}  // namespace

bool stack_ends() {
  constexpr uint64_t kPart =
      16;  // that of the whole which is left for what a last call needs, and for the sentence
  if (!tls.stack_room) {
    pthread_attr_t mine;
    void* begin = nullptr;
    size_t bytes = 0;
    tls.stack_room = 1;  // as long as nothing is known
    if (pthread_getattr_np(pthread_self(), &mine) != 0) return false;
    if (pthread_attr_getstack(&mine, &begin, &bytes) == 0) {
      tls.stack_low = reinterpret_cast<uint64_t>(begin) + bytes / kPart;
      tls.stack_room = bytes - bytes / kPart;
    }
    pthread_attr_destroy(&mine);
  }
  uint64_t above = tls.stack_low - reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  return above <= tls.stack_room / (kPart - 1);
}

void register_thread() {
  if (tls.registered) return;
  // A local static and not std::call_once, which keeps its state in thread-local storage of
  // libstdc++: built for the initial-exec model, we could then not be loaded after somebody else
  // had loaded libstdc++ late.
  [[maybe_unused]] static const int made = begin_threads();
  tls.registered = 1;
  for (FreeList& list : tls.small) list.limit = kSmallKeep;
  small_thread_begin();
  quiet_add(&tls);
  crash_stack_begin();
  pthread_setspecific(end_key, &tls);
}

}  // namespace adjoin
