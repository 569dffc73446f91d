// plugins/ops_image/resample.cpp: resizing by sparse matrices along each dimension, and images
// reordered.
#include "resample.hpp"

#include <adjoin/kit/order.hpp>
#include <cmath>

namespace adjoin::ops {
Tensor apply_taps(const Tensor& x, int64_t dim, const kit::Taps& taps) {
  if (taps.is_identity(x.size(dim))) return x;
  if (taps.picks()) return index_select(x, dim, indices_from_host(x, taps.index, {taps.size()}));
  Sizes along(size_t(x.ndim()), 1);
  along[size_t(dim)] = taps.size();
  Tensor out;
  for (int64_t k = 0; k < taps.most(); ++k) {
    std::vector<int64_t> at;
    std::vector<double> by;
    bool whole = true;
    for (size_t o = 0; o < size_t(taps.size()); ++o) {
      size_t j = size_t(taps.start[o] + k);
      bool inside = int64_t(j) < taps.start[o + 1] && taps.weight[j] != 0;
      at.push_back(inside ? taps.index[j] : 0);
      by.push_back(inside ? taps.weight[j] : 0);
      whole = whole && inside;
    }
    Tensor w = numbers_from_host(x, by, along, x.dtype());
    Tensor part = index_select(x, dim, indices_from_host(x, at, {taps.size()})) * w;
    if (!whole) part = where(ne(w, 0), part, number_of(x, 0));
    out = out.defined() ? out + part : part;
  }
  if (out.defined()) return out;
  Sizes shape = sizes_of(x);
  shape[size_t(dim)] = taps.size();
  return zeros_of(x, shape);
}

namespace {

constexpr int64_t kLargest = 1 << 24;  // of a resized dimension: tables are made for each

void check_resample(const kit::Values& c) {
  const Tensor& t = c.tensor(0);
  Ints shape = c.ints(1);
  size_t dims = c.floats(4).size(), n = shape.size();
  want(dims >= 1 && dims <= 3, "scales must be 1 to 3, they are ", dims);
  want(int64_t(n) == t.ndim() && n >= dims &&
           std::equal(shape.begin(), shape.end() - ptrdiff_t(dims), t.shape().begin()),
       "shape ", shown(shape), " differs from that of input, ", shown(t),
       ", in more than the last ", dims, " dimensions");
  Floats scales = c.floats(4);
  for (size_t d = 0; d < dims; ++d)  // NaN, too, is neither
    want(scales[d] == 0 || (scales[d] >= 1.0 / kLargest && scales[d] <= kLargest),
         "a scale must be 0 or from 2^-24 to 2^24, it is ", scales[d]);
  for (size_t d = n - dims; d < n; ++d)
    want(shape[d] >= 0 && shape[d] <= kLargest && t.size(int64_t(d)) <= kLargest &&
             (shape[d] == 0) == (t.size(int64_t(d)) == 0),
         "sizes must be from 1 to 2^24: input is ", shown(t), ", wanted is ", shown(shape));
}

Tensor resampled(const kit::Values& c, bool back) {
  check_resample(c);
  const Tensor& t = c.tensor(0);
  Ints shape = c.ints(1);
  Floats scales = c.floats(4);
  Tensor x = to(t, wide(t.dtype()));
  for (size_t d = 0; d < scales.size(); ++d) {
    int64_t dim = t.ndim() - int64_t(scales.size()) + int64_t(d);
    int64_t in = back ? shape[size_t(dim)] : t.size(dim),
            out = back ? t.size(dim) : shape[size_t(dim)];
    kit::Taps taps = kit::resampling_taps(c.text(2), in, out, c.flag(3), scales[d]);
    x = apply_taps(x, dim, back ? taps.transposed(in) : taps);
  }
  return to(x, t.dtype());
}

}  // namespace

aj_status* resample_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    check_resample(c);
    c.out(0, c.tensor(0).dtype(), c.ints(1));
  });
}
aj_status* resample_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, resampled(b, false)); });
}
aj_status* resample_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, resampled(b, true)); });
}

namespace {

struct Resizing {
  Sizes shape;
  std::vector<double> scales;
};

[[noreturn]] void refuse(const auto&... parts) {
  kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, parts...);
}

