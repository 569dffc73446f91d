// core/op/fallback_rules.cpp: policies by op and device, from ADJOIN_FALLBACK and from
// programs; the ledger.
//
// ADJOIN_FALLBACK=RULE,RULE,... with RULE = [OP][@DEVICE]=POLICY or POLICY; OP "*" is every op.
// POLICY: error, warn, decompose, host, host:100MB, or the name of the device that serves, as cpu
// or cpu:100MB.
#include "core/op/fallback_rules.hpp"

#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/plain.hpp"
#include "core/device/device.hpp"
#include "core/guest/provider.hpp"
#include "core/op/registry.hpp"

namespace adjoin {
namespace {

struct Entry {
  std::string op, device, reason;
  uint64_t calls = 0, in = 0, out = 0, ns = 0;
};
using Place = std::pair<std::string, std::string>;  // (op, device), "" for all

struct Ledger {
  std::mutex lock;
  std::map<Place, FallbackRule> rules;
  std::map<Place, Entry*> entries;
  std::vector<Entry*> order;
};

constexpr const char* kWanted = "error, warn, decompose, host, host:100MB or a device's name";

aj_status* parse_budget(std::string_view word, uint64_t* out) {
  std::string_view rest = word;
  double n = take_double(&rest);
  double scale = rest.empty() || rest == "B"   ? 1
                 : rest == "KB" || rest == "K" ? 1e3
                 : rest == "MB" || rest == "M" ? 1e6
                 : rest == "GB" || rest == "G" ? 1e9
                                               : 0;
  if (rest.size() == word.size() || scale == 0 || !(n >= 0) || n * scale > 1e18)
    return fail(AJ_INVALID_ARGUMENT, "fallback budget '", word,
                "': wanted a number and B, KB, MB or GB, as in host:100MB");
  *out = uint64_t(n * scale);
  return nullptr;
}

aj_status* parse(std::string_view text, FallbackRule* rule) {
  std::string_view word = text.substr(0, text.find(':'));
  if (word == "error")
    rule->policy = FallbackPolicy::error;
  else if (word == "warn")
    rule->policy = FallbackPolicy::warn;
  else if (word == "decompose")
    rule->policy = FallbackPolicy::decompose;
  else
    rule->policy = FallbackPolicy::host;
  if (word.empty())
    return fail(AJ_INVALID_ARGUMENT, "fallback policy '", text, "': ", kWanted, " are possible");
  if (rule->policy == FallbackPolicy::host && word != "host") rule->device = word;
  if (word.size() == text.size()) return nullptr;
  if (rule->policy != FallbackPolicy::host && rule->policy != FallbackPolicy::warn)
    return fail(AJ_INVALID_ARGUMENT, "fallback policy '", text,
                "': only host and warn have a budget");
  return parse_budget(text.substr(word.size() + 1), &rule->budget);
}

aj_status* parse_rule(std::string_view text, Place* place, FallbackRule* rule) {
  size_t equals = text.rfind('=');
  std::string_view where = equals == text.npos ? std::string_view() : text.substr(0, equals);
  size_t at = where.find('@');
  *place = {std::string(where.substr(0, at)),
            at == where.npos ? "" : std::string(where.substr(at + 1))};
  return parse(equals == text.npos ? text : text.substr(equals + 1), rule);
}

Ledger& ledger() {
  static auto* l = [] {
    auto* made = new Ledger;
    const char* set = secure_getenv("ADJOIN_FALLBACK");
    for (std::string_view rest = set ? set : ""; !rest.empty();) {
      std::string_view one = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      Place place;
      FallbackRule rule;
      if (aj_status* bad = parse_rule(one, &place, &rule)) {
        log_message(1, "fallback", "ADJOIN_FALLBACK: " + bad->message + "; it is left out");
        free_status(bad);
        continue;
      }
      made->rules[place] = rule;
    }
    return made;
  }();
  return *l;
}

FallbackRule* find_rule(Ledger& l, const std::string& op, const std::string& device,
                        bool* names_op) {
  const Place places[] = {{op, device}, {op, ""}, {"*", device}, {"*", ""}, {"", device}, {"", ""}};
  for (int i = 0; i < 6; i++)
    if (auto found = l.rules.find(places[i]); found != l.rules.end()) {
      *names_op = i < 4;
      return &found->second;
    }
  return nullptr;
}

}  // namespace

void fallback_from_environment() {
  const char* set = secure_getenv("ADJOIN_FALLBACK");
  if (!set || !*set) return;
  std::vector<std::string> devices;
  {
    Ledger& l = ledger();
    std::lock_guard guard(l.lock);
    for (auto& [place, rule] : l.rules)
      for (const std::string& name : {rule.device, place.second})
        if (!name.empty() && name != "meta") devices.push_back(name);
  }
  for (const std::string& name : devices)
    if (!plugin_offers("device:" + name.substr(0, name.find('@'))))
      log_message(1, "fallback",
                  text("ADJOIN_FALLBACK is '", std::string_view(set).substr(0, 100), "': ", kWanted,
                       " are possible, and no plugin offers the device '", name,
                       "'; what names it does nothing"));
}

FallbackRule fallback_rule(const std::string& op, const std::string& device) {
  Ledger& l = ledger();
  std::lock_guard guard(l.lock);
  bool names_op;
  FallbackRule* found = find_rule(l, op, device, &names_op);
  return found ? *found : FallbackRule{};
}

bool body_may_serve(const std::string& op, const std::string& device) {
  Ledger& l = ledger();
  std::lock_guard guard(l.lock);
  bool names_op;
  FallbackRule* found = device == "meta" ? nullptr : find_rule(l, op, device, &names_op);
  return !found || !names_op || found->policy == FallbackPolicy::decompose;
}

void fallback_note(const std::string& op, const std::string& device, const std::string& reason,
                   uint64_t in, uint64_t out, uint64_t ns) {
  Ledger& l = ledger();
  std::lock_guard guard(l.lock);
  Entry*& e = l.entries[{op, device}];
  if (!e) l.order.push_back(e = new Entry{op, device, reason});
  e->calls++, e->in += in, e->out += out, e->ns += ns;
  bool names_op;
  if (FallbackRule* rule = find_rule(l, op, device, &names_op)) rule->moved += in + out;
}

aj_status* set_fallback(aj_str op, aj_str device, aj_str policy) {
  FallbackRule rule;
  AJ_TRY(parse(view(policy), &rule));
  int32_t type;
  if (!rule.device.empty())
    if (aj_status* bad = device_kind_find(rule.device, &type))
      return prefix(bad, text("fallback policy '", policy, "': ", kWanted, " are possible: "));
  {
    Ledger& l = ledger();
    std::lock_guard guard(l.lock);
    l.rules[{std::string(view(op)), std::string(view(device))}] = rule;
  }
  resolve_again();
  return nullptr;
}

uint32_t fallback_count() {
  std::lock_guard guard(ledger().lock);
  return uint32_t(ledger().order.size());
}

aj_status* fallback_at(uint32_t i, aj_fallback_entry* io) {
  std::lock_guard guard(ledger().lock);
  if (i >= ledger().order.size())
    return fail(AJ_OUT_OF_RANGE, "fallback_at: ", i, " of ", uint64_t(ledger().order.size()));
  const Entry& e = *ledger().order[i];
  io->op = str(e.op), io->device = str(e.device), io->reason = str(e.reason);
  io->calls = e.calls, io->bytes_in = e.in, io->bytes_out = e.out, io->nanoseconds = e.ns;
  return nullptr;
}

}  // namespace adjoin
