// plugins/ops_image/pools.cpp: pools over three dimensions, adaptive and fractional pools, and
// unpooling.
#include <adjoin/kit/order.hpp>
#include <adjoin/kit/windows.hpp>
#include <cmath>

#include "resample.hpp"

namespace adjoin::ops {
namespace {

constexpr int64_t kWindow = 1 << 20;  // so that no window takes for ever

using Lists = std::array<kit::WindowList, 3>;

void check_volume(std::span<const int64_t> shape) {
  want(shape.size() >= 3, "input must have at least 3 dimensions, its shape is ", shown(shape));
}

// What is wrong with a call of max_windows, in a time that does not grow with the number of
// windows.
void check_windows(const kit::Values& c) {
  const Tensor& t = c.tensor(0);
  check_volume(t.shape());
  want(!t.is_complex() && t.dtype() != boolean, "elements of dtype ", t.dtype(),
       " have no maximum");
  Sizes size = n_of(c.ints(1), 3, "size");
  std::string_view rule = c.text(2);
  bool even = rule == "even", fractional = rule == "fractional";
  want(even || fractional || rule == "adaptive",
       "rule must be 'even', 'adaptive' or 'fractional', it is '", rule, "'");
  for (uint32_t i = 3; i < 7; ++i)
    want(c.ints(i).size() == ((even || (fractional && i == 3)) ? 3u : 0u),
         "kernel, stride, padding and dilation must hold 3 numbers each where rule '", rule,
         "' has them");
  for (size_t d = 0; d < 3; ++d) {
    int64_t in = t.size(t.ndim() - 3 + int64_t(d)), out = size[d];
    want(out >= 0 && (in > 0 || out == 0), "input of shape ", shown(t), " has no windows of ",
         shown(size));
    if (even) {
      kit::WindowRule r{c.ints(3)[d], c.ints(4)[d], c.ints(5)[d], c.ints(6)[d]};
      want(r.kernel > 0 && r.stride > 0 && r.dilation > 0 && r.padding >= 0 &&
               std::max({r.kernel, r.stride, r.dilation, r.padding}) <= kWindow,
           "kernel, stride and dilation must be positive, at most 2^20");
      want(out <= kMost / kWindow / 2, "size is too large: ", shown(size));
      want(!kit::has_empty_window(in, out, r), "a window lies in the padding alone: input is ",
           shown(t), ", kernel_size ", shown(c.ints(3)), ", padding ", shown(c.ints(5)),
           ", dilation ", shown(c.ints(6)));
    } else if (fractional) {
      int64_t kernel = c.ints(3)[d];
      want(kernel > 0 && kernel <= in && out <= in - kernel + 1, "windows of ", shown(c.ints(3)),
           " and output_size ", shown(size), " do not fit input of shape ", shown(t));
    }
  }
}

// The windows of a call of max_windows that was checked; those of a fractional pool for one sample.
Lists windows_of(const kit::Values& c, const double* sample) {
  const Tensor& t = c.tensor(0);
  std::string_view rule = c.text(2);
  Sizes size = n_of(c.ints(1), 3, "size");
  Lists lists;
  for (size_t d = 0; d < 3; ++d) {
    int64_t in = t.size(t.ndim() - 3 + int64_t(d)), out = size[d];
    if (rule == "even") {
      lists[d] =
          kit::even_windows(in, out, {c.ints(3)[d], c.ints(4)[d], c.ints(5)[d], c.ints(6)[d]});
    } else if (rule == "fractional") {
      int64_t kernel = c.ints(3)[d];
      double s = sample ? sample[d] : 0;
      lists[d] = t.dtype().bits == 64 ? kit::fractional_windows(in, out, kernel, s)
                                      : kit::fractional_windows(in, out, kernel, float(s));
    } else {
      lists[d] = kit::adaptive_windows(in, out);
    }
  }
  return lists;
}

Sizes pooled(const Tensor& t, const Sizes& size) {
  Sizes shape = sizes_of(t);
  std::copy(size.begin(), size.end(), shape.end() - 3);
  return shape;
}

// The places of each window, as many as the largest has: a smaller one repeats its first.
void tabulate(const Lists& lists, std::span<const int64_t> in, int64_t most,
              std::vector<int64_t>& table) {
  const auto& [a, b, c] = lists;
  for (size_t i = 0; i < a.low.size(); ++i)
    for (size_t j = 0; j < b.low.size(); ++j)
      for (size_t k = 0; k < c.low.size(); ++k) {
        size_t first = table.size();
        for (int64_t x = 0; x < a.count[i]; ++x)
          for (int64_t y = 0; y < b.count[j]; ++y)
            for (int64_t z = 0; z < c.count[k]; ++z)
              table.push_back(((a.low[i] + x * a.step) * in[1] + b.low[j] + y * b.step) * in[2] +
                              c.low[k] + z * c.step);
        int64_t at = table[first];
        table.resize(first + size_t(most), at);
      }
}

int64_t most_places(const Lists& lists) {
  int64_t most = 1;
  for (const kit::WindowList& list : lists) {
    int64_t n = 1;
    for (int64_t count : list.count) n = std::max(n, count);
    most = times(most, n);
  }
  return most;
}

}  // namespace

aj_status* max_windows_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    check_windows(c);
    if (c.text(2) == "fractional") {
      want(t.ndim() == 5 && c.given(7), "a fractional pool has input (N, C, D, H, W) and samples");
      want_shape(c.tensor(7), "samples", Sizes{t.size(0), t.size(1), 3});
    }
    Sizes shape = pooled(t, n_of(c.ints(1), 3, "size"));
    c.out(0, t.dtype(), shape);
    c.out(1, int64, shape);
  });
}

