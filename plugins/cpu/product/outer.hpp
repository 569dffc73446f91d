// plugins/cpu/product/outer.hpp: products whose inner size is 1: numbers times rows.
#ifndef ADJOIN_PLUGINS_CPU_PRODUCT_OUTER_HPP
#define ADJOIN_PLUGINS_CPU_PRODUCT_OUTER_HPP
#include "gemm.hpp"

namespace adjoin::cpu {

// For g.k = 1, without beta and bias.
void outer(const Gemm<float>& g);
void outer(const Gemm<double>& g);

}  // namespace adjoin::cpu
#endif
