// plugins/cuda/tables.hpp: kernels over NVIDIA's libraries, by op.
#ifndef ADJOIN_PLUGINS_CUDA_TABLES_HPP
#define ADJOIN_PLUGINS_CUDA_TABLES_HPP
#include <adjoin/kit/kernel.hpp>

namespace adjoin::vendor {
extern const kit::Kernel convolution_kernels[];
}
#endif
