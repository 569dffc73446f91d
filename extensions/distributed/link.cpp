// extensions/distributed/link.cpp: requests with numbers, answers by number, and news.
#include "link.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <unordered_map>
#include <vector>

namespace adjoin::distributed {

using kit::raise;
using kit::text;

namespace {

constexpr int64_t kBeat = 1000;
constexpr int64_t kNews = 200;  // a beat comes earlier where there is news
constexpr size_t kRoom = 8192;  // thousands of links may be in one process
constexpr int64_t kServerSilence = 10000;
// How long an answer that needs no waiting may take.
constexpr int64_t kAnswer = 60000;
// Up to here a question is one that a wait asks by itself: it ends soon, and an interrupt is for
// the wait, which would not hear of it.
constexpr int64_t kOwnQuestion = 2000;
// A server that ends leaves its clients this long to end, too, before they call it an error.
constexpr int64_t kAfterServer = 500;
constexpr int64_t kAfterLoss = 200;

Link& link_of(void* self) { return *static_cast<Link*>(self); }

aj_status* store_set(void* self, aj_str key, aj_str value) {
  return kit::guard("", [&] {
    Link& l = link_of(self);
    const uint32_t id = l.ticket();
    l.ask(id, std::move(Frame(Ask::set, id).text(kit::view_of(key)).text(kit::view_of(value))),
          kAnswer);
  });
}
aj_status* store_get(void* self, aj_str key, int64_t timeout_ms, aj_object** out) {
  return kit::guard("", [&] {
    Link& l = link_of(self);
    const uint32_t id = l.ticket();
    Link::Answer a =
        l.ask(id, std::move(Frame(Ask::get, id).text(kit::view_of(key)).number(timeout_ms)),
              timeout_ms + kAnswer, kit::view_of(key));
    if (a.kind == Say::deadline)
      raise(AJ_DEADLINE, "the store has no key '", key, "' after ", timeout_ms, " ms");
    kit::check(kit::core().string_new(kit::str(a.text), out));
  });
}
aj_status* store_add(void* self, aj_str key, int64_t by, int64_t* out) {
  return kit::guard("", [&] {
    Link& l = link_of(self);
    const uint32_t id = l.ticket();
    *out = l.ask(id, std::move(Frame(Ask::add, id).text(kit::view_of(key)).number(by)), kAnswer)
               .number;
  });
}
aj_status* store_swap(void* self, aj_str key, aj_str expected, aj_str desired, aj_object** out) {
  return kit::guard("", [&] {
    Link& l = link_of(self);
    const uint32_t id = l.ticket();
    Frame f(Ask::swap, id);
    f.text(kit::view_of(key)).text(kit::view_of(expected)).text(kit::view_of(desired));
    Link::Answer a = l.ask(id, std::move(f), kAnswer);
    kit::check(kit::core().string_new(kit::str(a.text), out));
  });
}
aj_status* count_with(void* self, Ask what, aj_str key, int64_t* out) {
  return kit::guard("", [&] {
    Link& l = link_of(self);
    const uint32_t id = l.ticket();
    *out = l.ask(id, std::move(Frame(what, id).text(kit::view_of(key))), kAnswer).number;
  });
}
aj_status* store_erase(void* self, aj_str key, int64_t* out) {
  return count_with(self, Ask::erase, key, out);
}
aj_status* store_count(void* self, aj_str prefix, int64_t* out) {
  return count_with(self, Ask::count, prefix, out);
}

}  // namespace

std::string line_text(uint32_t line) {
  static std::mutex& lock = *new std::mutex;
  static auto& known = *new std::unordered_map<uint32_t, std::string>;
  if (!line) return "";
  {
    std::lock_guard hold(lock);
    if (auto found = known.find(line); found != known.end()) return found->second;
  }
  aj_object* found = nullptr;
  if (aj_status* s = kit::core().line_text(line, &found)) {
    kit::core().status_free(s);
    return "";
  }
  std::string said(kit::view_of(kit::core().string_get(found)));
  kit::core().release(found);
  std::lock_guard hold(lock);
  if (!said.empty()) known[line] = said;
  return said;
}

Link::Link(const std::string& host, int port, int64_t timeout_ms)
    : socket_(connect_to(host, port, timeout_ms)),
      server_(text(host, ":", port)),
      address_(own_address(socket_)),
      store_{.struct_size = sizeof(aj_store),
             .minor = 0,
             .self = this,
             .set = store_set,
             .get = store_get,
             .add = store_add,
             .swap = store_swap,
             .erase = store_erase,
             .count = store_count} {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) raise(AJ_UNAVAILABLE, std::strerror(errno));
  wake_read_ = Socket(ends[0]);
  wake_write_ = Socket(ends[1]);
  thread_ = std::thread([this] { run(); });
}

