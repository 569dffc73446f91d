// plugins/ops_image/grid.cpp: images read at coordinates, by gathers; backends have it in one
// piece.
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {
namespace {

struct Sampling {
  explicit Sampling(const kit::Values& c, uint32_t at)
      : mode(c.text(at)), padding(c.text(at + 1)), align(c.flag(at + 2)) {
    want(mode == "bilinear" || mode == "nearest" || mode == "bicubic",
         "mode must be 'bilinear', 'nearest' or 'bicubic', it is '", mode, "'");
    want(padding == "zeros" || padding == "border" || padding == "reflection",
         "padding_mode must be 'zeros', 'border' or 'reflection', it is '", padding, "'");
  }
  std::string_view mode, padding;
  bool align;
};

void check_grid(const Tensor& input, const Tensor& grid, const Sampling& s) {
  int64_t dims = input.ndim() - 2;
  want(dims == 2 || dims == 3, "input must have 4 or 5 dimensions, its shape is ", shown(input));
  want(input.is_floating_point(), "input must be floating-point, it is ", input.dtype());
  want(grid.ndim() == input.ndim(), "grid must have as many dimensions as input: grid is ",
       shown(grid), ", input is ", shown(input));
  want(grid.size(0) == input.size(0), "grid and input must have one batch size: grid is ",
       shown(grid), ", input is ", shown(input));
  want(grid.size(-1) == dims, "the last dimension of grid must hold ", dims,
       " coordinates, grid is ", shown(grid));
  want_dtype(grid, "grid", input.dtype());
  for (int64_t d = 2; d < input.ndim(); ++d)
    want(input.size(d) > 0, "input has no elements to read: ", shown(input));
  want(dims == 2 || s.mode != "bicubic", "bicubic takes input of 4 dimensions, it has ",
       input.ndim());
}

Sizes sampled_shape(const Tensor& input, const Tensor& grid) {
  Sizes shape{input.size(0), input.size(1)};
  for (int64_t d = 1; d + 1 < grid.ndim(); ++d) shape.push_back(grid.size(d));
  return shape;
}

// Mirrored between low / 2 and high / 2; `slope` is multiplied by the direction.
Tensor reflected(const Tensor& x, double low, double high, Tensor* slope) {
  if (low == high) {
    if (slope) *slope = *slope * 0;
    return x * 0;
  }
  double least = low / 2, span = (high - low) / 2;
  Tensor from = x - least, far = abs(from), extra = fmod(far, span);
  Tensor odd = ne(remainder(floor(far / span), 2), 0);
  if (slope) *slope = where(lt(from, 0), -*slope, *slope);
  if (slope) *slope = where(odd, -*slope, *slope);
  return where(odd, span - extra, extra) + least;
}

Tensor brought_inside(Tensor x, int64_t size, const Sampling& s, Tensor* slope) {
  if (s.padding == "zeros") return x;
  if (s.padding == "reflection")
    x = s.align ? reflected(x, 0, 2.0 * double(size - 1), slope)
                : reflected(x, -1, 2.0 * double(size) - 1, slope);
  double last = double(size - 1);
  if (slope) *slope = where(logical_or(le(x, 0), ge(x, last)), *slope * 0, *slope);
  return clamp(x, 0, last);
}

// What one coordinate means: places of its taps, their weights, and the weights' derivatives.
struct Axis {
  struct Tap {
    Tensor at, inside, weight, change;
  };
  std::vector<Tap> taps;
  Tensor slope;

  Axis(const Tensor& coordinate, int64_t size, const Sampling& s) {
    double unit = double(s.align ? size - 1 : size) / 2;
    Tensor x = s.align ? (coordinate + 1) * unit : (coordinate + 1) * unit - 0.5;
    slope = filled(x, sizes_of(x), unit, x.dtype());
    bool cubic = s.mode == "bicubic";
    if (!cubic) x = brought_inside(x, size, s, &slope);
    // What is no number, or too large for one of 32 bits, lies outside.
    x = where(lt(abs(x), 1e9), x, -100.0);
    if (s.mode == "nearest") {
      Tensor one = x * 0 + 1;
      add(round(x), one, one * 0, size, s, false);
      return;
    }
    Tensor low = floor(x), t = x - low, one = t * 0 + 1;
    if (!cubic) {
      add(low, 1 - t, -one, size, s, false);
      add(low + 1, t, one, size, s, false);
      return;
    }
    for (int64_t k = -1; k <= 2; ++k) {  // Keys, 1981, with a slope of -0.75
      constexpr double a = -0.75;
      Tensor y = k < 1 ? t - double(k) : double(k) - t;  // the distance
      double sign = k < 1 ? 1 : -1;
      bool near = k == 0 || k == 1;
      Tensor w = near ? ((a + 2) * y - (a + 3)) * y * y + 1 : (((y - 5) * y + 8) * y - 4) * a;
      Tensor c = near ? (3 * (a + 2) * y - 2 * (a + 3)) * y : ((3 * y - 10) * y + 8) * a;
      add(low + k, w, c * sign, size, s, true);
    }
  }

 private:
  void add(Tensor at, Tensor weight, Tensor change, int64_t size, const Sampling& s, bool each) {
    if (each) at = brought_inside(at, size, s, nullptr);
    Tensor inside = logical_and(ge(at, 0), le(at, double(size - 1)));
    taps.push_back(
        {to(clamp(at, 0, double(size - 1)), int64), inside, std::move(weight), std::move(change)});
  }
};

// Every combination of taps; f(index into a plane, inside, its taps).
template <class F>
void for_taps(const std::vector<Axis>& axes, std::span<const int64_t> sizes, F f) {
  size_t each = axes[0].taps.size(), all = 1;
  for (size_t d = 0; d < axes.size(); ++d) all *= each;
  for (size_t k = 0; k < all; ++k) {
    std::vector<const Axis::Tap*> taps;
    Tensor index, inside;
    size_t rest = k;
    for (size_t d = 0; d < axes.size(); ++d, rest /= each) {
      const Axis::Tap& tap = axes[d].taps[rest % each];
      taps.push_back(&tap);
      index = index.defined() ? index * sizes[d] + tap.at : tap.at;
      inside = inside.defined() ? logical_and(inside, tap.inside) : tap.inside;
    }
    f(index, inside, taps);
  }
}

struct Problem {
  Problem(const Tensor& input, const Tensor& grid, const Sampling& s) {
    DLDataType wide = input.dtype().bits == 16 ? float32 : input.dtype();
    batch = input.size(0), channels = input.size(1);
    places = grid.ndim() > 1 ? product(grid.shape().subspan(1, size_t(grid.ndim()) - 2)) : 0;
    sizes = Sizes(input.shape().subspan(2));
    image = reshape(to(input, wide), {batch, channels, product(sizes)});
    Tensor flat = reshape(to(grid, wide), {batch, places, int64_t(sizes.size())});
    for (size_t d = 0; d < sizes.size(); ++d)  // x, the last dimension, comes first in a grid
      axes.emplace_back(select(flat, -1, int64_t(sizes.size() - 1 - d)), sizes[d], s);
  }
  Tensor over_channels(const Tensor& t) const {
    return expand(unsqueeze(t, 1), {batch, channels, places});
  }
  int64_t batch, channels, places;
  Sizes sizes;
  Tensor image;
  std::vector<Axis> axes;
};

}  // namespace

aj_status* grid_sampler_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    check_grid(c.tensor(0), c.tensor(1), Sampling(c, 2));
    c.out(0, c.tensor(0).dtype(), sampled_shape(c.tensor(0), c.tensor(1)));
  });
}

