// core/ops/nn/rare/pool.cpp: shapes of pooling, the layers' forms, and what pools by other ops.
#include <adjoin/kit/make.hpp>
#include <adjoin/kit/order.hpp>
#include <adjoin/kit/windows.hpp>

namespace adjoin::ops {
namespace {

void check_planes(std::span<const int64_t> shape, size_t dims = 2) {
  want(shape.size() == dims + 1 || shape.size() == dims + 2, "Expected ", dims + 1, "D or ",
       dims + 2, "D (batch mode) tensor for input, its shape is ", shown(shape));
}

Sizes pooled_shape(std::span<const int64_t> t, size_t dims, Ints kernel, Ints stride, Ints padding,
                   Ints dilation, bool ceil_mode) {
  check_planes(t, dims);
  want(t[t.size() - dims - 1] > 0, "Expected ", dims + 1, "D or ", dims + 2,
       "D (batch mode) tensor with optional 0 dim batch size for input, but got: ", shown(t),
       ", which has no channels to pool");
  Sizes shape(t.begin(), t.end());
  for (size_t i = 0; i < dims; ++i) {
    int64_t& size = shape[t.size() - dims + i];
    constexpr int64_t kWindow = 1 << 20;  // so that no window takes for ever
    want(stride[i] != 0, "stride should not be zero: ", shown(stride));
    want(kernel[i] > 0 && stride[i] > 0 && dilation[i] > 0 && kernel[i] <= kWindow &&
             stride[i] <= kWindow && dilation[i] <= kWindow,
         "kernel_size, stride and dilation must be positive, at most 2^20: ", shown(kernel), ", ",
         shown(stride), ", ", shown(dilation));
    want(padding[i] >= 0 && padding[i] <= kernel[i] / 2,
         "padding must be at most half of kernel_size: ", shown(padding), " and ", shown(kernel));
    int64_t in = size;
    want(in > 0 && in <= kMost / 4, "input of shape ", shown(t), " cannot be pooled");
    size = kit::pooled_size(in, kernel[i], stride[i], padding[i], dilation[i], ceil_mode);
    want(size > 0, "kernel_size ", shown(kernel), " is too large for input of shape ", shown(t),
         ": Output size is too small");
  }
  return shape;
}

const int64_t kOnes[2] = {1, 1};

// What a derivative is given must have the planes of the input, of whatever size.
void check_same_planes(const Tensor& g, Ints input) {
  want(g.ndim() == int64_t(input.size()) &&
           std::equal(input.begin(), input.end() - 2, g.shape().begin()),
       "grad of shape ", shown(g), " does not belong to input of shape ", shown(input));
}

}  // namespace

aj_status* max_pool2d_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    Sizes shape = pooled_shape(t.shape(), 2, c.ints(1), c.ints(2), c.ints(3), c.ints(4), c.flag(5));
    c.out_in_order(0, t.dtype(), shape, t);
    c.out_in_order(1, int64, shape, t);
  });
}

namespace {

void check_max_pool2d_backward(const kit::Values& c) {
  check_planes(c.ints(2));
  check_same_planes(c.tensor(0), c.ints(2));
  want_shape(c.tensor(1), "indices", c.tensor(0).shape());
}

}  // namespace

aj_status* max_pool2d_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& g = c.tensor(0);
    check_max_pool2d_backward(c);
    c.out_in_order(0, g.dtype(), c.ints(2), c.tensor(1));
  });
}

aj_status* avg_pool2d_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    want(!c.given(6) || c.integer(6) != 0, "divisor_override must not be 0");
    c.out_in_order(
        0, t.dtype(),
        pooled_shape(t.shape(), 2, c.ints(1), c.ints(2), c.ints(3), Ints(kOnes, 2), c.flag(4)), t);
  });
}

aj_status* avg_pool2d_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    want(!c.given(7) || c.integer(7) != 0, "divisor_override must not be 0");
    want_shape(
        c.tensor(0), "grad",
        pooled_shape(c.ints(1), 2, c.ints(2), c.ints(3), c.ints(4), Ints(kOnes, 2), c.flag(5)));
    c.out_in_order(0, c.tensor(0).dtype(), c.ints(1), c.tensor(0));
  });
}

