// plugins/mpi/comm.cpp: the thread that is inside MPI. It starts everything without waiting, and
// asks again: MPI goes on inside of calls alone.
#include "comm.hpp"

#include <adjoin/kit/error.hpp>
#include <chrono>
#include <cstdlib>

namespace adjoin::mpi {

using kit::raise;
using kit::text;
using std::chrono::milliseconds;

namespace {

constexpr int kQuick = 2000;  // rounds without news before the thread sleeps between them
constexpr auto kNap = std::chrono::microseconds(50);
constexpr auto kFinalize = milliseconds(20000);  // of a busy machine

}  // namespace

// One for the process; it is never destroyed: its thread may not come back.
class Engine {
 public:
  static Engine& get() {
    static Engine& engine = *new Engine;
    return engine;
  }

  std::mutex lock;
  std::condition_variable changed, wanted;
  std::vector<std::shared_ptr<State>> comms;
  bool broken = false, finalize = false, finalized = false;

  void begin() {
    if (started_) return;
    started_ = true;
    std::thread([this] { run(); }).detach();
    std::atexit([] { get().end(); });
  }

  // Under the lock.
  void fail(State& s, const std::string& why) {
    if (!s.why.empty()) return;
    s.why = why;
    broken = true;
    for (auto& held : s.all)
      if (auto job = held.lock(); job && job->state == Job::running) {
        job->state = Job::failed;
        job->why = why;
      }
    s.incoming.clear();
    changed.notify_all();
    wanted.notify_all();
  }

 private:
  void run() {
    try {
      init();
    } catch (const std::exception& e) {
      why_ = e.what();
    }
    for (int quiet = 0;;) {
      std::vector<std::shared_ptr<State>> now;
      {
        std::unique_lock hold(lock);
        if (finalize) break;
        for (auto& s : comms) take(*s);
        now = comms;
      }
      bool busy = false, news = false;
      // They meet in the order in which they were made, which is the same in all processes: a
      // meeting waits.
      bool others_first = false;
      for (auto& s : now) {
        if (others_first && !s->met) continue;
        news |= advance(*s, &busy);
        others_first = others_first || !s->met;
      }
      quiet = news ? 0 : quiet + 1;
      if (!busy && !news) {
        std::unique_lock hold(lock);
        wanted.wait(hold, [&] { return finalize || something_new(); });
      } else if (quiet > kQuick) {
        std::this_thread::sleep_for(kNap);
      } else {
        std::this_thread::yield();
      }
    }
    int over = 0;
    MPI_Finalized(&over);
    if (!over && ours_) MPI_Finalize();
    std::lock_guard hold(lock);
    finalized = true;
    changed.notify_all();
  }

  void init() {
    int there = 0, level = MPI_THREAD_SINGLE;
    MPI_Initialized(&there);
    if (!there) {
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
      ours_ = true;
    } else {
      MPI_Query_thread(&level);
    }
    if (level < MPI_THREAD_SERIALIZED)
      raise(AJ_UNAVAILABLE,
            "MPI was started for one thread alone; start it with MPI_THREAD_MULTIPLE");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }

  // Under the lock.
  bool something_new() const {
    for (const auto& s : comms)
      if (!s->incoming.empty() || (!s->met && s->why.empty()) || s->closing) return true;
    return false;
  }
  void take(State& s) {
    for (auto& job : s.incoming)
      (kit::comm::is_transfer(job->parts[0].get()) ? s.transfers.emplace_back(job)
                                                   : s.queue.emplace_back(job));
    s.incoming.clear();
  }

  // Of the thread, without the lock: it may never come back. Whether something happened.
  bool advance(State& s, bool* busy) {
    bool closing;
    {
      std::lock_guard hold(lock);
      if (!s.why.empty()) return leave(s);
      closing = s.closing;
    }
    if (closing && s.queue.empty() && s.transfers.empty()) {
      if (s.comm != MPI_COMM_NULL) MPI_Comm_free(&s.comm);
      std::lock_guard hold(lock);
      return leave(s);
    }
    *busy = *busy || !s.met || !s.queue.empty() || !s.transfers.empty();
    try {
      if (!s.met) return meet(s);
      bool news = false;
      while (!s.queue.empty() && advance(s, *s.queue.front())) {
        s.queue.pop_front();
        news = true;
      }
      const auto done = std::erase_if(s.transfers, [&](auto& j) { return advance(s, *j); });
      return news || done;
    } catch (const std::exception& e) {
      std::lock_guard hold(lock);
      fail(s, e.what());
      return true;
    }
  }

  // Under the lock. What ran stays: MPI may still write there.
  bool leave(State& s) {
    for (auto& j : s.queue) new std::shared_ptr<Job>(j);
    for (auto& j : s.transfers) new std::shared_ptr<Job>(j);
    s.queue.clear();
    s.transfers.clear();
    s.met = true;  // nobody waits for it
    if (!s.closing || s.closed) return false;
    s.closed = true;
    std::erase_if(comms, [&](const auto& c) { return c.get() == &s; });
    changed.notify_all();
    return true;
  }

  bool advance(State& s, Job& j) {
    while (j.part < j.parts.size()) {
      if (!j.call)
        j.call = std::make_unique<Call>(s.comm, s.meeting.rank, s.meeting.size, j.parts[j.part]);
      if (!j.call->advance()) return false;
      j.call = nullptr;
      j.part++;
    }
    std::lock_guard hold(lock);
    if (j.state == Job::running) j.state = Job::done;
    changed.notify_all();
    return true;
  }

