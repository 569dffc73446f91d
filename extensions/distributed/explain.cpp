// extensions/distributed/explain.cpp: asks the control server of a job that hangs, and says who is
// waited for.
#include "explain.hpp"

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>

#include "link.hpp"

namespace adjoin::distributed {
namespace {

using kit::raise_as;
using kit::text;

constexpr const char* kHelp =
    "usage: adjoin explain-hang [HOST:PORT | PID]...\n"
    "\n"
    "Says of a job that hangs where each of its processes stands, which collective it is in, at\n"
    "which line, and for whom the others wait. The job goes on. A job is named by the address of\n"
    "its control server (MASTER_ADDR:MASTER_PORT) or by the number of one of its processes;\n"
    "without a name all jobs of this machine that `adjoin launch` has started are asked.\n";

using Fields = std::vector<std::string>;

Fields split(const std::string& line, char at) {
  Fields found;
  for (size_t begin = 0;;) {
    const size_t end = line.find(at, begin);
    found.push_back(line.substr(begin, end == std::string::npos ? end : end - begin));
    if (end == std::string::npos) return found;
    begin = end + 1;
  }
}

int64_t number_of(const std::string& s) {
  int64_t n = 0;
  std::from_chars(s.data(), s.data() + s.size(), n);
  return n;
}

struct Started {
  std::string state, fingerprint, what;
};
struct Rank {
  std::string name, state, doing;
  int64_t silent_ms = 0;
  std::map<std::string, std::map<int64_t, Started>> groups;  // by name and number
};
struct World {
  std::string broken;
  std::map<int, Rank> ranks;
};

std::map<std::string, World> read(const std::string& report) {
  std::map<std::string, World> worlds;
  World* world = nullptr;
  Rank* rank = nullptr;
  for (const std::string& line : split(report, '\n')) {
    const Fields f = split(line, '\t');
    if (f[0] == "world" && f.size() == 3) {
      world = &worlds[f[1]];
      world->broken = f[2];
    } else if (f[0] == "rank" && f.size() == 6 && world) {
      rank = &world->ranks[int(number_of(f[1]))];
      rank->name = f[2], rank->silent_ms = number_of(f[3]), rank->state = f[4], rank->doing = f[5];
    } else if (f.size() == 5 && rank && !f[0].empty()) {
      rank->groups[f[0]][number_of(f[2])] = {f[1], f[3], f[4]};
    }
  }
  return worlds;
}

std::string place_of(const Rank& r) {
  if (r.state == "gone") return "is gone";
  if (r.state == "silent")
    return text("does not answer; it was heard ", r.silent_ms / 1000, " s ago",
                r.doing.empty() ? "" : ", its last: ", r.doing);
  for (const auto& [group, works] : r.groups)
    if (!works.empty() && works.rbegin()->second.state == "started")
      return text(r.state == "waits" ? "waits in " : "has started ", works.rbegin()->second.what);
  for (const auto& [group, works] : r.groups)
    if (!works.empty())
      return text("is outside of collectives, after ", works.rbegin()->second.what);
  return "has started no collective";
}

std::string list(const std::vector<int>& ranks) {
  std::string said = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); i++) said += text(i ? ", " : "", ranks[i]);
  return said;
}

// The first number at which two have started different things; "" if none is known.
std::string difference(const World& w, const std::string& group) {
  std::map<int64_t, std::pair<int, const Started*>> first;  // who told of a number before
  std::map<int64_t, std::string> found;
  for (const auto& [number, rank] : w.ranks) {
    auto works = rank.groups.find(group);
    if (works == rank.groups.end()) continue;
    for (const auto& [seq, started] : works->second) {
      auto [before, is_new] = first.emplace(seq, std::pair(number, &started));
      const Started& other = *before->second.second;
      if (!is_new && other.fingerprint != started.fingerprint)
        found.emplace(seq, text("  they disagree: ", other.what, " (rank ", before->second.first,
                                ") meets ", started.what, " (rank ", number, ")\n"));
    }
  }
  return found.empty() ? "" : found.begin()->second;
}

