// plugins/gpu/vendor/device.hpp: the device's table over CUDA's or HIP's runtime, for plugin.cpp.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_DEVICE_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_DEVICE_HPP
#include <adjoin/abi/device.h>

namespace adjoin::vendor {
extern const aj_device_vtbl device_table;
}
#endif
