// core/thread/fork.hpp: what a fork has to hold still, and what its child has to put right.
#pragma once

namespace adjoin {

// Locks are taken outermost first. Added hooks come before those of devices, the pool and memory.
enum ForkOrder { kForkLoader, kForkRegistry, kForkLeaf };

// prepare runs in the parent before the fork, parent and child after it.
struct ForkHook {
  ForkOrder order;
  void (*prepare)();
  void (*parent)();
  void (*child)();
};
void fork_hook_add(const ForkHook& hook);

// Makes fork() call the core. Cheap when it has been done.
void fork_install();

}  // namespace adjoin
