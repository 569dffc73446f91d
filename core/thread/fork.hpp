// core/thread/fork.hpp: what a fork has to hold still, and what its child has to put right.
#pragma once

namespace adjoin {

// prepare runs in the parent before, parent and child after the fork. A later one prepares earlier: locks that are taken
// outside others are added last. To be called before threads need the lock, usually at the load of libadjoin.
struct ForkHook {
  void (*prepare)();
  void (*parent)();
  void (*child)();
};
void fork_hook_add(const ForkHook& hook);

// Makes fork() call the core: devices, the pool, memory, added hooks. Cheap when it has been done.
void fork_install();

}  // namespace adjoin
