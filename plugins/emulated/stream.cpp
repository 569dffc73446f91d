// plugins/emulated/stream.cpp: queues of work and the threads that do it.
#include "stream.hpp"

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "../gpu/line.hpp"
#include "orders.hpp"

namespace adjoin::emulated {

using kit::fail;

std::atomic<bool> poisoned{false};

aj_status* check_alive() {
  if (!poisoned) return nullptr;
  return fail(AJ_UNAVAILABLE,
              "emulated: the device was used before this process was forked, and its streams have "
              "stayed in the parent; use spawn to start processes");
}

namespace {

struct Registry {
  std::mutex lock;
  std::vector<Stream*> all;
  Stream* defaults[16] = {};
};

// Made while the line is still known, on the thread of who queues, and before any lock is taken.
std::string place_now() {
  thread_local std::unordered_map<uint32_t, std::string> known;
  uint32_t line = gpu::line_now();
  if (auto it = known.find(line); it != known.end()) return it->second;
  std::string place = gpu::line_text(line);
  if (!place.empty()) known[line] = place;
  return place;
}

Registry& registry() {
  static auto* r = new Registry;  // threads use it as long as the process lives
  return *r;
}

}  // namespace

Stream& stream_of(int32_t device, void* native) {
  if (native) return *static_cast<Stream*>(native);
  Registry& r = registry();
  std::lock_guard held(r.lock);
  Stream*& s = r.defaults[device & 15];
  if (!s) {
    s = new Stream(device);
    r.all.push_back(s);
  }
  return *s;
}

aj_status* wait_for_device(int32_t device, Stream::Errors errors) {
  Registry& r = registry();
  std::vector<Stream*> all;
  {
    std::lock_guard held(r.lock);
    all = r.all;
  }
  aj_status* first = nullptr;
  for (Stream* s : all) {
    if (s->device() != device || s->captures()) continue;
    aj_status* wrong = s->wait(s->queued(), errors);
    if (wrong && first)
      kit::core().status_free(wrong);
    else if (wrong)
      first = wrong;
  }
  return first;
}

aj_status* Stream::end() {
  if (aj_status* s = wait(queued(), Errors::leave)) return s;
  {
    std::lock_guard held(lock_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (aj_status* lost = take_error()) kit::core().status_free(lost);
  Registry& r = registry();
  std::lock_guard held(r.lock);
  std::erase(r.all, this);
  return nullptr;
}

// Wants the lock.
aj_status* Stream::start() {
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (const std::exception& e) {
    return fail(AJ_UNAVAILABLE, "emulated: no thread for a stream: ", e.what());
  }
  runs_ = true;
  Registry& r = registry();
  std::lock_guard also(r.lock);
  if (std::find(r.all.begin(), r.all.end(), this) == r.all.end()) r.all.push_back(this);
  return nullptr;
}

aj_status* Stream::submit(Work work, uint64_t* out) {
  if (aj_status* s = check_alive()) return s;
  if (work.counts && work.where.empty()) work.where = place_now();
  uint64_t ticket;
  {
    std::lock_guard held(lock_);
    if (capture_) {
      capture_->work.push_back(std::move(work));
      return nullptr;
    }
    if (!runs_)
      if (aj_status* s = start()) return s;
    work_.push_back(std::move(work));
    ticket = ++queued_;
    if (out) *out = ticket;
  }
  changed_.notify_all();
  return orders.blocking ? wait(ticket) : nullptr;
}

uint64_t Stream::queued() {
  std::lock_guard held(lock_);
  return queued_;
}

bool Stream::passed(uint64_t ticket) {
  std::lock_guard held(lock_);
  return done_ >= ticket;
}

aj_status* Stream::take_error() {
  std::lock_guard held(lock_);
  return std::exchange(error_, nullptr);
}

aj_status* Stream::look(uint64_t ticket) const {
  return error_ && error_at_ <= ticket ? gpu::again(error_, "") : nullptr;
}

aj_status* Stream::look_at_error(uint64_t ticket) {
  std::lock_guard held(lock_);
  return look(ticket);
}

aj_status* Stream::late(int64_t ms) const {
  return fail(AJ_DEADLINE, "emulated:", device_, ": a stream has not come to its end within ", ms,
              " ms: ", queued_ - done_, " pieces of work wait, the first is ", doing_,
              "; it hangs, or deadline_ms is too short");
}

aj_status* Stream::ask(uint64_t ticket, int32_t* done) {
  std::lock_guard held(lock_);
  *done = done_ >= ticket;
  auto now = std::chrono::steady_clock::now();
  if (*done || asked_at_ != done_ + 1) {
    asked_at_ = *done ? 0 : done_ + 1;  // 0: nobody has asked
    asked_ = now;
    return nullptr;
  }
  int64_t ms = orders.deadline_ms;
  return ms && now - asked_ > std::chrono::milliseconds(ms) ? late(ms) : nullptr;
}

aj_status* Stream::wait(uint64_t ticket, Errors errors) {
  if (aj_status* s = check_alive()) return s;
  std::unique_lock held(lock_);
  auto there = [&] { return done_ >= ticket; };
  if (int64_t ms = orders.deadline_ms; ms == 0) {
    changed_.wait(held, there);
  } else if (!changed_.wait_for(held, std::chrono::milliseconds(ms), there)) {
    return late(ms);
  }
  if (errors == Errors::leave) return nullptr;
  return errors == Errors::look ? look(ticket) : std::exchange(error_, nullptr);
}

bool Stream::captures() {
  std::lock_guard held(lock_);
  return capture_ != nullptr;
}

aj_status* Stream::capture() {
  std::lock_guard held(lock_);
  if (capture_)
    return fail(AJ_PRECONDITION, "emulated:", device_, ": the stream is being captured already");
  capture_ = std::make_unique<Graph>(Graph{device_, {}});
  return nullptr;
}

aj_status* Stream::end_capture(Graph** out) {
  std::lock_guard held(lock_);
  *out = capture_.release();
  if (*out) return nullptr;
  return fail(AJ_PRECONDITION, "emulated:", device_, ": the stream is not being captured");
}

void Stream::loop() {
  std::unique_lock held(lock_);
  for (;;) {
    changed_.wait(held, [&] { return ends_ || !work_.empty(); });
    if (work_.empty()) return;
    Work now = std::move(work_.front());
    work_.pop_front();
    doing_ = now.where.empty() ? now.what : now.what + ", queued by " + now.where;
    held.unlock();
    if (now.counts) {
      if (int64_t us = orders.delay_us) std::this_thread::sleep_for(std::chrono::microseconds(us));
      while (orders.hang.due())
        while (!orders.released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    aj_status* wrong = gpu::with_place(now.run(), now.where);
    now = {};
    held.lock();
    ++done_;
    if (wrong && error_)
      kit::core().status_free(wrong);
    else if (wrong)
      error_ = wrong, error_at_ = done_;
    changed_.notify_all();
  }
}

}  // namespace adjoin::emulated
