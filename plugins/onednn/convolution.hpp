// plugins/onednn/convolution.hpp: the kernels of convolutions.
#ifndef ADJOIN_PLUGINS_ONEDNN_CONVOLUTION_HPP
#define ADJOIN_PLUGINS_ONEDNN_CONVOLUTION_HPP
#include <adjoin/kit/kernel.hpp>

namespace adjoin::onednn {

extern const kit::Kernel convolution_kernels[];

}  // namespace adjoin::onednn
#endif
