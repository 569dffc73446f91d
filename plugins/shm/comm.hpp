// plugins/shm/comm.hpp: a communicator: whoever waits moves the bytes; a thread does it where
// nobody waits.
#pragma once

#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "region.hpp"
#include "rounds.hpp"

namespace adjoin::shm {

struct Job {
  std::vector<kit::comm::Request> parts;
  size_t part = 0;                 // the one that goes on
  std::unique_ptr<Rounds> rounds;  // of a collective
  bool given = false;              // in this round
  size_t moved = 0;                // bytes of a transfer
  int mail = -1;                   // that a send has taken
  bool started = false;            // a letter of this part was written
  enum { running, done, failed } state = running;
};

class State {
 public:
  State(const aj_comm_config& config);
  bool open();
  void start(const std::shared_ptr<Job>& job);
  bool wait(Job& job, int64_t timeout_ms);  // raises when it failed
  void abort(const std::string& why);
  void finish(int64_t timeout_ms);  // what is running
  void serve();                     // the thread
  void close();

 private:
  void advance();
  bool advance(Job& job);
  bool round(Job& job, const kit::comm::Request& r);
  bool send(Job& job, const kit::comm::Request& r);
  bool receive(Job& job, const kit::comm::Request& r);
  bool look(const Job& job) const;

  std::mutex lock_;
  std::condition_variable changed_;
  Region region_;
  const int rank_, size_;
  const bool spins_;
  uint64_t round_ = 1;  // of the communicator, from its first collective on
  std::deque<std::shared_ptr<Job>> queue_;
  std::list<std::shared_ptr<Job>> transfers_;
  bool mail_taken_[kMails] = {};
  int waiting_ = 0;
  bool closing_ = false;
  std::string why_;  // it failed
};

class Comm {
 public:
  static constexpr const char* kName = "shm";
  static void caps(aj_comm_caps& io);
  explicit Comm(const aj_comm_config& config);
  ~Comm() { close(0); }

  class Work {
   public:
    Work(std::shared_ptr<State> state, std::shared_ptr<Job> job)
        : state_(std::move(state)), job_(std::move(job)) {}
    bool test() { return state_->wait(*job_, 0); }
    bool wait(int64_t timeout_ms) { return state_->wait(*job_, timeout_ms); }

   private:
    std::shared_ptr<State> state_;
    std::shared_ptr<Job> job_;
  };

  bool ready() { return state_->open(); }
  std::unique_ptr<Work> start(const aj_coll* c, uint32_t n);
  void abort(const std::string& why) { state_->abort(why); }
  void close(int64_t timeout_ms);

 private:
  std::shared_ptr<State> state_;
  const int size_;
  std::thread thread_;
};

}  // namespace adjoin::shm
