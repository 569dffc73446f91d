// core/guest/provider.hpp: asking for a plugin that offers something. core/plugin/loader.cpp has
// all of it.
#pragma once
#include <adjoin/abi/core.h>

#include <string>
#include <string_view>

namespace adjoin {

// Loads every plugin that offers `what` ("device:acme", "ops:acme", "service:aj.blas/cpu",
// "extends:cpu"), in search order. A plugin that cannot be loaded keeps its reason and stops no
// other. Fails, with all reasons, if none is there afterwards. To be called without locks of the
// core held: init calls back.
aj_status* load_provider_of(std::string_view what);

// The same for what may well be missing: no error, no text.
void load_extensions(std::string_view what);

// Has an installed plugin said that it offers this? Runs none of them.
bool plugin_offers(std::string_view what);

// "plugin acme 0.1 (/path): disabled: disabled by request"
std::string plugin_verdict(std::string_view name);

}  // namespace adjoin
