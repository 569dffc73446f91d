// plugins/cpu/device.hpp: the device table of this plugin.
#ifndef ADJOIN_PLUGINS_CPU_DEVICE_HPP
#define ADJOIN_PLUGINS_CPU_DEVICE_HPP
#include <adjoin/abi/autocast.h>
#include <adjoin/abi/device.h>

namespace adjoin::cpu {
extern const aj_device_vtbl device;
extern const aj_autocast_lists autocast_lists;  // service aj.autocast/cpu
}  // namespace adjoin::cpu
#endif
