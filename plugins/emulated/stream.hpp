// plugins/emulated/stream.hpp: a stream is a thread of the host that does its work in order; what
// goes wrong there is told to whoever waits next.
#ifndef ADJOIN_PLUGINS_EMULATED_STREAM_HPP
#define ADJOIN_PLUGINS_EMULATED_STREAM_HPP
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

struct aj_status;

namespace adjoin::emulated {

struct Work {
  std::function<aj_status*()> run;
  std::string what;    // the op that queued it, and the user's line
  bool counts = true;  // faults and delays may hit it
};

class Stream {
 public:
  explicit Stream(int32_t device) : device_(device) {}

  aj_status* submit(Work work, uint64_t* ticket = nullptr);
  void end();  // does what is queued and lets the thread go; events may still ask
  uint64_t queued();
  bool passed(uint64_t ticket);      // has everything up to that ticket been done?
  aj_status* wait(uint64_t ticket);  // for it; the errors so far, or that the deadline is over
  aj_status* take_error();
  int32_t device() const { return device_; }

 private:
  void loop();
  int32_t device_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Work> work_;
  std::string doing_;
  uint64_t queued_ = 0, done_ = 0;
  bool ends_ = false, runs_ = false;
  aj_status* error_ = nullptr;
  std::thread thread_;
};

struct Event {
  Stream* stream = nullptr;
  uint64_t ticket = 0;
  std::mutex lock;
  std::chrono::steady_clock::time_point when;
};

// NULL is the device's default stream.
Stream& stream_of(int32_t device, void* native);
aj_status* wait_for_device(int32_t device);

// After a fork nothing here works: the threads have stayed in the parent.
extern std::atomic<bool> poisoned;
aj_status* check_alive();

}  // namespace adjoin::emulated
#endif
