// frontends/cli/plugins.cpp: `adjoin plugins`: what was found, why it serves or not, and whether a
// file is a good plugin.
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "cli.hpp"
#include "trial.hpp"

namespace adjoin::cli {
namespace {

std::string to_json(const aj_plugin_info& p) {
  auto abi = std::to_string(p.abi_major) + "." + std::to_string(p.minor_built);
  return json({{"name", quote(text(p.name))},
               {"version", quote(text(p.version))},
               {"state", quote(state_name(p.state))},
               {"reason", quote(text(p.reason))},
               {"path", quote(text(p.path))},
               {"provides", quote_all(split(text(p.provides), ';'))},
               {"vendor", quote(text(p.vendor))},
               {"license", quote(text(p.license))},
               {"abi", quote(abi)}});
}

bool has_device(const aj_plugin_info& p) {
  std::vector<std::string> offers = split(text(p.provides), ';');
  return p.state == AJ_PLUGIN_FOUND &&
         std::any_of(offers.begin(), offers.end(),
                     [](const std::string& s) { return s.starts_with("device:"); });
}

// "device acme: 2", or why there is none.
std::string devices_of(const aj_plugin_info& p) {
  if (!has_device(p)) return {};
  constexpr double kSeconds = 20;
  Trial trial = try_in_child(text(p.path), kSeconds);
  size_t at = trial.what.find(", device ");  // behind the number of ops
  return trial.ok && at != std::string::npos ? trial.what.substr(at + 2) : trial.what;
}

int list(const Words& words) {
  Arguments args(
      "adjoin plugins list [--json]",
      "Lists every plugin of the search path. 'found' means: will be loaded when what it "
      "provides is first needed.\n"
      "Plugins of devices are tried in a child process, to tell what devices there are; "
      "--quick runs none.");
  args.add()("json", "prints JSON")("quick", "runs no plugin");
  if (!args.parse(words)) return 0;
  std::vector<aj_plugin_info> infos = list_plugins();
  if (args.has("json")) {
    std::vector<std::string> items;
    for (const aj_plugin_info& p : infos) items.push_back(to_json(p));
    std::cout << json_list(items) << '\n';
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const aj_plugin_info& p : infos) {
    rows.push_back(
        {text(p.name), text(p.version), state_name(p.state), text(p.provides), text(p.path)});
    if (p.reason.len) rows.push_back({"  " + text(p.reason)});
    if (std::string devices = args.has("quick") ? "" : devices_of(p); !devices.empty())
      rows.push_back({"  " + devices});
  }
  if (rows.empty()) {
    aj_object* folders = nullptr;
    check(plugins().search_path(&folders));
    std::cout << "no plugins; searched:\n" << take(folders);
    return 0;
  }
  // A reason is as long as it is: it does not widen the first column.
  std::vector<std::vector<std::string>> table;
  for (auto& row : rows) {
    if (row.size() > 1) {
      table.push_back(row);
      continue;
    }
    print_table(table);
    std::cout << row[0] << '\n';
    table.clear();
  }
  print_table(table);
  return 0;
}

// What a device's plugin tells of itself, it tells when it is loaded; that it cannot be is a part
// of the answer.
void load_devices_of(const std::string& name) {
  for (const aj_plugin_info& p : list_plugins()) {
    if (!has_device(p)) continue;
    for (const std::string& what : split(text(p.provides), ';')) {
      bool meant = name == text(p.name) || name == what || "device:" + name == what;
      if (!meant || !what.starts_with("device:")) continue;
      int32_t type = 0;
      if (aj_status* s = core().device_find(borrow(what.substr(7)), &type)) core().status_free(s);
    }
  }
}

int why(const Words& words) {
  Arguments args("adjoin plugins why NAME [--load] [--json]",
                 "NAME is a plugin, a device, or what a note calls it (device:acme, ops:acme, "
                 "service:aj.blas/cpu).\nTells who offers it and what was decided about them.");
  args.add()(
      "load",
      "loads them first, as plugins of devices always are, and tells what they registered and "
      "brought along");
  args.add()("json", "prints JSON");
  args.positional("name", 1);
  if (!args.parse(words)) return 0;
  if (!args.has("name")) throw args.misuse("plugins why: which NAME?");
  std::string name = args.get<Words>("name").front();
  load_devices_of(name);
  std::vector<std::string> about;
  for (const aj_plugin_info& p : list_plugins()) {
    auto offers = split(text(p.provides), ';');
    auto is = [&](const std::string& what) {
      return what == name || what.substr(what.find(':') + 1) == name;
    };
    if (text(p.name) != name && std::none_of(offers.begin(), offers.end(), is)) continue;
    about.push_back(text(p.path));
    // Why it cannot be loaded is part of what is told below.
    if (args.has("load") && p.state == AJ_PLUGIN_FOUND)
      core().status_free(aj_load_plugin(text(p.path).c_str()));
  }
  std::vector<std::string> entries;
  for (const aj_plugin_info& p : list_plugins())
    if (std::find(about.begin(), about.end(), text(p.path)) != about.end())
      entries.push_back(to_json(p));
  aj_object* reasons = nullptr;
  check(plugins().why(borrow(name), &reasons));
  std::string lines = take(reasons);
  if (args.has("json"))
    std::cout << json({{"name", quote(name)},
                       {"plugins", json_list(entries)},
                       {"lines", quote_all(split(lines, '\n'))}})
              << '\n';
  else
    (about.empty() ? std::cerr : std::cout) << lines;
  return about.empty() ? 1 : 0;
}

struct Report {
  aj_plugin_info info;
  std::vector<std::string> broken;  // rules on symbols
  Trial trial;
  std::string verdict;  // "ok" or what is wrong
};

Report examine(const std::string& path, double timeout) {
  Report report = {};
  report.info.struct_size = sizeof report.info;
  check(plugins().inspect(borrow(path), &report.info));
  if (report.info.state != AJ_PLUGIN_FOUND) {
    report.verdict = std::string(state_name(report.info.state)) + ": " + text(report.info.reason);
    return report;
  }
  aj_object* lines = nullptr;
  check(plugins().lint(borrow(path), &lines));
  report.broken = split(take(lines), '\n');
  report.trial = try_in_child(path, timeout);
  if (!report.trial.ok)
    report.verdict = report.trial.what;
  else if (!report.trial.fault.empty())
    report.verdict = "loads, but " + report.trial.fault;
  else if (!report.broken.empty())
    report.verdict = "loads, but " + report.broken.front();
  else
    report.verdict = "ok";
  return report;
}

void print(const Report& report, const std::string& path) {
  const aj_plugin_info& p = report.info;
  std::vector<std::vector<std::string>> rows = {{"file", path}};
  if (p.version.len || p.abi_major) {
    std::string abi = std::to_string(p.abi_major) + ".";
    std::string note = text(p.name) + " " + text(p.version);
    if (p.vendor.len) note += " by " + text(p.vendor);
    if (p.license.len) note += ", " + text(p.license);
    rows.push_back({"note", note + ", built for ABI " + abi + std::to_string(p.minor_built) +
                                ", runs on " + abi + std::to_string(p.minor_min)});
    rows.push_back({"provides", text(p.provides)});
  }
  for (const std::string& rule : report.broken) rows.push_back({"symbols", rule});
  if (!report.trial.what.empty()) rows.push_back({"load", report.trial.what});
  rows.push_back({"verdict", report.verdict});
  print_table(rows);
}

int check_file(const Words& words) {
  Arguments args("adjoin plugins check FILE [--timeout SECONDS] [--json]",
                 "Reads the plugin's note as libadjoin does, looks at its symbols, then loads it "
                 "in a child process, which a\n"
                 "crash, an exit() or an endless init may take with it. Exit code 0: a good "
                 "plugin; 1: the verdict says why not.");
  args.add()("timeout", options::value<double>()->default_value(20),
             "seconds that loading may take");
  args.add()("json", "prints JSON");
  args.positional("file", 1);
  if (!args.parse(words)) return 0;
  if (!args.has("file")) throw args.misuse("plugins check: which FILE?");
  // The question is whether the file is good, not whether this user's policy wants it.
  unsetenv("ADJOIN_PLUGINS");
  std::string path = std::filesystem::weakly_canonical(args.get<Words>("file").front());
  Report report = examine(path, args.get<double>("timeout"));
  bool ok = report.verdict == "ok";
  if (args.has("json"))
    std::cout << json({{"file", quote(path)},
                       {"ok", ok ? "true" : "false"},
                       {"verdict", quote(report.verdict)},
                       {"symbols", quote_all(report.broken)},
                       {"load", quote(report.trial.what)},
                       {"plugin", to_json(report.info)}})
              << '\n';
  else
    print(report, path);
  return ok ? 0 : 1;
}

}  // namespace

int plugins_command(const Words& words) {
  const std::string usage = "usage: adjoin plugins list | check FILE | why NAME; each has --help";
  if (words.empty()) throw UsageError("plugins: which of its commands?\n" + usage);
  Words rest(words.begin() + 1, words.end());
  if (words[0] == "list") return list(rest);
  if (words[0] == "check") return check_file(rest);
  if (words[0] == "why") return why(rest);
  if (words[0] == kTrialCommand) return run_trial(rest);
  if (words[0] != "--help" && words[0] != "-h")
    throw UsageError("plugins: there is no '" + words[0] + "'\n" + usage);
  std::cout << usage << '\n';
  return 0;
}

}  // namespace adjoin::cli
