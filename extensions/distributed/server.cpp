// extensions/distributed/server.cpp: one thread that waits for all connections at once.
#include "server.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <adjoin/kit/error.hpp>
#include <cerrno>
#include <cstdlib>
#include <vector>

namespace adjoin::distributed {
namespace {

using kit::text;

constexpr int64_t kTick = 100;
constexpr size_t kCompared =
    1024;  // of a group's collectives that somebody waited in, the last ones
// A launcher tells how a process ended a moment after its connection breaks. Where there is none
// nobody waits: mpirun ends the others soon.
constexpr int64_t kWaitForCause = 400;
constexpr int64_t kStalled = 1000;  // a machine that does not let the server run for so long

}  // namespace

int64_t silence_ms() {
  static const int64_t ms = [] {
    const char* told = secure_getenv("ADJOIN_SILENCE_SECONDS");
    const long seconds = told ? std::strtol(told, nullptr, 10) : 0;
    return seconds > 0 ? seconds * 1000 : 8000;
  }();
  return ms;
}

Server::Server(const std::string& host, int port) : port_(port) {
  listener_ = listen_at(host, &port_);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    kit::raise(AJ_UNAVAILABLE, "the control server: ", std::strerror(errno));
  wake_read_ = Socket(ends[0]);
  wake_write_ = Socket(ends[1]);
  fcntl(listener_.get(), F_SETFL, fcntl(listener_.get(), F_GETFL) | O_NONBLOCK);
  events_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  if (!events_) kit::raise(AJ_UNAVAILABLE, "the control server: ", std::strerror(errno));
  watch(listener_.get(), nullptr, EPOLLIN, EPOLL_CTL_ADD);
  watch(wake_read_.get(), nullptr, EPOLLIN, EPOLL_CTL_ADD);
  thread_ = std::thread([this] { run(); });
}

Server::~Server() {
  stop_ = true;
  (void)!write(wake_write_.get(), "x", 1);
  thread_.join();
}

void Server::watch(int descriptor, Connection* c, uint32_t events, int how) {
  epoll_event e = {};
  e.events = events;
  e.data.ptr = c;
  epoll_ctl(events_.get(), how, descriptor, &e);
}

// Whoever comes costs the same, however many are connected.
void Server::run() {
  std::vector<epoll_event> found(256);
  while (!stop_) {
    const int n = epoll_wait(events_.get(), found.data(), int(found.size()), int(kTick));
    if (n < 0 && errno != EINTR) break;
    bool comes = false;
    for (int i = 0; i < n; i++) {
      auto* c = static_cast<Connection*>(found[size_t(i)].data.ptr);
      const uint32_t events = found[size_t(i)].events;
      if (!c) {
        comes = true;
        continue;
      }
      if (!c->gone && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) read(*c);
      if (!c->gone && (events & EPOLLOUT)) flush(*c);
    }
    if (comes) take_new();
    look_at_clock();
  }
  for (Connection& c : connections_)
    if (!c.gone) flush(c);
}

void Server::take_new() {
  for (;;) {
    Socket s(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!s) return;
    int on = 1;
    setsockopt(s.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Connection& c = connections_.emplace_back();
    c.socket = std::move(s);
    c.heard = now_ms();
    watch(c.socket.get(), &c, EPOLLIN, EPOLL_CTL_ADD);
    connected_++;
  }
}

void Server::read(Connection& c) {
  char room[65536];
  for (;;) {
    ssize_t n = recv(c.socket.get(), room, sizeof room, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return gone(c);
    c.heard = now_ms();
    try {
      c.in.append(room, size_t(n));
      for (std::string body; c.in.next(&body);) {
        Reader r(body);
        serve(c, r);
        if (c.gone) return;
      }
    } catch (const std::exception&) {  // it speaks another language
      return gone(c);
    }
  }
}

void Server::reply(Connection& c, Frame&& f) {
  if (c.gone) return;
  c.out += f.bytes();
  flush(c);
}

void Server::flush(Connection& c) {
  while (!c.out.empty()) {
    ssize_t n = send(c.socket.get(), c.out.data(), c.out.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;  // what is broken is found when it is read
    c.out.erase(0, size_t(n));
  }
  if (c.writes == !c.out.empty()) return;
  c.writes = !c.out.empty();
  watch(c.socket.get(), &c, EPOLLIN | (c.writes ? uint32_t{EPOLLOUT} : 0), EPOLL_CTL_MOD);
}

void Server::serve(Connection& c, Reader& r) {
  switch (Ask(r.kind)) {
    case Ask::join:
      c.world = r.text();
      c.rank = int(r.number());
      r.number();
      c.host = r.text();
      c.process = r.number();
      c.watched = r.number() != 0;
      if (auto why = why_broken_.find(c.world); why != why_broken_.end())
        return reply(c, std::move(Frame(Say::lost, r.id).text(why->second)));
      std::erase(left_[c.world], c.rank);
      keys_.erase(text(c.world, "/left/", c.rank));
      return reply(c, std::move(Frame(Say::number, r.id).number(0)));
    case Ask::beat:
      c.doing = r.text();
      c.waits = r.number();
      return reply(c, Frame(Say::beat));
    case Ask::waits:
      return compare(c, r);
    case Ask::tell:
      c.told = r.text();
      lose(c, c.told);
      return reply(c, std::move(Frame(Say::number, r.id).number(0)));
    case Ask::leave:
      if (!c.world.empty()) {
        left_[c.world].push_back(c.rank);
        keys_[text(c.world, "/left/", c.rank)] = "1";
      }
      c.world.clear();
      return reply(c, std::move(Frame(Say::number, r.id).number(0)));
    case Ask::left: {
      const bool one = r.number();
      std::string ranks;
      for (int rank : left_[c.world])
        if (rank != c.rank && !(one && !ranks.empty())) ranks += text(rank, " ");
      return reply(c, std::move(Frame(Say::value, r.id).text(ranks)));
    }
    case Ask::ended: {
      const int64_t process = r.number();
      const std::string host = r.text();
      const std::string how = ends_[{host, process}] = r.text();
      // A child of its may still hold the connection open.
      for (Connection& other : connections_)
        if (other.process == process && other.host == host && !other.world.empty())
          lose(other, how);
      return reply(c, std::move(Frame(Say::number, r.id).number(0)));
    }
    case Ask::report:
      return report(c, r.id);
    case Ask::ring:
      c.ring = r.text();
      c.asked = false;
      return finish_reports();
    case Ask::where:
      return reply(c, std::move(Frame(Say::value, r.id).text(others_of(c))));
    default:
      return serve_key(c, r);
  }
}

void Server::serve_key(Connection& c, Reader& r) {
  const std::string key = r.text();
  switch (Ask(r.kind)) {
    case Ask::set:
      keys_[key] = r.text();
      reply(c, std::move(Frame(Say::number, r.id).number(0)));
      return key_set(key);
    case Ask::get: {
      const int64_t timeout = r.number();
      auto found = keys_.find(key);
      if (found != keys_.end())
        return reply(c, std::move(Frame(Say::value, r.id).text(found->second)));
      if (timeout <= 0) return reply(c, Frame(Say::deadline, r.id));
      waiters_.insert({key, {&c, r.id, now_ms() + timeout}});
      return;
    }
    case Ask::add: {
      const int64_t sum = std::strtoll(keys_[key].c_str(), nullptr, 10) + r.number();
      keys_[key] = text(sum);
      reply(c, std::move(Frame(Say::number, r.id).number(sum)));
      return key_set(key);
    }
    case Ask::swap: {
      const std::string expected = r.text(), desired = r.text();
      auto found = keys_.find(key);
      const bool takes = found == keys_.end() ? expected.empty() : found->second == expected;
      if (takes) keys_[key] = desired;
      const std::string now = takes ? desired : found == keys_.end() ? expected : found->second;
      reply(c, std::move(Frame(Say::value, r.id).text(now)));
      if (takes) key_set(key);
      return;
    }
    case Ask::erase:
      return reply(c, std::move(Frame(Say::number, r.id).number(int64_t(keys_.erase(key)))));
    case Ask::count: {
      int64_t n = 0;
      for (auto k = keys_.lower_bound(key); k != keys_.end() && k->first.starts_with(key); ++k) n++;
      return reply(c, std::move(Frame(Say::number, r.id).number(n)));
    }
    default:
      return gone(c);
  }
}

void Server::key_set(const std::string& key) {
  const auto [first, last] = waiters_.equal_range(key);
  const std::vector<std::pair<std::string, Waiter>> ready(first, last);
  waiters_.erase(first, last);
  for (const auto& [name, w] : ready)
    reply(*w.who, std::move(Frame(Say::value, w.id).text(keys_[key])));
}

// Processes that stand at the same place of a group's order must have started the same there.
void Server::compare(Connection& c, Reader& r) {
  auto& first = waiting_[c.world + "\n" + r.text()];
  std::string disagree;
  auto take = [&] {
    const int64_t seq = r.number(), fingerprint = r.number();
    std::string what = r.text();
    const auto [other, is_new] = first.try_emplace(seq, Started{fingerprint, c.rank, what});
    const Started& theirs = other->second;
    if (is_new || theirs.rank == c.rank || theirs.fingerprint == fingerprint) return;
    disagree = text("the processes disagree: ", theirs.text, " (rank ", theirs.rank, ") meets ",
                    what, " (", name_of(c),
                    "); every process must start the same collectives, "
                    "with the same dtypes and sizes, in the same order");
  };
  for (int64_t all = r.number(); all > 0 && disagree.empty(); all--) take();
  while (first.size() > kCompared) first.erase(first.begin());
  if (!disagree.empty()) tell_world(c.world, disagree, nullptr);
}

std::string Server::name_of(const Connection& c) const {
  return text("rank ", c.rank, " (host ", c.host, ", pid ", c.process, ")");
}

void Server::tell_world(const std::string& world, const std::string& what,
                        const Connection* except) {
  if (world.empty() || !why_broken_.emplace(world, what).second) return;  // the first cause counts
  for (Connection& other : connections_)
    if (&other != except && other.world == world)
      reply(other, std::move(Frame(Say::lost).text(what)));
}

void Server::lose(Connection& c, const std::string& how) {
  if (c.lost) return;
  c.lost = true;
  int64_t none = 0;
  if (!c.world.empty() && !why_broken_.contains(c.world))
    first_lost_.compare_exchange_strong(none, c.process);
  tell_world(c.world, text(name_of(c), " ", how, c.doing.empty() ? "" : "; its last: ", c.doing),
             &c);
}

void Server::gone(Connection& c) {
  if (c.gone) return;
  c.gone = true;
  c.gone_at = now_ms();
  c.socket.close();
  connected_--;
  std::erase_if(waiters_, [&](const auto& w) { return w.second.who == &c; });
  reports_.remove_if([&](const Reporting& r) { return r.who == &c; });
  if (!c.watched) hurry_ = true;
}

void Server::look_at_clock() {
  const int64_t now = now_ms();
  if (now - looked_ < kTick / 2 && !hurry_) return;
  hurry_ = false;
  // Where this thread did not come to its turn, others may not have come to theirs.
  if (looked_ && now - looked_ > kStalled)
    for (Connection& c : connections_) c.heard += now - looked_;
  looked_ = now;
  std::erase_if(waiters_, [&](const auto& w) {
    if (w.second.until > now) return false;
    reply(*w.second.who, Frame(Say::deadline, w.second.id));
    return true;
  });
  finish_reports();
  for (auto c = connections_.begin(); c != connections_.end();) {
    const bool member = !c->world.empty() && !c->lost;
    if (!c->gone && member && now - c->heard > silence_ms())
      lose(*c, text("has not answered for ", (now - c->heard) / 1000,
                    " s: it is stopped, or its machine cannot be reached"));
    if (c->gone && member) {
      auto end = ends_.find({c->host, c->process});
      if (c->watched && end == ends_.end() && now - c->gone_at < kWaitForCause) {
        ++c;
        continue;
      }
      lose(*c, end != ends_.end() ? end->second
                                  : "has ended without a word (it was killed, it crashed, or the "
                                    "network to it is cut)");
    }
    c = c->gone ? connections_.erase(c) : std::next(c);
  }
}

}  // namespace adjoin::distributed
