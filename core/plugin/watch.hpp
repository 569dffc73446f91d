// core/plugin/watch.hpp: says on stderr who keeps the user waiting.
#pragma once

namespace adjoin {

// From now on a thread looks whether some kernel does not come back. Kernels of plugins from
// outside are why.
void watch_kernels();

}  // namespace adjoin
