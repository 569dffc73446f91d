// plugins/mpi/comm.hpp: a communicator over MPI. One thread of the process is ever inside MPI.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "calls.hpp"

namespace adjoin::mpi {

struct Job {
  std::vector<kit::comm::Request> parts;
  size_t part = 0;
  std::unique_ptr<Call> call;
  enum { running, done, failed } state = running;
  std::string why;
};

struct Meeting {  // what a communicator is made of
  int rank, size;
  std::string name;
  const aj_store* store;
  std::chrono::steady_clock::time_point until;
};

struct State {  // of a communicator
  const Meeting meeting;
  // Of all threads, under the engine's lock.
  std::deque<std::shared_ptr<Job>> incoming;
  std::vector<std::weak_ptr<Job>> all;  // those that may not be done
  bool connected = false, closing = false, closed = false;
  std::string why;  // it failed
  // Of MPI's thread.
  std::vector<int> world;  // the members' ranks in MPI's world, as far as they are known
  MPI_Comm comm = MPI_COMM_NULL;
  bool told = false, met = false;
  std::deque<std::shared_ptr<Job>> queue;
  std::list<std::shared_ptr<Job>> transfers;
};

class Engine;

class Comm {
 public:
  static constexpr const char* kName = "mpi";
  static void caps(aj_comm_caps& io);
  explicit Comm(const aj_comm_config& config);

  class Work {
   public:
    Work(std::shared_ptr<State> state, std::shared_ptr<Job> job)
        : state_(std::move(state)), job_(std::move(job)) {}
    bool test() { return wait(0); }
    bool wait(int64_t timeout_ms);

   private:
    std::shared_ptr<State> state_;
    std::shared_ptr<Job> job_;
  };

  bool ready();
  std::unique_ptr<Work> start(const aj_coll* c, uint32_t n);
  void abort(const std::string& why);
  void close(int64_t timeout_ms);

 private:
  std::shared_ptr<State> state_;
};

}  // namespace adjoin::mpi
