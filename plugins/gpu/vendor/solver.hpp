// plugins/gpu/vendor/solver.hpp: matrices factored by a vendor's libraries: the service
// aj.linalg/DEVICE, and kernels of ops that make problems of a call's tensors.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_SOLVER_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_SOLVER_HPP
#include <adjoin/abi/linalg.h>

#include <adjoin/kit/kernel.hpp>

namespace adjoin::vendor {

aj_linalg linalg_offer();
extern const kit::Kernel factor_kernels[];

}  // namespace adjoin::vendor
#endif