// Who of a group is behind the others.
std::string behind(const World& w, const std::string& group) {
  std::map<int64_t, std::vector<int>> at;
  for (const auto& [number, rank] : w.ranks) {
    auto works = rank.groups.find(group);
    const bool none = works == rank.groups.end() || works->second.empty();
    at[none ? 0 : works->second.rbegin()->first].push_back(number);
  }
  if (at.size() < 2) return "";
  const auto& [least, late] = *at.begin();
  return text("  group ", group, ": ", list(at.rbegin()->second), " at collective #",
              at.rbegin()->first, "; ", list(late), at.begin()->second.size() == 1 ? " is" : " are",
              " behind, at #", least, "\n");
}

bool tell(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos)
    raise_as("ValueError", AJ_INVALID_ARGUMENT, "explain-hang: '", address,
             "' is neither HOST:PORT nor the number of a process");
  Link link(address.substr(0, colon), int(number_of(address.substr(colon + 1))), 3000);
  const auto worlds = read(link.report(5000));
  link.close();
  std::string said = text("job at ", address, "\n");
  for (const auto& [name, world] : worlds) {
    std::set<std::string> groups;
    for (const auto& [number, rank] : world.ranks) {
      said += text("  ", rank.name, " ", place_of(rank), "\n");
      for (const auto& [group, works] : rank.groups) groups.insert(group);
    }
    for (const std::string& group : groups) said += difference(world, group) + behind(world, group);
    if (!world.broken.empty()) said += text("  broken: ", world.broken, "\n");
  }
  if (worlds.empty()) said += "  no process has joined a group\n";
  std::cout << said << std::flush;
  return !worlds.empty();
}

// What `adjoin launch` has told a process; "" if it has not started it.
std::string control_of(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/environ", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  std::string host, port;
  for (const std::string& v : split(all, '\0')) {
    if (v.starts_with("ADJOIN_CONTROL=")) return v.substr(15);
    if (v.starts_with("MASTER_ADDR=")) host = v.substr(12);
    if (v.starts_with("MASTER_PORT=")) port = v.substr(12);
  }
  return host.empty() || port.empty() ? "" : host + ":" + port;
}

bool is_number(const std::string& s) {
  return !s.empty() && s.find_first_not_of("0123456789") == std::string::npos;
}

std::set<std::string> jobs_of_this_machine() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc"))
    if (const std::string pid = entry.path().filename(); is_number(pid))
      if (std::string address = control_of(pid); !address.empty()) found.insert(address);
  return found;
}

}  // namespace

int explain_hang(const std::vector<std::string>& words) {
  std::set<std::string> jobs;
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") {
      std::cout << kHelp << std::flush;
      return 0;
    }
    if (word.starts_with("-"))
      raise_as("ValueError", AJ_INVALID_ARGUMENT, "there is no option ", word, "\n", kHelp);
    const std::string address = is_number(word) ? control_of(word) : word;
    if (address.empty())
      raise_as("ValueError", AJ_INVALID_ARGUMENT, "explain-hang: the process ", word,
               " is not there, or has neither ADJOIN_CONTROL nor MASTER_ADDR and MASTER_PORT");
    jobs.insert(address);
  }
  if (words.empty()) jobs = jobs_of_this_machine();
  if (jobs.empty()) {
    std::cout << "no job of `adjoin launch` runs on this machine\n" << std::flush;
    return 1;
  }
  bool found = false;
  for (const std::string& job : jobs) {
    try {
      found |= tell(job);
    } catch (const kit::Error& e) {
      if (!words.empty()) throw;
      std::cout << "job at " << job << ": " << e.what() << "\n";  // its server has just ended
    }
  }
  return found ? 0 : 1;
}

}  // namespace adjoin::distributed
