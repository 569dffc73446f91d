// plugins/shm/region.hpp: memory that the processes of a communicator share, and what lies in it.
// Nobody holds a lock there: who dies leaves nothing behind.
#pragma once

#include <adjoin/abi/comm.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace adjoin::shm {

constexpr size_t kHalf = 512 * 1024;  // bytes that a process gives in a round
constexpr size_t kLetter = 16 * 1024;
constexpr uint32_t kMails = 64;  // messages of a process that are on their way at once

using Word = std::atomic<uint32_t>;
static_assert(Word::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

struct alignas(64) Progress {   // of a process; it alone writes here
  std::atomic<uint64_t> ready;  // rounds whose part lies in its half
  std::atomic<uint64_t> read;   // rounds of which it has all that it needs
  uint64_t agreed[2];           // what the rounds in its halves are part of
};

struct alignas(32) Mail {  // one letter of a message, then the next one
  Word full;               // the sender sets it, the receiver clears it
  int32_t to;
  uint32_t tag, bytes;
};

// A bell that rings in all processes: a number that grows, and a wait for the next one.
class Bell {
 public:
  explicit Bell(Word* words = nullptr) : count_(words), waiting_(words + 1) {}
  uint32_t seen() const { return count_->load(); }
  void ring();
  void wait(uint32_t seen, int64_t us);

 private:
  Word *count_, *waiting_;
};

class Region {
 public:
  Region(const aj_comm_config& config);
  ~Region();
  Region(const Region&) = delete;
  // Whether it is there; never waits. Raises why it can never be.
  bool open();
  bool is_open() const { return base_ != nullptr; }

  Progress& progress(int rank) const;
  char* half(int rank, uint64_t round) const;
  Mail& mail(int rank, uint32_t i) const;
  char* letter(int rank, uint32_t i) const;
  Bell& bell() { return bell_; }

 private:
  void map(int descriptor);
  void offer();
  void come_to(const std::string& place);

  const aj_store* store_;
  const std::string key_;
  const int rank_, size_;
  const int64_t until_;
  int64_t asked_ = 0;
  int descriptor_ = -1;
  size_t bytes_ = 0;
  char* base_ = nullptr;
  Bell bell_;
};

int64_t now_us();

}  // namespace adjoin::shm