  bool meet(State& s) {
    if (!why_.empty()) raise(AJ_UNAVAILABLE, why_);
    const aj_store* store = s.meeting.store;
    auto key = [&](int r) { return text("mpi/", s.meeting.name, "/", r); };
    if (!s.told) {
      int rank = 0, size = 0;
      MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
      if (size < s.meeting.size)
        raise(AJ_UNAVAILABLE, "MPI's world has ", size, size == 1 ? " process" : " processes",
              ", the group has ", s.meeting.size,
              ": processes that talk by MPI are started by mpirun (mpirun -n ", s.meeting.size,
              " python3 PROGRAM)");
      if (size == s.meeting.size) {
        for (int r = 0; r < size; r++) s.world.push_back(r);
      } else {
        kit::check(store->set(store->self, kit::str(key(s.meeting.rank)), kit::str(text(rank))));
      }
      s.told = true;
    }
    while (int(s.world.size()) < s.meeting.size) {
      const int next = int(s.world.size());
      aj_object* found = nullptr;
      if (aj_status* status = store->get(store->self, kit::str(key(next)), 0, &found)) {
        if (kit::core().status_code(status) != AJ_DEADLINE) kit::check(status);
        kit::core().status_free(status);
        if (std::chrono::steady_clock::now() > s.meeting.until)
          raise(AJ_UNAVAILABLE, "rank ", next, " of the group has not come");
        std::this_thread::sleep_for(milliseconds(1));
        return false;
      }
      s.world.push_back(std::atoi(kit::core().string_get(found).data));
      kit::core().release(found);
    }
    MPI_Group all, mine;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    check(MPI_Group_incl(all, s.meeting.size, s.world.data(), &mine), "MPI_Group_incl");
    int tag = 0;
    for (char c : s.meeting.name) tag = (tag * 31 + c) & 0x7fff;
    check(MPI_Comm_create_group(MPI_COMM_WORLD, mine, tag, &s.comm), "MPI_Comm_create_group");
    MPI_Comm_set_errhandler(s.comm, MPI_ERRORS_RETURN);
    MPI_Group_free(&mine), MPI_Group_free(&all);
    s.met = true;
    std::lock_guard hold(lock);
    s.connected = true;
    return true;
  }

  // mpirun takes a process that has not finalized for a lost one; after a fault it would wait for
  // ever.
  void end() {
    std::unique_lock hold(lock);
    if (broken) return;
    finalize = true;
    wanted.notify_all();
    changed.wait_for(hold, kFinalize, [&] { return finalized; });
  }

  bool started_ = false, ours_ = false;
  std::string why_;
};

void Comm::caps(aj_comm_caps& io) {
  io.flags = AJ_COMM_TAGGED;
  kit::comm::all_reductions(io);
  io.engine = AJ_STR_LIT("mpi");
}

Comm::Comm(const aj_comm_config& c)
    : state_(
          new State{.meeting = {c.rank, c.size, std::string(kit::view_of(c.name)), c.store,
                                std::chrono::steady_clock::now() + milliseconds(c.timeout_ms)}}) {
  Engine& e = Engine::get();
  std::lock_guard hold(e.lock);
  e.comms.push_back(state_);
  e.begin();
  e.wanted.notify_all();
}

bool Comm::ready() {
  std::lock_guard hold(Engine::get().lock);
  if (!state_->why.empty()) raise(AJ_UNAVAILABLE, state_->why);
  return state_->connected;
}

std::unique_ptr<Comm::Work> Comm::start(const aj_coll* c, uint32_t n) {
  kit::comm::refuse_wrong(c, n);
  auto job = std::make_shared<Job>();
  for (uint32_t i = 0; i < n; i++) job->parts.emplace_back(c[i], state_->meeting.size);
  Engine& e = Engine::get();
  std::lock_guard hold(e.lock);
  if (!state_->why.empty()) raise(AJ_UNAVAILABLE, state_->why);
  std::erase_if(state_->all, [](const std::weak_ptr<Job>& w) {
    auto held = w.lock();
    return !held || held->state != Job::running;
  });
  state_->all.push_back(job);
  if (n)
    state_->incoming.push_back(job);
  else
    job->state = Job::done;
  e.wanted.notify_all();
  return std::make_unique<Work>(state_, job);
}

bool Comm::Work::wait(int64_t timeout_ms) {
  Engine& e = Engine::get();
  std::unique_lock hold(e.lock);
  if (!e.changed.wait_for(hold, milliseconds(timeout_ms),
                          [&] { return job_->state != Job::running; }))
    return false;
  if (job_->state == Job::failed) raise(AJ_UNAVAILABLE, job_->why);
  return true;
}

void Comm::abort(const std::string& why) {
  Engine& e = Engine::get();
  std::lock_guard hold(e.lock);
  e.fail(*state_, why);
}

void Comm::close(int64_t timeout_ms) {
  Engine& e = Engine::get();
  std::unique_lock hold(e.lock);
  state_->closing = true;
  e.wanted.notify_all();
  const auto patience = milliseconds(state_->why.empty() ? timeout_ms : 100);
  if (!e.changed.wait_for(hold, patience, [&] { return state_->closed; }))
    e.fail(*state_, "the communicator is closed");
}

}  // namespace adjoin::mpi
