// plugins/simulated/hall.hpp: where the threads of one communicator meet.
#pragma once

#include <adjoin/kit/collective.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

namespace adjoin::simulated {

using Clock = std::chrono::steady_clock;

// Wakes one process. Each has its own: thousands that wake at one lock would stand in line there.
struct Bell {
  std::mutex lock;
  std::condition_variable rings;
  void ring();
};

// Some who do the same thing together; whoever comes last does it for all.
struct Meeting {
  struct Guest {
    std::unique_ptr<kit::comm::Request> wants;
    std::shared_ptr<Bell> bell;
  };
  std::vector<Guest> who;  // by rank; of a transfer in the order of coming
  size_t come = 0;
  Clock::time_point at;  // when the bytes have arrived, by the model
  std::atomic<bool> done = false;
};

class Hall {
 public:
  explicit Hall(int size) : size_(size) {}
  // The hall of that name for so many; all who ask for it stand in the same one.
  static std::shared_ptr<Hall> of(const std::string& name, int size);

  std::shared_ptr<Meeting> come(int rank, const aj_coll& c, const std::shared_ptr<Bell>& bell);
  // Nobody will read or write this one's memory any more. Unless the meeting has been held, it
  // never will be.
  void give_up(const std::shared_ptr<Meeting>& m);

 private:
  using Key = std::tuple<bool, uint64_t, uint32_t>;  // transfer, seq, fingerprint
  const int size_;
  std::mutex lock_;
  std::map<Key, std::shared_ptr<Meeting>> open_;
  Clock::time_point free_ = {};  // when the wire is
};

}  // namespace adjoin::simulated
