// adjoin/kit/layout.hpp: images whose channels are the contiguous dimension, seen as [batch,
// places, channels].
#ifndef ADJOIN_KIT_LAYOUT_HPP
#define ADJOIN_KIT_LAYOUT_HPP
#include <adjoin/kit/view.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {

// Does memory hold [batch, places..., channels] without gaps, and not C order as well?
inline bool channels_last(TensorView t) {
  int64_t n = t.ndim(), step = 1;
  if (n < 4 || n > 5 || t.dense()) return false;
  for (int64_t i = 0; i < n; ++i) {
    int64_t d = i == 0 ? 1 : i == n - 1 ? 0 : n - i;
    if (t.size(d) != 1 && t.stride(d) != step) return false;
    step *= t.size(d);
  }
  return true;
}

// The same memory under the shape [batch, places..., channels]: dense if t is channels-last.
class ChannelsLast {
 public:
  explicit ChannelsLast(TensorView t) : header_(*t.get()) {
    int64_t n = t.ndim();
    for (int64_t i = 0; i < n; ++i) {
      int64_t d = i == 0 ? 0 : i == n - 1 ? 1 : i + 1;
      shape_[i] = t.size(d);
      strides_[i] = t.stride(d);
    }
    header_.dl.shape = shape_;
    header_.dl.strides = strides_;
    header_.obj.flags &= ~uint32_t(AJ_TENSOR_DENSE);
    if (channels_last(t)) header_.obj.flags |= AJ_TENSOR_DENSE;
  }
  TensorView view() { return TensorView(&header_); }
  MutView writable() { return MutView(&header_); }

 private:
  aj_tensor header_;
  int64_t shape_[5], strides_[5];
};

}  // namespace kit
}  // namespace adjoin
#endif
