// core/plugin/requires.hpp: what a plugin says it cannot do without:
// "iface:aj.autograd>=0;plugin:cpu".
#pragma once

#include <adjoin/abi/plugin.h>

#include <string>
#include <string_view>
#include <vector>

namespace adjoin::plugin {

// What of the note's requirements no libadjoin like this one can ever give, or an empty string.
std::string missing_interface(const aj_plugin_note& note);

// Names of the plugins that must have been loaded before.
std::vector<std::string_view> required_plugins(const aj_plugin_note& note);

}  // namespace adjoin::plugin
