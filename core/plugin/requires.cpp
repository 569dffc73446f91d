// core/plugin/requires.cpp: what a plugin says it cannot do without:
// "iface:aj.autograd>=0;plugin:cpu".
#include "core/plugin/requires.hpp"

#include <algorithm>
#include <charconv>

#include "core/op/tables.hpp"
#include "core/plugin/note.hpp"

namespace adjoin::plugin {
namespace {

struct TableHead {  // how every table of the contract begins
  uint32_t struct_size, minor;
};

std::string check_interface(std::string_view text) {
  std::string name(text.substr(0, text.find(">=")));
  uint32_t minor = 0;
  if (name.size() < text.size()) {
    std::string_view digits = text.substr(name.size() + 2);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), minor);
    if (error != std::errc() || end != digits.data() + digits.size())
      return "bad note: requires 'iface:" + std::string(text) + "', wanted iface:NAME>=MINOR";
  }
  auto* table = static_cast<const TableHead*>(core_query(name.c_str(), AJ_ABI_MAJOR));
  if (!table) return "needs interface " + name + ", this libadjoin has none";
  uint32_t serves = std::min<uint32_t>(table->minor, this_host().minor);
  if (serves >= minor) return {};
  return "needs interface " + name + " 1." + std::to_string(minor) + ", this libadjoin serves 1." +
         std::to_string(serves);
}

}  // namespace

std::string missing_interface(const aj_plugin_note& note) {
  for (std::string_view one : split(note.requires_, ';')) {
    if (one.starts_with("iface:")) {
      if (std::string bad = check_interface(one.substr(6)); !bad.empty()) return bad;
    } else if (!one.starts_with("plugin:")) {
      return "requires '" + std::string(one) + "', which this libadjoin does not know";
    }
  }
  return {};
}

std::vector<std::string_view> required_plugins(const aj_plugin_note& note) {
  std::vector<std::string_view> names;
  for (std::string_view one : split(note.requires_, ';'))
    if (one.starts_with("plugin:")) names.push_back(one.substr(7));
  return names;
}

}  // namespace adjoin::plugin
