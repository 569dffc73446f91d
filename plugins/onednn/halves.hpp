// plugins/onednn/halves.hpp: convolutions of bfloat16, at the rate of the processor's own products.
#ifndef ADJOIN_PLUGINS_ONEDNN_HALVES_HPP
#define ADJOIN_PLUGINS_ONEDNN_HALVES_HPP
#include <adjoin/kit/view.hpp>

namespace adjoin::onednn {

void convolution_of_halves(kit::Args args);
void convolution_backward_of_halves(kit::Args args);

}  // namespace adjoin::onednn
#endif