Resizing resizing_of(const kit::Body& b, size_t dims) {
  const Tensor& t = b.tensor(0);
  Resizing r{sizes_of(t), std::vector<double>(dims, 0)};
  size_t first = size_t(t.ndim()) - dims;
  if (b.given(1) == b.given(2)) refuse("give either size or scale_factor, and not both");
  if (b.given(1)) {
    if (b.given(5) && b.flag(5)) refuse("recompute_scale_factor goes with scale_factor, not size");
    Ints size = b.ints(1);
    if (size.size() != dims && size.size() != 1)
      refuse("size must be one number or ", dims, ", for input of shape ", shown(t), ": ",
             shown(size));
    Sizes sizes = n_of(size, dims, "size");
    std::copy(sizes.begin(), sizes.end(), r.shape.begin() + ptrdiff_t(first));
    return r;
  }
  Floats scale = b.floats(2);
  if (scale.size() != dims && scale.size() != 1)
    refuse("scale_factor must be one number or ", dims, ", for input of shape ", shown(t), ": ",
           scale.size(), " are given");
  for (size_t d = 0; d < dims; ++d) {
    double s = scale[scale.size() == 1 ? 0 : d];
    want(std::isfinite(s) && s > 0, "scale_factor must be positive: ", s);
    double size = std::floor(double(t.size(int64_t(first + d))) * s);
    want(size <= double(kLargest), "scale_factor ", s, " is too large");
    r.shape[first + d] = int64_t(size);
    if (!(b.given(5) && b.flag(5))) r.scales[d] = s;
  }
  return r;
}

// The name of the rule for `dims` dimensions in terms of one.
std::string rule_of(std::string_view mode, size_t dims, bool antialias) {
  static constexpr std::string_view by_dims[] = {"linear", "bilinear", "trilinear"};
  bool linear = mode == by_dims[dims - 1], cubic = mode == "bicubic" && dims == 2;
  if (antialias && !((linear && dims == 2) || cubic))
    refuse("antialias goes with bilinear and bicubic of 4-dimensional input, not with '", mode,
           "'");
  if (linear) return antialias ? "linear-smooth" : "linear";
  if (cubic) return antialias ? "cubic-smooth" : "cubic";
  if (mode == "nearest" || mode == "nearest-exact" || mode == "area") return std::string(mode);
  for (std::string_view known : {"linear", "bilinear", "trilinear", "bicubic"})
    if (mode == known)
      kit::raise_as("NotImplementedError", AJ_UNIMPLEMENTED, "mode '", mode,
                    "' does not go with input of ", dims + 2, " dimensions");
  kit::raise_as("NotImplementedError", AJ_UNIMPLEMENTED, "mode '", mode,
                "' is not known; it is nearest, nearest-exact, linear, bilinear, trilinear, ",
                "bicubic or area");
}

// Of bytes: dimension by dimension from the last, halves rounded up to bytes each time, as
// PyTorch's.
Tensor bytes_of(const Tensor& t, const Resizing& to_be, const std::string& rule, bool align) {
  return in_own_name([&] {
    Tensor made = t;
    for (size_t dims = to_be.scales.size(), d = dims; d-- > 0;) {
      Sizes shape = sizes_of(made);
      shape[d + 2] = to_be.shape[d + 2];
      if (shape[d + 2] == made.size(int64_t(d) + 2)) continue;
      std::vector<double> scales(dims, 0);
      scales[d] = to_be.scales[d];
      Tensor real =
          resample(to(made, float32), shape, rule, align, Floats{std::span<const double>(scales)});
      made = to(clamp(floor(real + 0.5), 0, 255), uint8);
    }
    return made.get() == t.get() ? clone(t) : made;
  });
}

}  // namespace

aj_status* interpolate_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    if (t.ndim() < 3 || t.ndim() > 5)
      kit::raise_as("NotImplementedError", AJ_UNIMPLEMENTED,
                    "input must have 3, 4 or 5 dimensions, its shape is ", shown(t));
    size_t dims = size_t(t.ndim()) - 2;
    std::string_view mode = b.text(3);
    std::string rule = rule_of(mode, dims, b.flag(6));
    bool picks = mode.starts_with("nearest"), area = mode == "area", align = false;
    if (b.given(4)) {
      if (picks || area)
        refuse("align_corners goes with linear, bilinear, bicubic and trilinear, not with '", mode,
               "'");
      align = b.flag(4);
    }
    Resizing r = resizing_of(b, dims);
    if (area) r.scales.assign(dims, 0);
    for (size_t d = 2; d < r.shape.size(); ++d)
      want(r.shape[d] > 0 && t.size(int64_t(d)) > 0,
           "input and output sizes must be greater than 0: input is ", shown(t), ", wanted is ",
           shown(r.shape));
    Floats scales{std::span<const double>(r.scales)};
    if (picks || t.is_floating_point())
      return b.ret(0, in_own_name([&] {
                     return in_order_of(t, resample(t, r.shape, rule, align, scales));
                   }));
    want(t.dtype() == uint8, "input must be floating-point or uint8, it is ", t.dtype());
    b.ret(0, in_order_of(t, bytes_of(t, r, rule, align)));
  });
}

namespace {

// In a shape, and never in the memory of the input: where nothing moves, too.
Tensor own(const Tensor& t, const Sizes& shape) {
  return reshape(t.is_contiguous() ? clone(t) : t, shape);
}

}  // namespace

