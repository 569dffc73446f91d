// plugins/nccl/comm.cpp: the thread that calls NCCL, and who waits for it.
#include "comm.hpp"

#include <adjoin/kit/collective.hpp>
#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <chrono>

namespace adjoin::nccl_engine {

using kit::raise;
using kit::text;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kLook = microseconds(50);        // how often NCCL is asked
constexpr auto kComesBack = milliseconds(300);  // of a call that abort has to break

struct Meeting {
  std::string name;
  const aj_store* store;
  int64_t timeout_ms;
};

std::string said(Result r, Handle handle) {
  const Nccl& nccl = Nccl::get();
  std::string what = text(nccl.GetErrorString(r), " (", int(r), ")");
  if (nccl.GetLastError)
    if (const char* more = nccl.GetLastError(handle); more && *more) what += text(": ", more);
  return what;
}

// Asks again while NCCL is at it; raises its error.
void settle(const std::shared_ptr<Shared>& s, Result r, const char* doing,
            Clock::time_point until = Clock::time_point::max()) {
  while (r == kInProgress) {
    {
      std::lock_guard hold(s->lock);
      if (s->aborted) raise(AJ_ABORTED, s->why);
    }
    if (Clock::now() > until) raise(AJ_DEADLINE, doing, ": it is not done in time");
    std::this_thread::sleep_for(kLook);
    if (Result asked = Nccl::get().CommGetAsyncError(s->context.handle, &r)) r = asked;
  }
  if (r) raise(AJ_UNAVAILABLE, doing, ": ", said(r, s->context.handle));
}

Id meeting_place(const Meeting& m, int rank) {
  Id id = {};
  const std::string key = text("nccl/", m.name, "/id");
  if (rank == 0) {
    if (Result r = Nccl::get().GetUniqueId(&id))
      raise(AJ_UNAVAILABLE, "a place to meet: ", said(r, nullptr));
    kit::check(m.store->set(m.store->self, kit::str(key), {id.bytes, sizeof id.bytes}));
    return id;
  }
  aj_object* found = nullptr;
  kit::check(m.store->get(m.store->self, kit::str(key), m.timeout_ms, &found));
  const std::string_view bytes = kit::view_of(kit::core().string_get(found));
  std::copy_n(bytes.data(), std::min(bytes.size(), sizeof id.bytes), id.bytes);
  kit::core().release(found);
  return id;
}

void inside(const std::shared_ptr<Shared>& s, bool now) {
  std::lock_guard hold(s->lock);
  s->inside = now;
  s->changed.notify_all();
}

void meet(const std::shared_ptr<Shared>& s, const Meeting& m) {
  const Nccl& nccl = Nccl::get();
  Context& c = s->context;
  use_device(s->device);
  c.stream = stream_new();
  c.scratch = memory_new(16);
  const Id id = meeting_place(m, c.rank);
  const auto until = Clock::now() + milliseconds(m.timeout_ms);
  if (nccl.CommInitRankConfig) {
    Config config;
    settle(s, nccl.CommInitRankConfig(&c.handle, c.size, id, c.rank, &config), "meeting", until);
    return;
  }
  inside(s, true);
  const Result r = nccl.CommInitRank(&c.handle, c.size, id, c.rank);
  inside(s, false);
  settle(s, r, "meeting", until);
}

void queue(const std::shared_ptr<Shared>& s, Job& job) {
  const Nccl& nccl = Nccl::get();
  stream_wait(s->context.stream, job.before);
  const bool several = job.collectives.size() > 1;
  Result r = several ? nccl.GroupStart() : kSuccess;
  for (const aj_coll& c : job.collectives) {
    if (r == kSuccess || r == kInProgress) r = queue_collective(s->context, c);
    if (!several) settle(s, r, "a collective");
  }
  if (several) {
    const Result end = nccl.GroupEnd();
    settle(s, r == kSuccess || r == kInProgress ? end : r, "several collectives");
  }
  event_record(job.after, s->context.stream);
}

void end(const std::shared_ptr<Shared>& s, bool in_order) {
  Handle handle;
  {
    std::lock_guard hold(s->lock);
    handle = std::exchange(s->context.handle, nullptr);
  }
  if (!handle) return;
  const Nccl& nccl = Nccl::get();
  if (!in_order) {
    nccl.CommAbort(handle);
    return;
  }
  if (nccl.CommFinalize) {
    Result r = nccl.CommFinalize(handle);
    for (int i = 0; r == kInProgress && i < 20000; i++) {
      std::this_thread::sleep_for(kLook);
      if (nccl.CommGetAsyncError(handle, &r)) break;
    }
  }
  nccl.CommDestroy(handle);
  stream_free(s->context.stream);
  memory_free(s->context.scratch);
}

void run(const std::shared_ptr<Shared>& s, const Meeting& m) {
  auto over = [&](bool in_order) {
    end(s, in_order);
    std::lock_guard hold(s->lock);
    s->ended = true;
    s->changed.notify_all();
  };
  try {
    meet(s, m);
  } catch (const std::exception& e) {
    {
      std::lock_guard hold(s->lock);
      if (!s->aborted) s->fail_all(text("the processes do not find each other: ", e.what()));
    }
    return over(false);
  }
  std::unique_lock hold(s->lock);
  s->connected = true;
  s->changed.notify_all();
  for (;;) {
    s->changed.wait(hold, [&] { return !s->queue.empty() || s->closing || s->aborted; });
    if (s->aborted || s->queue.empty()) break;
    const std::shared_ptr<Job> job = s->queue.front();
    s->queue.pop_front();
    hold.unlock();
    std::string wrong;
    try {
      queue(s, *job);
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    hold.lock();
    if (!wrong.empty()) s->finish(*job, false, wrong);
    if (job->state == Job::waiting) job->state = Job::queued;
    s->changed.notify_all();
  }
  const bool in_order = !s->aborted;
  hold.unlock();
  over(in_order);
}

}  // namespace

void Shared::finish(Job& j, bool good, const std::string& text) {
  if (j.state == Job::done || j.state == Job::failed) return;
  j.state = good ? Job::done : Job::failed;
  j.why = text;
  changed.notify_all();
}

void Shared::fail_all(const std::string& text) {
  why = text;
  for (auto& held : all)
    if (auto job = held.lock()) finish(*job, false, text);
  queue.clear();
  changed.notify_all();
}

Comm::Comm(const aj_comm_config& c) : shared_(std::make_shared<Shared>()) {
  Nccl::get();
  shared_->device = c.device.device_id;
  shared_->context.rank = c.rank;
  shared_->context.size = c.size;
  Meeting m{std::string(kit::view_of(c.name)), c.store, c.timeout_ms};
  thread_ = std::thread([s = shared_, m] { run(s, m); });
}

Comm::~Comm() {
  if (thread_.joinable()) thread_.detach();
}

bool Comm::ready() {
  std::lock_guard hold(shared_->lock);
  if (!shared_->why.empty()) raise(AJ_UNAVAILABLE, shared_->why);
  return shared_->connected;
}

Comm::Work::~Work() {
  if (job->state != Job::done) return;  // who was broken off may still be on the device
  event_free(job->before);
  event_free(job->after);
}

bool Comm::Work::test() {
  std::lock_guard hold(shared->lock);
  if (job->state == Job::queued) {
    use_device(shared->device);
    if (event_passed(job->after)) {
      shared->finish(*job, true, "");
    } else if (shared->context.handle) {
      Result r = kSuccess;
      const Result asked = Nccl::get().CommGetAsyncError(shared->context.handle, &r);
      if (Result bad = asked ? asked : r; bad && bad != kInProgress)
        shared->fail_all(said(bad, shared->context.handle));
    }
  }
  if (job->state == Job::failed) raise(AJ_UNAVAILABLE, job->why);
  return job->state == Job::done;
}

bool Comm::Work::wait(int64_t timeout_ms) {
  const auto until = Clock::now() + milliseconds(timeout_ms);
  while (!test()) {
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

std::unique_ptr<Comm::Work> Comm::start(const aj_coll* c, uint32_t n) {
  auto job = std::make_shared<Job>();
  job->collectives.assign(c, c + n);
  for (aj_coll& one : job->collectives)
    for (const uint64_t** counts : {&one.in_counts, &one.out_counts})
      if (*counts) {
        job->counts.emplace_back(*counts, *counts + shared_->context.size);
        *counts = job->counts.back().data();
      }
  use_device(shared_->device);
  job->before = event_new();
  job->after = event_new();
  if (n) event_record(job->before, c[0].stream);
  auto work = std::make_unique<Work>(Work{shared_, job});
  std::lock_guard hold(shared_->lock);
  if (!shared_->why.empty()) raise(AJ_UNAVAILABLE, shared_->why);
  std::erase_if(shared_->all, [](const std::weak_ptr<Job>& w) {
    auto held = w.lock();
    return !held || held->state == Job::done || held->state == Job::failed;
  });
  shared_->all.push_back(job);
  shared_->queue.push_back(job);
  shared_->changed.notify_all();
  return work;
}

// The communicator's thread ends it; where that one is inside of a call that waits, another one.
void Comm::abort(const std::string& why) {
  std::unique_lock hold(shared_->lock);
  if (shared_->aborted) return;
  shared_->aborted = true;
  shared_->fail_all(why);
  if (shared_->changed.wait_for(hold, kComesBack, [&] { return !shared_->inside; })) return;
  if (shared_->context.handle)
    std::thread([handle = shared_->context.handle] { Nccl::get().CommAbort(handle); }).detach();
}

void Comm::close(int64_t timeout_ms) {
  std::unique_lock hold(shared_->lock);
  shared_->closing = true;
  shared_->changed.notify_all();
  const auto patience = milliseconds(shared_->aborted ? 100 : timeout_ms);
  const bool over = shared_->changed.wait_for(hold, patience, [&] { return shared_->ended; });
  hold.unlock();
  if (over) {
    thread_.join();
    return;
  }
  new std::shared_ptr<Shared>(shared_);  // the thread is inside: what it uses stays
}

}  // namespace adjoin::nccl_engine
