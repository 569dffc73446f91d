// adjoin/plugins.hpp: which plugins there are, and loading one by hand.
#ifndef ADJOIN_PLUGINS_HPP
#define ADJOIN_PLUGINS_HPP
#include <adjoin/joined.hpp>
#include <adjoin/kit/error.hpp>
#include <string>
#include <vector>

namespace AJ_HIDDEN adjoin {

struct Plugin {
  std::string name, version, path, provides, reason;
  uint32_t state;  // AJ_PLUGIN_FOUND, ...
};

inline std::vector<Plugin> plugins() {
  std::vector<Plugin> list;
  auto visit = [](void* self, const aj_plugin_info* i) -> int32_t {
    auto text = [](aj_str s) { return std::string(kit::view_of(s)); };
    static_cast<std::vector<Plugin>*>(self)->push_back({text(i->name), text(i->version),
                                                        text(i->path), text(i->provides),
                                                        text(i->reason), i->state});
    return 0;
  };
  kit::check(aj_list_plugins(visit, &list));
  return list;
}

// Loads the file now. Its ops are callable by name, its devices by device("name").
inline void load_plugin(const std::string& path) { kit::check(aj_load_plugin(path.c_str())); }

}  // namespace adjoin
#endif
