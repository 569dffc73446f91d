// plugins/gpu/vendor/modules.hpp: kernels as a vendor's compiler has embedded them, launched
// through the table that was opened at run time.
//
// The compiler embeds a code object for every architecture in each object file. A constructor there
// registers it and its kernels, under names that the vendor's runtime library has. Each plugin
// defines those names itself, hidden, over what stands here: so nothing of the vendor's is linked.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_MODULES_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_MODULES_HPP
#include "status.hpp"

namespace adjoin::vendor {

struct Size {  // dim3
  uint32_t x, y, z;
};
struct Wrapper {  // what stands around an embedded code object
  uint32_t magic, version;
  const void* object;
  const void* unused;
};

void register_kernel(const void* host_function, const Wrapper* from, const char* name);

// On the current device. A code object is loaded there when one of its kernels is first launched.
Result launch_registered(const void* host_function, Size grid, Size block, void** arguments,
                         size_t shared, Stream stream);

constexpr Result kNoSuchFunction = 98;  // cudaErrorInvalidDeviceFunction, and HIP's

}  // namespace adjoin::vendor
#endif
