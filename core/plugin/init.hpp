// core/plugin/init.hpp: runs a plugin's first code: dlopen and init.
#pragma once

#include <functional>

#include "core/plugin/catalog.hpp"

namespace adjoin::plugin {

// Both want load_lock() to be held. A failure is also kept as the candidate's reason.
aj_status* load(Candidate* c);
std::string unmap(Candidate* c);  // nothing of it may be in use; what keeps it mapped all the same
aj_status* drain(Candidate* c);   // nothing if it exports none
// What init defines under the provider's name: all of it or nothing.
aj_status* run_init(const std::string& provider, const std::string& path,
                    const std::string& options,
                    const std::function<aj_status*(const aj_plugin_env*)>& init);

}  // namespace adjoin::plugin
