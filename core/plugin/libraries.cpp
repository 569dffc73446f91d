// core/plugin/libraries.cpp: opens libraries for plugins, notes what comes with them, holds to the
// lock file.
#include "core/plugin/libraries.hpp"

#include <dlfcn.h>
#include <link.h>

#include <mutex>

#include "core/plugin/catalog.hpp"
#include "core/plugin/trust.hpp"
#include "core/thread/fork.hpp"

namespace adjoin::plugin {
namespace {

// Not load_lock(): a library is opened in the middle of a call, and who loads a plugin may be
// waiting for such a call.
struct Noted {
  std::mutex lock;
  std::map<std::string, std::string> files;  // with the plugin that brought them first
};
Noted& noted() {
  static Noted* one = [] {
    fork_hook_add({kForkLeaf, [] { noted().lock.lock(); }, [] { noted().lock.unlock(); },
                   [] { noted().lock.unlock(); }});
    return new Noted;
  }();
  return *one;
}

aj_status* refused(aj_str plugin, const std::string& file, const std::string& why) {
  return fail(AJ_PERMISSION, "plugin ", plugin, ": library '", file, "': ", why);
}

}  // namespace

std::set<std::string> mapped_files() {
  std::set<std::string> files;
  auto visit = [](dl_phdr_info* info, size_t, void* to) {
    if (info->dlpi_name && *info->dlpi_name == '/')
      static_cast<std::set<std::string>*>(to)->insert(info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(visit, &files);
  return files;
}

aj_status* note_new_files(const std::set<std::string>& before, const std::string& self,
                          std::string_view plugin) {
  for (const std::string& file : mapped_files()) {
    if (before.contains(file) || file == self || real_path(file) == real_path(self)) continue;
    if (std::string bad = catalog().policy().refuses_mapped(file); !bad.empty())
      return fail(AJ_PERMISSION, "it brings ", bad);
    std::lock_guard held(noted().lock);
    noted().files.emplace(file, plugin);
  }
  return nullptr;
}

std::map<std::string, std::string> noted_files() {
  std::lock_guard held(noted().lock);
  return noted().files;
}

aj_status* library_open(aj_str plugin, aj_str file, void** out_handle) try {
  *out_handle = nullptr;
  std::string path(view(file));
  if (std::string bad = catalog().policy().refuses_library(&path); !bad.empty())
    return refused(plugin, std::string(view(file)), bad);
  // The system's linker answers for bare names; a path may come from the environment.
  if (path.find('/') != path.npos)
    if (std::string real = real_path(path); !real.empty())
      if (std::string who = who_else_may_write(real, libadjoin_path()); !who.empty())
        return refused(plugin, path, who + "; only places that nobody else may write are trusted");
  std::set<std::string> before = mapped_files();
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    return fail(AJ_NOT_FOUND, why ? why : "unknown error");
  }
  // Whoever opened it first may not have been a plugin, so that it is not new.
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name && *map->l_name == '/')
    before.erase(map->l_name);
  if (aj_status* bad = note_new_files(before, "", view(plugin))) {
    dlclose(handle);
    return prefix(bad, text("plugin ", plugin, ": library '", file, "': "));
  }
  *out_handle = handle;
  return nullptr;
} catch (const std::exception& e) {  // a text of no length that there is
  return fail(AJ_INVALID_ARGUMENT, "library_open: ", e.what());
}

}  // namespace adjoin::plugin
