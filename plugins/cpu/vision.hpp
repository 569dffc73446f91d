// plugins/cpu/vision.hpp: the kernel tables of images resized, sampled, pooled and cut.
#ifndef ADJOIN_PLUGINS_CPU_VISION_HPP
#define ADJOIN_PLUGINS_CPU_VISION_HPP
#include "tables.hpp"

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

extern const Kernel constant_pad_kernels[], grid_kernels[], pad_kernels[], resample_kernels[],
    window_maxima_kernels[], windows_kernels[];

}  // namespace adjoin::cpu
#endif
