// plugins/ops_image/cpu/plane.hpp: an image that is read at places, and how places are counted.
#ifndef ADJOIN_PLUGINS_OPS_IMAGE_CPU_PLANE_HPP
#define ADJOIN_PLUGINS_OPS_IMAGE_CPU_PLANE_HPP
#include "vector/stored.hpp"

namespace adjoin::cpu {

// As wide as the elements, so that vectors of both are of one length.
template <class T>
using Offset = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// An image, or a volume, that is read, and how.
template <class T>
struct Plane {
  int64_t depth, height, width;
  bool align, border, mirror;  // mirror: and what lies outside is reflected first
};

}  // namespace adjoin::cpu
#endif
