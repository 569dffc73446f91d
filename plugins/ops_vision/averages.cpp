// plugins/ops_vision/averages.cpp: averages over the bins of regions. A bin's weights are a product
// of those along y and those along x, so that a region is two products of matrices.
#include <cmath>

#include "regions.hpp"

namespace adjoin::ops {
namespace vision {
namespace {

enum class Rule { align, aligned, split_align, split_pool };
bool splits(Rule rule) { return rule == Rule::split_align || rule == Rule::split_pool; }

struct Problem {
  Rule rule;
  double scale;
  int64_t height, width, samples;  // bins; samples of a bin along an axis: 0 or less: by its size
  bool split() const { return splits(rule); }
  int64_t channels(int64_t of_input) const {
    return split() ? of_input / (height * width) : of_input;
  }
};

// Samples at even distances in each bin, read bilinearly: (regions, bins, size).
Tensor sampled_weights(const Tensor& start, const Tensor& length, int64_t bins, int64_t size,
                       const Problem& p) {
  const int64_t regions = start.size(0);
  auto column = [&](const Tensor& t) { return reshape(t, {regions, 1, 1}); };
  Tensor step = length / double(bins), count, used;
  int64_t most = p.samples;
  if (p.samples > 0) {
    count = used = filled(step, {regions}, p.samples, step.dtype());
  } else {
    used = ceil(step);
    count = clamp_min(used, 1);
    double largest = amax(count).item<double>();
    want(largest <= 1 << 20, "a region has bins of ", largest,
         " pixels; at most 2^20 are averaged");
    most = int64_t(largest);
  }
  auto counted = [&](int64_t n) { return arange(0, n, 1, step.dtype(), step.device()); };
  Tensor bin = reshape(counted(bins), {1, bins, 1}), sample = reshape(counted(most), {1, 1, most});
  Tensor at = column(start) + bin * column(step) + (sample + 0.5) * column(step) / column(count);
  Tensor inside =
      logical_and(logical_and(ge(at, -1), le(at, double(size))), lt(sample, column(used)));
  at = clamp(where(inside, at, 0.0), 0, double(size - 1));
  Tensor low = floor(at), part = at - low;
  Tensor weight = where(inside, reciprocal(expand(column(count), sizes_of(at))), 0.0);
  Tensor high = clamp_max(low + 1, double(size - 1));
  Tensor all = zeros_of(at, {regions, bins, size});
  all = scatter_add(all, 2, to(low, int64), weight * (1 - part));
  return scatter_add(all, 2, to(high, int64), weight * part);
}

// All pixels of each bin alike.
Tensor pixel_weights(const Tensor& start, const Tensor& length, int64_t bins, int64_t size) {
  const int64_t regions = start.size(0);
  auto column = [&](const Tensor& t) { return reshape(t, {regions, 1, 1}); };
  Tensor bin = reshape(arange(0, bins, 1, start.dtype(), start.device()), {1, bins, 1});
  Tensor step = column(length) / double(bins);
  Tensor first = clamp(floor(bin * step) + column(start), 0, double(size - 1));
  Tensor last = clamp(ceil((bin + 1) * step) + column(start), 0, double(size - 1));
  Tensor pixel = reshape(arange(0, size, 1, start.dtype(), start.device()), {1, 1, size});
  Tensor inside = logical_and(ge(pixel, first), lt(pixel, last));
  return where(inside, 1 / clamp_min(last - first, 1), 0.0);
}

// The weights along one axis: 0: x, 1: y.
Tensor weights(const Tensor& rois, int64_t axis, int64_t bins, int64_t size, const Problem& p) {
  Tensor from = select(rois, 1, 1 + axis) * p.scale, until = select(rois, 1, 3 + axis) * p.scale;
  if (p.rule == Rule::split_pool) {
    from = rounded(from), until = rounded(until);
    return pixel_weights(from, clamp_min(until - from, 1), bins, size);
  }
  if (p.rule != Rule::align) from = from - 0.5, until = until - 0.5;
  Tensor length = until - from;
  if (p.rule == Rule::align) length = clamp_min(length, 1);
  return sampled_weights(from, length, bins, size, p);
}

// Of one image (C, H, W): (regions, channels, bins along y, bins along x).
Tensor averages(const Tensor& image, const Tensor& y, const Tensor& x, const Problem& p) {
  const int64_t k = y.size(0), h = image.size(1), w = image.size(2), c = p.channels(image.size(0));
  if (p.split()) {  // each bin reads channels of its own
    Tensor rows = reshape(permute(reshape(image, {c, p.height, p.width, h, w}), {1, 2, 3, 0, 4}),
                          {p.height, p.width, h, c * w});
    Tensor lines = matmul(unsqueeze(permute(y, {1, 0, 2}), 1), rows);
    Tensor along = reshape(permute(x, {1, 0, 2}), {1, p.width, k, 1, w});
    return permute(sum(reshape(lines, {p.height, p.width, k, c, w}) * along, {4}), {2, 3, 0, 1});
  }
  Tensor rows = reshape(permute(image, {1, 0, 2}), {h, c * w});
  Tensor lines = matmul(reshape(y, {k * p.height, h}), rows);
  Tensor bins = matmul(reshape(lines, {k, p.height * c, w}), permute(x, {0, 2, 1}));
  return permute(reshape(bins, {k, p.height, c, p.width}), {0, 2, 1, 3});
}

// What reads like `averages` in the other direction: gradients of bins, put into an image.
Tensor spread(const Tensor& grad, const Tensor& y, const Tensor& x, int64_t c, const Problem& p) {
  const int64_t k = y.size(0), h = y.size(2), w = x.size(2), each = p.channels(c);
  if (p.split()) {
    Tensor along = reshape(permute(x, {1, 0, 2}), {1, p.width, k, 1, w});
    Tensor lines = unsqueeze(permute(grad, {2, 3, 0, 1}), 4) * along;
    Tensor rows = matmul(unsqueeze(permute(y, {1, 2, 0}), 1),
                         reshape(lines, {p.height, p.width, k, each * w}));
    return reshape(permute(reshape(rows, {p.height, p.width, h, each, w}), {3, 0, 1, 2, 4}),
                   {c, h, w});
  }
  Tensor bins = reshape(permute(grad, {0, 2, 1, 3}), {k, p.height * c, p.width});
  Tensor lines = reshape(matmul(bins, x), {k * p.height, c * w});
  Tensor rows = matmul(permute(reshape(y, {k * p.height, h}), {1, 0}), lines);
  return permute(reshape(rows, {h, c, w}), {1, 0, 2});
}

struct Weights {
  Weights(const Tensor& rois, int64_t h, int64_t w, const Problem& p)
      : y(weights(rois, 1, p.height, h, p)), x(weights(rois, 0, p.width, w, p)) {}
  Tensor y, x;
};

// The problem of a call of op `rule`, whose first number stands at `at`.
Problem problem_of(const kit::Values& c, uint32_t at, Rule rule) {
  Problem p{rule, c.real(at), c.integer(at + 1), c.integer(at + 2), 0};
  check_bins(p.height, p.width);
  return p;
}

void check_split(const Problem& p, int64_t channels) {
  want(!p.split() || channels % (p.height * p.width) == 0, "the ", channels,
       " channels of input must be a multiple of pooled_height * pooled_width = ",
       p.height * p.width);
}

Tensor forward(const Tensor& input, const Tensor& rois, const Problem& p) {
  const int64_t c = p.channels(input.size(1)), h = input.size(2), w = input.size(3);
  if (rois.size(0) == 0 || input.numel() == 0)
    return zeros_of(input, {rois.size(0), c, p.height, p.width});
  Tensor boxes = to(rois.detach(), wide_of(input)), images = to(input, wide_of(input));
  std::vector<Tensor> parts, of_images = by_image(boxes, input.size(0)), regions;
  for (int64_t n = 0; n < input.size(0); ++n) {
    const Tensor& these = of_images[size_t(n)];
    if (these.size(0) == 0) continue;
    Weights s(index_select(boxes, 0, these), h, w, p);
    parts.push_back(averages(select(images, 0, n), s.y, s.x, p));
    regions.push_back(these);
  }
  return contiguous(to(in_order(parts, regions), input.dtype()));
}

Tensor backward(const Tensor& grad, const Tensor& rois, Ints shape, const Problem& p) {
  Sizes size = shape.vec();
  if (rois.size(0) == 0 || product(size) == 0) return zeros_of(grad, size);
  Tensor boxes = to(rois.detach(), wide_of(grad)), g = to(grad, wide_of(grad));
  std::vector<Tensor> images, of_images = by_image(boxes, size[0]);
  for (int64_t n = 0; n < size[0]; ++n) {
    const Tensor& these = of_images[size_t(n)];
    if (these.size(0) == 0) {
      images.push_back(zeros_of(g, {size[1], size[2], size[3]}));
      continue;
    }
    Weights s(index_select(boxes, 0, these), size[2], size[3], p);
    images.push_back(spread(index_select(g, 0, these), s.y, s.x, size[1], p));
  }
  return contiguous(to(stack(images, 0), grad.dtype()));
}

Sizes bins_shape(const Tensor& input, const Tensor& rois, const Problem& p) {
  return {rois.size(0), p.channels(input.size(1)), p.height, p.width};
}

// Which channel of input each element of the result was read from.
Tensor channel_map(const Tensor& rois, const Sizes& shape) {
  const int64_t own = shape[1] * shape[2] * shape[3];
  Tensor one = reshape(arange(0, own, 1, int32, rois.device()), {1, shape[1], shape[2], shape[3]});
  return contiguous(expand(one, shape));
}

void check_grad(const Tensor& grad, const Tensor& rois, Ints size, const Problem& p) {
  want(rois.ndim() == 2 && rois.size(1) == 5, "rois must have shape (K, 5), their shape is ",
       shown(rois));
  for (int64_t s : size) want(s >= 0, "sizes must not be negative: ", shown(size));
  check_split(p, size[1]);
  want_shape(grad, "grad", Sizes{rois.size(0), p.channels(size[1]), p.height, p.width});
}

struct Forward {
  Forward(const kit::Values& c, Rule rule) : p(problem_of(c, 2, rule)) {
    if (rule != Rule::split_pool) p.samples = c.integer(5);
    if (rule == Rule::align && c.flag(6)) p.rule = Rule::aligned;
    check_regions(c.tensor(0), c.tensor(1));
    check_split(p, c.tensor(0).size(1));
    shape = bins_shape(c.tensor(0), c.tensor(1), p);
  }
  Problem p;
  Sizes shape;
};

// roi_align: grad, rois, scale, bins, sizes, samples, aligned. The others have the channels' map
// behind rois, and the samples before the sizes.
struct Backward {
  Backward(const kit::Values& c, Rule rule) : p(problem_of(c, splits(rule) ? 3 : 2, rule)) {
    uint32_t at = splits(rule) ? 6 : 5;
    if (rule == Rule::split_align) p.samples = c.integer(at++);
    for (uint32_t i = 0; i < 4; ++i) size.push_back(c.integer(at + i));
    if (rule == Rule::align) {
      p.samples = c.integer(9);
      if (c.flag(10)) p.rule = Rule::aligned;
    }
    check_grad(c.tensor(0), c.tensor(1), size, p);
  }
  Problem p;
  Sizes size;
};

template <Rule rule>
aj_status* forward_shape(aj_call* call) {
  return infer(call, [](const Infer& c) {
    Forward f(c, rule);
    c.out(0, c.tensor(0).dtype(), f.shape);
    if (splits(rule)) c.out(1, int32, f.shape);
  });
}

template <Rule rule>
aj_status* forward_body(aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Forward f(b, rule);
    b.ret(0, forward(b.tensor(0), b.tensor(1), f.p));
    if (splits(rule)) b.ret(1, channel_map(b.tensor(1), f.shape));
  });
}

template <Rule rule>
aj_status* backward_shape(aj_call* call) {
  return infer(call, [](const Infer& c) { c.out(0, c.tensor(0).dtype(), Backward(c, rule).size); });
}

template <Rule rule>
aj_status* backward_body(aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Backward g(b, rule);
    b.ret(0, backward(b.tensor(0), b.tensor(1), g.size, g.p));
  });
}

}  // namespace
}  // namespace vision

