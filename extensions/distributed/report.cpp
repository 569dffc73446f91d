// extensions/distributed/report.cpp: what the control server knows of all processes, for `adjoin
// explain-hang`: it asks each for its last works, and waits a second for the answers.
#include <adjoin/kit/error.hpp>
#include <algorithm>

#include "server.hpp"

namespace adjoin::distributed {
namespace {

using kit::text;

constexpr int64_t kAnswers = 1000;
constexpr size_t kAlone =
    8;  // where there are more others, those that do the same are told together
constexpr size_t kFew = 3, kMostNamed = 16;

}  // namespace

// "ranks 0, 2-7" of many in order; a few have their hosts and numbers, too.
std::string Server::named(const std::vector<const Connection*>& who) const {
  std::string said;
  if (who.size() <= kFew) {
    for (const Connection* c : who) said += text(said.empty() ? "" : ", ", name_of(*c));
    return said;
  }
  said = "ranks ";
  for (size_t i = 0, parts = 0; i < who.size(); parts++) {
    if (parts == kMostNamed) return text(said, " and ", who.size() - i, " more");
    size_t last = i;
    while (last + 1 < who.size() && who[last + 1]->rank == who[last]->rank + 1) last++;
    said += text(i ? ", " : "", who[i]->rank);
    if (last > i) said += text(last > i + 1 ? "-" : ", ", who[last]->rank);
    i = last + 1;
  }
  return said;
}

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

// What the others of its world do: who does the same is named together where there are many.
std::string Server::others_of(const Connection& c) const {
  std::map<int, const Connection*> others;
  for (const Connection& other : connections_)
    if (&other != &c && other.world == c.world && !c.world.empty()) others[other.rank] = &other;
  std::map<std::string, std::vector<const Connection*>> by_doing;
  for (const auto& [rank, other] : others)
    by_doing[others.size() <= kAlone ? text(rank) : other->doing].push_back(other);
  std::vector<std::vector<const Connection*>> groups;
  for (auto& [doing, who] : by_doing) groups.push_back(std::move(who));
  // What few do is what the others wait for.
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::pair(a.size(), a[0]->rank) < std::pair(b.size(), b[0]->rank);
  });
  std::string said;
  for (size_t i = 0; i < groups.size() && i < kMostNamed; i++) {
    const Connection& one = *groups[i][0];
    said += text(said.empty() ? "" : "; ", named(groups[i]), ": ",
                 one.doing.empty() ? "outside of collectives" : one.doing.c_str());
  }
  if (groups.size() > kMostNamed) said += "; and others elsewhere";
  return said;
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
