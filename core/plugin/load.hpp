// core/plugin/load.hpp: runs a plugin's first code: dlopen and init.
#pragma once

#include "core/plugin/catalog.hpp"

namespace adjoin::plugin {

// Both want load_lock() to be held. A failure is also kept as the candidate's reason.
aj_status* load(Candidate* c);
void unmap(Candidate* c);  // nothing of it may be in use

}  // namespace adjoin::plugin