aj_status* adaptive_avg_pool2d_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& g = c.tensor(0);
    Ints shape = c.ints(1);
    check_planes(shape);
    check_same_planes(g, shape);
    for (int64_t i = g.ndim() - 2; i < g.ndim(); ++i)
      want(shape[size_t(i)] > 0 || g.size(i) == 0, "input of shape ", shown(shape),
           " has no elements to take means of");
    c.out_in_order(0, g.dtype(), shape, g);
  });
}

aj_status* adaptive_avg_pool2d_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    check_planes(t.shape());
    Ints size = c.ints(1);
    Sizes shape = sizes_of(t);
    for (int64_t i = 0; i < 2; ++i) {
      want(size[i] >= 0, "output_size must not be negative: ", shown(size));
      want(shape[size_t(t.ndim() - 2 + i)] > 0, "input of shape ", shown(t),
           " has no elements to take means of; only the batch may be empty");
      shape[size_t(t.ndim() - 2 + i)] = size[i];
    }
    c.out_in_order(0, t.dtype(), shape, t);
  });
}

aj_status* max_pool2d_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &g = b.tensor(0), &indices = b.tensor(1);
    Ints shape = b.ints(2);
    check_max_pool2d_backward(b);
    int64_t plane = shape[shape.size() - 1] * shape[shape.size() - 2],
            planes = product(shape) / std::max<int64_t>(plane, 1);
    int64_t windows = g.size(-1) * g.size(-2);
    Sizes flat{planes, windows};
    b.ret(0, reshape(scatter_add_(zeros_of(g, {planes, plane}), 1, reshape(indices, flat),
                                  reshape(g, flat)),
                     shape));
  });
}

namespace {

Sizes stride_or(const kit::Body& b, uint32_t i, const Sizes& kernel) {
  Ints given = b.ints(i);
  return given.is_none() || given.empty() ? kernel : n_of(given, kernel.size(), "stride");
}

std::tuple<Tensor, Tensor> max_pool2d_of(const kit::Body& b) {
  Sizes kernel = n_of(b.ints(1), 2, "kernel_size");
  return in_own_name([&] {
    return max_pool2d_with_indices(brought_together(b.tensor(0)), kernel, stride_or(b, 2, kernel),
                                   n_of(b.ints(3), 2, "padding"), n_of(b.ints(4), 2, "dilation"),
                                   b.flag(5));
  });
}

std::tuple<Tensor, Tensor> max_pool1d_of(const kit::Body& b) {
  const Tensor& t = b.tensor(0);
  want(t.ndim() == 2 || t.ndim() == 3, "input must have 2 or 3 dimensions, its shape is ",
       shown(t));
  Sizes kernel = n_of(b.ints(1), 1, "kernel_size"), stride = stride_or(b, 2, kernel);
  int64_t padding = n_of(b.ints(3), 1, "padding")[0], dilation = n_of(b.ints(4), 1, "dilation")[0];
  auto [out, indices] = max_pool2d_with_indices(unsqueeze(t, -2), {1, kernel[0]}, {1, stride[0]},
                                                {0, padding}, {1, dilation}, b.flag(5));
  return {squeeze(out, {-2}), squeeze(indices, {-2})};
}

Sizes output_size(const Tensor& t, Ints asked) {
  if (t.ndim() < 3)
    kit::raise_as("DimensionError", AJ_INVALID_ARGUMENT,
                  "input must have 3 or 4 dimensions, its shape is ", shown(t));
  check_planes(t.shape());
  Sizes size = n_of(asked, 2, "output_size");
  want(size[0] >= 0 && size[1] >= 0, "output_size must not be negative: ", shown(asked));
  return size;
}

}  // namespace

aj_status* window_maxima_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    size_t dims = c.ints(1).size();
    want(dims >= 1 && dims <= 3, "kernel must hold 1 to 3 numbers: ", shown(c.ints(1)));
    for (uint32_t i = 2; i < 5; ++i)
      want(c.ints(i).size() == dims, "stride, padding and dilation must hold ", dims,
           " numbers each: ", shown(c.ints(i)));
    Sizes shape =
        pooled_shape(t.shape(), dims, c.ints(1), c.ints(2), c.ints(3), c.ints(4), c.flag(5));
    for (size_t d = 0; d < dims && dims == 3; ++d) {  // what max_windows refuses
      size_t at = shape.size() - dims + d;
      kit::WindowRule r{c.ints(1)[d], c.ints(2)[d], c.ints(3)[d], c.ints(4)[d]};
      want(!kit::has_empty_window(t.shape()[at], shape[at], r),
           "a window lies in the padding alone: input is ", shown(t), ", kernel_size ",
           shown(c.ints(1)), ", padding ", shown(c.ints(3)), ", dilation ", shown(c.ints(4)));
    }
    c.out_in_order(0, t.dtype(), shape, t);
  });
}

