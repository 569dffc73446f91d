// core/plugin/libraries.hpp: the shared libraries that plugins brought into the process.
#pragma once

#include <adjoin/abi/base.h>

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/base/status.hpp"

namespace adjoin::plugin {

// The paths of everything that is mapped.
std::set<std::string> mapped_files();

// Notes what came into the process since `before`, the file `self` apart; fails, with the reason,
// if a lock file does not allow it.
aj_status* note_new_files(const std::set<std::string>& before, const std::string& self,
                          std::string_view plugin);
std::map<std::string, std::string> noted_files();  // and the plugins that brought them

// aj_plugins.library_open.
aj_status* library_open(aj_str plugin, aj_str file, void** out_handle);

}  // namespace adjoin::plugin
