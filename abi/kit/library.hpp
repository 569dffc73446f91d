// adjoin/kit/library.hpp: opens a vendor's library through libadjoin, which notes it for `adjoin
// lock` and refuses what a lock file does not name. An older libadjoin opens it all the same.
#ifndef ADJOIN_KIT_LIBRARY_HPP
#define ADJOIN_KIT_LIBRARY_HPP
#include <adjoin/abi/capi.h>
#include <dlfcn.h>

#include <adjoin/kit/error.hpp>
#include <string>

namespace adjoin {
namespace AJ_HIDDEN kit {

inline const aj_plugins* plugin_table = nullptr;

// In init, before the first library.
inline void bind_libraries(const aj_plugin_env* from) {
  plugin_table = static_cast<const aj_plugins*>(from->query("aj.plugins", AJ_ABI_MAJOR));
}

// NULL and why not.
inline void* open_library(std::string_view plugin, const std::string& file, std::string* why) {
  void* handle = nullptr;
  if (plugin_table && AJ_HAS_FN(plugin_table, aj_plugins, library_open)) {
    aj_status* bad = plugin_table->library_open(str(plugin), str(file), &handle);
    if (bad) *why = std::string(view_of(core().status_message(bad)));
    core().status_free(bad);
    return handle;
  }
  if ((handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))) return handle;
  const char* error = dlerror();
  *why = error ? error : "unknown error";
  return nullptr;
}

}  // namespace kit
}  // namespace adjoin
#endif
