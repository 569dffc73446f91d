// plugins/ops_vision/deform.cpp: convolutions whose taps stand where an offset says (Dai et al.,
// 2017), weighted by a mask (Zhu et al., 2018).
#include "regions.hpp"

namespace adjoin::ops {
namespace {

struct Problem {
  // Arguments from `at` on: input, weight, offset, mask, bias, and the numbers.
  Problem(const kit::Values& c, uint32_t at)
      : input(c.tensor(at)),
        weight(c.tensor(at + 1)),
        offset(c.tensor(at + 2)),
        mask(c.tensor(at + 3)),
        bias(c.tensor(at + 4)) {
    for (uint32_t d = 0; d < 2; ++d) {
      stride[d] = c.integer(at + 5 + d), pad[d] = c.integer(at + 7 + d);
      dilation[d] = c.integer(at + 9 + d);
    }
    groups = c.integer(at + 11), parts = c.integer(at + 12), masked = c.flag(at + 13);
    check();
  }
  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t windows() const { return out[0] * out[1]; }
  Sizes out_shape() const { return {batch, weight.size(0), out[0], out[1]}; }

  Tensor input, weight, offset, mask, bias;
  int64_t batch = 0, channels = 0, groups = 0,
          parts = 0;  // parts of channels with offsets of their own
  int64_t size[2], kernel[2], out[2], stride[2], pad[2], dilation[2];
  bool masked = false;

 private:
  void check() {
    want(input.ndim() == 4, "input must be (N, C, H, W), its shape is ", shown(input));
    want(weight.ndim() == 4, "weight must be (out, in / groups, height, width), its shape is ",
         shown(weight));
    want(input.is_floating_point(), "input must be floating-point, it is ", input.dtype());
    want_dtype(weight, "weight", input.dtype());
    want_dtype(offset, "offset", input.dtype());
    want(groups > 0 && parts > 0, "groups and offset_groups must be positive, they are ", groups,
         " and ", parts);
    batch = input.size(0), channels = input.size(1);
    want(weight.size(1) * groups == channels && weight.size(0) % groups == 0, "weight of shape ",
         shown(weight), " does not go with ", channels, " channels in ", groups, " groups");
    want(channels % parts == 0, "the ", channels,
         " channels must be divisible by offset_groups = ", parts);
    for (uint32_t d = 0; d < 2; ++d) {
      size[d] = input.size(2 + d), kernel[d] = weight.size(2 + d);
      want(kernel[d] > 0 && stride[d] > 0 && dilation[d] > 0 && pad[d] >= 0,
           "kernel, stride and dilation must be positive, padding 0 or more");
      int64_t room = size[d] + 2 * pad[d] - dilation[d] * (kernel[d] - 1) - 1;
      want(room >= 0, "the kernel of ", shown(weight), " does not fit into ", shown(input));
      out[d] = room / stride[d] + 1;
    }
    want_shape(offset, "offset", Sizes{batch, 2 * parts * taps(), out[0], out[1]});
    if (masked) {
      want_dtype(mask, "mask", input.dtype());
      want_shape(mask, "mask", Sizes{batch, parts * taps(), out[0], out[1]});
    }
    want_shape(bias, "bias", Sizes{weight.size(0)});
  }
};

// Where the taps of all windows stand along one axis, (N, parts, taps, windows): the pixels beside
// them.
struct Axis {
  Axis(const Problem& p, uint32_t d, const Tensor& offsets) {
    auto counted = [&](int64_t n, int64_t step, int64_t from) {
      return arange(from, from + n * step, step, offsets.dtype(), offsets.device());
    };
    Sizes tap{1, 1, p.kernel[0], p.kernel[1], 1, 1}, at{1, 1, 1, 1, p.out[0], p.out[1]}, one(6, 1);
    Sizes along_kernel = one, along_out = one;
    along_kernel[2 + d] = p.kernel[d], along_out[4 + d] = p.out[d];
    Tensor base = reshape(counted(p.kernel[d], p.dilation[d], -p.pad[d]), along_kernel) +
                  reshape(counted(p.out[d], p.stride[d], 0), along_out);
    base = expand(base, {1, 1, p.kernel[0], p.kernel[1], p.out[0], p.out[1]});
    Tensor place = reshape(base, {1, 1, p.taps(), p.windows()}) + select(offsets, 3, d);
    inside = logical_and(gt(place, -1), lt(place, double(p.size[d])));
    place = where(inside, place, number_of(place, 0));
    Tensor first = floor(place);
    part = place - first;
    low = to(first, int64);
    last = p.size[d] - 1;
  }
  // The pixel before (0) or behind (1), whether there is one, its weight and that weight's slope.
  Tensor pixel(int side) const { return clamp(side ? low + 1 : low, 0, last); }
  Tensor there(int side) const {
    return side ? le(low, last - 1) : logical_and(ge(low, 0), le(low, last));
  }
  Tensor weight(int side) const { return side ? part : 1 - part; }
  Tensor low, part, inside;
  int64_t last;
};

struct Taps {
  explicit Taps(const Problem& p)
      : p(p),
        wide(vision::wide_of(p.input)),
        offsets(reshape(to(p.offset, wide), {p.batch, p.parts, p.taps(), 2, p.windows()})),
        y(p, 0, offsets),
        x(p, 1, offsets),
        image(reshape(to(p.input, wide), {p.batch, p.parts, each(), p.size[0] * p.size[1]})) {}

