// frontends/python/src/segment.cpp: blocks of shared memory, counted by who holds them.
#include "segment.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace adjoin::py {
namespace {

constexpr uint64_t kMagic = 0x31746e656d676573;  // "segment1"
constexpr int kPidBits = 24;
constexpr uint32_t kPidMask = (1u << kPidBits) - 1;
#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;
#endif

uint64_t page() {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

SegmentHeader* map(int descriptor, uint64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  return p == MAP_FAILED ? nullptr : static_cast<SegmentHeader*>(p);
}

// The text of a file of /proc, which is short.
bool read_text(const char* path, char* text, size_t room) {
  int f = open(path, O_RDONLY | O_CLOEXEC);
  if (f < 0) return false;
  ssize_t n = read(f, text, room - 1);
  ::close(f);
  if (n <= 0) return false;
  text[n] = 0;
  return true;
}

}  // namespace

uint64_t identity_of(uint32_t pid) {
  char path[40], text[1024];
  std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
  if (!read_text(path, text, sizeof text)) return 0;
  const char* at = std::strrchr(text, ')');  // the name before it may hold anything
  if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X') return 0;
  constexpr int kStartTime = 20;  // fields after the name
  for (int field = 0; field < kStartTime; ++field) {
    at = std::strchr(at + 1, ' ');
    if (!at) return 0;
  }
  return std::strtoull(at + 1, nullptr, 10) << kPidBits | (pid & kPidMask);
}

uint64_t own_identity() {
  static std::atomic<uint64_t> known{0};
  auto pid = static_cast<uint32_t>(getpid());
  uint64_t id = known.load();
  if (id && (id & kPidMask) == (pid & kPidMask)) return id;
  id = identity_of(pid);
  if (!id) id = pid & kPidMask;
  known.store(id);
  return id;
}

bool is_alive(uint64_t identity) {
  auto pid = static_cast<uint32_t>(identity & kPidMask);
  if (identity >> kPidBits == 0) return kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH;
  return identity_of(pid) == identity;
}

bool Segment::create(uint64_t bytes) {
  descriptor_ = memfd_create("adjoin", MFD_CLOEXEC);
  if (descriptor_ < 0) return false;
  if (ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0) header_ = map(descriptor_, bytes);
  bytes_ = bytes;
  if (!header_ || !populate(0, kFirstBlock) ||
      getrandom(header_->name, sizeof header_->name, 0) < 0) {
    int why = errno;
    close();
    errno = why;
    return false;
  }
  header_->magic = kMagic;
  header_->bytes = bytes;
  header_->top.store(kFirstBlock);
  header_->owner = own_identity();
  adopt_slot(reserve_slot());
  return true;
}

bool Segment::attach(int descriptor) {
  descriptor_ = descriptor;
  struct stat s;
  SegmentHeader begin;
  bool ours = fstat(descriptor, &s) == 0 &&
              pread(descriptor, &begin, sizeof begin, 0) == sizeof begin && begin.magic == kMagic &&
              begin.bytes == static_cast<uint64_t>(s.st_size);
  errno = ours ? errno : EBADF;
  bytes_ = ours ? begin.bytes : 0;
  header_ = ours ? map(descriptor, bytes_) : nullptr;
  uint32_t slot = header_ ? reserve_slot() : kSlots;
  if (slot < kSlots) return adopt_slot(slot), true;
  if (header_) errno = EUSERS;
  int why = errno;
  close();
  errno = why;
  return false;
}

void Segment::close() {
  if (header_) {
    uint64_t self = own_identity();
    if (header_->owner == self) header_->closed.store(1);
    if (slot_ < kSlots) header_->slots[slot_].compare_exchange_strong(self, 0);
    munmap(header_, bytes_);
  }
  if (descriptor_ >= 0) ::close(descriptor_);
  header_ = nullptr;
  descriptor_ = -1;
}

bool Segment::is_block(uint64_t offset) const {
  if (offset < kFirstBlock || offset % sizeof(BlockHeader) != 0 ||
      offset > bytes_ - sizeof(BlockHeader))
    return false;
  return block(offset).bytes <= bytes_ - offset - sizeof(BlockHeader);
}

void Segment::set(uint64_t offset, uint32_t slot, bool on) {
  if (slot >= kSlots) return;
  std::atomic<uint64_t>& word = block(offset).holders[slot / 64];
  uint64_t bit = uint64_t{1} << slot % 64;
  on ? word.fetch_or(bit) : word.fetch_and(~bit);
}

void Segment::start(uint64_t offset, uint64_t bytes, uint64_t room) {
  BlockHeader& b = block(offset);
  for (auto& word : b.holders) word.store(0);
  b.travelling.store(0);
  b.generation = header_->generation.fetch_add(1) + 1;
  b.bytes = bytes;
  b.room = room;
  if (offset + room > header_->top.load()) header_->top.store(offset + room);
  set(offset, slot_, true);
}

bool Segment::take(uint64_t offset, uint32_t generation) {
  BlockHeader& b = block(offset);
  uint32_t n = b.travelling.load();
  do {
    if (n == 0 || b.generation != generation) return false;
    set(offset, slot_, true);  // before the message's claim goes, so that it is never free between
  } while (!b.travelling.compare_exchange_weak(n, n - 1));
  return true;
}

bool Segment::is_free(uint64_t offset) const {
  const BlockHeader& b = block(offset);
  if (b.travelling.load()) return false;
  for (const auto& word : b.holders)
    if (word.load()) return false;
  return b.travelling.load() == 0;
}

bool Segment::is_alone(uint64_t offset) const {
  const BlockHeader& b = block(offset);
  if (b.travelling.load()) return false;
  for (uint32_t i = 0; i < kSlots / 64; ++i)
    if (b.holders[i].load() & ~(slot_ / 64 == i ? uint64_t{1} << slot_ % 64 : 0)) return false;
  return b.travelling.load() == 0;
}

uint32_t Segment::reserve_slot() {
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (uint32_t i = 0; i < kSlots; ++i) {
      uint64_t none = 0;
      if (header_->slots[i].compare_exchange_strong(none, own_identity())) return i;
    }
    if (reap() == 0) break;
  }
  return kSlots;
}