aj_status* grid_sampler_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &input = b.tensor(0), &grid = b.tensor(1);
    Sampling s(b, 2);
    check_grid(input, grid, s);
    Problem p(input, grid, s);
    Tensor out = zeros_of(p.image, {p.batch, p.channels, p.places});
    for_taps(p.axes, p.sizes, [&](const Tensor& index, const Tensor& inside, auto& taps) {
      Tensor weight = taps[0]->weight;
      for (size_t d = 1; d < taps.size(); ++d) weight = weight * taps[d]->weight;
      Tensor value = gather(p.image, 2, p.over_channels(index));
      out = out + where(unsqueeze(inside, 1), value * unsqueeze(weight, 1), number_of(value, 0));
    });
    b.ret(0, reshape(to(out, input.dtype()), sampled_shape(input, grid)));
  });
}

namespace {

void check_grid_backward(const kit::Values& c) {
  check_grid(c.tensor(1), c.tensor(2), Sampling(c, 3));
  want_shape(c.tensor(0), "grad", sampled_shape(c.tensor(1), c.tensor(2)));
  want(c.bools(6).size() == 2, "needs must hold two flags, it holds ", c.bools(6).size());
}

}  // namespace

aj_status* grid_sampler_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    check_grid_backward(c);
    for (uint32_t i = 0; i < 2; ++i) {
      const Tensor& t = c.tensor(1 + i);
      c.out(i, t.dtype(), c.bools(6)[i] ? sizes_of(t) : Sizes{0});
    }
  });
}

