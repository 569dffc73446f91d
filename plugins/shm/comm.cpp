// plugins/shm/comm.cpp: works go on whenever somebody looks: no call waits for another process.
#include "comm.hpp"

#include <adjoin/kit/error.hpp>
#include <algorithm>

namespace adjoin::shm {

using kit::raise;

namespace {

constexpr int64_t kNap = 1000;       // us: who looks when nobody waits
constexpr int kNapsBeforeRest = 20;  // then a start has to wake the thread
constexpr int64_t kAsleep = 50000;   // us, at most, in one wait for the bell
constexpr int kSpins = 2000;         // looks at the bell before a wait for it

}  // namespace

State::State(const aj_comm_config& c)
    : region_(c),
      rank_(c.rank),
      size_(c.size),
      spins_(int(std::thread::hardware_concurrency()) >= c.size) {}

bool State::open() {
  std::lock_guard hold(lock_);
  if (!why_.empty()) raise(AJ_UNAVAILABLE, why_);
  return region_.open();
}

void State::start(const std::shared_ptr<Job>& job) {
  std::lock_guard hold(lock_);
  if (!why_.empty()) raise(AJ_UNAVAILABLE, why_);
  if (job->parts.empty()) {
    job->state = Job::done;
    return;
  }
  const bool transfer = kit::comm::is_transfer(job->parts[0].get());
  if (transfer)
    transfers_.push_back(job);
  else
    queue_.push_back(job);
  advance();
  changed_.notify_one();
}

// Everything that can be done without waiting.
void State::advance() {
  if (!why_.empty()) return;
  try {
    if (!region_.open()) return;
  } catch (const std::exception& e) {
    why_ = e.what();
    for (auto& j : queue_) j->state = Job::failed;
    for (auto& j : transfers_) j->state = Job::failed;
    return;
  }
  while (!queue_.empty() && advance(*queue_.front())) queue_.pop_front();
  std::erase_if(transfers_, [&](const std::shared_ptr<Job>& j) { return advance(*j); });
}

bool State::advance(Job& job) {
  while (job.part < job.parts.size()) {
    const kit::comm::Request& r = job.parts[job.part];
    const int32_t kind = r.get().kind;
    const bool over = kind == AJ_COLL_SEND   ? send(job, r)
                      : kind == AJ_COLL_RECV ? receive(job, r)
                                             : round(job, r);
    if (!over) return false;
    job.part++;
    job.moved = 0;
    job.started = false;
    job.rounds = nullptr;
  }
  job.state = Job::done;
  return true;
}

bool State::round(Job& job, const kit::comm::Request& r) {
  if (!job.rounds) job.rounds = std::make_unique<Rounds>(r, rank_, size_);
  Progress& mine = region_.progress(rank_);
  while (!job.rounds->over()) {
    if (!job.given) {
      // What lies in this half is of the round before the last one.
      for (int i = 0; i < size_; i++)
        if (region_.progress(i).read.load(std::memory_order_acquire) + 2 < round_) return false;
      job.rounds->give(region_.half(rank_, round_));
      mine.agreed[round_ & 1] = r.get().fingerprint;
      mine.ready.store(round_, std::memory_order_release);
      region_.bell().ring();
      job.given = true;
    }
    std::vector<const char*> halves;
    for (int i = 0; i < size_; i++) {
      const Progress& p = region_.progress(i);
      if (p.ready.load(std::memory_order_acquire) < round_) return false;
      // It has started another collective: both wait.
      if (p.agreed[round_ & 1] != r.get().fingerprint) return false;
      halves.push_back(region_.half(i, round_));
    }
    job.rounds->take(halves);
    mine.read.store(round_, std::memory_order_release);
    region_.bell().ring();
    round_++;
    job.given = false;
  }
  return true;
}

bool State::send(Job& job, const kit::comm::Request& r) {
  if (job.mail < 0) {
    const auto found = std::find(std::begin(mail_taken_), std::end(mail_taken_), false);
    if (found == std::end(mail_taken_)) return false;
    *found = true;
    job.mail = int(found - std::begin(mail_taken_));
  }
  Mail& mail = region_.mail(rank_, uint32_t(job.mail));
  if (mail.full.load(std::memory_order_acquire)) return false;  // not read yet
  const size_t rest = r.bytes() - job.moved;
  if (job.started && !rest) {
    mail_taken_[job.mail] = false;
    job.mail = -1;
    return true;
  }
  mail.to = r.get().peer;
  mail.tag = r.get().fingerprint;
  mail.bytes = uint32_t(std::min(rest, kLetter));
  if (mail.bytes)
    std::memcpy(region_.letter(rank_, uint32_t(job.mail)), r.in() + job.moved, mail.bytes);
  job.moved += mail.bytes;
  job.started = true;
  mail.full.store(1, std::memory_order_release);
  region_.bell().ring();
  return false;
}

bool State::receive(Job& job, const kit::comm::Request& r) {
  const int from = r.get().peer;
  for (uint32_t i = 0; i < kMails; i++) {
    Mail& mail = region_.mail(from, i);
    if (!mail.full.load(std::memory_order_acquire)) continue;
    if (mail.to != rank_ || mail.tag != r.get().fingerprint) continue;
    const size_t bytes = std::min<size_t>(mail.bytes, r.bytes() - job.moved);
    if (bytes) std::memcpy(r.out() + job.moved, region_.letter(from, i), bytes);
    job.moved += bytes;
    mail.full.store(0, std::memory_order_release);
    region_.bell().ring();
    return job.moved == r.bytes();
  }
  return false;
}

bool State::look(const Job& job) const {
  if (job.state == Job::failed) raise(AJ_ABORTED, why_);
  return job.state == Job::done;
}

bool State::wait(Job& job, int64_t timeout_ms) {
  const int64_t until = now_us() + timeout_ms * 1000;
  std::unique_lock hold(lock_);
  waiting_++;
  struct Count {  // under the lock, whatever is raised
    int& n;
    ~Count() { n--; }
  } count{waiting_};
  for (;;) {
    const bool opened = region_.is_open();
    const uint32_t seen = opened ? region_.bell().seen() : 0;
    advance();
    if (look(job)) return true;
    const int64_t left = until - now_us();
    if (left <= 0) return false;
    hold.unlock();
    if (!opened) {
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(left, kNap)));
    } else {
      for (int i = 0; spins_ && i < kSpins && region_.bell().seen() == seen; i++)
        __builtin_ia32_pause();
      if (region_.bell().seen() == seen) region_.bell().wait(seen, std::min(left, kAsleep));
    }
    hold.lock();
  }
}