aj_status* pixel_shuffle_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t r = b.integer(1), n = t.ndim();
    want(n >= 3, "input must have at least 3 dimensions, its shape is ", shown(t));
    want(r > 0 && r < 1 << 20, "upscale_factor must be positive, it is ", r);
    want(t.size(-3) % (r * r) == 0, "channels must be divisible by ", r * r,
         ", the square of upscale_factor: input is ", shown(t));
    Sizes split = sizes_of(t), order, shape = split;
    split[size_t(n) - 3] /= r * r;
    split.insert(split.end() - 2, {r, r});
    for (int64_t d = 0; d < n - 2; ++d) order.push_back(d);
    for (int64_t d : {n, n - 2, n + 1, n - 1}) order.push_back(d);
    shape[size_t(n) - 3] /= r * r;
    shape[size_t(n) - 2] *= r;
    shape[size_t(n) - 1] *= r;
    b.ret(0, in_order_of(t, own(permute(reshape(t, split), order), shape)));
  });
}

aj_status* pixel_unshuffle_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t r = b.integer(1), n = t.ndim();
    want(n >= 3, "input must have at least 3 dimensions, its shape is ", shown(t));
    want(r > 0 && r < 1 << 20, "downscale_factor must be positive, it is ", r);
    want(t.size(-2) % r == 0 && t.size(-1) % r == 0,
         "height and width must be divisible by downscale_factor ", r, ": input is ", shown(t));
    Sizes split(t.shape().first(size_t(n) - 2)), shape = split, order;
    for (int64_t d : {n - 2, n - 1}) {
      split.push_back(t.size(d) / r);
      split.push_back(r);
      shape.push_back(t.size(d) / r);
    }
    shape[size_t(n) - 3] *= r * r;
    for (int64_t d = 0; d < n - 2; ++d) order.push_back(d);
    for (int64_t d : {n - 1, n + 1, n - 2, n}) order.push_back(d);
    b.ret(0, in_order_of(t, own(permute(reshape(t, split), order), shape)));
  });
}

aj_status* channel_shuffle_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t groups = b.integer(1);
    want(t.ndim() >= 3, "input must have more than 2 dimensions, its shape is ", shown(t));
    want(groups > 0, "groups must be positive, they are ", groups);
    want(t.size(1) % groups == 0, "channels must be divisible by groups ", groups, ": input is ",
         shown(t));
    Sizes split = sizes_of(t);
    split[1] /= groups;
    split.insert(split.begin() + 1, groups);
    b.ret(0, in_order_of(t, reshape(transpose(reshape(t, split), 1, 2), t.shape())));
  });
}

namespace {

// The centers of n places between -1 and 1, or with the outermost ones at the ends.
Tensor centers(const Tensor& like, int64_t n, bool align_corners) {
  Tensor twice = arange(n, float64, like.device()) * 2;
  if (!align_corners) return to((twice + 1) / n - 1, like.dtype());
  return to(n > 1 ? twice / (n - 1) - 1 : twice, like.dtype());
}

}  // namespace

aj_status* affine_grid_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& theta = b.tensor(0);
    Ints size = b.ints(1);
    want(size.size() == 4 || size.size() == 5, "size must be of 4 or 5 dimensions: ", shown(size));
    want(theta.is_floating_point(), "theta must be floating-point, it is ", theta.dtype());
    int64_t dims = int64_t(size.size()) - 2;
    for (int64_t n : size) want(n > 0 && n <= kLargest, "sizes must be positive: ", shown(size));
    want_shape(theta, "theta", Sizes{size[0], dims, dims + 1});
    Sizes places(size.begin() + 2, size.end());
    auto axis = [&](int64_t d) {
      Sizes along(size_t(dims), 1);
      along[size_t(d)] = places[size_t(d)];
      return reshape(centers(theta, places[size_t(d)], b.given(2) && b.flag(2)), along);
    };
    // Of elements that a product would not sum wider, an axis after the other, the whole size last.
    if (theta.dtype().bits >= 32) {
      Sizes ones(size_t(dims) + 2, 1);
      ones[0] = dims, ones[1] = size[0];
      auto column = [&](int64_t k) {
        return reshape(cut(transpose(theta, 0, 1), 2, k, k + 1), ones);
      };
      Tensor at = column(dims);
      for (int64_t d = 0; d < dims; ++d) at = add(at, mul(column(dims - 1 - d), axis(d)));
      return b.ret(0, stack(unbind(at, 0), -1));
    }
    std::vector<Tensor> columns;
    for (int64_t d = dims - 1; d >= 0; --d)  // x first
      columns.push_back(reshape(expand(axis(d), places), {-1}));
    columns.push_back(filled(theta, {product(places)}, 1, theta.dtype()));
    Tensor base = stack(columns, -1);
    Sizes shape = places;
    shape.insert(shape.begin(), size[0]);
    shape.push_back(dims);
    b.ret(0, reshape(matmul(base, transpose(theta, 1, 2)), shape));
  });
}

}  // namespace adjoin::ops
