// core/memory/small.hpp: blocks of at most 1 KiB (tensors, nodes) from per-thread free lists; no lock in the common case.
#pragma once
#include "core/tls.hpp"

namespace adjoin {

constexpr uint32_t kSmallSize[kSmallClasses] = {64, 128, 192, 256, 384, 512, 768, 1024};
constexpr uint32_t kSmallMax = 1024;
constexpr uint32_t kSmallKeep = 1024;  // entries per class and thread; above, half goes to the central list

inline int small_class(uint32_t bytes) {
  if (bytes <= 256) return bytes <= 64 ? 0 : int((bytes + 63) / 64) - 1;
  return bytes <= 384 ? 4 : bytes <= 512 ? 5 : bytes <= 768 ? 6 : 7;
}

// 64-byte aligned; never NULL unless the system has no memory (the caller reports it).
void* small_refill(int cls);            // takes a batch from the central list or the system
void small_overflow(int cls);           // gives half of this thread's list back

inline void* small_alloc(int cls) {
  FreeList& list = tls.small[cls];
  void* p = list.head;
  if (__builtin_expect(p != nullptr, 1)) {
    list.head = *static_cast<void**>(p);
    list.count--;
    return p;
  }
  return small_refill(cls);
}

inline void small_free(int cls, void* p) {
  FreeList& list = tls.small[cls];
  *static_cast<void**>(p) = list.head;
  list.head = p;
  if (__builtin_expect(++list.count > kSmallKeep, 0)) small_overflow(cls);
}

}  // namespace adjoin
