// extensions/distributed/history.cpp: what a group tells of its last collectives.
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
  Frame f(Ask::waits);
  f.text(w.order).number(int64_t(w.record->seq)).number(w.fingerprint).text(describe(*w.record));
  std::deque<std::shared_ptr<Record>> before;
  if (!w.record->transfer)
    for (const auto& r : records())
      if (!r->transfer && r->seq < w.record->seq && r->seq + kBefore >= w.record->seq)
        before.push_back(r);
  f.number(int64_t(before.size()));
  for (const auto& r : before) f.number(int64_t(r->seq)).number(r->fingerprint).text(describe(*r));
  link_->send(std::move(f));
}

}  // namespace adjoin::distributed
