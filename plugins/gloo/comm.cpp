// plugins/gloo/comm.cpp: threads that go into Gloo, so that no other one has to.
#include "comm.hpp"

#include <gloo/transport/tcp/device.h>

#include <adjoin/kit/collective.hpp>
#include <adjoin/kit/error.hpp>
#include <map>

#include "store.hpp"

namespace adjoin::gloo_engine {

using kit::raise;
using kit::text;
using std::chrono::milliseconds;

namespace {

// Deadlines are the caller's; Gloo's own, which would end its connections, never comes.
constexpr auto kNever = milliseconds(int64_t{1} << 40);

// One for each address of this machine: it has a thread that serves all connections.
std::shared_ptr<::gloo::transport::Device> device_at(const std::string& host) {
  static std::mutex& lock = *new std::mutex;
  static auto& made = *new std::map<std::string, std::shared_ptr<::gloo::transport::Device>>;
  std::lock_guard hold(lock);
  auto& device = made[host];
  if (!device)
    device = ::gloo::transport::tcp::CreateDevice(::gloo::transport::tcp::attr(host.c_str()));
  return device;
}

struct Meeting {
  int rank, size;
  std::string name, host;
  const aj_store* store;
  int64_t timeout_ms;
};

Context meet(const Meeting& m) {
  Store store(m.store, text("gloo/", m.name, "/"), m.timeout_ms);
  auto device = device_at(m.host);
  auto context = std::make_shared<::gloo::rendezvous::Context>(m.rank, m.size);
  context->setTimeout(milliseconds(m.timeout_ms));
  context->connectFullMesh(store, device);
  context->setTimeout(kNever);
  return context;
}

void run(const std::shared_ptr<Shared>& s, const Meeting& m) {
  Context context;
  try {
    context = meet(m);
  } catch (const std::exception& e) {
    std::lock_guard hold(s->lock);
    s->fail_all(text("the processes do not find each other: ", e.what()));
    s->ended = true;
    s->changed.notify_all();
    return;
  }
  std::unique_lock hold(s->lock);
  s->context = context;
  s->connected = true;
  s->changed.notify_all();
  for (;;) {
    s->changed.wait(hold, [&] { return !s->queue.empty() || s->closing || s->aborted; });
    if (s->aborted || s->queue.empty()) break;
    std::shared_ptr<Job> job = s->queue.front();
    s->queue.pop_front();
    hold.unlock();
    std::string wrong;
    bool good = true;
    try {
      for (const aj_coll& c : job->collectives) run_collective(context, c);
    } catch (const std::exception& e) {
      good = false;
      wrong = e.what();
    }
    hold.lock();
    s->finish(*job, good, wrong);
  }
  s->ended = true;
  s->changed.notify_all();
}

void transfer(const std::shared_ptr<Shared>& s, const std::shared_ptr<Job>& job) {
  std::unique_lock hold(s->lock);
  s->changed.wait(hold, [&] { return s->connected || !s->why.empty(); });
  if (job->state != Job::running) return;
  Context context = s->context;
  hold.unlock();
  std::string wrong;
  bool good = true;
  try {
    for (const aj_coll& c : job->collectives) run_transfer(context, c);
  } catch (const std::exception& e) {
    good = false;
    wrong = e.what();
  }
  hold.lock();
  s->finish(*job, good, wrong);
}

}  // namespace

void Shared::finish(Job& j, bool good, const std::string& text) {
  if (j.state != Job::running) return;
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

Comm::Comm(const aj_comm_config& c) : shared_(std::make_shared<Shared>()), size_(c.size) {
  Meeting m{
      c.rank,  c.size,      std::string(kit::view_of(c.name)), std::string(kit::view_of(c.host)),
      c.store, c.timeout_ms};
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

bool Comm::Work::wait(int64_t timeout_ms) {
  std::unique_lock hold(shared->lock);
  if (!shared->changed.wait_for(hold, milliseconds(timeout_ms),
                                [&] { return job->state != Job::running; }))
    return false;
  if (job->state == Job::failed) raise(AJ_UNAVAILABLE, job->why);
  return true;
}

void Comm::caps(aj_comm_caps& io) {
  io.flags = AJ_COMM_TAGGED | AJ_COMM_DETERMINISTIC;
  kit::comm::all_reductions(io);
  io.engine = AJ_STR_LIT("gloo");
}

std::unique_ptr<Comm::Work> Comm::start(const aj_coll* c, uint32_t n) {
  kit::comm::refuse_wrong(c, n);
  auto job = std::make_shared<Job>();
  job->collectives.assign(c, c + n);
  for (aj_coll& one : job->collectives)
    for (const uint64_t** counts : {&one.in_counts, &one.out_counts})
      if (*counts) {
        job->counts.emplace_back(*counts, *counts + size_);
        *counts = job->counts.back().data();
      }
  auto work = std::make_unique<Work>(Work{shared_, job});
  std::lock_guard hold(shared_->lock);
  if (!shared_->why.empty()) raise(AJ_UNAVAILABLE, shared_->why);
  std::erase_if(shared_->all, [](const std::weak_ptr<Job>& w) {
    auto held = w.lock();
    return !held || held->state != Job::running;
  });
  shared_->all.push_back(job);
  if (n && kit::comm::is_transfer(c[0])) {
    std::thread(transfer, shared_, job).detach();
  } else {
    shared_->queue.push_back(job);
    shared_->changed.notify_all();
  }
  return work;
}

void Comm::abort(const std::string& why) {
  std::lock_guard hold(shared_->lock);
  if (shared_->aborted) return;
  shared_->aborted = true;
  shared_->fail_all(why);
}

void Comm::close(int64_t timeout_ms) {
  std::unique_lock hold(shared_->lock);
  shared_->closing = true;
  shared_->changed.notify_all();
  const auto patience = milliseconds(shared_->aborted ? 100 : timeout_ms);
  const bool over = shared_->changed.wait_for(hold, patience, [&] { return shared_->ended; });
  Context last = std::move(shared_->context);
  if (over && !shared_->aborted) {
    hold.unlock();
    thread_.join();
    return;
  }
  // A thread may be inside; whatever it uses stays until the process ends.
  new Context(std::move(last));
  new std::shared_ptr<Shared>(shared_);
}

}  // namespace adjoin::gloo_engine