void Segment::adopt_slot(uint32_t slot) {
  slot_ = slot;
  if (slot < kSlots) header_->slots[slot].store(own_identity());
}

uint32_t Segment::reap() {
  uint64_t dead[kSlots / 64] = {};
  uint32_t found = 0;
  for (uint32_t i = 0; i < kSlots; ++i) {
    uint64_t who = header_->slots[i].load();
    if (who == 0 || i == slot_ || is_alive(who)) continue;
    // In our name meanwhile: nobody else clears it, and nobody takes it before it is clear.
    if (!header_->slots[i].compare_exchange_strong(who, own_identity())) continue;
    dead[i / 64] |= uint64_t{1} << i % 64;
    ++found;
  }
  uint64_t top = found ? header_->top.load() : 0;
  for (uint64_t at = kFirstBlock; at < top && is_block(at); at += block(at).room) {
    for (uint32_t i = 0; i < kSlots / 64; ++i) block(at).holders[i].fetch_and(~dead[i]);
    if (block(at).room == 0) break;
  }
  for (uint32_t i = 0; i < kSlots; ++i)
    if (dead[i / 64] >> i % 64 & 1) header_->slots[i].store(0);
  return found;
}

bool Segment::populate(uint64_t offset, uint64_t bytes) {
  uint64_t from = offset / page() * page();
  uint64_t to = (offset + bytes + page() - 1) / page() * page();
  if (to > bytes_) return errno = ENOSPC, false;
  if (madvise(address() + from, to - from, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;  // a kernel before 5.14: pages are made now and mapped later
  int failed =
      posix_fallocate(descriptor_, static_cast<off_t>(from), static_cast<off_t>(to - from));
  return failed ? errno = failed, false : true;
}

void Segment::punch(uint64_t offset, uint64_t bytes) {
  uint64_t from = (offset + page() - 1) / page() * page();
  uint64_t to = (offset + bytes) / page() * page();
  if (from < to) madvise(address() + from, to - from, MADV_REMOVE);
}

}  // namespace adjoin::py
