// plugins/ops_vision/regions.cpp: regions are checked, and sorted by their images.
#include "regions.hpp"

namespace adjoin::ops::vision {

void check_regions(const Tensor& input, const Tensor& rois) {
  want(input.ndim() == 4, "input must be (N, C, H, W), its shape is ", shown(input));
  want(input.is_floating_point(), "input must be floating-point, it is ", input.dtype());
  want(rois.ndim() == 2 && rois.size(1) == 5,
       "rois must have shape (K, 5): image, x1, y1, x2, y2; their shape is ", shown(rois));
  want(rois.is_floating_point(), "rois must be floating-point, they are ", rois.dtype());
}

void check_bins(int64_t height, int64_t width) {
  want(height > 0 && width > 0 && height <= 1 << 16 && width <= 1 << 16,
       "pooled_height and pooled_width must be between 1 and 65536, they are ", height, " and ",
       width);
}

Tensor rounded(const Tensor& x) { return copysign(floor(abs(x) + 0.5), x); }

std::vector<Tensor> by_image(const Tensor& rois, int64_t images) {
  Tensor image = to(select(rois, 1, 0), int64);
  std::vector<Tensor> found;
  int64_t all = 0;
  for (int64_t n = 0; n < images; ++n) {
    found.push_back(select(nonzero(eq(image, n)), 1, 0));
    all += found.back().size(0);
  }
  want(all == rois.size(0), "rois name images from 0 to ", images - 1, ", ", rois.size(0) - all,
       " of them another");
  return found;
}

Tensor in_order(const std::vector<Tensor>& parts, const std::vector<Tensor>& regions) {
  Tensor joined = cat(parts, 0);
  return index_select(joined, 0, argsort(cat(regions, 0)));
}

}  // namespace adjoin::ops::vision