void State::abort(const std::string& why) {
  std::lock_guard hold(lock_);
  if (why_.empty()) why_ = why;
  for (auto& j : queue_) j->state = Job::failed;
  for (auto& j : transfers_) j->state = Job::failed;
  queue_.clear();
  transfers_.clear();
  if (region_.is_open()) region_.bell().ring();
  changed_.notify_all();
}

void State::serve() {
  std::unique_lock hold(lock_);
  for (int naps = 0; !closing_;) {
    const bool idle = queue_.empty() && transfers_.empty();
    naps = idle ? naps + 1 : 0;
    if (idle && naps > kNapsBeforeRest) {
      changed_.wait(hold, [&] { return closing_ || !queue_.empty() || !transfers_.empty(); });
      continue;
    }
    const uint32_t seen = region_.is_open() ? region_.bell().seen() : 0;
    const bool looks = !idle && waiting_ == 0;
    if (looks) advance();
    const bool listens = looks && region_.is_open();
    hold.unlock();
    if (listens)
      region_.bell().wait(seen, kNap);
    else
      std::this_thread::sleep_for(std::chrono::microseconds(kNap));
    hold.lock();
  }
}

void State::finish(int64_t timeout_ms) {
  const int64_t until = now_us() + timeout_ms * 1000;
  std::unique_lock hold(lock_);
  for (;;) {
    advance();
    const bool over = queue_.empty() && transfers_.empty();
    if (over || !why_.empty() || now_us() > until) return;
    hold.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(kNap));
    hold.lock();
  }
}

void State::close() {
  std::lock_guard hold(lock_);
  closing_ = true;
  changed_.notify_all();
}

void Comm::caps(aj_comm_caps& io) {
  io.flags = AJ_COMM_TAGGED | AJ_COMM_DETERMINISTIC | AJ_COMM_ONE_HOST;
  kit::comm::all_reductions(io);
  io.engine = AJ_STR_LIT("shm");
}

Comm::Comm(const aj_comm_config& c) : state_(std::make_shared<State>(c)), size_(c.size) {
  thread_ = std::thread([s = state_.get()] { s->serve(); });
}

std::unique_ptr<Comm::Work> Comm::start(const aj_coll* c, uint32_t n) {
  kit::comm::refuse_wrong(c, n);
  auto job = std::make_shared<Job>();
  for (uint32_t i = 0; i < n; i++) job->parts.emplace_back(c[i], size_);
  state_->start(job);
  return std::make_unique<Work>(state_, job);
}

// Others may still read what this process gave: it stays in their memory.
void Comm::close(int64_t timeout_ms) {
  if (!thread_.joinable()) return;
  state_->finish(timeout_ms);
  state_->abort("the communicator is closed");
  state_->close();
  thread_.join();
}

}  // namespace adjoin::shm
