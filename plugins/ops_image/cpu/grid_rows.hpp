// plugins/ops_image/cpu/grid_rows.hpp: images whose channels lie side by side, read and added to at
// taps: a tap is then a few vectors, where planes would be gathered from element by element.
#ifndef ADJOIN_PLUGINS_OPS_IMAGE_CPU_GRID_ROWS_HPP
#define ADJOIN_PLUGINS_OPS_IMAGE_CPU_GRID_ROWS_HPP
#include "plane.hpp"

namespace adjoin::cpu {

// Taps of n places: tap k of place i is pixel index[k * step + i] with such a weight; one of zero
// hides the pixel. Pixels and places are `pitch` elements, whole lines of the cache.
template <class T>
struct PlaceTaps {
  const Offset<T>* index;
  const T* weight;
  size_t taps, step, n, pitch;
};

template <class T>
struct GridRows {
  void (*read)(const PlaceTaps<T>& t, const T* image, T* to);
  void (*add)(const PlaceTaps<T>& t, const T* g, T* image);
  // slopes[a * step + i]: the sum over taps and channels of g * pixel * weight, where each of the
  // axes has weights of its own, one axis behind the other.
  void (*slopes)(const PlaceTaps<T>& t, size_t axes, const T* image, const T* g, T* slopes);
};
template <class T>
const GridRows<T>& grid_rows();

}  // namespace adjoin::cpu
#endif