aj_status* max_windows_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    check_windows(b);
    Lists lists = windows_of(b, nullptr);
    Sizes shape = pooled(t, n_of(b.ints(1), 3, "size"));
    std::span<const int64_t> in = t.shape().last(3);
    int64_t most = most_places(lists), windows = product(std::span<const int64_t>(shape).last(3)),
            planes = product(t.shape().first(size_t(t.ndim()) - 3));
    if (planes == 0 || windows == 0) {
      b.ret(0, zeros_of(t, shape));
      return b.ret(1, filled(t, shape, 0, int64));
    }
    bool own = b.text(2) == "fractional";  // each plane has windows of its own
    std::vector<int64_t> table;
    if (own) {
      Tensor drawn = contiguous(to(b.tensor(7), float64, DLDevice{kDLCPU, 0}));
      for (int64_t p = 0; p < planes; ++p)
        tabulate(windows_of(b, drawn.data<double>() + 3 * p), in, most, table);
    } else {
      tabulate(lists, in, most, table);
    }
    Tensor places = indices_from_host(t, table, {own ? planes : 1, windows, most});
    places = expand(places, {planes, windows, most});
    Tensor flat = reshape(t, {planes, product(in)});
    Tensor held = reshape(gather(flat, 1, reshape(places, {planes, windows * most})),
                          {planes, windows, most});
    auto [best, which] = max(held, 2);
    b.ret(0, reshape(best, shape));
    b.ret(1, reshape(gather(places, 2, unsqueeze(which, 2)), shape));
  });
}

namespace {

void check_scatter_planes(const kit::Values& c) {
  const Tensor& g = c.tensor(0);
  Ints shape = c.ints(2);
  check_volume(shape);
  for (int64_t n : shape) want(n >= 0, "shape must not be negative: ", shown(shape));
  want(g.ndim() == int64_t(shape.size()) &&
           std::equal(shape.begin(), shape.end() - 3, g.shape().begin()),
       "grad of shape ", shown(g), " does not belong to input of shape ", shown(shape));
  want_shape(c.tensor(1), "indices", g.shape());
}

}  // namespace

aj_status* scatter_planes_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    check_scatter_planes(c);
    c.out(0, c.tensor(0).dtype(), c.ints(2));
  });
}

