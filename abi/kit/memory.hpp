// adjoin/kit/memory.hpp: fresh tensors in a given order of memory.
#ifndef ADJOIN_KIT_MEMORY_HPP
#define ADJOIN_KIT_MEMORY_HPP
#include <adjoin/kit/infer.hpp>
#include <adjoin/kit/ops.hpp>
#include <algorithm>
#include <numeric>

namespace adjoin {
namespace AJ_HIDDEN ops {

inline Tensor empty_strides(std::span<const int64_t> shape, const int64_t* strides,
                            DLDataType dtype, DLDevice device) {
  for (int64_t n : shape) want(n >= 0, "sizes must not be negative: ", shown(shape));
  DLTensor like{};
  like.device = device;
  like.ndim = int32_t(shape.size());
  like.dtype = dtype;
  like.shape = const_cast<int64_t*>(shape.data());
  like.strides = const_cast<int64_t*>(strides);
  aj_tensor* t = nullptr;
  kit::check(kit::env.core->tensor_empty(&like, 0, &t));
  return Tensor::steal(t);
}
inline Tensor empty_dense(const Ints& shape, DLDataType dtype, DLDevice device) {
  return empty_strides(shape, nullptr, dtype, device);
}

// Is a transform of functions open on this thread, so that its level has to see what is called?
inline bool transforming() {
  static const uint64_t key = kit::env.op->key_mask(AJ_STR_LIT("transform"));
  uint64_t include, exclude;
  kit::env.op->thread_keys(&include, &exclude);
  return include & ~exclude & key;
}
// Room that ops fill, not the body by hand: inside of a transform it is a tensor of its level.
inline Tensor room(const Ints& shape, DLDataType dtype, DLDevice device) {
  return transforming() ? empty(shape, dtype, device) : empty_dense(shape, dtype, device);
}

// Strides without gaps whose dimensions lie in `order`, the outermost first.
inline Sizes strides_in(std::span<const int64_t> shape, const std::vector<int>& order) {
  Sizes strides(shape.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[size_t(order[i])] = step;
    step *= std::max<int64_t>(shape[size_t(order[i])], 1);
  }
  return strides;
}

inline Sizes strides_of(std::span<const int64_t> shape, MemoryFormat format) {
  if (format == MemoryFormat::contiguous || format == MemoryFormat::preserve)
    return c_strides(shape);
  size_t dims = format == MemoryFormat::channels_last ? 4 : 5;
  want(shape.size() == dims, "channels_last", dims == 5 ? "_3d" : "", " needs ", dims,
       " dimensions; the shape is ", shown(shape));
  return strides_in(shape,
                    dims == 4 ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{0, 2, 3, 4, 1});
}

// Sizes of 0 and 1 do not fix a stride.
inline bool is_in_order(const Tensor& t, MemoryFormat format) {
  if (format == MemoryFormat::preserve) return true;
  if (format == MemoryFormat::contiguous) return t.is_contiguous();
  Sizes wanted = strides_of(t.shape(), format);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (t.shape()[i] > 1 && t.strides()[i] != wanted[i]) return false;
  return true;
}

// Uninitialised, in the shape of t; `preserve` keeps the order of t's dimensions and drops gaps.
inline Tensor empty_in_order(const Tensor& t, DLDataType dtype, DLDevice device,
                             MemoryFormat format) {
  const bool preserve = format == MemoryFormat::preserve;
  if (format == MemoryFormat::contiguous || (preserve && t.is_contiguous()))
    return empty_strides(t.shape(), nullptr, dtype, device);
  bool repeats = false;  // elements that lie on each other have no order to keep
  for (int64_t d = 0; d < t.ndim(); ++d) repeats |= t.stride(d) == 0 && t.size(d) > 1;
  if (preserve && repeats) return empty_strides(t.shape(), nullptr, dtype, device);
  if (!preserve)
    return empty_strides(t.shape(), strides_of(t.shape(), format).data(), dtype, device);
  std::vector<int> order(size_t(t.ndim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return t.strides()[size_t(a)] > t.strides()[size_t(b)]; });
  return empty_strides(t.shape(), strides_in(t.shape(), order).data(), dtype, device);
}

}  // namespace ops
}  // namespace adjoin
#endif
