// core/memory/small.hpp: blocks of at most 1 KiB (tensors, nodes) from per-thread free lists; no
// lock in the common case.
#pragma once
#include "core/base/tls.hpp"

namespace adjoin {

constexpr uint32_t kSmallSize[kSmallClasses] = {64, 128, 192, 256, 384, 512, 768, 1024};
constexpr uint32_t kSmallMax = 1024;
constexpr uint32_t kSmallKeep =
    1024;  // entries per class and thread; above, half goes to the central list

// By the number of 64 bytes that are begun.
constexpr uint8_t kSmallClass[kSmallMax / 64 + 1] = {0, 0, 1, 2, 3, 4, 4, 5, 5,
                                                     6, 6, 6, 6, 7, 7, 7, 7};
inline int small_class(uint32_t bytes) { return kSmallClass[(bytes + 63) / 64]; }

// AddressSanitizer sees each block only when it comes from malloc.
#if defined(__SANITIZE_ADDRESS__) && !defined(ADJOIN_SMALL_LISTS)
constexpr bool kSmallLists = false;
#elif defined(__has_feature) && !defined(ADJOIN_SMALL_LISTS)
#if __has_feature(address_sanitizer)
constexpr bool kSmallLists = false;
#else
constexpr bool kSmallLists = true;
#endif
#else
constexpr bool kSmallLists = true;
#endif

// 64-byte aligned; never NULL unless the system has no memory (the caller reports it).
void* small_refill(int cls);   // takes a batch from the central list or the system
void small_overflow(int cls);  // gives half of this thread's list back
void small_system_free(void* p);

// The stores below are ordered and whole: a fork may photograph this thread between any two of
// them, and its child walks the list; memory_stats reads the count from elsewhere.
inline void* small_alloc(int cls) {
  FreeList& list = tls.small[cls];
  void* p = list.head;
  if (__builtin_expect(!p, 0)) return small_refill(cls);
  __atomic_store_n(&list.head, *static_cast<void**>(p), __ATOMIC_RELEASE);
  __atomic_store_n(&list.count, list.count - 1, __ATOMIC_RELAXED);
  return p;
}

inline void small_free(int cls, void* p) {
  if constexpr (!kSmallLists) return small_system_free(p);
  FreeList& list = tls.small[cls];
  *static_cast<void**>(p) = list.head;
  __atomic_store_n(&list.head, p, __ATOMIC_RELEASE);
  uint32_t count = list.count + 1;
  __atomic_store_n(&list.count, count, __ATOMIC_RELAXED);
  if (__builtin_expect(count > list.limit, 0)) small_overflow(cls);
}

uint64_t small_in_use();    // bytes of blocks that are not in any list
uint64_t small_reserved();  // bytes taken from the system
uint64_t
small_trim();  // empty pages of the central lists go back to the system; returns their bytes
void small_thread_begin();  // the lists of this thread are known to the others
void small_thread_end();    // they go to the central ones
void small_fork_prepare();
void small_fork_parent();
void small_fork_child();

}  // namespace adjoin
