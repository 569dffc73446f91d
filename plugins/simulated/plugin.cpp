// plugins/simulated/plugin.cpp: libaj_simulated.so: processes as threads of one process, thousands
// of them.
#include <adjoin/kit/engine.hpp>
#include <adjoin/kit/plugin.hpp>
#include <thread>

#include "hall.hpp"

namespace adjoin::simulated {
namespace {

struct State {  // of one process in one hall; what changes is under the bell's lock
  std::shared_ptr<Hall> hall;
  std::shared_ptr<Bell> bell = std::make_shared<Bell>();
  bool ends = false, aborted = false;  // aborted: nobody reads or writes its memory any more
  std::string why;
  std::vector<std::weak_ptr<Meeting>> started;
};

class Comm {
 public:
  static constexpr const char* kName = "simulated";
  static void caps(aj_comm_caps& io) {
    io.flags = AJ_COMM_TAGGED | AJ_COMM_DETERMINISTIC | AJ_COMM_ONE_HOST;
    kit::comm::all_reductions(io);
    io.engine = AJ_STR_LIT("simulated");
  }
  explicit Comm(const aj_comm_config& c) : rank_(c.rank) {
    state_->hall = Hall::of(std::string(kit::view_of(c.name)), c.size);
  }

  class Work {
   public:
    Work(std::shared_ptr<State> state, std::vector<std::shared_ptr<Meeting>> meetings)
        : state_(std::move(state)), meetings_(std::move(meetings)) {}
    bool test() { return wait_until(Clock::now()); }
    bool wait(int64_t ms) { return wait_until(Clock::now() + std::chrono::milliseconds(ms)); }

   private:
    bool wait_until(Clock::time_point until) {
      for (auto& m : meetings_) {
        std::unique_lock hold(state_->bell->lock);
        if (!state_->bell->rings.wait_until(hold, until,
                                            [&] { return m->done || state_->aborted; }))
          return false;
        if (!m->done) kit::raise(AJ_ABORTED, state_->why);
        if (m->at > until) {
          hold.unlock();
          std::this_thread::sleep_until(until);
          return false;
        }
        hold.unlock();
        std::this_thread::sleep_until(m->at);
      }
      return true;
    }
    std::shared_ptr<State> state_;
    std::vector<std::shared_ptr<Meeting>> meetings_;
  };

  bool ready() const { return true; }
  std::unique_ptr<Work> start(const aj_coll* c, uint32_t n) {
    kit::comm::refuse_wrong(c, n);
    std::vector<std::shared_ptr<Meeting>> meetings;
    for (uint32_t i = 0; i < n; i++) {
      meetings.push_back(state_->hall->come(rank_, c[i], state_->bell));
      std::unique_lock hold(state_->bell->lock);
      std::erase_if(state_->started, [](const auto& m) { return m.expired(); });
      state_->started.push_back(meetings.back());
      if (!state_->ends) continue;
      hold.unlock();
      for (const auto& m : meetings) state_->hall->give_up(m);
      kit::raise(AJ_ABORTED, state_->why);
    }
    return std::make_unique<Work>(state_, std::move(meetings));
  }
  void abort(const std::string& why) {
    std::vector<std::weak_ptr<Meeting>> started;
    {
      std::lock_guard hold(state_->bell->lock);
      if (std::exchange(state_->ends, true)) return;
      state_->why = why;
      started.swap(state_->started);
    }
    for (auto& held : started)
      if (auto m = held.lock()) state_->hall->give_up(m);
    {
      std::lock_guard hold(state_->bell->lock);
      state_->aborted = true;
    }
    state_->bell->ring();
  }
  void close(int64_t) { abort("the communicator is closed"); }

 private:
  int rank_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

const aj_comm table = kit::comm::Table<Comm>::of({"simulated", 9});

}  // namespace
}  // namespace adjoin::simulated

AJ_PLUGIN(.name = "simulated", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "service:aj.comm/cpu;service:aj.comm/cpu/simulated") {
  plugin.service("aj.comm/cpu", "simulated", &adjoin::simulated::table, -100);
  plugin.service("aj.comm/cpu/simulated", "simulated", &adjoin::simulated::table, -100);
}
