// plugins/cuda/switches.hpp: how NVIDIA's libraries compute where there is a choice, and the
// service aj.switches/cuda.
#ifndef ADJOIN_PLUGINS_CUDA_SWITCHES_HPP
#define ADJOIN_PLUGINS_CUDA_SWITCHES_HPP
#include <adjoin/abi/switches.h>

#include <atomic>

namespace adjoin::vendor {

struct Switches {
  std::atomic<bool> tf32_products{false}, tf32_convolutions{false}, benchmark{false},
      deterministic{false};
};
extern Switches switches;
extern const aj_switches switch_table;

}  // namespace adjoin::vendor
#endif