  int64_t each() const { return p.channels / p.parts; }
  Sizes shape() const { return {p.batch, p.parts, each(), p.taps(), p.windows()}; }
  Tensor over_channels(const Tensor& t) const { return unsqueeze(t, 2); }

  // f(pixels in a plane, expanded over channels; where they are; the sides) of the four beside each
  // tap.
  template <class F>
  void for_corners(F f) const {
    for (int down = 0; down < 2; ++down)
      for (int right = 0; right < 2; ++right) {
        Tensor at = y.pixel(down) * p.size[1] + x.pixel(right);
        Tensor there = logical_and(logical_and(y.inside, x.inside),
                                   logical_and(y.there(down), x.there(right)));
        Tensor index = expand(reshape(at, {p.batch, p.parts, 1, p.taps() * p.windows()}),
                              {p.batch, p.parts, each(), p.taps() * p.windows()});
        f(index, there, down, right);
      }
  }
  Tensor read(const Tensor& index) const { return reshape(gather(image, 3, index), shape()); }

  // (N, parts, channels of one, taps, windows), before the mask.
  Tensor values() const {
    Tensor all;
    for_corners([&](const Tensor& index, const Tensor& there, int down, int right) {
      Tensor weight = y.weight(down) * x.weight(right);
      Tensor one = read(index) * over_channels(where(there, weight, number_of(weight, 0)));
      all = all.defined() ? all + one : one;
    });
    return all;
  }
  Tensor mask() const {
    return reshape(to(p.mask, wide), {p.batch, p.parts, 1, p.taps(), p.windows()});
  }
  // As a product wants it: (N, groups, channels of one times taps, windows).
  Tensor columns(const Tensor& values) const {
    return reshape(values, {p.batch, p.groups, p.channels / p.groups * p.taps(), p.windows()});
  }
  Tensor matrices() const {
    return reshape(to(p.weight, wide),
                   {p.groups, p.weight.size(0) / p.groups, p.weight.size(1) * p.taps()});
  }

  const Problem& p;
  DLDataType wide;
  Tensor offsets;
  Axis y, x;
  Tensor image;
};

struct Gradients {
  Gradients(const Problem& p, const Tensor& grad) {
    Taps t(p);
    Tensor g =
        reshape(to(grad, t.wide), {p.batch, p.groups, p.weight.size(0) / p.groups, p.windows()});
    Tensor to_columns = reshape(matmul(transpose(t.matrices(), 1, 2), g), t.shape());
    Tensor values = t.values(), read = p.masked ? values * t.mask() : values;
    weight = reshape(sum(matmul(g, transpose(t.columns(read), 2, 3)), {0}), p.weight.shape());
    bias = sum(to(grad, t.wide), {0, 2, 3});
    mask = p.masked ? reshape(sum(to_columns * values, {2}), p.mask.shape())
                    : zeros_of(p.mask, sizes_of(p.mask));
    Tensor to_values = p.masked ? to_columns * t.mask() : to_columns;
    Tensor zero = zeros_of(t.y.part, sizes_of(t.y.part)), down_slope = zero, right_slope = zero;
    Tensor pixels = zeros_of(t.image, sizes_of(t.image));
    t.for_corners([&](const Tensor& index, const Tensor& there, int down, int right) {
      Tensor wy = t.y.weight(down), wx = t.x.weight(right);
      Tensor given = to_values * t.over_channels(where(there, wy * wx, zero));
      pixels = scatter_add(pixels, 3, index, reshape(given, sizes_of(index)));
      Tensor along = where(there, sum(to_values * t.read(index), {2}), zero);
      down_slope = down_slope + along * wx * (down ? 1.0 : -1.0);
      right_slope = right_slope + along * wy * (right ? 1.0 : -1.0);
    });
    input = reshape(pixels, p.input.shape());
    offset = reshape(stack({down_slope, right_slope}, 3), p.offset.shape());
  }
  Tensor input, weight, offset, mask, bias;
};

}  // namespace

aj_status* deform_conv2d_shape(void*, aj_call* call) {
  return infer(call,
               [](const Infer& c) { c.out(0, c.tensor(0).dtype(), Problem(c, 0).out_shape()); });
}

aj_status* deform_conv2d_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Problem p(b, 0);
    Taps t(p);
    Tensor values = t.values();
    if (p.masked) values = values * t.mask();
    Tensor made = reshape(matmul(t.matrices(), t.columns(values)), p.out_shape());
    made = made + reshape(to(p.bias, t.wide), {1, p.weight.size(0), 1, 1});
    b.ret(0, to(made, p.input.dtype()));
  });
}

aj_status* deform_conv2d_back_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    want_shape(c.tensor(0), "grad", Problem(c, 1).out_shape());
    for (uint32_t i = 0; i < 5; ++i) c.out(i, c.tensor(1 + i).dtype(), sizes_of(c.tensor(1 + i)));
  });
}

aj_status* deform_conv2d_back_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Problem p(b, 1);
    want_shape(b.tensor(0), "grad", p.out_shape());
    Gradients g(p, b.tensor(0));
    const Tensor* made[] = {&g.input, &g.weight, &g.offset, &g.mask, &g.bias};
    for (uint32_t i = 0; i < 5; ++i) b.ret(i, to(*made[i], b.tensor(1 + i).dtype()));
  });
}

}  // namespace adjoin::ops
