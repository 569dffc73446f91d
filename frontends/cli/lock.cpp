// frontends/cli/lock.cpp: `adjoin lock` and `adjoin verify`: what a process is made of, by name and
// digest.
#include <adjoin/abi/service.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "child.hpp"
#include "cli.hpp"

namespace adjoin::cli {
namespace {

// Loads what is installed, and asks every BLAS for its file, which opens it. What cannot be loaded
// is told and left out.
void load_everything() {
  auto* services = static_cast<const aj_services*>(aj_get_interface("aj.service", AJ_ABI_MAJOR));
  for (const aj_plugin_info& p : list_plugins()) {
    if (p.state != AJ_PLUGIN_FOUND) {
      if (p.state != AJ_PLUGIN_LOADED)
        std::cerr << "adjoin: lock: left out: " << text(p.name) << ": " << state_name(p.state)
                  << ": " << text(p.reason) << '\n';
      continue;
    }
    if (aj_status* bad = aj_load_plugin(text(p.path).c_str())) {
      std::cerr << "adjoin: lock: left out: " << text(core().status_message(bad)) << '\n';
      core().status_free(bad);
      continue;
    }
    for (const std::string& what : split(text(p.provides), ';')) {
      if (!what.starts_with("service:aj.blas/") || !services) continue;
      std::string slot = what.substr(8);
      for (uint32_t i = 0; i < services->count(borrow(slot)); ++i) {
        aj_service_def def = {};
        def.struct_size = sizeof def;
        check(services->at(borrow(slot), i, &def));
        auto* blas = static_cast<const aj_blas*>(def.table);
        if (AJ_HAS_FN(blas, aj_blas, path)) blas->path(blas->self);
      }
    }
  }
}

void write_lock(const std::string& file, const std::string& lines) {
  if (file == "-") {
    std::cout << lines;
    return;
  }
  std::string beside = file + ".new";
  std::ofstream to(beside);
  to << lines;
  to.close();
  if (!to) throw std::runtime_error("lock: '" + beside + "' cannot be written");
  std::filesystem::rename(beside, file);
  std::cout << "written: " << file
            << "; ADJOIN_PLUGINS=lock:" << std::filesystem::absolute(file).string()
            << " holds to it\n";
}

}  // namespace

int lock_command(const Words& all) {
  auto dashes = std::find(all.begin(), all.end(), "--");
  Words words(all.begin(), dashes), command(dashes == all.end() ? dashes : dashes + 1, all.end());
  Arguments args(
      "adjoin lock [FILE] [-- PROGRAM [argument]...]",
      "Writes what a process is made of: libadjoin, plugins, the libraries they open, by name and\n"
      "SHA-256, and the processor's features. With a PROGRAM: what that one has loaded when it "
      "ends;\n"
      "else everything that is installed. FILE is adjoin.lock; - is stdout. With\n"
      "ADJOIN_PLUGINS=lock:FILE nothing else is loaded.");
  args.positional("file", 1);
  if (!args.parse(words)) return 0;
  if (dashes != all.end() && command.empty()) throw args.misuse("lock: -- wants a program");
  std::string file = args.has("file") ? args.get<Words>("file").front() : "adjoin.lock";
  if (command.empty()) {
    load_everything();
    aj_object* lines = nullptr;
    check(plugins().lock(&lines));
    write_lock(file, take(lines));
    return 0;
  }
  Child child = run_child(command, "ADJOIN_LOCK");
  if (child.code != 0 || child.written.empty())
    throw std::runtime_error("lock: " + command[0] + " ended with code " +
                             std::to_string(child.code) +
                             (child.code ? "" : " and did not use libadjoin"));
  write_lock(file, child.written);
  return 0;
}

int verify_command(const Words& words) {
  Arguments args("adjoin verify [FILE] [--json]",
                 "Compares what is installed here with a file of `adjoin lock` (else adjoin.lock) "
                 "and tells what\n"
                 "differs. Exit code 0: nothing.");
  args.add()("json", "prints JSON");
  args.positional("file", 1);
  if (!args.parse(words)) return 0;
  std::string file = args.has("file") ? args.get<Words>("file").front() : "adjoin.lock";
  aj_object* out = nullptr;
  check(plugins().verify(borrow(file), &out));
  std::vector<std::string> lines = split(take(out), '\n');
  if (args.has("json")) {
    std::cout << json({{"file", quote(file)},
                       {"ok", lines.empty() ? "true" : "false"},
                       {"differences", quote_all(lines)}})
              << '\n';
  } else {
    for (const std::string& line : lines) std::cout << line << '\n';
    if (lines.empty()) std::cout << "nothing differs from " << file << '\n';
  }
  return lines.empty() ? 0 : 1;
}

}  // namespace adjoin::cli
