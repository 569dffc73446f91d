// frontends/python/src/segment.hpp: a piece of memory without a name that several processes map,
// and who uses which part.
//
// One process, the owner, hands out blocks of it; any process may use and pass on a block. Each
// process has a slot with its identity in the header, each block a bit per slot: what processes
// held that are dead can be found and taken back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace adjoin::py {

constexpr uint32_t kSlots = 256;

struct BlockHeader {  // stands before a block's bytes
  std::atomic<uint64_t> holders[kSlots / 64];
  std::atomic<uint32_t> travelling;  // messages on their way that name the block
  uint32_t generation;               // which use of this place it is
  uint64_t bytes;
  uint64_t room;  // from this header to the next
  uint64_t unused;
};
static_assert(sizeof(BlockHeader) == 64);

struct SegmentHeader {
  uint64_t magic;
  uint64_t name[2];  // random
  uint64_t bytes;
  uint64_t owner;  // an identity
  std::atomic<uint32_t> closed;
  std::atomic<uint32_t> generation;
  std::atomic<uint64_t> top;  // end of the last block
  std::atomic<uint64_t> slots[kSlots];
};
constexpr uint64_t kFirstBlock = 4096;
static_assert(sizeof(SegmentHeader) <= kFirstBlock);

// Process number and time of its start, which together name a process once. identity_of is 0 if it
// has ended.
uint64_t identity_of(uint32_t pid);
uint64_t own_identity();  // only the number where /proc cannot be read
bool is_alive(uint64_t identity);

class Segment {
 public:
  // errno says why it failed.
  bool create(uint64_t bytes);
  bool attach(int descriptor);  // takes the descriptor, also on failure
  void close();
  ~Segment() { close(); }

  bool open() const { return header_ != nullptr; }
  int descriptor() const { return descriptor_; }
  char* address() const { return reinterpret_cast<char*>(header_); }
  uint64_t bytes() const { return bytes_; }
  const SegmentHeader& header() const { return *header_; }
  bool owner_alive() const { return !header_->closed.load() && is_alive(header_->owner); }

  BlockHeader& block(uint64_t offset) const {
    return *reinterpret_cast<BlockHeader*>(address() + offset);
  }
  char* data(uint64_t offset) const { return address() + offset + sizeof(BlockHeader); }
  // Is there room for a block at the offset, by its place and by what its header says?
  bool is_block(uint64_t offset) const;

  // Of the owner: a block that this process holds. Blocks lie one behind the other; a place keeps
  // its room.
  void start(uint64_t offset, uint64_t bytes, uint64_t room);
  bool take(uint64_t offset,
            uint32_t generation);  // a message arrived: holds the block; false: it is gone
  void hold(uint64_t offset, uint32_t slot) { set(offset, slot, true); }
  void drop(uint64_t offset) { set(offset, slot_, false); }
  bool is_free(uint64_t offset) const;
  bool is_alone(uint64_t offset) const;  // this process holds it, and nobody else
  // A slot for a child that is about to be forked, in this process's name until the child adopts
  // it; kSlots: none is left.
  uint32_t reserve_slot();
  void adopt_slot(uint32_t slot);
  // Takes back what dead processes held; how many there were. Any process may.
  uint32_t reap();

  bool populate(uint64_t offset,
                uint64_t bytes);  // memory is there afterwards, or it fails: no SIGBUS later
  void punch(uint64_t offset, uint64_t bytes);  // whole pages inside go back to the system

 private:
  void set(uint64_t offset, uint32_t slot, bool on);

  SegmentHeader* header_ = nullptr;
  uint64_t bytes_ = 0;
  int descriptor_ = -1;
  uint32_t slot_ = kSlots;
};

}  // namespace adjoin::py