void Link::close() {
  {
    std::lock_guard hold(lock_);
    if (stop_) return;
    stop_ = true;
    gone_ = true;
    for (auto& [id, answer] : pending_) answer->kind = Say::lost;
    pending_.clear();
    changed_.notify_all();
  }
  wake();
  thread_.join();
  shutdown(socket_.get(), SHUT_RDWR);
}

void Link::run() {
  Inbox in;
  std::string body;
  std::vector<char> room(kRoom);
  std::string told;
  int64_t beaten = 0, heard = now_ms();
  for (;;) {
    int64_t pause = kBeat;
    {
      std::lock_guard hold(lock_);
      quiet_ = doing_ == told;
      if (joined_) pause = std::max<int64_t>(beaten + (quiet_ ? kBeat : kNews) - now_ms(), 0);
    }
    pollfd waits[] = {{socket_.get(), POLLIN, 0}, {wake_read_.get(), POLLIN, 0}};
    poll(waits, 2, int(pause));
    if (waits[1].revents) (void)!read(wake_read_.get(), room.data(), room.size());
    std::string now;
    uint32_t line;
    bool beats;
    {
      std::lock_guard hold(lock_);
      if (stop_ || gone_) return;
      now = doing_;
      line = doing_line_;
      beats =
          joined_ && (now_ms() - beaten >= kBeat || (now != told && now_ms() - beaten >= kNews));
      told = beats ? now : told;
    }
    if (dumps_) {
      dumps_ = false;
      tell_ring();
    }
    if (waits[0].revents) {
      ssize_t n = recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return server_gone("has ended");
      if (n > 0) heard = now_ms();
      try {
        if (n > 0) in.append(room.data(), size_t(n));
        while (in.next(&body)) hear(body);
      } catch (const std::exception& e) {
        return server_gone(e.what());
      }
    }
    if (beats) {
      // Who was stopped himself has heard nothing, either.
      if (beaten && now_ms() - beaten > 3 * kBeat) heard = now_ms();
      if (now_ms() - heard > kServerSilence) return server_gone("does not answer");
      beaten = now_ms();
      const std::string at = line_text(line);
      send(std::move(Frame(Ask::beat)
                         .text(text(now, at.empty() ? "" : " at ", at))
                         .number(waits_.load(std::memory_order_relaxed))));
    }
  }
}

void Link::hear(const std::string& body) {
  Reader r(body);
  const Say kind = Say(r.kind);
  std::lock_guard hold(lock_);
  if (kind == Say::lost) {
    if (broken_.empty()) broken_ = r.text();
    if (auto found = pending_.find(r.id); found != pending_.end()) {  // the answer to join
      found->second->kind = kind;
      pending_.erase(found);
    }
  } else if (kind == Say::dump) {
    dumps_ = true;
  } else if (kind != Say::beat) {
    auto found = pending_.find(r.id);
    if (found == pending_.end()) return;
    found->second->kind = kind;
    if (kind == Say::value) found->second->text = r.text();
    if (kind == Say::number) found->second->number = r.number();
    pending_.erase(found);
  }
  changed_.notify_all();
}

void Link::server_gone(const char* why) {
  std::unique_lock hold(lock_);
  gone_ = true;
  for (auto& [id, answer] : pending_) answer->kind = Say::lost;
  pending_.clear();
  changed_.notify_all();
  if (!joined_) return;
  changed_.wait_for(hold, milliseconds(kAfterServer), [&] { return stop_; });
  if (broken_.empty())
    broken_ = text("the control server at ", server_, " ", why,
                   ": it stands in `adjoin launch`, or else in the process of rank 0");
  changed_.notify_all();
}

std::string Link::ended() const {
  return text("the store at ", server_,
              " has ended: it stands in `adjoin launch`, or else in the process of rank 0");
}

uint32_t Link::ticket() {
  std::lock_guard hold(lock_);
  return next_++;
}

void Link::send(Frame&& f) {
  std::lock_guard hold(send_lock_);
  send_all(socket_, f.bytes());
}