// With the places: so it is recorded, too.
aj_status* window_maxima_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Ints kernel = b.ints(1), stride = b.ints(2), padding = b.ints(3), dilation = b.ints(4);
    bool ceil_mode = b.flag(5);
    b.ret(0, std::get<0>(in_own_name([&] {
            switch (kernel.size()) {
              case 1:
                return max_pool1d_with_indices(t, kernel, stride, padding, dilation, ceil_mode);
              case 2:
                return max_pool2d_with_indices(t, kernel, stride, padding, dilation, ceil_mode);
              default:
                return max_pool3d_with_indices(t, kernel, stride, padding, dilation, ceil_mode);
            }
          })));
  });
}

namespace {

aj_status* max_pool(aj_call* call, size_t dims) {
  return kit::compose(call, [=](kit::Body& b) {
    want(!b.flag(6), "return_indices=True has its own function; call max_pool", dims,
         "d_with_indices");
    Sizes kernel = n_of(b.ints(1), dims, "kernel_size"), stride = stride_or(b, 2, kernel);
    b.ret(0, in_own_name([&] {
            return window_maxima(brought_together(b.tensor(0)), kernel, stride,
                                 n_of(b.ints(3), dims, "padding"),
                                 n_of(b.ints(4), dims, "dilation"), b.flag(5));
          }));
  });
}

}  // namespace

aj_status* max_pool1d_body(void*, aj_call* call) { return max_pool(call, 1); }
aj_status* max_pool2d_body(void*, aj_call* call) { return max_pool(call, 2); }
aj_status* max_pool3d_body(void*, aj_call* call) { return max_pool(call, 3); }

aj_status* max_pool2d_layer_with_indices_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret_all(max_pool2d_of(b)); });
}

aj_status* max_pool1d_with_indices_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret_all(max_pool1d_of(b)); });
}

// The means of int64 lose their fractions, as PyTorch's do; a whole one that was rounded below
// itself does not.
Tensor of_whole(const Tensor& t, auto means) {
  if (t.dtype() != int64) return means(t);
  return to(trunc(means(to(t, float64)) * (1 + 1e-14)), int64);
}

aj_status* avg_pool2d_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Sizes kernel = n_of(b.ints(1), 2, "kernel_size");
    b.ret(0, in_own_name([&] {
            return of_whole(brought_together(b.tensor(0)), [&](const Tensor& t) {
              return avg_pool2d_forward(t, kernel, stride_or(b, 2, kernel),
                                        n_of(b.ints(3), 2, "padding"), b.flag(4), b.flag(5),
                                        b.maybe<int64_t>(6));
            });
          }));
  });
}

aj_status* avg_pool1d_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(t.ndim() == 2 || t.ndim() == 3, "input must have 2 or 3 dimensions, its shape is ",
         shown(t));
    Sizes kernel = n_of(b.ints(1), 1, "kernel_size"), stride = stride_or(b, 2, kernel);
    Tensor out = of_whole(unsqueeze(t, -2), [&](const Tensor& rows) {
      return avg_pool2d_forward(rows, {1, kernel[0]}, {1, stride[0]},
                                {0, n_of(b.ints(3), 1, "padding")[0]}, b.flag(4), b.flag(5),
                                std::nullopt);
    });
    b.ret(0, squeeze(out, {-2}));
  });
}

aj_status* adaptive_avg_pool2d_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, adaptive_avg_pool2d_forward(brought_together(b.tensor(0)),
                                         output_size(b.tensor(0), b.ints(1))));
  });
}

aj_status* adaptive_avg_pool1d_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(t.ndim() == 2 || t.ndim() == 3, "input must have 2 or 3 dimensions, its shape is ",
         shown(t));
    b.ret(0, squeeze(adaptive_avg_pool2d_forward(unsqueeze(t, -2),
                                                 {1, n_of(b.ints(1), 1, "output_size")[0]}),
                     {-2}));
  });
}

}  // namespace adjoin::ops
