// core/memory/small.cpp: where the per-thread lists of small blocks are filled from and emptied to.
//
// A central list per class holds batches: chains of blocks whose first block also names the next
// batch and its own length, so a whole batch changes hands in one exchange. Fresh blocks are cut
// from spans of 1 MiB.
#include "core/memory/small.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace adjoin {
namespace {

constexpr uint64_t kSpan = 1 << 20;
constexpr uint32_t kBatch = kSmallKeep / 2;

struct Batch {  // the first words of a batch's first block
  void* next_block;
  Batch* next_batch;
  uint32_t count;
};
static_assert(sizeof(Batch) <= kSmallSize[0]);

struct Central {
  std::mutex lock;
  Batch* batches = nullptr;
  char* bump = nullptr;  // the rest of the span that is being cut
  char* end = nullptr;
  uint64_t free_blocks = 0, cut_blocks = 0;
};
Central central[kSmallClasses];

// Not std::mutex-protected vectors with destructors: threads may end after static objects are gone.
struct Shared {
  std::mutex lock;
  std::vector<Tls*> threads;
  std::vector<char*> spare;  // spans that were emptied; their addresses stay ours
  uint64_t spans = 0;
};
Shared& shared() {
  static auto* s = new Shared;
  return *s;
}

char* new_span() {
  Shared& s = shared();
  std::lock_guard held(s.lock);
  if (!s.spare.empty()) {
    char* p = s.spare.back();
    s.spare.pop_back();
    s.spans++;
    return p;
  }
  void* p = mmap(nullptr, 2 * kSpan, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  auto at = reinterpret_cast<uintptr_t>(p), aligned = (at + kSpan - 1) & ~(kSpan - 1);
  if (aligned > at) munmap(p, aligned - at);
  munmap(reinterpret_cast<void*>(aligned + kSpan), at + kSpan - aligned);
  s.spans++;
  return reinterpret_cast<char*>(aligned);
}

void push_batch(Central& c, void* first, uint32_t count) {
  auto* b = static_cast<Batch*>(first);
  b->next_batch = c.batches;
  b->count = count;
  c.batches = b;
  c.free_blocks += count;
}

// A fresh chain of a few pages: linking more would touch memory that nobody has asked for.
void* cut(int cls, Central& c, uint32_t* count) {
  uint32_t size = kSmallSize[cls];
  if (c.end - c.bump < ptrdiff_t(size)) {
    c.bump = new_span();
    if (!c.bump) return c.end = nullptr;
    c.end = c.bump + kSpan;
  }
  uint32_t n = std::min<uint64_t>(uint64_t(c.end - c.bump) / size, std::max(16u, 16384 / size));
  char* first = c.bump;
  for (uint32_t i = 0; i < n; i++)
    *reinterpret_cast<void**>(first + i * size) = i + 1 < n ? first + (i + 1) * size : nullptr;
  c.bump += uint64_t(n) * size;
  c.cut_blocks += n;
  *count = n;
  return first;
}

// Takes a list away from its thread (this one, or one that a fork left behind) in batches.
void adopt(int cls, FreeList& list) {
  Central& c = central[cls];
  while (void* first = list.head) {
    void* last = first;
    uint32_t n = 1;
    while (n < kBatch && *static_cast<void**>(last)) last = *static_cast<void**>(last), n++;
    list.head = *static_cast<void**>(last);
    *static_cast<void**>(last) = nullptr;
    push_batch(c, first, n);
  }
  __atomic_store_n(&list.count, 0u, __ATOMIC_RELAXED);
}

// Blocks of spans that are free as a whole leave the list. Wants the lock.
uint64_t trim_class(int cls) {
  Central& c = central[cls];
  uint64_t per_span = kSpan / kSmallSize[cls];
  auto span_of = [](void* p) {
    return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(p) & ~(kSpan - 1));
  };
  char* cutting = c.bump == c.end ? nullptr : span_of(c.bump);
  std::unordered_map<char*, uint64_t> free_in;
  std::vector<void*> blocks;
  blocks.reserve(c.free_blocks);
  for (Batch* b = c.batches; b; b = b->next_batch)
    for (void* p = b; p; p = *static_cast<void**>(p)) blocks.push_back(p), free_in[span_of(p)]++;
  auto whole = [&](char* span) { return span != cutting && free_in[span] == per_span; };
  c.batches = nullptr;
  c.free_blocks = 0;
  FreeList rest{};
  for (void* p : blocks)
    if (!whole(span_of(p))) *static_cast<void**>(p) = rest.head, rest.head = p;
  adopt(cls, rest);
  uint64_t bytes = 0;
  for (auto& [span, n] : free_in) {
    if (!whole(span)) continue;
    madvise(span, kSpan, MADV_DONTNEED);
    c.cut_blocks -= per_span;
    bytes += kSpan;
    std::lock_guard held(shared().lock);
    shared().spare.push_back(span);
    shared().spans--;
  }
  return bytes;
}

}  // namespace