using vision::Rule;

aj_status* roi_align_shape(void*, aj_call* c) { return vision::forward_shape<Rule::align>(c); }
aj_status* roi_align_body(void*, aj_call* c) { return vision::forward_body<Rule::align>(c); }
aj_status* roi_align_back_shape(void*, aj_call* c) {
  return vision::backward_shape<Rule::align>(c);
}
aj_status* roi_align_back_body(void*, aj_call* c) { return vision::backward_body<Rule::align>(c); }

// Whole numbers that stand for (n - zero point) * scale, read as these.
aj_status* qroi_align_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &input = b.tensor(0), &rois = b.tensor(1);
    want(!input.is_floating_point() && input.dtype() == rois.dtype(),
         "input and rois must be whole numbers of one dtype, they are ", input.dtype(), " and ",
         rois.dtype());
    const double scale = b.real(2), zero = double(b.integer(3));
    Tensor made = adjoin::torchvision::roi_align(
        (to(input, float32) - zero) * scale, (to(rois, float32) - double(b.integer(5))) * b.real(4),
        b.real(6), b.integer(7), b.integer(8), b.integer(9), b.flag(10));
    const bool whole = input.dtype().code == kDLInt;
    const int bits = input.dtype().bits > 31 ? 31 : input.dtype().bits;
    const double least = whole ? -std::ldexp(1, bits - 1) : 0;
    const double most = std::ldexp(1, whole ? bits - 1 : bits) - 1;
    b.ret(0, to(clamp(round(made / scale) + zero, least, most), input.dtype()));
  });
}

aj_status* ps_roi_align_shape(void*, aj_call* c) {
  return vision::forward_shape<Rule::split_align>(c);
}
aj_status* ps_roi_align_body(void*, aj_call* c) {
  return vision::forward_body<Rule::split_align>(c);
}
aj_status* ps_roi_align_back_shape(void*, aj_call* c) {
  return vision::backward_shape<Rule::split_align>(c);
}
aj_status* ps_roi_align_back_body(void*, aj_call* c) {
  return vision::backward_body<Rule::split_align>(c);
}

aj_status* ps_roi_pool_shape(void*, aj_call* c) {
  return vision::forward_shape<Rule::split_pool>(c);
}
aj_status* ps_roi_pool_body(void*, aj_call* c) { return vision::forward_body<Rule::split_pool>(c); }
aj_status* ps_roi_pool_back_shape(void*, aj_call* c) {
  return vision::backward_shape<Rule::split_pool>(c);
}
aj_status* ps_roi_pool_back_body(void*, aj_call* c) {
  return vision::backward_body<Rule::split_pool>(c);
}

}  // namespace adjoin::ops
