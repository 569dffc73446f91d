// plugins/cpu/pointwise/dense_copy.hpp: a tensor's elements in C order, by the kernel that copies.
#ifndef ADJOIN_PLUGINS_CPU_POINTWISE_DENSE_COPY_HPP
#define ADJOIN_PLUGINS_CPU_POINTWISE_DENSE_COPY_HPP
#include <adjoin/kit/view.hpp>

namespace adjoin::cpu {

// Room for t.numel() elements of its dtype begins at `to`. On the calling thread.
void copy_in_order(kit::TensorView t, char* to);

}  // namespace adjoin::cpu
#endif
