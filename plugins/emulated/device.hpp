// plugins/emulated/device.hpp: the device's table, for plugin.cpp.
#ifndef ADJOIN_PLUGINS_EMULATED_DEVICE_HPP
#define ADJOIN_PLUGINS_EMULATED_DEVICE_HPP
#include <adjoin/abi/device.h>

namespace adjoin::emulated {
extern const aj_device_vtbl device_table;
}
#endif
