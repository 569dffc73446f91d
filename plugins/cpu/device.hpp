// plugins/cpu/device.hpp: the device table of this plugin.
#ifndef ADJOIN_PLUGINS_CPU_DEVICE_HPP
#define ADJOIN_PLUGINS_CPU_DEVICE_HPP
#include <adjoin/abi/device.h>

namespace adjoin::cpu {
extern const aj_device_vtbl device;
}
#endif
