// core/service/services.cpp: who offers what under which slot, and which of them is asked first.
#include "core/service/services.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/base/guarded.hpp"
#include "core/guest/provider.hpp"
#include "core/thread/fork.hpp"

namespace adjoin {
namespace {

struct Entry {
  std::string slot, name, plugin;
  int32_t priority;
  const void* table;
  bool given = false;  // somebody may keep the table
};

struct Services {
  std::mutex lock;
  std::map<std::string, std::vector<Entry*>, std::less<>> slots;  // sorted by priority
  std::vector<std::unique_ptr<Entry>> made;  // all that ever were: names were given out
  std::map<std::string, std::string, std::less<>> chosen;
  std::set<std::string, std::less<>> asked;  // slots whose plugins were looked for
  std::set<std::string, std::less<>> names;  // all that were chosen once: they were given out
};
std::atomic<uint64_t> changes{1};

Services& services() {
  static auto* s = [] {
    auto* made = new Services;
    fork_hook_add({kForkLeaf, [] { services().lock.lock(); }, [] { services().lock.unlock(); },
                   [] { services().lock.unlock(); }});
    return made;
  }();
  return *s;
}

void sort(Services& s, std::string_view slot) {
  auto it = s.slots.find(slot);
  if (it == s.slots.end()) return;
  auto chosen = s.chosen.find(slot);
  auto rank = [&](const Entry* e) {
    return chosen != s.chosen.end() && chosen->second == e->name ? INT64_MAX : int64_t(e->priority);
  };
  std::stable_sort(it->second.begin(), it->second.end(),
                   [&](auto* a, auto* b) { return rank(a) > rank(b); });
}

// The first question about a slot loads who offers it. Nobody there is no error: callers have a way
// of their own.
void load_providers(std::string_view slot) {
  {
    std::lock_guard held(services().lock);
    if (!services().asked.emplace(slot).second) return;
  }
  if (aj_status* s = load_provider_of("service:" + std::string(slot))) free_status(s);
}

uint32_t count(aj_str slot) {
  load_providers(view(slot));
  std::lock_guard held(services().lock);
  auto it = services().slots.find(view(slot));
  return it == services().slots.end() ? 0 : uint32_t(it->second.size());
}

aj_status* take(aj_str slot, uint32_t i, aj_service_def* io, bool give) {
  std::lock_guard held(services().lock);
  auto it = services().slots.find(view(slot));
  uint32_t n = it == services().slots.end() ? 0 : uint32_t(it->second.size());
  if (i >= n)
    return fail(AJ_NOT_FOUND, "service '", slot, "': number ", i, " was asked for, ",
                n == 0 ? "no plugin offers it" : text("there are ", n));
  Entry* e = it->second[i];
  e->given |= give;
  aj_service_def d{};
  d.struct_size = io->struct_size;
  d.priority = e->priority;
  d.slot = str(e->slot);
  d.name = str(e->name);
  d.table = e->table;
  std::memcpy(io, &d, std::min<size_t>(io->struct_size, sizeof d));
  return nullptr;
}

aj_status* at(aj_str slot, uint32_t i, aj_service_def* io) {
  load_providers(view(slot));
  return take(slot, i, io, true);
}

aj_status* choose(aj_str slot, aj_str name) {
  load_providers(view(slot));
  Services& s = services();
  std::lock_guard held(s.lock);
  if (!name.len) {
    s.chosen.erase(std::string(view(slot)));
    sort(s, view(slot));
    changes.fetch_add(1);
    return nullptr;
  }
  // A path, a list: not for us to understand, but for who reads chosen().
  if (view(name).find_first_of("/=,") != std::string_view::npos) {
    s.chosen[std::string(view(slot))] = view(name);
    sort(s, view(slot));
    changes.fetch_add(1);
    return nullptr;
  }
  std::string have;
  if (auto it = s.slots.find(view(slot)); it != s.slots.end()) {
    for (const Entry* e : it->second) {
      if (e->name == view(name)) {
        s.chosen[std::string(view(slot))] = e->name;
        sort(s, view(slot));
        changes.fetch_add(1);
        return nullptr;
      }
      have += (have.empty() ? "" : ", ") + e->name;
    }
  }
  return fail(AJ_NOT_FOUND, "service '", slot, "': no '", name, "' there; it has ",
              have.empty() ? "nothing" : have);
}

aj_str chosen(aj_str slot) {
  Services& s = services();
  std::lock_guard held(s.lock);
  auto it = s.chosen.find(view(slot));
  return it == s.chosen.end() ? aj_str{"", 0} : str(*s.names.insert(it->second).first);
}

uint64_t revision() { return changes.load(std::memory_order_acquire); }

}  // namespace

const aj_services services_table = {sizeof(aj_services), AJ_ABI_MINOR,  quiet<count>, guarded<at>,
                                    guarded<choose>,     quiet<chosen>, revision};

aj_status* service_add(const aj_service_def& d, std::string_view plugin) {
  Services& s = services();
  std::lock_guard held(s.lock);
  auto& slot = s.slots[std::string(view(d.slot))];
  for (const Entry* e : slot)
    if (e->name == view(d.name))
      return fail(AJ_ALREADY_EXISTS, "def_service: slot '", d.slot, "' has a '", d.name,
                  "' already, from plugin ", e->plugin);
  auto same = [&](auto& e) {  // a plugin that comes back has its old entry
    return e->plugin == plugin && e->slot == view(d.slot) && e->name == view(d.name);
  };
  auto old = std::ranges::find_if(s.made, same);
  if (old == s.made.end())
    old = s.made.insert(
        old, std::make_unique<Entry>(Entry{std::string(view(d.slot)), std::string(view(d.name)),
                                           std::string(plugin), 0, nullptr}));
  (*old)->priority = d.priority;
  (*old)->table = d.table;
  slot.push_back(old->get());
  sort(s, view(d.slot));
  changes.fetch_add(1);
  return nullptr;
}

aj_status* service_peek(aj_str slot, aj_service_def* io) { return take(slot, 0, io, false); }

std::string service_given(std::string_view plugin) {
  Services& s = services();
  std::lock_guard held(s.lock);
  for (const auto& e : s.made)
    if (e->plugin == plugin && e->given) return e->slot + " '" + e->name + "'";
  return {};
}

std::string service_summary(std::string_view plugin) {
  Services& s = services();
  std::lock_guard held(s.lock);
  std::string lines;
  for (const auto& [slot, entries] : s.slots)
    for (const Entry* e : entries)
      if (e->plugin == plugin) {
        auto chosen = s.chosen.find(slot);
        lines += text("  service ", slot, " '", e->name, "': priority ", e->priority,
                      chosen != s.chosen.end() && chosen->second == e->name ? ", chosen\n" : "\n");
      }
  return lines;
}

void service_remove(std::string_view plugin) {
  Services& s = services();
  std::lock_guard held(s.lock);
  for (auto& [slot, entries] : s.slots)
    std::erase_if(entries, [&](const Entry* e) { return e->plugin == plugin; });
  changes.fetch_add(1);
}

}  // namespace adjoin