void* small_refill(int cls) {
  if constexpr (!kSmallLists) return std::aligned_alloc(64, kSmallSize[cls]);
  register_thread();
  Central& c = central[cls];
  std::lock_guard held(c.lock);
  void* first;
  uint32_t count;
  if (Batch* b = c.batches) {
    c.batches = b->next_batch;
    count = b->count;
    c.free_blocks -= count;
    first = b;
  } else {
    first = cut(cls, c, &count);
    if (!first) return nullptr;
  }
  FreeList& list = tls.small[cls];
  __atomic_store_n(&list.head, *static_cast<void**>(first), __ATOMIC_RELEASE);
  __atomic_store_n(&list.count, count - 1, __ATOMIC_RELAXED);
  return first;
}

void small_overflow(int cls) {
  FreeList& list = tls.small[cls];
  if (!list.limit) register_thread();
  if (list.count <= list.limit) return;
  void* first = list.head;
  void* last = first;
  for (uint32_t i = 1; i < kBatch; i++) last = *static_cast<void**>(last);
  __atomic_store_n(&list.head, *static_cast<void**>(last), __ATOMIC_RELEASE);
  __atomic_store_n(&list.count, list.count - kBatch, __ATOMIC_RELAXED);
  *static_cast<void**>(last) = nullptr;
  std::lock_guard held(central[cls].lock);
  push_batch(central[cls], first, kBatch);
}

void small_system_free(void* p) { std::free(p); }

uint64_t small_in_use() {
  int64_t blocks[kSmallClasses];
  for (int cls = 0; cls < kSmallClasses; cls++) {
    Central& c = central[cls];
    std::lock_guard held(c.lock);
    blocks[cls] = int64_t(c.cut_blocks) - int64_t(c.free_blocks);
  }
  uint64_t bytes = 0;
  std::lock_guard held(shared().lock);
  for (int cls = 0; cls < kSmallClasses; cls++) {
    for (Tls* t : shared().threads)
      blocks[cls] -= __atomic_load_n(&t->small[cls].count, __ATOMIC_RELAXED);
    bytes += uint64_t(std::max<int64_t>(blocks[cls], 0)) * kSmallSize[cls];
  }
  return bytes;
}

uint64_t small_reserved() {
  std::lock_guard held(shared().lock);
  return shared().spans * kSpan;
}

uint64_t small_trim() {
  uint64_t bytes = 0;
  for (int cls = 0; cls < kSmallClasses; cls++) {
    std::lock_guard held(central[cls].lock);
    adopt(cls, tls.small[cls]);
    bytes += trim_class(cls);
  }
  return bytes;
}

void small_thread_begin() {
  std::lock_guard held(shared().lock);
  shared().threads.push_back(&tls);
}

void small_thread_end() {
  for (int cls = 0; cls < kSmallClasses; cls++) {
    std::lock_guard held(central[cls].lock);
    adopt(cls, tls.small[cls]);
  }
  std::lock_guard held(shared().lock);
  std::erase(shared().threads, &tls);
}

void small_fork_prepare() {
  for (Central& c : central) c.lock.lock();
  shared().lock.lock();
}

void small_fork_parent() {
  shared().lock.unlock();
  for (Central& c : central) c.lock.unlock();
}

void small_fork_child() {
  for (Tls* t : shared().threads)
    if (t != &tls)
      for (int cls = 0; cls < kSmallClasses; cls++) adopt(cls, t->small[cls]);
  shared().threads.clear();
  if (tls.registered) shared().threads.push_back(&tls);
  small_fork_parent();
}

}  // namespace adjoin