aj_status* scatter_planes_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    check_scatter_planes(b);
    const Tensor& g = b.tensor(0);
    Ints shape = b.ints(2);
    int64_t plane = product(std::span<const int64_t>(shape).last(3)),
            planes = product(std::span<const int64_t>(shape).first(shape.size() - 3));
    Sizes flat{planes, product(g.shape().last(3))};
    b.ret(0, reshape(scatter_add_(zeros_of(g, {planes, plane}), 1, reshape(b.tensor(1), flat),
                                  reshape(g, flat)),
                     shape));
  });
}

namespace {

// (D, H, W) of a pool of `dims` dimensions: missing ones are 1 (or 0) and stand first.
Sizes padded_to_three(const Sizes& given, int64_t fill) {
  Sizes three(3, fill);
  std::copy(given.begin(), given.end(), three.end() - ptrdiff_t(given.size()));
  return three;
}

void check_planes(const Tensor& t, int64_t dims) {
  want(t.ndim() == dims + 1 || t.ndim() == dims + 2, "input must have ", dims + 1, " or ", dims + 2,
       " dimensions, its shape is ", shown(t));
}

using Pair = std::tuple<Tensor, Tensor>;

// As a volume, pooled, and back.
template <class F>
Pair in_three(const Tensor& t, int64_t dims, F pool) {
  Tensor x = t;
  for (int64_t d = dims; d < 3; ++d) x = unsqueeze(x, -1 - dims);
  auto [out, indices] = in_own_name([&] { return pool(x); });
  for (int64_t d = dims; d < 3; ++d) {
    out = squeeze(out, {-1 - dims});
    indices = squeeze(indices, {-1 - dims});
  }
  return {out, indices};
}

void check_adaptive(const Tensor& t, int64_t dims) {
  if (t.ndim() <= dims)
    kit::raise_as("DimensionError", AJ_INVALID_ARGUMENT, "input must have ", dims + 1, " or ",
                  dims + 2, " dimensions, its shape is ", shown(t));
  check_planes(t, dims);
}

// Whole numbers are refused, as PyTorch's kernels refuse them.
void check_fractions(const Tensor& t) {
  if (t.dtype().code == kDLInt || t.dtype().code == kDLUInt || t.dtype() == boolean)
    kit::raise(AJ_UNIMPLEMENTED, "not implemented for ", t.dtype(),
               ": an adaptive pool takes floating-point numbers; cast with .float()");
}

Pair adaptive_max(const kit::Body& b, int64_t dims) {
  const Tensor& t = b.tensor(0);
  check_adaptive(t, dims);
  check_fractions(t);
  Sizes size = n_of(b.ints(1), size_t(dims), "output_size");
  for (int64_t n : size) want(n >= 0, "output_size must not be negative: ", shown(size));
  for (int64_t d = -dims - 1; d < 0; ++d)
    want(t.size(d) > 0, "Expected input of ", dims + 1, " or ", dims + 2,
         " dimensions, of which only the batch may be empty, but got: ", shown(t),
         ", which has no elements to choose from");
  auto [out, indices] = in_three(t, dims, [&](const Tensor& x) {
    return max_windows(x, padded_to_three(size, 1), "adaptive", Sizes{}, Sizes{}, Sizes{}, Sizes{},
                       Tensor());
  });
  if (t.ndim() == dims + 1) return {out, indices};  // four sizes that are no batch of images
  return {in_order_of(t, out), in_order_of(t, indices)};
}

struct Pooling {
  Pooling(const kit::Body& b, size_t dims, uint32_t at, bool dilated)
      : kernel(n_of(b.ints(at), dims, "kernel_size")),
        stride(b.ints(at + 1).is_none() || b.ints(at + 1).empty()
                   ? kernel
                   : n_of(b.ints(at + 1), dims, "stride")),
        padding(n_of(b.ints(at + 2), dims, "padding")),
        dilation(dilated ? n_of(b.ints(at + 3), dims, "dilation") : Sizes(dims, 1)) {}

