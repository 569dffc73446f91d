// core/thread/fork.hpp: what a fork has to hold still, and what its child has to put right.
#pragma once

namespace adjoin {

// Locks are taken outermost first.
enum ForkOrder { kForkLoader, kForkRegistry, kForkLeaf, kForkDevices, kForkPool, kForkMemory };

// prepare runs in the parent before the fork, parent and child after it.
struct ForkHook {
  ForkOrder order;
  void (*prepare)();
  void (*parent)();
  void (*child)();
};
void fork_hook_add(const ForkHook& hook);

}  // namespace adjoin
