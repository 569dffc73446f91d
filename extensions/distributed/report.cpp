// extensions/distributed/report.cpp: what the control server knows of all processes, for `adjoin
// explain-hang`: it asks each for its last works, and waits a second for the answers.
#include <adjoin/kit/error.hpp>

#include "server.hpp"

namespace adjoin::distributed {
namespace {

using kit::text;

constexpr int64_t kAnswers = 1000;

}  // namespace

void Server::report(Connection& c, uint32_t id) {
  for (Connection& other : connections_) {
    if (other.world.empty() || other.gone) continue;
    other.asked = true;
    other.ring.clear();
    reply(other, Frame(Say::dump));
  }
  reports_.push_back({&c, id, now_ms() + kAnswers});
  finish_reports();
}

void Server::finish_reports() {
  if (reports_.empty()) return;
  bool all = true;
  for (const Connection& c : connections_) all = all && (!c.asked || c.gone);
  for (auto r = reports_.begin(); r != reports_.end();) {
    if (!all && r->until > now_ms()) {
      ++r;
      continue;
    }
    Connection& who = *r->who;
    const uint32_t id = r->id;
    r = reports_.erase(r);
    reply(who, std::move(Frame(Say::value, id).text(everything())));
  }
}

// A line "world", one "rank" for each process in it, and behind that its works; fields between
// tabs.
std::string Server::everything() const {
  std::map<std::string, std::map<int, const Connection*>> worlds;
  for (const Connection& c : connections_)
    if (!c.world.empty()) worlds[c.world][c.rank] = &c;
  std::string said;
  for (const auto& [world, ranks] : worlds) {
    auto why = why_broken_.find(world);
    said += text("world\t", world, "\t", why == why_broken_.end() ? "" : why->second.c_str(), "\n");
    for (const auto& [rank, c] : ranks)
      said += text("rank\t", rank, "\t", name_of(*c), "\t", now_ms() - c->heard, "\t",
                   c->gone    ? "gone"
                   : c->asked ? "silent"
                   : c->waits ? "waits"
                              : "runs",
                   "\t", c->doing, "\n", c->ring);
  }
  return said;
}

}  // namespace adjoin::distributed
