// frontends/cli/config.cpp: `adjoin config`: flags and folders for who builds a plugin.
#include <dlfcn.h>

#include <filesystem>
#include <iostream>

#include "cli.hpp"

namespace adjoin::cli {
namespace {

namespace fs = std::filesystem;

fs::path library_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&aj_get_interface), &info) || !info.dli_fname)
    throw std::runtime_error("config: the file of libadjoin cannot be found");
  return fs::canonical(info.dli_fname).parent_path();
}

fs::path include_folder() { return prefix_with("include/adjoin/abi/base.h") / "include"; }

std::string ldflags() {
  const char* map = "share/adjoin/plugin.map";
  return "-Wl,--version-script=" + (prefix_with(map) / map).string();
}

// For programs, which link libadjoin and find it where it is now; a plugin links nothing.
std::string libs() {
  std::string folder = library_folder();
  return "-L" + folder + " -ladjoin -Wl,-rpath," + folder;
}

std::string plugin_folder() { return library_folder() / "adjoin/plugins-1"; }

std::string abi_version() {
  uint32_t v = aj_abi_version();
  return std::to_string(v >> 16) + "." + std::to_string(v & 0xffff);
}

struct Item {
  const char* name;
  const char* about;
  std::string (*value)();
};
const Item kItems[] = {
    {"abi", "the contract that this libadjoin serves", abi_version},
    {"cflags", "for the compiler", [] { return "-I" + include_folder().string(); }},
    {"includedir", "the headers' folder", [] { return include_folder().string(); }},
    {"ldflags", "for the linker: hides what is the plugin's own; there is nothing to link",
     ldflags},
    {"libdir", "the folder of libadjoin.so", [] { return library_folder().string(); }},
    {"libs", "for the linker of a program: libadjoin and where it lies", libs},
    {"plugindir", "the folder of the plugins installed with it", plugin_folder},
    {"version", "of adjoin", [] { return std::string(ADJOIN_VERSION); }},
};

}  // namespace

fs::path prefix_with(const char* file) {
  fs::path at = library_folder();
  for (int up = 0; up < 3; ++up) {
    at = at.parent_path();
    if (fs::exists(at / file)) return at;
  }
  throw std::runtime_error(std::string("config: no ") + file + " above " +
                           library_folder().string());
}

int config_command(const Words& words) {
  Arguments args("adjoin config [--cflags] [--ldflags] [--plugindir] [--version] ... [--json]",
                 "Prints what is asked for, one line each; everything if nothing is.\n"
                 "  cc -shared -fPIC $(adjoin config --cflags --ldflags) acme.c -o libaj_acme.so");
  for (const Item& item : kItems) args.add()(item.name, item.about);
  args.add()("json", "prints JSON");
  if (!args.parse(words)) return 0;
  bool all = true;
  for (const Item& item : kItems) all &= !args.has(item.name);
  std::vector<std::pair<const char*, std::string>> members;
  std::vector<std::vector<std::string>> rows;
  for (const Item& item : kItems) {
    if (!all && !args.has(item.name)) continue;
    members.emplace_back(item.name, quote(item.value()));
    if (all)
      rows.push_back({item.name, item.value()});
    else
      rows.push_back({item.value()});
  }
  if (args.has("json"))
    std::cout << json(members) << '\n';
  else
    print_table(rows);
  return 0;
}

}  // namespace adjoin::cli