  Sizes count(const Tensor& t, bool ceil_mode) const {
    want(t.size(t.ndim() - int64_t(kernel.size()) - 1) > 0, "Expected ", kernel.size() + 1, "D or ",
         kernel.size() + 2,
         "D (batch mode) tensor with optional 0 dim batch size for input, but got: ", shown(t),
         ", which has no channels to pool");
    Sizes out;
    for (size_t d = 0; d < kernel.size(); ++d) {
      want(stride[d] != 0, "stride should not be zero: ", shown(stride));
      want(kernel[d] > 0 && stride[d] > 0 && dilation[d] > 0 && kernel[d] <= kWindow &&
               stride[d] <= kWindow && dilation[d] <= kWindow,
           "kernel_size, stride and dilation must be positive, at most 2^20: ", shown(kernel), ", ",
           shown(stride), ", ", shown(dilation));
      want(padding[d] >= 0 && padding[d] <= kernel[d] / 2,
           "padding must be at most half of kernel_size: ", shown(padding), " and ", shown(kernel));
      int64_t in = t.size(t.ndim() - int64_t(kernel.size() - d));
      out.push_back(
          in > 0 ? kit::pooled_size(in, kernel[d], stride[d], padding[d], dilation[d], ceil_mode)
                 : 0);
      want(out.back() > 0, "kernel_size ", shown(kernel), " is too large for input of shape ",
           shown(t), ": Output size is too small");
    }
    return out;
  }
  Sizes kernel, stride, padding, dilation;
};

Pair max_pool3d_of(const kit::Body& b) {
  const Tensor& t = b.tensor(0);
  check_planes(t, 3);
  Pooling p(b, 3, 1, true);
  Sizes size = p.count(t, b.flag(5));
  auto [out, indices] = in_own_name([&] {
    return max_windows(t, size, "even", p.kernel, p.stride, p.padding, p.dilation, Tensor());
  });
  if (t.ndim() == 5) return {in_order_of(t, out), in_order_of(t, indices)};
  // Without a batch four sizes look like images.
  Tensor volume = movedim(unsqueeze(movedim(t, {0}, {-1}), 0), {-1}, {1});
  auto alike = [&](const Tensor& x) { return squeeze(in_order_of(volume, unsqueeze(x, 0)), {0}); };
  if (!lies_channels_last(volume)) return {out, indices};
  return {alike(out), alike(indices)};
}

}  // namespace

aj_status* max_pool3d_with_indices_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret_all(max_pool3d_of(b)); });
}

namespace {

// The means of int64 lose their fractions, as PyTorch's do; a whole one that was rounded below
// itself does not.
Tensor of_whole(const Tensor& t, auto means) {
  if (t.dtype() != int64) return means(t);
  return to(trunc(means(to(t, float64)) * (1 + 1e-14)), int64);
}

}  // namespace

aj_status* avg_pool3d_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    check_planes(t, 3);
    Pooling p(b, 3, 1, false);
    want(!b.given(6) || b.integer(6) != 0, "divisor_override must not be 0");
    Sizes shape = pooled(t, p.count(t, b.flag(4)));
    b.ret(0, in_own_name([&] {
            return of_whole(t, [&](const Tensor& x) {
              return average(x, shape, p.kernel, p.stride, p.padding, b.flag(5),
                             b.maybe<int64_t>(6));
            });
          }));
  });
}

aj_status* adaptive_avg_pool3d_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    check_adaptive(t, 3);
    check_fractions(t);
    Sizes size = n_of(b.ints(1), 3, "output_size"), shape = sizes_of(t);
    for (size_t d = 0; d < 3; ++d) {
      int64_t& n = shape[shape.size() - 3 + d];
      want(size[d] >= 0, "output_size must not be negative: ", shown(size));
      want(n > 0, "input of shape ", shown(t), " has no elements to take means of");
      n = size[d];
    }
    if (product(shape) == 0)  // of nothing, and yet with a history
      return b.ret(0, expand(sum(t, {-3, -2, -1}, true), shape));
    if (product(std::span<const int64_t>(shape).last(3)) == 1)
      return b.ret(0, in_own_name([&] { return mean(t, {-3, -2, -1}, true); }));
    b.ret(0, in_own_name([&] { return resample(t, shape, "area", false, {0.0, 0.0, 0.0}); }));
  });
}

