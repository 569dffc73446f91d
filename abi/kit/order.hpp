// adjoin/kit/order.hpp: results of bodies whose channels are the contiguous dimension where those
// of an input are.
#ifndef ADJOIN_KIT_ORDER_HPP
#define ADJOIN_KIT_ORDER_HPP
#include <adjoin/kit/memory.hpp>
#include <algorithm>

namespace adjoin {
namespace AJ_HIDDEN ops {

// Channels lie closest to each other, also where parts of other dimensions were cut away; strides
// say so in a dimension of size 1, too.
inline bool lies_channels_last(const Tensor& t) {
  if (t.ndim() < 4 || t.ndim() > 5 || t.is_contiguous()) return false;
  int64_t least = 0;
  auto further = [&](int64_t d) {
    bool fits = t.size(d) && t.stride(d) >= least;
    least = t.stride(d) * std::max<int64_t>(t.size(d), 1);
    return fits;
  };
  if (t.stride(1) == 0 || !further(1)) return false;
  for (int64_t d = t.ndim() - 1; d > 1; --d)
    if (!further(d)) return false;
  return further(0) && t.stride(0) != t.stride(1);
}

// What make(shape) gives, in the order of memory of `like`.
template <class F>
Tensor made_in_order(const Tensor& like, const Sizes& shape, F make) {
  const bool last = is_channels_last(like) || lies_channels_last(like);
  if (!last || shape.size() != size_t(like.ndim())) return make(shape);
  Sizes turned = shape;
  std::rotate(turned.begin() + 1, turned.begin() + 2, turned.end());
  return movedim(make(turned), {-1}, {1});
}

// t in the order of memory of `like`: a copy where it lies otherwise.
inline Tensor in_order_of(const Tensor& like, const Tensor& t) {
  if (!lies_channels_last(like) || t.ndim() != like.ndim()) return t;
  return contiguous(t,
                    t.ndim() == 4 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d);
}

// t, or where it is a part cut out of channels-last images a copy of it that lies so, as PyTorch's
// layers make one. An order that nobody sees stays: to look at it would settle it.
inline Tensor brought_together(const Tensor& t) {
  const bool shown =
      (t.get()->obj.flags & (AJ_TENSOR_STRIDED | AJ_TENSOR_FREE_ORDER)) == AJ_TENSOR_STRIDED;
  return !shown || is_channels_last(t) ? t : in_order_of(t, t);
}

}  // namespace ops
}  // namespace adjoin
#endif
