// plugins/onednn/bias.hpp: a convolution's bias where the library does not see to it.
#ifndef ADJOIN_PLUGINS_ONEDNN_BIAS_HPP
#define ADJOIN_PLUGINS_ONEDNN_BIAS_HPP
#include "images.hpp"

namespace adjoin::onednn {

void add_bias(const Images& to, const float* bias);
// The sum over images and pixels: bits by shape alone.
void sum_to_bias(const Images& g, float* bias);

}  // namespace adjoin::onednn
#endif
