// core/plugin/folders.cpp: the folders that plugins are looked for in, and their order.
#include "core/plugin/folders.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "core/plugin/note.hpp"

namespace adjoin::plugin {
namespace {

constexpr const char* kFolder = "plugins-1";  // the number is the contract's major

std::string folder_of(const std::string& file) { return file.substr(0, file.rfind('/')); }

void add_absolute(std::vector<Folder>* folders, std::string path, Origin origin) {
  Folder folder{std::move(path), origin, {}};
  if (folder.path.front() != '/') folder.problem = "not an absolute path";
  folders->push_back(std::move(folder));
}

void add_own(std::vector<Folder>* folders) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&search_folders), &info) || !info.dli_fname) return;
  std::string real = real_path(info.dli_fname);
  if (real.empty()) return;
  // libadjoin may be a link in a folder of links, with plugins linked beside it.
  std::string beside = real_path(folder_of(info.dli_fname));
  if (info.dli_fname[0] == '/' && !beside.empty() && beside != folder_of(real))
    add_absolute(folders, beside + "/adjoin/" + kFolder, Origin::kOwn);
  add_absolute(folders, folder_of(real) + "/adjoin/" + kFolder, Origin::kOwn);
}

// Of libadjoin inside a Python package, as a wheel has it: what packages beside it bring. Python
// itself adds those of its other places.
void add_packages(std::vector<Folder>* folders) {
  std::string site = folder_of(folder_of(folder_of(libadjoin_path())));
  if (site.ends_with("/site-packages") || site.ends_with("/dist-packages"))
    add_absolute(folders, site + "/adjoin_plugins", Origin::kFrontend);
}

}  // namespace

std::string real_path(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  std::string text = resolved ? resolved : "";
  std::free(resolved);
  return text;
}

std::string libadjoin_path() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&search_folders), &info) || !info.dli_fname) return {};
  return real_path(info.dli_fname);
}

std::vector<Folder> search_folders() {
  std::vector<Folder> folders;
  if (const char* list = secure_getenv("ADJOIN_PLUGIN_PATH"))
    for (std::string_view path : split(list, ':'))
      add_absolute(&folders, std::string(path), Origin::kVariable);
  add_packages(&folders);
  if (const char* data = secure_getenv("XDG_DATA_HOME"); data && *data == '/')
    add_absolute(&folders, std::string(data) + "/adjoin/" + kFolder, Origin::kUser);
  else if (const char* home = secure_getenv("HOME"); home && *home == '/')
    add_absolute(&folders, std::string(home) + "/.local/share/adjoin/" + kFolder, Origin::kUser);
  add_own(&folders);
  return folders;
}

std::vector<std::string> plugin_files(Folder* folder) {
  std::vector<std::string> files;
  if (!folder->problem.empty()) return files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder->path, error), end; !error && at != end;
       at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name.starts_with("libaj_") && name.ends_with(".so"))
      files.push_back(folder->path + "/" + name);
  }
  if (error)
    folder->problem =
        error == std::errc::no_such_file_or_directory ? "no such folder" : error.message();
  std::sort(files.begin(), files.end());
  return files;
}

std::string describe(const Folder& folder) {
  return (folder.origin == Origin::kVariable ? "$ADJOIN_PLUGIN_PATH " : "") + folder.path;
}

}  // namespace adjoin::plugin
