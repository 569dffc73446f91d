// frontends/cli/newbackend.cpp: `adjoin new-backend`: writes a device plugin that works, to begin
// with.
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "cli.hpp"

namespace adjoin::cli {
namespace {

namespace fs = std::filesystem;

// From libadjoin upwards: lib and lib/x86_64-linux-gnu both lead to the same share.
fs::path templates_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&aj_get_interface), &info) || !info.dli_fname)
    throw std::runtime_error("new-backend: the file of libadjoin cannot be found");
  fs::path at = fs::canonical(info.dli_fname).parent_path();
  for (int up = 0; up < 3; ++up) {
    at = at.parent_path();
    if (fs::exists(at / "share/adjoin/templates")) return at / "share/adjoin/templates";
  }
  throw std::runtime_error("new-backend: no share/adjoin/templates above " + at.string());
}

bool is_name(const std::string& name) {
  auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 32 && name[0] >= 'a' && name[0] <= 'z' &&
         std::all_of(name.begin(), name.end(), plain);
}

std::string replaced(std::string text, const std::string& name) {
  for (size_t at = 0; (at = text.find("acme", at)) != text.npos; at += name.size())
    text.replace(at, 4, name);
  return text;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  if (!file) throw std::runtime_error("new-backend: cannot read " + path.string());
  return all.str();
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("new-backend: cannot write " + path.string());
}

}  // namespace

int new_backend_command(const Words& words) {
  Arguments args("adjoin new-backend NAME [--lang c++|c] [--out FOLDER]",
                 "Writes a device plugin of one file that trains a network, with its build files "
                 "and its checks, against the\ninstalled headers alone: the place to start from. "
                 "NAME becomes device(\"NAME\") and libaj_NAME.so.");
  args.add()("lang", options::value<std::string>()->default_value("c++"),
             "c++ (with the kit) or c");
  args.add()("out", options::value<std::string>(), "the folder to make; default: ./NAME");
  args.positional("name", 1);
  if (!args.parse(words)) return 0;
  if (!args.has("name")) throw args.misuse("which name?");
  std::string name = args.get<Words>("name").front(), lang = args.get<std::string>("lang");
  if (!is_name(name) || name == "meta")
    throw args.misuse("'" + name + "' is no name for a device: wanted [a-z][a-z0-9_]*, at most 32");
  if (lang != "c" && lang != "c++") throw args.misuse("there is no template in '" + lang + "'");
  fs::path out = args.has("out") ? args.get<std::string>("out") : name;
  if (fs::exists(out) && !fs::is_empty(out))
    throw std::runtime_error("new-backend: " + out.string() + " is there already and not empty");
  fs::create_directories(out);
  for (const char* part : {"common", lang == "c" ? "c" : "c++"})
    for (const fs::directory_entry& entry : fs::directory_iterator(templates_folder() / part)) {
      fs::path to = out / replaced(entry.path().filename().string(), name);
      std::string text = replaced(read(entry.path()), name);
      size_t at = text.find("@SOURCE@");
      for (; at != text.npos; at = text.find("@SOURCE@"))
        text.replace(at, 8, name + (lang == "c" ? ".c" : ".cpp"));
      write(to, text);
      if (to.extension() == ".sh")
        fs::permissions(to, fs::perms::owner_exec | fs::perms::group_exec, fs::perm_options::add);
      std::cout << to.string() << '\n';
    }
  std::cout << "next: cd " << out.string() << " && ./check.sh\n";
  return 0;
}

}  // namespace adjoin::cli
