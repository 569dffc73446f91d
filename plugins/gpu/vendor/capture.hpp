// plugins/gpu/vendor/capture.hpp: what is captured into a graph. Not in status.hpp, which every
// file of kernels reads.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_CAPTURE_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_CAPTURE_HPP
#include "status.hpp"

namespace adjoin::vendor {

// The plugin's own. What is captured must not be waited for.
bool capturing(Stream stream);

}  // namespace adjoin::vendor
#endif
