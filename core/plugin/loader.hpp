// core/plugin/loader.hpp: what the rest of the core asks of the loader.
#pragma once

#include <adjoin/abi/capi.h>

#include <string>
#include <string_view>

#include "core/guest/provider.hpp"

namespace adjoin {

// Reads the notes of the installed plugins, once; runs none of them. Cheap when it has been done.
void discover_plugins();

// The same reasons as a text: "plugin acme 0.1 (/path): refused: ..." or "no plugin provides
// 'acme'; loaded: ...".
std::string why_not(std::string_view what);

// Interface "aj.plugins".
const aj_plugins* plugins_table();

// The label of the plugin of that name, with version and file, for errors that blame it; the name
// itself if unknown.
std::string plugin_label(std::string_view name);

}  // namespace adjoin
