// core/plugin/loader.hpp: what the rest of the core asks of the loader.
#pragma once

#include <adjoin/abi/capi.h>

#include <string>
#include <string_view>

namespace adjoin {

// Reads the notes of the installed plugins, once; runs none of them. Cheap when it has been done.
void discover_plugins();

// Loads every plugin that offers `what` ("device:acme", "ops:acme", "service:aj.blas/cpu",
// "extends:cpu"), in search order. A plugin that cannot be loaded keeps its reason and stops no
// other. Fails, with all reasons, if none is there afterwards. To be called without locks of the
// core held: init calls back.
aj_status* load_provider_of(std::string_view what);

// The same for what may well be missing: no error, no text.
void load_extensions(std::string_view what);

// Has an installed plugin said that it offers this? Runs none of them.
bool plugin_offers(std::string_view what);

// The same reasons as a text: "plugin acme 0.1 (/path): refused: ..." or "no plugin provides
// 'acme'; loaded: ...".
std::string why_not(std::string_view what);

// Interface "aj.plugins".
const aj_plugins* plugins_table();

// The label of the plugin of that name, with version and file, for errors that blame it; the name
// itself if unknown.
std::string plugin_label(std::string_view name);
// "plugin acme 0.1 (/path): disabled: disabled by request"
std::string plugin_verdict(std::string_view name);

}  // namespace adjoin
