// plugins/simulated/hall.cpp: meetings by number and fingerprint: who starts something else never
// meets.
#include "hall.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>

#include "together.hpp"

namespace adjoin::simulated {
namespace {

// ADJOIN_SIMULATED="50 2": each collective takes 50 microseconds and its bytes go at 2 GB/s, one
// collective of a communicator after the other. Nothing: no time is added.
struct Model {
  double latency_us = 0, gigabytes = 0;
  Model() {
    const char* told = secure_getenv("ADJOIN_SIMULATED");
    if (!told) return;
    const std::string_view text = told;
    const char* end = text.data() + text.size();
    auto got = std::from_chars(text.data(), end, latency_us);
    while (got.ptr < end && *got.ptr == ' ') got.ptr++;
    std::from_chars(got.ptr, end, gigabytes);
  }
  Clock::duration of(size_t bytes) const {
    const double ns =
        latency_us * 1e3 + (gigabytes > 0 ? double(bytes) / gigabytes : 0);  // 1 GB/s: a byte a ns
    return std::chrono::nanoseconds(int64_t(ns));
  }
};

// Newer kernels keep all sleepers of a process in a few lists, as many as it has processors want:
// with thousands of threads each wake-up walks through hundreds of them. Older ones refuse, and
// have lists enough.
void make_room_for(int size) {
  constexpr int kFutexHash = 78, kSetSlots = 1, kFew = 64, kMost = 1 << 14;  // PR_FUTEX_HASH
  static std::atomic<int> made = kFew;
  const int wanted = std::min(int(std::bit_ceil(unsigned(size) * 2)), kMost);
  int before = made.load();
  while (before < wanted && !made.compare_exchange_weak(before, wanted)) {
  }
  if (before < wanted) prctl(kFutexHash, kSetSlots, wanted, 0, 0);
}

}  // namespace

std::shared_ptr<Hall> Hall::of(const std::string& name, int size) {
  static std::mutex& lock = *new std::mutex;
  static auto& halls = *new std::map<std::pair<std::string, int>, std::weak_ptr<Hall>>;
  std::lock_guard hold(lock);
  std::erase_if(halls, [](const auto& h) { return h.second.expired(); });
  auto& place = halls[{name, size}];
  auto found = place.lock();
  if (!found) {
    make_room_for(size);
    place = found = std::make_shared<Hall>(size);
  }
  return found;
}

void Bell::ring() {
  { std::lock_guard hold(lock); }  // who has looked already waits by now
  rings.notify_all();
}

std::shared_ptr<Meeting> Hall::come(int rank, const aj_coll& c, const std::shared_ptr<Bell>& bell) {
  static const Model model;
  const bool transfer = kit::comm::is_transfer(c);
  const Key key = {transfer, c.seq, c.fingerprint};
  std::unique_lock hold(lock_);
  auto& m = open_[key];
  if (!m) {
    m = std::make_shared<Meeting>();
    m->who.resize(transfer ? 2 : size_t(size_));
  }
  m->who[transfer ? m->come : size_t(rank)] = {std::make_unique<kit::comm::Request>(c, size_),
                                               bell};
  auto mine = m;
  if (++m->come < m->who.size()) return mine;
  std::vector<kit::comm::Request*> all;
  for (const auto& guest : m->who) all.push_back(guest.wants.get());
  open_.erase(key);
  together(all);
  mine->at = free_ = std::max(Clock::now(), free_) + model.of(all[0]->bytes());
  mine->done = true;
  hold.unlock();
  for (const auto& guest : mine->who) guest.bell->ring();
  return mine;
}

void Hall::give_up(const std::shared_ptr<Meeting>& m) {
  std::lock_guard hold(lock_);
  std::erase_if(open_, [&](const auto& o) { return o.second == m; });
}

}  // namespace adjoin::simulated
