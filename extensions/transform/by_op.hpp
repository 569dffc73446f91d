// extensions/transform/by_op.hpp: what is known of an op, found at its first call.
#pragma once
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "level.hpp"

namespace adjoin::transform {

// What make(op, into) finds, once until a plugin comes or goes. What was known before stays: calls
// that run hold it. Each thread remembers the ops that it met.
template <class T, auto make>
const T& known_of(const aj_op* op) {
  struct Known {
    std::shared_mutex lock;
    std::unordered_map<const aj_op*, T*> ops;
    uint64_t revision = 0;  // of the services: rules may have come
    const T& find(const aj_op* op, uint64_t now) {
      {
        std::shared_lock guard(lock);
        auto it = ops.find(op);
        if (it != ops.end() && revision == now) return *it->second;
      }
      auto made = std::make_unique<T>();
      make(op, *made);  // asks for services, which may load a plugin: without the lock
      std::unique_lock guard(lock);
      if (revision != now) {
        ops.clear();
        revision = now;
      }
      T*& kept = ops[op];
      if (!kept) kept = made.release();
      return *kept;
    }
  };
  static auto& known = *new Known;
  struct Slot {
    const aj_op* op;
    const T* of;
    uint64_t revision;
  };
  static thread_local Slot slots[64];
  const uint64_t now = services().revision();
  const auto address = reinterpret_cast<uintptr_t>(op);
  Slot& slot = slots[(address >> 6 ^ address >> 12) & 63];
  if (slot.op != op || slot.revision != now) slot = {op, &known.find(op, now), now};
  return *slot.of;
}

}  // namespace adjoin::transform
