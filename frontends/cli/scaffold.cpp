// frontends/cli/scaffold.cpp: `adjoin new-backend` and `adjoin new-op`: sources that work, to begin
// with.
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

#include "cli.hpp"

namespace adjoin::cli {
namespace {

namespace fs = std::filesystem;

struct Scaffold {
  const char* command;  // for messages
  const char* kind;     // folder of templates
  const char* named;    // what the name is the name of
};

// From libadjoin upwards: lib and lib/x86_64-linux-gnu both lead to the same share.
fs::path templates_folder(const Scaffold& s) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&aj_get_interface), &info) || !info.dli_fname)
    throw std::runtime_error(std::string(s.command) + ": the file of libadjoin cannot be found");
  fs::path at = fs::canonical(info.dli_fname).parent_path();
  for (int up = 0; up < 3; ++up) {
    at = at.parent_path();
    if (fs::exists(at / "share/adjoin/templates")) return at / "share/adjoin/templates" / s.kind;
  }
  throw std::runtime_error(std::string(s.command) + ": no share/adjoin/templates above " +
                           at.string());
}

bool is_name(const std::string& name) {
  auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 32 && name[0] >= 'a' && name[0] <= 'z' &&
         std::all_of(name.begin(), name.end(), plain);
}

// A word of C, C++ or Python cannot name a function, nor can what those who write them define.
bool is_reserved(const std::string& name) {
  static constexpr std::string_view words =
      " alignas alignof and and_eq as asm assert async atomic_cancel auto await bitand"
      " bitor bool break case catch char class co_await co_return co_yield compl concept"
      " const const_cast consteval constexpr constinit continue decltype def default del"
      " delete do double dynamic_cast elif else enum except explicit export extern false"
      " finally float for friend from global goto if import in inline int is lambda long"
      " main mutable namespace new noexcept nonlocal not not_eq nullptr operator or or_eq"
      " pass private protected public raise register reinterpret_cast requires restrict"
      " return short signed sizeof static static_assert static_cast struct switch template"
      " this thread_local throw true try typedef typeid typename union unsigned using"
      " virtual void volatile wchar_t while with xor xor_eq yield ";
  return words.find(" " + name + " ") != words.npos;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return all.str();
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

// templates/KIND/common and templates/KIND/LANG, with `acme` replaced by the name.
int write_scaffold(const Scaffold& s, Arguments& args, const Words& words) {
  args.add()("lang", options::value<std::string>()->default_value("c++"),
             "c++ (with the kit) or c");
  args.add()("out", options::value<std::string>(), "the folder to make; default: ./NAME");
  args.positional("name", 1);
  if (!args.parse(words)) return 0;
  if (!args.has("name")) throw args.misuse("which name?");
  std::string name = args.get<Words>("name").front(), lang = args.get<std::string>("lang");
  if (!is_name(name) || name == "meta")
    throw args.misuse("'" + name + "' is no name for " + s.named +
                      ": wanted [a-z][a-z0-9_]*, at most 32");
  if (is_reserved(name))
    throw args.misuse("'" + name + "' is no name for " + s.named +
                      ": C, C++ or Python use it; take another");
  if (lang != "c" && lang != "c++") throw args.misuse("there is no template in '" + lang + "'");
  fs::path out = args.has("out") ? args.get<std::string>("out") : name;
  if (fs::exists(out) && !fs::is_empty(out))
    throw std::runtime_error(std::string(s.command) + ": " + out.string() +
                             " is there already and not empty");
  fs::create_directories(out);
  const std::string source = name + (lang == "c" ? ".c" : ".cpp");
  for (const char* part : {"common", lang == "c" ? "c" : "c++"})
    for (const fs::directory_entry& entry : fs::directory_iterator(templates_folder(s) / part)) {
      fs::path to = out / replaced(entry.path().filename().string(), "acme", name);
      write(to, replaced(replaced(read(entry.path()), "acme", name), "@SOURCE@", source));
      if (to.extension() == ".sh")
        fs::permissions(to, fs::perms::owner_exec | fs::perms::group_exec, fs::perm_options::add);
      std::cout << to.string() << '\n';
    }
  std::cout << "next: cd " << out.string() << " && ./check.sh\n";
  return 0;
}

}  // namespace

int new_backend_command(const Words& words) {
  Arguments args("adjoin new-backend NAME [--lang c++|c] [--out FOLDER]",
                 "Writes a device plugin of one file that trains a network, with its build files "
                 "and its checks, against the\ninstalled headers alone: the place to start from. "
                 "NAME becomes device(\"NAME\") and libaj_NAME.so.");
  return write_scaffold({"new-backend", "backend", "a device"}, args, words);
}

int new_op_command(const Words& words) {
  Arguments args(
      "adjoin new-op NAME [--lang c++|c] [--out FOLDER]",
      "Writes an op with its kernel and derivative in one file, its build line and its "
      "test, against the installed\nheaders alone. NAME becomes adjoin.ops.NAME.NAME and "
      "libaj_NAME.so. The C++ one has kernels for the processor,\nCUDA and HIP from one "
      "functor: ./build.sh cuda, ./build.sh hip.");
  return write_scaffold({"new-op", "op", "an op"}, args, words);
}

}  // namespace adjoin::cli
