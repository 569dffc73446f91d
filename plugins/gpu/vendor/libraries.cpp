// plugins/gpu/vendor/libraries.cpp: where a vendor's libraries are looked for.
#include "libraries.hpp"

#include <dlfcn.h>
#include <link.h>

#include <adjoin/kit/library.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

namespace adjoin::vendor {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(at), text.size());
    if (end) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// site-packages of the environment that is active, and of the one that this file is installed in.
std::vector<fs::path> python_folders() {
  std::vector<fs::path> roots, found;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* value = secure_getenv(variable); value && *value) roots.emplace_back(value);
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&library_folders), &here) && here.dli_fname)
    for (fs::path p = fs::path(here.dli_fname).parent_path(); p.has_relative_path();
         p = p.parent_path())
      if (p.filename() == "site-packages" || p.filename() == "dist-packages") found.push_back(p);
  std::error_code wrong;
  for (const fs::path& root : roots)
    for (fs::directory_iterator i(root / "lib", wrong), end; !wrong && i != end; i.increment(wrong))
      if (i->path().filename().string().rfind("python3", 0) == 0)
        found.push_back(i->path() / "site-packages");
  return found;
}

// Folders under `root` that a pattern means; '*' stands for one whole name.
void expand(const fs::path& root, const std::vector<std::string>& names, size_t at,
            std::set<std::string>* out) {
  std::error_code wrong;
  if (at == names.size()) {
    if (fs::is_directory(root, wrong)) out->insert(root.string());
    return;
  }
  if (names[at] != "*") return expand(root / names[at], names, at + 1, out);
  for (fs::directory_iterator i(root, wrong), end; !wrong && i != end; i.increment(wrong))
    expand(i->path(), names, at + 1, out);
}

}  // namespace

std::vector<std::string> library_folders(const std::vector<std::string>& inside) {
  std::vector<std::string> all;
  for (const fs::path& site : python_folders())
    for (const std::string& pattern : inside) {
      std::set<std::string> here;
      expand(site, split(pattern, '/'), 0, &here);
      all.insert(all.end(), here.begin(), here.end());
    }
  return all;
}

// What a variable names goes through libadjoin, which asks who else may write there.
void* SharedLibrary::try_file(const std::string& file, bool named) {
  std::string refused;
  void* handle = named ? kit::open_library(name_, file, &refused)
                       : dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) {
    link_map* map = nullptr;
    path_ = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : file.c_str();
    return handle;
  }
  const char* why = named ? refused.c_str() : dlerror();
  tried_ += (tried_.empty() ? "" : "; ") + std::string(why ? why : file + ": unknown error");
  return nullptr;
}

bool SharedLibrary::open() {
  if (std::exchange(done_, true)) return usable();
  const char* asked = secure_getenv(variable_.c_str());
  if (asked && *asked) {
    handle_ = try_file(asked, true);
  } else {
    for (size_t i = 0; i < sonames_.size() && !handle_; ++i) handle_ = try_file(sonames_[i]);
    for (const std::string& folder :
         handle_ ? std::vector<std::string>() : library_folders(inside_))
      for (size_t i = 0; i < sonames_.size() && !handle_; ++i) {
        std::error_code wrong;
        std::string file = folder + "/" + sonames_[i];
        if (fs::exists(file, wrong)) handle_ = try_file(file);
      }
  }
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

}  // namespace adjoin::vendor
