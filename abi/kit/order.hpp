// adjoin/kit/order.hpp: results of bodies whose channels are the contiguous dimension where those
// of an input are.
#ifndef ADJOIN_KIT_ORDER_HPP
#define ADJOIN_KIT_ORDER_HPP
#include <adjoin/kit/memory.hpp>
#include <algorithm>

namespace adjoin {
namespace AJ_HIDDEN ops {

// What make(shape) gives, in the order of memory of `like`.
template <class F>
Tensor made_in_order(const Tensor& like, const Sizes& shape, F make) {
  if (!is_channels_last(like) || shape.size() != size_t(like.ndim())) return make(shape);
  Sizes turned = shape;
  std::rotate(turned.begin() + 1, turned.begin() + 2, turned.end());
  return movedim(make(turned), {-1}, {1});
}

// t in the order of memory of `like`: a copy where it lies otherwise.
inline Tensor in_order_of(const Tensor& like, const Tensor& t) {
  if (!is_channels_last(like) || t.ndim() != like.ndim()) return t;
  return contiguous(t,
                    t.ndim() == 4 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d);
}

}  // namespace ops
}  // namespace adjoin
#endif
