// plugins/ops_vision/regions.hpp: regions of images: rows of `rois`, (image, x1, y1, x2, y2).
#ifndef ADJOIN_OPS_VISION_REGIONS_HPP
#define ADJOIN_OPS_VISION_REGIONS_HPP
#include <adjoin/kit/make.hpp>

namespace adjoin::ops::vision {

void check_regions(const Tensor& input, const Tensor& rois);
void check_bins(int64_t height, int64_t width);

// Halves compute in float32.
inline DLDataType wide_of(const Tensor& t) { return t.dtype().bits == 16 ? float32 : t.dtype(); }

// Nearest whole numbers, halves away from zero.
Tensor rounded(const Tensor& x);

// Regions by images: the numbers of those that lie in each image, int64.
std::vector<Tensor> by_image(const Tensor& rois, int64_t images);

// What was made of the regions of each image, in the order of the regions.
Tensor in_order(const std::vector<Tensor>& parts, const std::vector<Tensor>& regions);

}  // namespace adjoin::ops::vision
#endif
