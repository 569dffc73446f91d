// plugins/nccl/comm.hpp: a communicator over NCCL, and its works.
#pragma once

#include <adjoin/abi/comm.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nccl.hpp"

namespace adjoin::nccl_engine {

// What a collective needs to be queued.
struct Context {
  Handle handle = nullptr;
  int rank = 0, size = 0;
  Stream stream = nullptr;
  void* scratch = nullptr;  // 16 bytes of the device
};
// Queues one collective; kInProgress: NCCL is not done with queueing.
Result queue_collective(const Context& context, const aj_coll& c);
void capabilities(aj_comm_caps& io);

struct Shared;

struct Job {
  std::vector<aj_coll> collectives;
  std::vector<std::vector<uint64_t>> counts;  // what they point to
  Event before = nullptr;                     // what the caller has queued until now
  Event after = nullptr;                      // it is done
  enum { waiting, queued, done, failed } state = waiting;
  std::string why;
};

// What the threads of a communicator share; it outlives the communicator where NCCL does not come
// back.
struct Shared {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> queue;
  std::vector<std::weak_ptr<Job>> all;  // those that may not be done
  Context context;
  int32_t device = 0;
  bool connected = false, closing = false, aborted = false, ended = false;
  bool inside = false;  // a call that may not come back
  std::string why;      // it failed

  void finish(Job& j, bool good, const std::string& text);
  void fail_all(const std::string& text);
};

class Comm {
 public:
  static constexpr const char* kName = kEngine;
  static void caps(aj_comm_caps& io) { capabilities(io); }
  explicit Comm(const aj_comm_config& config);
  ~Comm();

  struct Work {
    std::shared_ptr<Shared> shared;
    std::shared_ptr<Job> job;
    bool test();
    bool wait(int64_t timeout_ms);
    ~Work();
  };

  bool ready();
  std::unique_ptr<Work> start(const aj_coll* c, uint32_t n);
  void abort(const std::string& why);
  void close(int64_t timeout_ms);

 private:
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace adjoin::nccl_engine
