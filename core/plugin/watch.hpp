// core/plugin/watch.hpp: says on stderr who keeps the user waiting.
#pragma once

#include <cstdint>

namespace adjoin {

// How long anybody is waited for in silence: 5 s, or ADJOIN_WATCHDOG seconds; 0: for ever.
int64_t patience_ns();

// From now on a thread looks whether some kernel does not come back. Kernels of plugins from outside are why.
void watch_kernels();

}  // namespace adjoin