#define AJ_ADAPTIVE_MAX(n)                                                                      \
  aj_status* adaptive_max_pool##n##d_body(void*, aj_call* call) {                               \
    return kit::compose(call, [](kit::Body& b) { b.ret(0, std::get<0>(adaptive_max(b, n))); }); \
  }                                                                                             \
  aj_status* adaptive_max_pool##n##d_with_indices_body(void*, aj_call* call) {                  \
    return kit::compose(call, [](kit::Body& b) { b.ret_all(adaptive_max(b, n)); });             \
  }
AJ_ADAPTIVE_MAX(1)
AJ_ADAPTIVE_MAX(2)
AJ_ADAPTIVE_MAX(3)
#undef AJ_ADAPTIVE_MAX

aj_status* fractional_max_pool_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t dims = int64_t(b.ints(1).size());
    want(dims == 2 || dims == 3, "kernel_size must hold 2 or 3 numbers: ", shown(b.ints(1)));
    check_planes(t, dims);
    for (int64_t d = -dims - 1; d < 0; ++d)
      want(t.size(d) > 0,
           "Expected input of which only the batch may be empty, but got: ", shown(t),
           ", which has no elements to choose from");
    Sizes size = n_of(b.ints(2), size_t(dims), "output_size");
    Sizes batched = sizes_of(t);
    if (t.ndim() == dims + 1) batched.insert(batched.begin(), 1);
    Tensor samples = b.tensor(3);
    want_shape(samples, "samples", Sizes{batched[0], batched[1], dims});
    if (dims == 2)  // those of an image come with the width first
      samples = cat({zeros_of(samples, {batched[0], batched[1], 1}), flip(samples, {-1})}, -1);
    auto [out, indices] = in_three(reshape(t, batched), dims, [&](const Tensor& x) {
      return max_windows(x, padded_to_three(size, 1), "fractional", padded_to_three(b.ints(1), 1),
                         Sizes{}, Sizes{}, Sizes{}, samples);
    });
    bool single = t.ndim() == dims + 1;
    b.ret(0, single ? squeeze(out, {0}) : out);
    b.ret(1, single ? squeeze(indices, {0}) : indices);
  });
}

aj_status* max_unpool_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &indices = b.tensor(1);
    Ints size = b.ints(2);
    int64_t dims = int64_t(size.size());
    want(dims >= 1 && dims <= 3, "output_size must hold 1 to 3 numbers: ", shown(size));
    check_planes(t, dims);
    want_shape(indices, "indices", t.shape());
    int64_t plane = product(std::span<const int64_t>(size)),
            planes = product(t.shape().first(size_t(t.ndim() - dims)));
    Sizes flat{planes, product(t.shape().last(size_t(dims)))}, shape = sizes_of(t);
    std::copy(size.begin(), size.end(), shape.end() - dims);
    Tensor out = in_own_name([&] {
      return scatter_(zeros_of(t, {planes, plane}), 1, reshape(indices, flat), reshape(t, flat));
    });
    b.ret(0, in_order_of(t, reshape(out, shape)));
  });
}

