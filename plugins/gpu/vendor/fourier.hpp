// plugins/gpu/vendor/fourier.hpp: Fourier transforms by a vendor's library: the service
// aj.fft/DEVICE, and kernels of the rows that compute.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_FOURIER_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_FOURIER_HPP
#include <adjoin/abi/fft.h>

#include <adjoin/kit/kernel.hpp>
#include <string>

namespace adjoin::vendor {

aj_fft fourier_offer(const std::string& plugin);  // registers the type of its plans
extern const kit::Kernel transform_kernels[];

}  // namespace adjoin::vendor
#endif
