// plugins/cpu/bag.hpp: the kernel table of bags of indices.
#ifndef ADJOIN_PLUGINS_CPU_BAG_HPP
#define ADJOIN_PLUGINS_CPU_BAG_HPP
#include "tables.hpp"

namespace adjoin::cpu {

extern const Kernel bag_kernels[];

}  // namespace adjoin::cpu
#endif