Link::Answer Link::ask(uint32_t id, Frame&& f, int64_t timeout_ms, std::string_view key) {
  Answer answer{Say::beat, {}, 0};
  {
    std::lock_guard hold(lock_);
    if (gone_) raise(AJ_UNAVAILABLE, ended());
    pending_[id] = &answer;
  }
  send(std::move(f));
  const int64_t began = now_ms(), until = began + timeout_ms;
  std::unique_lock hold(lock_);
  const Waiting counted;
  auto answered = [&] { return answer.kind != Say::beat; };
  while (!changed_.wait_for(hold, milliseconds(Waiting::pause_after(now_ms() - began)), answered)) {
    hold.unlock();
    const bool stop = timeout_ms > kOwnQuestion && kit::core().interrupted();
    hold.lock();
    if (answered() && !stop) break;
    // What is there comes at once: who would have set this key may be the one that is lost.
    const bool in_vain = !key.empty() && !broken_.empty() && now_ms() - began > kAfterLoss;
    if (stop || in_vain || now_ms() > until) {
      pending_.erase(id);
      if (stop) raise(AJ_CANCELLED, "interrupted");
      if (in_vain) raise(AJ_ABORTED, broken_, " [this process waited for the key '", key, "']");
      raise(AJ_DEADLINE, "the store at ", server_, " does not answer");
    }
  }
  if (answer.kind == Say::lost) {
    if (!broken_.empty()) raise(AJ_ABORTED, broken_);
    raise(AJ_UNAVAILABLE, ended());
  }
  return answer;
}

void Link::join(const std::string& world, int rank, int size) {
  {
    std::lock_guard hold(lock_);
    broken_.clear();
  }
  const uint32_t id = ticket();
  Frame f(Ask::join, id);
  const bool watched = secure_getenv("ADJOIN_CONTROL");  // a launcher will say how it ended
  f.text(world).number(rank).number(size).text(host_name()).number(getpid()).number(watched);
  ask(id, std::move(f), kAnswer);
  std::lock_guard hold(lock_);
  joined_ = true;
  size_ = size_t(size);
  wake();
}

void Link::leave() {
  {
    std::lock_guard hold(lock_);
    if (!joined_) return;
    joined_ = false;
    if (gone_) return;
  }
  const uint32_t id = ticket();
  try {
    ask(id, Frame(Ask::leave, id), kOwnQuestion);
  } catch (const std::exception&) {  // nobody is there to be told
  }
}

void Link::tell(const std::string& what) {
  const uint32_t id = ticket();
  ask(id, std::move(Frame(Ask::tell, id).text(what)), kOwnQuestion);
}

void Link::doing(const std::string& what, uint32_t line) {
  std::lock_guard hold(lock_);
  doing_ = what;
  doing_line_ = line;
  if (std::exchange(quiet_, false)) wake();
}

void Link::wake() { (void)!write(wake_write_.get(), "x", 1); }

uint64_t Link::tells(std::function<std::string()> ring) {
  static std::atomic<uint64_t> last = 0;
  std::lock_guard hold(tellers_lock_);
  const uint64_t mine = ++last;
  tellers_[mine] = std::move(ring);
  return mine;
}

void Link::forgets(uint64_t teller) {
  std::lock_guard hold(tellers_lock_);
  tellers_.erase(teller);
}

void Link::tell_ring() {
  std::string said;
  {
    std::lock_guard hold(tellers_lock_);
    for (auto& [id, ring] : tellers_) said += ring();
  }
  send(std::move(Frame(Ask::ring).text(said)));
}

std::string Link::report(int64_t timeout_ms) {
  const uint32_t id = ticket();
  return ask(id, Frame(Ask::report, id), timeout_ms).text;
}

std::string Link::others() {
  const uint32_t id = ticket();
  return ask(id, Frame(Ask::where, id), kOwnQuestion).text;
}

std::string Link::broken() {
  std::lock_guard hold(lock_);
  return broken_;
}

std::string Link::broken_within(int64_t ms) {
  std::unique_lock hold(lock_);
  changed_.wait_for(hold, milliseconds(ms), [&] { return !broken_.empty(); });
  return broken_;
}

int Link::first_left(const std::vector<int32_t>& ranks, int but) {
  const uint32_t id = ticket();
  std::string left;
  try {
    left =
        ask(id, std::move(Frame(Ask::left, id).number(ranks.size() == size_)), kOwnQuestion).text;
  } catch (const kit::Error&) {  // whoever asks hears why elsewhere
    return -1;
  }
  for (const char* at = left.c_str(); *at;) {
    char* end = nullptr;
    const int rank = int(std::strtol(at, &end, 10));
    if (rank != but && std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) return rank;
    at = end + 1;
  }
  return -1;
}

}  // namespace adjoin::distributed
