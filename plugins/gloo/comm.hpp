// plugins/gloo/comm.hpp: a communicator over Gloo, and its works.
#pragma once

#include <adjoin/abi/comm.h>
#include <gloo/rendezvous/context.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace adjoin::gloo_engine {

using Context = std::shared_ptr<::gloo::rendezvous::Context>;

// One collective in Gloo's words, on the calling thread, until it is done.
void run_collective(const Context& context, const aj_coll& c);
// One send or receive.
void run_transfer(const Context& context, const aj_coll& c);

struct Job {
  std::vector<aj_coll> collectives;
  std::vector<std::vector<uint64_t>> counts;  // what they point to
  enum { running, done, failed } state = running;
  std::string why;
};

// What the threads of a communicator share; it outlives the communicator where a thread does not
// come back from Gloo.
struct Shared {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> queue;
  std::vector<std::weak_ptr<Job>> all;  // those that may not be done
  Context context;
  bool connected = false, closing = false, aborted = false, ended = false;
  std::string why;  // it failed

  void finish(Job& j, bool good, const std::string& text);
  void fail_all(const std::string& text);
};

class Comm {
 public:
  static constexpr const char* kName = "gloo";
  static void caps(aj_comm_caps& io);
  explicit Comm(const aj_comm_config& config);
  ~Comm();

  struct Work {
    std::shared_ptr<Shared> shared;
    std::shared_ptr<Job> job;
    bool test() { return wait(0); }
    bool wait(int64_t timeout_ms);
  };

  bool ready();
  std::unique_ptr<Work> start(const aj_coll* c, uint32_t n);
  void abort(const std::string& why);
  void close(int64_t timeout_ms);

 private:
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
  int size_;
};

}  // namespace adjoin::gloo_engine