namespace {

// Whether each window of a dimension is one element, in order.
bool as_it_is(const kit::Values& c, size_t d, int64_t in, int64_t out) {
  return in == out && c.ints(2)[d] == 1 && c.ints(3)[d] == 1 && c.ints(4)[d] == 0;
}

Tensor averaged(const kit::Values& c, bool back) {
  const Tensor& t = c.tensor(0);
  Ints shape = c.ints(1);
  Tensor x = to(t, wide(t.dtype()));
  for (size_t d = 0; d < 3; ++d) {
    int64_t dim = t.ndim() - 3 + int64_t(d);
    int64_t in = back ? shape[size_t(dim)] : t.size(dim),
            out = back ? t.size(dim) : shape[size_t(dim)];
    if (as_it_is(c, d, in, out)) continue;
    kit::Taps taps =
        kit::average_taps(in, out, c.ints(2)[d], c.ints(3)[d], c.ints(4)[d], c.flag(5), c.given(6));
    x = apply_taps(x, dim, back ? taps.transposed(in) : taps);
  }
  if (c.given(6)) x = x / double(c.integer(6));
  return to(x, t.dtype());
}

aj_status* infer_average(aj_call* call, bool back) {
  return infer(call, [&](const Infer& c) {
    const Tensor& t = c.tensor(0);
    Ints shape = c.ints(1);
    check_volume(t.shape());
    want(int64_t(shape.size()) == t.ndim() &&
             std::equal(shape.begin(), shape.end() - 3, t.shape().begin()),
         "shape ", shown(shape), " differs from that of input, ", shown(t),
         ", in more than the last 3 dimensions");
    for (uint32_t i = 2; i < 5; ++i) {
      Sizes list = n_of(c.ints(i), 3, "kernel, stride and padding");
      for (int64_t x : list)
        want(x >= (i == 4 ? 0 : 1) && x <= kWindow, "kernel, stride and padding must be positive, ",
             "at most 2^20: ", shown(list));
    }
    want(!c.given(6) || c.integer(6) != 0, "divisor must not be 0");
    for (int64_t d = t.ndim() - 3; d < t.ndim(); ++d) {
      int64_t in = t.size(d), out = shape[size_t(d)];
      if (back) std::swap(in, out);
      want(std::max(in, out) <= 1 << 24 || as_it_is(c, size_t(d - t.ndim() + 3), in, out),
           "sizes must be at most 2^24: ", shown(shape));
      want(out >= 0 && (in > 0) == (out > 0), back ? "grad" : "input", " of shape ", shown(t),
           " has no such windows: shape is ", shown(shape));
    }
    c.out(0, t.dtype(), shape);
  });
}

}  // namespace

aj_status* average_shape(void*, aj_call* call) { return infer_average(call, false); }
aj_status* average_backward_shape(void*, aj_call* call) { return infer_average(call, true); }
aj_status* average_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, averaged(b, false)); });
}
aj_status* average_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, averaged(b, true)); });
}

namespace {

Tensor root_of_powers(const Tensor& mean, double places, double p) {
  return pow(sign(mean) * relu(abs(mean)) * places, 1 / p);
}

aj_status* lp_pool(aj_call* call, int64_t dims) {
  return kit::compose(call, [&](kit::Body& b) {
    double p = b.real(1);
    Sizes kernel = n_of(b.ints(2), dims, "kernel_size");
    Tensor powers = pow(b.tensor(0), p);
    Tensor mean = dims == 2 ? avg_pool2d(powers, kernel, b.ints(3), 0, b.flag(4))
                            : avg_pool3d(powers, kernel, b.ints(3), 0, b.flag(4));
    b.ret(0, root_of_powers(mean, double(product(kernel)), p));
  });
}

}  // namespace

aj_status* lp_pool1d_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    double p = b.real(1);
    int64_t kernel = b.integer(2);
    Tensor mean = avg_pool1d(pow(b.tensor(0), p), kernel,
                             b.given(3) ? Ints(b.integer(3)) : Ints(kernel), 0, b.flag(4));
    b.ret(0, root_of_powers(mean, double(kernel), p));
  });
}
aj_status* lp_pool2d_body(void*, aj_call* call) { return lp_pool(call, 2); }
aj_status* lp_pool3d_body(void*, aj_call* call) { return lp_pool(call, 3); }

aj_status* local_response_norm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t size = b.integer(1);
    if (t.ndim() < 3)
      kit::raise_as("DimensionError", AJ_INVALID_ARGUMENT,
                    "input must have 3 or more dimensions, its shape is ", shown(t));
    want(size > 0 && size <= kWindow, "size must be positive: ", size);
    if (t.numel() == 0) return b.ret(0, t);
    Tensor squares = reshape(t * t, {t.size(0), t.size(1), 1, -1});
    squares = constant_pad_nd(squares, {0, 0, 0, 0, size / 2, (size - 1) / 2}, 0);
    Tensor means = of_whole(squares, [&](const Tensor& x) {
      return average(x, {t.size(0), t.size(1), 1, x.size(3)}, {size, 1, 1}, {1, 1, 1}, {0, 0, 0},
                     true, std::nullopt);
    });
    means = reshape(means, t.shape());
    b.ret(0, t / pow(means * b.real(2) + b.real(4), b.real(3)));
  });
}

}  // namespace adjoin::ops