aj_status* grid_sampler_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &input = b.tensor(1), &grid = b.tensor(2);
    check_grid_backward(b);
    Problem p(input, grid, Sampling(b, 3));
    Tensor g = reshape(to(b.tensor(0), p.image.dtype()), {p.batch, p.channels, p.places});
    bool need_input = b.bools(6)[0], need_grid = b.bools(6)[1];
    Tensor image = zeros_of(p.image, sizes_of(p.image));
    std::vector<Tensor> slopes(p.sizes.size());
    for_taps(p.axes, p.sizes, [&](const Tensor& index, const Tensor& inside, auto& taps) {
      Tensor zero = number_of(g, 0), at = p.over_channels(index);
      if (need_input) {
        Tensor weight = taps[0]->weight;
        for (size_t d = 1; d < taps.size(); ++d) weight = weight * taps[d]->weight;
        image =
            scatter_add(image, 2, at, where(unsqueeze(inside, 1), g * unsqueeze(weight, 1), zero));
      }
      if (!need_grid) return;
      Tensor along = sum(where(unsqueeze(inside, 1), gather(p.image, 2, at) * g, zero), {1});
      for (size_t d = 0; d < taps.size(); ++d) {
        Tensor part = along * taps[d]->change;
        for (size_t e = 0; e < taps.size(); ++e)
          if (e != d) part = part * taps[e]->weight;
        slopes[d] = slopes[d].defined() ? slopes[d] + part : part;
      }
    });
    b.ret(0, need_input ? reshape(to(image, input.dtype()), input.shape()) : zeros_of(input, {0}));
    if (!need_grid) return b.ret(1, zeros_of(grid, {0}));
    std::vector<Tensor> columns;
    for (size_t d = slopes.size(); d-- > 0;) columns.push_back(slopes[d] * p.axes[d].slope);
    b.ret(1, reshape(to(stack(columns, -1), grid.dtype()), grid.shape()));
  });
}

aj_status* grid_sample_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    std::string_view mode = b.text(2), padding = b.text(3);
    auto refuse = [](const auto&... parts) {
      kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, parts...);
    };
    if (mode != "bilinear" && mode != "nearest" && mode != "bicubic")
      refuse("mode must be 'bilinear', 'nearest' or 'bicubic', it is '", mode, "'");
    if (padding != "zeros" && padding != "border" && padding != "reflection")
      refuse("padding_mode must be 'zeros', 'border' or 'reflection', it is '", padding, "'");
    b.ret(0, in_own_name([&] {
            return grid_sampler(b.tensor(0), b.tensor(1), mode, padding, b.given(4) && b.flag(4));
          }));
  });
}

}  // namespace adjoin::ops
