// core/ops/nn/pool.hpp: how many windows fit.
#pragma once
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {

inline int64_t pooled_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding,
                           int64_t dilation, bool ceil_mode) {
  int64_t room = in + 2 * padding - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  int64_t out = room < 0 ? 0 : room / stride + 1;
  if (ceil_mode && (out - 1) * stride >= in + padding)
    --out;  // the last window must begin within input or what is before it
  return out;
}

}  // namespace adjoin::ops
