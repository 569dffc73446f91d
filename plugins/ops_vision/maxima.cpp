// plugins/ops_vision/maxima.cpp: the maxima of the bins of regions, and where they are.
#include <algorithm>
#include <limits>

#include "regions.hpp"

namespace adjoin::ops {
namespace {

// The pixels that each bin of an axis covers: the first, and the one behind the last.
struct Spans {
  Spans(const Tensor& rois, int64_t axis, double scale, int64_t bins, int64_t size) {
    Tensor from = vision::rounded(select(rois, 1, 1 + axis) * scale);
    Tensor until = vision::rounded(select(rois, 1, 3 + axis) * scale);
    Tensor step = unsqueeze(clamp_min(until - from + 1, 1) / double(bins), 1);
    Tensor bin = reshape(arange(0, bins, 1, rois.dtype(), rois.device()), {1, bins});
    first = to(clamp(floor(bin * step) + unsqueeze(from, 1), 0, double(size)), int64);
    end = to(clamp(ceil((bin + 1) * step) + unsqueeze(from, 1), 0, double(size)), int64);
    most = std::max<int64_t>(amax(end - first).item<int64_t>(), 1);
  }
  Tensor first, end;
  int64_t most;  // pixels
};

// Of one image (C, H, W): (regions, C, bins): the maxima's places in a plane; -1: the bin is empty.
Tensor places(const Tensor& image, const Spans& y, const Spans& x) {
  const int64_t c = image.size(0), w = image.size(2), k = y.first.size(0);
  const int64_t width = x.first.size(1), each = y.most * x.most;
  Tensor planes = reshape(image, {c, image.size(1) * w});
  Tensor column =
      reshape(counting(image, x.most), {1, 1, 1, x.most}) + reshape(x.first, {k, width, 1, 1});
  Tensor there = lt(column, reshape(x.end, {k, width, 1, 1}));
  std::vector<Tensor> rows_of_bins;
  for (int64_t bin = 0; bin < y.first.size(1); ++bin) {
    Tensor first = reshape(select(y.first, 1, bin), {k, 1, 1, 1});
    Tensor row = reshape(counting(image, y.most), {1, 1, y.most, 1}) + first;
    Tensor inside = logical_and(there, lt(row, reshape(select(y.end, 1, bin), {k, 1, 1, 1})));
    Tensor at = reshape(where(inside, row * w + column, int64_t(0)), {k * width, each});
    Tensor covered = reshape(inside, {1, k * width, each});
    Tensor values = reshape(index_select(planes, 1, reshape(at, {-1})), {c, k * width, each});
    values = where(logical_and(covered, eq(values, values)), values,
                   -std::numeric_limits<double>::infinity());
    Tensor best = std::get<1>(max(values, -1));
    Tensor place = gather(expand(unsqueeze(at, 0), {c, k * width, each}), 2, unsqueeze(best, 2));
    place = where(any(covered, {2}), reshape(place, {c, k * width}), int64_t(-1));
    rows_of_bins.push_back(reshape(place, {c, k, width}));
  }
  return permute(stack(rows_of_bins, 2), {1, 0, 2, 3});
}

// The numbers of elements in the memory of (N, C, H, W), in which places of planes are told by
// `at`.
Tensor elements(const Tensor& at, const Tensor& rois, Ints size) {
  Tensor image = reshape(to(select(rois, 1, 0), int64), {rois.size(0), 1, 1, 1});
  Tensor channel = reshape(counting(at, size[1]), {1, size[1], 1, 1});
  return (image * size[1] + channel) * (size[2] * size[3]) + clamp_min(to(at, int64), 0);
}

void check_places(const Tensor& at, int64_t pixels) {
  const int64_t least = amin(at).item<int64_t>(), most = amax(at).item<int64_t>();
  if (least < -1 || most >= pixels)
    kit::raise(AJ_OUT_OF_RANGE, "argmax holds ", least < -1 ? least : most,
               ", which is no place in ", "a plane of ", pixels, " pixels, nor -1");
}

Sizes pooled_shape(const kit::Values& c) {
  vision::check_regions(c.tensor(0), c.tensor(1));
  vision::check_bins(c.integer(3), c.integer(4));
  return {c.tensor(1).size(0), c.tensor(0).size(1), c.integer(3), c.integer(4)};
}

Sizes input_shape(const kit::Values& c) {
  Sizes size;
  for (uint32_t i = 6; i < 10; ++i) size.push_back(c.integer(i));
  for (int64_t s : size) want(s >= 0, "sizes must not be negative: ", shown(size));
  const Tensor& rois = c.tensor(1);
  want(rois.ndim() == 2 && rois.size(1) == 5, "rois must have shape (K, 5), their shape is ",
       shown(rois));
  want_shape(c.tensor(0), "grad", Sizes{rois.size(0), size[1], c.integer(4), c.integer(5)});
  want_shape(c.tensor(2), "argmax", sizes_of(c.tensor(0)));
  return size;
}

}  // namespace

aj_status* roi_pool_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    c.out(0, c.tensor(0).dtype(), pooled_shape(c));
    c.out(1, int32, pooled_shape(c));
  });
}

aj_status* roi_pool_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& input = b.tensor(0);
    Sizes shape = pooled_shape(b);
    if (shape[0] == 0 || input.numel() == 0) {
      b.ret(0, zeros_of(input, shape));
      return b.ret(1, filled(input, shape, -1, int32));
    }
    Tensor boxes = to(b.tensor(1).detach(), vision::wide_of(input));
    std::vector<Tensor> parts, regions, of_images = vision::by_image(boxes, input.size(0));
    for (int64_t n = 0; n < input.size(0); ++n) {
      if (of_images[size_t(n)].size(0) == 0) continue;
      regions.push_back(of_images[size_t(n)]);
      Tensor these = index_select(boxes, 0, regions.back());
      parts.push_back(places(select(input, 0, n),
                             Spans(these, 1, b.real(2), shape[2], input.size(2)),
                             Spans(these, 0, b.real(2), shape[3], input.size(3))));
    }
    Tensor at = vision::in_order(parts, regions);
    Tensor read = take(input, elements(at, boxes, input.shape()));
    b.ret(0, where(ge(at, 0), read, number_of(read, 0)));
    b.ret(1, contiguous(to(at, int32)));
  });
}

aj_status* roi_pool_back_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) { c.out(0, c.tensor(0).dtype(), input_shape(c)); });
}

aj_status* roi_pool_back_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &grad = b.tensor(0), &argmax = b.tensor(2);
    Sizes size = input_shape(b);
    Tensor flat = zeros_of(grad, {product(size)});
    if (grad.numel() > 0) {
      check_places(argmax, size[2] * size[3]);
      Tensor at = elements(argmax, b.tensor(1).detach(), size);
      Tensor given = where(ge(argmax, 0), grad, number_of(grad, 0));
      flat = index_add(flat, 0, reshape(at, {-1}), reshape(given, {-1}));
    }
    b.ret(0, reshape(flat, size));
  });
}

}  // namespace adjoin::ops
