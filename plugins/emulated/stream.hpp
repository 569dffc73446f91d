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
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct aj_status;

namespace adjoin::emulated {

struct Work {
  std::function<aj_status*()> run;
  std::string what;    // the op that queued it
  bool counts = true;  // faults and delays may hit it
  std::string where;   // the user's line that queued it
};

// What was captured: may be run again and again.
struct Graph {
  int32_t device;
  std::vector<Work> work;
};

class Stream {
 public:
  explicit Stream(int32_t device) : device_(device) {}

  aj_status* submit(Work work, uint64_t* ticket = nullptr);
  aj_status* end();  // does what is queued and lets the thread go; events may still ask
  uint64_t queued();
  bool passed(uint64_t ticket);  // has everything up to that ticket been done?
  // The same for somebody who asks again and again instead of waiting: the deadline holds for him,
  // too.
  aj_status* ask(uint64_t ticket, int32_t* done);
  // For a ticket; what went wrong until then, or that the deadline is over. Who only looks leaves
  // an error for the next one who waits for the stream.
  enum class Errors { take, look, leave };
  aj_status* wait(uint64_t ticket, Errors errors = Errors::take);
  aj_status* take_error();
  aj_status* look_at_error(uint64_t ticket);  // a copy, of what went wrong until then
  aj_status* capture();
  aj_status* end_capture(Graph** out);
  bool captures();
  int32_t device() const { return device_; }

 private:
  void loop();
  aj_status* start();
  aj_status* look(uint64_t ticket) const;  // wants the lock
  aj_status* late(int64_t ms) const;       // likewise
  int32_t device_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Work> work_;
  std::string doing_;
  uint64_t queued_ = 0, done_ = 0;
  uint64_t asked_at_ =
      0;  // done_ + 1 when somebody first heard that it is not enough; 0: nobody has asked
  std::chrono::steady_clock::time_point asked_;
  bool ends_ = false, runs_ = false;
  aj_status* error_ = nullptr;
  uint64_t error_at_ = 0;
  std::unique_ptr<Graph> capture_;
  std::thread thread_;
};

// The moment at which a mark was passed; the stream stamps it, whether or not the event lives.
struct Stamp {
  std::mutex lock;
  std::chrono::steady_clock::time_point when;
};
struct Event {
  Stream* stream = nullptr;
  uint64_t ticket = 0;
  std::shared_ptr<Stamp> stamp;
};

// NULL is the device's default stream.
Stream& stream_of(int32_t device, void* native);
aj_status* wait_for_device(int32_t device, Stream::Errors errors = Stream::Errors::take);

// After a fork nothing here works: the threads have stayed in the parent.
extern std::atomic<bool> poisoned;
aj_status* check_alive();

}  // namespace adjoin::emulated
#endif
