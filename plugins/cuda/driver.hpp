// plugins/cuda/driver.hpp: which CUDA the driver serves. Not in runtime.hpp, which every file of
// kernels reads.
#ifndef ADJOIN_PLUGINS_CUDA_DRIVER_HPP
#define ADJOIN_PLUGINS_CUDA_DRIVER_HPP
#include <string>

namespace adjoin::vendor {

int driver_version();  // 12040 is CUDA 12.4; 0: there is no driver that can be used
std::string version_text(int version);
// Does it serve what was made for a CUDA of this version? Without a driver: nobody says no.
bool driver_serves(int version);
// A line for the report, if it cannot load our kernels.
std::string missing_driver();

}  // namespace adjoin::vendor
#endif
