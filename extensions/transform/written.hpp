// extensions/transform/written.hpp: the rules that are written for one op each.
#pragma once
#include "batch.hpp"

namespace adjoin::transform {

// products.cpp
void rule_mm(Batch& b);
void rule_bmm(Batch& b);
void rule_addmm(Batch& b);
void rule_linear(Batch& b);
void rule_linear_weight_backward(Batch& b);
// indexing.cpp
void rule_index(Batch& b);
void rule_index_put(Batch& b);
void rule_index_select(Batch& b);
void rule_index_add(Batch& b);
// layers.cpp
void rule_convolution(Batch& b);
void rule_convolution_backward(Batch& b);
void rule_layer_norm(Batch& b);
void rule_batch_norm(Batch& b);
void rule_regions(Batch& b);  // boxes of images
// makers.cpp
void rule_copy_of(Batch& b);  // clone, to
void rule_like(Batch& b);     // zeros_like
void rule_new(Batch& b);      // new_zeros
void rule_fill(Batch& b);
void rule_t(Batch& b);
void rule_squeeze(Batch& b);
void rule_as_strided(Batch& b);
void rule_counted(Batch& b);
void rule_draw(Batch& b);
// fold.cpp
void rule_attention(Batch& b);

}  // namespace adjoin::transform
