// core/plugin/folders.hpp: the folders that plugins are looked for in, and their order.
#pragma once

#include <string>
#include <vector>

namespace adjoin::plugin {

// Smaller comes first. A file that is loaded by its path stands before all folders.
enum class Origin { kAsked, kVariable, kFrontend, kUser, kOwn };

struct Folder {
  std::string path;
  Origin origin = Origin::kVariable;
  std::string problem;  // why nothing was read from it, if so
};

// The folders that the environment and the place of libadjoin itself say. The current folder is
// never one of them.
std::vector<Folder> search_folders();

// Files named libaj_*.so, sorted by name, as absolute paths; sets folder->problem.
std::vector<std::string> plugin_files(Folder* folder);

std::string real_path(const std::string& path);  // "" if there is no such file
std::string libadjoin_path();
std::string describe(const Folder& folder);  // "$ADJOIN_PLUGIN_PATH /opt/x"

}  // namespace adjoin::plugin
