// core/plugin/manage.hpp: what an operator does with plugins in a running process: the functions of
// "aj.plugins" that disable, enable, unload, lock and verify.
#pragma once

#include <adjoin/abi/capi.h>

namespace adjoin::plugin {

aj_status* disable(aj_str name);
aj_status* enable(aj_str name);
aj_status* unload(aj_str name, aj_object** out);
aj_status* lock(aj_object** out);
void lock_from_environment();  // ADJOIN_LOCK=FILE: the lock is written there when the process ends
aj_status* verify(aj_str path, aj_object** out);

}  // namespace adjoin::plugin
