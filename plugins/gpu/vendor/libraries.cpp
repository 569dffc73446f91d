// plugins/gpu/vendor/libraries.cpp: where a vendor's libraries are looked for.
#include "libraries.hpp"

#include <dlfcn.h>
#include <link.h>

#include <adjoin/kit/library.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

namespace adjoin::vendor {
namespace {

namespace fs = std::filesystem;

const char kHere = 0;  // its address says which file this is

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(at), text.size());
    if (end) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// What an interpreter's packages lie beneath, where links have led to it: PREFIX of
// PREFIX/bin/python.
fs::path prefix_of(const fs::path& program) {
  std::error_code wrong;
  return fs::canonical(program, wrong).parent_path().parent_path();
}

// Folders that have lib/python3*/: the active environment's; those of the interpreter that runs, or
// that has run the command; the user's; the system's.
std::vector<fs::path> python_roots() {
  std::vector<fs::path> roots;
  auto from = [&](const char* variable, auto root_of) {
    if (const char* value = secure_getenv(variable); value && *value == '/')
      roots.push_back(root_of(fs::path(value)));
  };
  auto itself = [](const fs::path& path) { return path; };
  from("VIRTUAL_ENV", itself);
  from("CONDA_PREFIX", itself);
  roots.push_back(prefix_of("/proc/self/exe"));
  from("ADJOIN_PYTHON", prefix_of);
  from("HOME", [](const fs::path& home) { return home / ".local"; });
  roots.insert(roots.end(), {"/usr/local", "/usr"});
  return roots;
}

// Where packages of Python lie, each once: first beside this file.
std::vector<fs::path> python_folders() {
  std::vector<fs::path> found;
  std::error_code wrong;
  auto add = [&](const fs::path& folder) {
    if (fs::is_directory(folder, wrong) &&
        std::find(found.begin(), found.end(), folder) == found.end())
      found.push_back(folder);
  };
  Dl_info here;
  if (dladdr(&kHere, &here) && here.dli_fname)
    for (fs::path p = fs::path(here.dli_fname).parent_path(); p.has_relative_path();
         p = p.parent_path())
      if (p.filename() == "site-packages" || p.filename() == "dist-packages") add(p);
  for (const fs::path& root : python_roots())
    for (fs::directory_iterator i(root / "lib", wrong), end; !wrong && i != end; i.increment(wrong))
      if (i->path().filename().string().starts_with("python3"))
        for (const char* packages : {"site-packages", "dist-packages"}) add(i->path() / packages);
  return found;
}

// Folders under `root` that a pattern means; '*' stands for one whole name.
void add_folders(const fs::path& root, const std::vector<std::string>& names, size_t at,
                 std::set<std::string>* out) {
  std::error_code wrong;
  if (at == names.size()) {
    if (fs::is_directory(root, wrong)) out->insert(root.string());
    return;
  }
  if (names[at] != "*") return add_folders(root / names[at], names, at + 1, out);
  for (fs::directory_iterator i(root, wrong), end; !wrong && i != end; i.increment(wrong))
    add_folders(i->path(), names, at + 1, out);
}

// Files of a folder that are called as the library is, whatever their version.
std::vector<std::string> versions_in(const std::string& folder, const std::string& soname) {
  std::vector<std::string> found;
  std::string stem = soname.substr(0, soname.find(".so") + 3);
  std::error_code wrong;
  for (fs::directory_iterator i(folder, wrong), end; !wrong && i != end; i.increment(wrong))
    if (i->path().filename().string().starts_with(stem)) found.push_back(i->path().string());
  std::sort(found.begin(), found.end());
  return found;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

// What a variable names, or a folder of Python's that one led to, goes through libadjoin, which
// asks who else may write there.
void* SharedLibrary::try_file(const std::string& file, bool checked) {
  std::string refused;
  void* handle = checked ? kit::open_library(name_, file, &refused)
                         : dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) {
    link_map* map = nullptr;
    path_ = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : file.c_str();
    return handle;
  }
  const char* why = checked ? refused.c_str() : dlerror();
  tried_ += (tried_.empty() ? "" : "; ") + std::string(why ? why : file + ": unknown error");
  return nullptr;
}

void SharedLibrary::look_in_packages() {
  std::vector<std::string> looked, others;
  for (const fs::path& site : python_folders()) {
    looked.push_back(site.string());
    std::set<std::string> folders;
    for (const std::string& pattern : inside_) add_folders(site, split(pattern, '/'), 0, &folders);
    for (const std::string& folder : folders) {
      for (const std::string& soname : sonames_) {
        std::error_code wrong;
        std::string file = folder + "/" + soname;
        if (fs::exists(file, wrong) && (handle_ = try_file(file, true))) return;
      }
      for (std::string& file : versions_in(folder, sonames_[0]))
        if (tried_.find(file) == tried_.npos) others.push_back(std::move(file));
    }
  }
  if (!others.empty()) tried_ += "; of another version: " + joined(others);
  tried_ +=
      "; looked for " + joined(inside_) + " in " + (looked.empty() ? "no folder" : joined(looked));
}

bool SharedLibrary::open() {
  if (std::exchange(done_, true)) return usable();
  const char* asked = secure_getenv(variable_.c_str());
  if (asked && *asked) {
    handle_ = try_file(asked, true);
    return usable();
  }
  for (size_t i = 0; i < sonames_.size() && !handle_; ++i) handle_ = try_file(sonames_[i]);
  if (!handle_ && !inside_.empty()) look_in_packages();
  return usable();
}

void* SharedLibrary::symbol(const char* name) const {
  return handle_ ? dlsym(handle_, name) : nullptr;
}

// It stays mapped: a library that has started threads cannot be unmapped safely.
void SharedLibrary::close_for(std::string why) {
  tried_ = (path_.empty() ? "" : path_ + ": ") + std::move(why);
  handle_ = nullptr;
}

std::string SharedLibrary::where() const {
  if (!done_) return name_ + ": not asked for yet";
  if (!handle_) return name_ + ": not found: " + tried_;
  return name_ + (version_.empty() ? "" : " " + version_) + ": " + path_;
}

std::string SharedLibrary::missing(std::string_view without, std::string_view remedy) const {
  return handle_ ? std::string() : kit::text("missing: ", name_, ": ", without, "; ", remedy, "\n");
}

}  // namespace adjoin::vendor
