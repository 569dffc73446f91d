// frontends/cli/ops.cpp: `adjoin ops`: the registry as a person reads it.
#include <algorithm>
#include <iostream>

#include "cli.hpp"

namespace adjoin::cli {
namespace {

aj_op_info info_of(const aj_op* op) {
  aj_op_info info = {};
  info.struct_size = sizeof info;
  check(dispatch().op_info(op, &info));
  return info;
}

// What a new backend has to bring: the rest is made of these, or only looks at memory in another
// way.
bool primitive(const aj_op_info& info) {
  return !(info.flags & AJ_INFO_COMPOSITE) && text(info.kind) != "view";
}

std::vector<std::string> features(const aj_op_info& info) {
  std::vector<std::string> words;
  if (info.flags & AJ_INFO_DIFFERENTIABLE) words.push_back("differentiable");
  if (info.flags & AJ_INFO_COMPOSITE) words.push_back("composite");
  if (info.flags & AJ_INFO_IN_PLACE) words.push_back("in-place");
  if (info.flags & AJ_INFO_OUT) words.push_back("out");
  return words;
}

std::string to_json(const aj_op_info& info,
                    const std::vector<std::pair<std::string, std::string>>& served) {
  std::vector<std::pair<const char*, std::string>> members = {
      {"name", quote(text(info.name))},       {"schema", quote(text(info.schema))},
      {"doc", quote(text(info.doc))},         {"kind", quote(text(info.kind))},
      {"tags", quote(text(info.tags))},       {"provider", quote(text(info.provider))},
      {"features", quote_all(features(info))}};
  std::vector<std::pair<const char*, std::string>> devices;
  for (const auto& [device, lines] : served)
    devices.emplace_back(device.c_str(), quote_all(split(lines, '\n')));
  if (!served.empty()) members.emplace_back("devices", json(devices));
  return json(members);
}

// Every device that an installed plugin promises. Asking for one loads its plugin; a failing one is
// told, not fatal.
std::vector<std::string> promised_devices() {
  std::vector<std::string> names;
  for (const aj_plugin_info& p : list_plugins()) {
    if (p.state != AJ_PLUGIN_FOUND && p.state != AJ_PLUGIN_LOADED) continue;
    for (const std::string& what : split(text(p.provides), ';'))
      if (what.starts_with("device:") &&
          std::find(names.begin(), names.end(), what.substr(7)) == names.end())
        names.push_back(what.substr(7));
  }
  return names;
}

std::string explain(const aj_op* op, const std::string& device) {
  try {
    int32_t type;
    check(core().device_find(borrow(device), &type));
    aj_object* lines = nullptr;
    check(dispatch().op_explain(op, borrow(device), &lines));
    return take(lines);
  } catch (const std::exception& e) {
    return e.what();
  }
}

int show_one(const std::string& name, const Arguments& args) {
  const aj_op* op = dispatch().find_op(borrow(name));
  if (!op) {
    aj_object* reasons = nullptr;
    std::string space = name.substr(0, name.find("::"));
    if (space.size() < name.size()) check(plugins().why(borrow("ops:" + space), &reasons));
    Words names;
    for (uint32_t i = 0; i < dispatch().op_count(); ++i)
      names.push_back(text(info_of(dispatch().op_at(i)).name));
    throw std::runtime_error("there is no op '" + name + "'" + hint(name, names) +
                             (reasons ? "\n" + take(reasons) : std::string()));
  }
  Words devices = args.has("device") ? args.get<Words>("device") : promised_devices();
  std::vector<std::pair<std::string, std::string>> served;
  for (const std::string& device : devices) served.emplace_back(device, explain(op, device));
  aj_op_info info = info_of(op);
  if (args.has("json")) {
    std::cout << to_json(info, served) << '\n';
    return 0;
  }
  std::string flags;
  for (const std::string& word : features(info)) flags += (flags.empty() ? "" : ", ") + word;
  std::string provider = text(info.provider);
  print_table({{"op", text(info.schema)},
               {"", text(info.doc)},
               {"kind", text(info.kind)},
               {"tags", text(info.tags)},
               {"has", flags},
               {"from", provider.empty() ? "libadjoin" : "plugin " + provider}});
  for (const auto& [device, lines] : served) {
    std::cout << device << ":\n";
    for (const std::string& line : split(lines, '\n')) std::cout << "  " << line << '\n';
  }
  return 0;
}

int show_all(const Arguments& args) {
  std::vector<aj_op_info> infos;
  for (uint32_t i = 0; i < dispatch().op_count(); ++i) {
    aj_op_info info = info_of(dispatch().op_at(i));
    if (!args.has("primitives") || primitive(info)) infos.push_back(info);
  }
  std::sort(infos.begin(), infos.end(),
            [](const aj_op_info& a, const aj_op_info& b) { return text(a.name) < text(b.name); });
  if (args.has("json")) {
    std::vector<std::string> items;
    for (const aj_op_info& info : infos) items.push_back(to_json(info, {}));
    std::cout << json_list(items) << '\n';
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const aj_op_info& info : infos)
    rows.push_back({text(info.name), text(info.kind), text(info.doc)});
  print_table(rows);
  std::cout << infos.size() << " ops\n";
  for (const aj_plugin_info& p : list_plugins())
    if (p.state == AJ_PLUGIN_FOUND)
      for (const std::string& what : split(text(p.provides), ';'))
        if (what.starts_with("ops:"))
          std::cout << "more in plugin " << text(p.name) << ", not loaded yet: adjoin ops "
                    << what.substr(4) << "::NAME\n";
  return 0;
}

}  // namespace

int ops_command(const Words& words) {
  Arguments args("adjoin ops [NAME] [--primitives] [--device NAME]... [--json]",
                 "Lists the ops, or tells all about one: its signature and who would compute it on "
                 "each device.\n"
                 "An op of a plugin is called SPACE::NAME; asking for it loads the plugin.");
  args.add()("primitives", "only the ops that a backend must bring itself");
  args.add()("device", options::value<Words>(),
             "who would compute NAME there; default: every installed device");
  args.add()("json", "prints JSON");
  args.positional("name", 1);
  if (!args.parse(words)) return 0;
  return args.has("name") ? show_one(args.get<Words>("name").front(), args) : show_all(args);
}

}  // namespace adjoin::cli
