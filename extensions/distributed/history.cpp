// extensions/distributed/history.cpp: what a group tells of its last collectives.
#include <algorithm>

#include "group.hpp"

namespace adjoin::distributed {

using kit::text;

namespace {

constexpr size_t kBefore = 64;  // works that a waiting one tells with itself

constexpr const char* kStates[] = {"started", "done", "failed"};

}  // namespace

std::string Group::describe(const Record& r) const {
  const std::string line = line_text(r.line);
  return text(r.what, line.empty() ? "" : " at ", line);
}

std::deque<std::shared_ptr<Record>> Group::records() {
  std::lock_guard hold(lock_);
  return history_;
}

std::string Group::history() {
  std::string said;
  for (const auto& r : records()) said += text(kStates[r->state], " ", describe(*r), "\n");
  return said;
}

std::string Group::ring() {
  std::string said;
  for (const auto& r : records())
    said += text(r->transfer ? "" : label_.c_str(), "\t", kStates[r->state], "\t", r->seq, "\t",
                 r->fingerprint, "\t", describe(*r), "\n");
  return said;
}

// The server compares it with the others' works. One that an engine ended early on this side, as a
// broadcast on its root, may be the one that does not fit.
void Group::tell_that_it_waits(Work& w) {
  std::vector<std::shared_ptr<Record>> all;
  if (!w.record->transfer) {
    std::lock_guard hold(lock_);
    for (const auto& r : history_)
      if (!r->transfer && r->seq > told_ && r->seq < w.record->seq &&
          r->seq + kBefore >= w.record->seq)
        all.push_back(r);
    told_ = std::max(told_, w.record->seq);
  }
  all.push_back(w.record);
  Frame f(Ask::waits);
  f.text(w.order).number(int64_t(all.size()));
  for (const auto& r : all) f.number(int64_t(r->seq)).number(r->fingerprint).text(describe(*r));
  link_->send(std::move(f));
}

}  // namespace adjoin::distributed
