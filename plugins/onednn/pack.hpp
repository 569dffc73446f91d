// plugins/onednn/pack.hpp: weights between the user's order and blocks of channels. The library's
// own reorders take as long as a convolution of few pixels.
#ifndef ADJOIN_PLUGINS_ONEDNN_PACK_HPP
#define ADJOIN_PLUGINS_ONEDNN_PACK_HPP
#include "piece.hpp"

namespace adjoin::onednn {

// Fills `packed`, laid out as `layout` says, from the user's weight. False: not in a form that this
// serves.
bool pack(const dnnl_memory_desc_t& layout, const Weight& weight, float* packed);
// The other way.
bool unpack(const dnnl_memory_desc_t& layout, const float* packed, const Weight& weight);

}  // namespace adjoin::onednn
#endif
