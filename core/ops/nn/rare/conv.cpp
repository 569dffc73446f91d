// core/ops/nn/rare/conv.cpp: shapes of convolutions, the layers' forms, and gradients that are
// convolutions themselves.
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {
namespace {

struct Conv {  // the arguments that convolution and its derivative share, from place `at` on
  Conv(const kit::Values& v, uint32_t at)
      : stride(v.ints(at).vec()),
        padding(v.ints(at + 1).vec()),
        dilation(v.ints(at + 2).vec()),
        output_padding(v.ints(at + 4).vec()),
        transposed(v.flag(at + 3)),
        groups(v.integer(at + 5)) {}
  Conv(size_t n, const Sizes& s, const Sizes& p, const Sizes& d, int64_t g)
      : stride(s), padding(p), dilation(d), output_padding(n, 0), groups(g) {}

  Tensor operator()(const Tensor& x, const Tensor& w, const Tensor& bias = Tensor()) const {
    if (bias.defined())
      want(bias.dtype() == x.dtype(), "input is ", x.dtype(), ", bias is ", bias.dtype(),
           "; cast one with .to()");
    if (is_integral(x) && x.dtype() != boolean) return of_integers(x, w, bias);
    return in_own_name([&] {
      return convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups);
    });
  }
  Tensor of_integers(const Tensor& x, const Tensor& w, const Tensor& bias) const;
  Sizes stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
};

Sizes shape_of(const Conv& c, const Tensor& x, const Tensor& w) {
  int64_t n = x.ndim() - 2, out = c.transposed ? w.size(1) * c.groups : w.size(0);
  Sizes shape{x.size(0), out};
  for (int64_t i = 0; i < n; ++i) {
    int64_t in = x.size(i + 2), reach = c.dilation[i] * (w.size(i + 2) - 1) + 1;
    if (c.transposed) {
      want(c.output_padding[i] < std::max(c.stride[i], c.dilation[i]), "output_padding ",
           c.output_padding[i], " must be below stride ", c.stride[i], " or dilation ",
           c.dilation[i]);
      shape.push_back((in - 1) * c.stride[i] - 2 * c.padding[i] + reach + c.output_padding[i]);
      want(shape.back() >= 0, "input of shape ", shown(x), " gives a negative size in dimension ",
           i + 2);
    } else {
      int64_t room = in + 2 * c.padding[i] - reach;
      want(room >= 0, "the kernel reaches over ", reach, " elements of dimension ", i + 2,
           ", padded input has ", in + 2 * c.padding[i], "; give more padding, or a larger input");
      shape.push_back(room / c.stride[i] + 1);
    }
  }
  return shape;
}

void check(const Conv& c, const Tensor& x, const Tensor& w) {
  int64_t n = x.ndim() - 2;
  want(n >= 1 && n <= 3, "input must have batch, channels and 1 to 3 dimensions, its shape is ",
       shown(x));
  want(w.ndim() == x.ndim(), "weight must have ", x.ndim(), " dimensions, its shape is ", shown(w));
  want(x.dtype() == w.dtype(), "input is ", x.dtype(), ", weight is ", w.dtype(),
       "; cast one with .to()");
  for (const Sizes* s : {&c.stride, &c.padding, &c.dilation, &c.output_padding})
    want(int64_t(s->size()) == n, "stride, padding and dilation must hold ", n,
         " numbers each: ", shown(*s));
  constexpr int64_t kMost = 1 << 30;  // so that no size overflows
  for (int64_t i = 0; i < n; ++i)
    want(c.stride[i] > 0 && c.dilation[i] > 0 && c.padding[i] >= 0 && c.output_padding[i] >= 0 &&
             c.stride[i] <= kMost && c.dilation[i] <= kMost && c.padding[i] <= kMost &&
             c.output_padding[i] <= kMost,
         "stride and dilation must be positive, padding not negative, all at most 2^30: ",
         shown(c.stride), ", ", shown(c.dilation), ", ", shown(c.padding));
  want(c.groups > 0 && c.groups <= kMost, "groups must be positive, at most 2^30: ", c.groups);
  int64_t channels = c.transposed ? w.size(0) : w.size(1) * c.groups;
  want(x.size(1) == channels, "input ", shown(x), " has ", x.size(1), " channels, weight ",
       shown(w), " with groups ", c.groups, " wants ", channels);
  want(w.size(0) % c.groups == 0, "the first size of weight ", shown(w),
       " must be divisible by groups ", c.groups);
}

// x with stride - 1 zeros between neighbours of dimension d.
Tensor spread_out(const Tensor& x, int64_t d, int64_t step) {
  if (step == 1 || x.size(d) == 0) return x;
  Sizes shape = sizes_of(x);
  Sizes behind(size_t(2 * (x.ndim() - d)), 0);
  behind.back() = step - 1;
  shape[size_t(d)] *= step;
  Tensor wide = reshape(constant_pad_nd(unsqueeze(x, d + 1), behind), shape);
  return cut(wide, d, 0, shape[size_t(d)] - step + 1);
}

// The same by products of integers, for which backends have no convolution: every place of the
// kernel is a strided window of the padded input. A transpose is an ordinary one of the input
// spread out, with the kernel turned round.
Tensor Conv::of_integers(const Tensor& x, const Tensor& w, const Tensor& bias) const {
  check(*this, x, w);
  Sizes shape = shape_of(*this, x, w), step = stride;
  int64_t n = x.ndim() - 2, batch = x.size(0), in = x.size(1) / groups, outs = shape[1] / groups;
  Sizes around(size_t(2 * n), 0), kernel;
  Tensor from = x, by = w;
  for (int64_t i = 0; i < n; ++i) {
    size_t at = size_t(2 * (n - 1 - i));
    int64_t reach = dilation[i] * (w.size(i + 2) - 1);
    around[at] = transposed ? reach - padding[i] : padding[i];
    around[at + 1] = transposed ? reach - padding[i] + output_padding[i] : padding[i];
    kernel.push_back(w.size(i + 2));
    if (transposed) from = spread_out(from, i + 2, stride[i]), by = flip(by, {i + 2}), step[i] = 1;
  }
  from = contiguous(constant_pad_nd(from, around));
  int64_t places = 1, taps = 1;
  Sizes window{batch, groups, in}, strides{from.stride(0), in * from.stride(1), from.stride(1)};
  for (int64_t i = 0; i < n; ++i) window.push_back(kernel[i]), taps *= kernel[i];
  for (int64_t i = 0; i < n; ++i) strides.push_back(from.stride(i + 2) * dilation[i]);
  for (int64_t i = 0; i < n; ++i) window.push_back(shape[i + 2]), places *= shape[i + 2];
  for (int64_t i = 0; i < n; ++i) strides.push_back(from.stride(i + 2) * step[i]);
  Tensor read = reshape(as_strided(from, window, strides), {batch, groups, in * taps, places});
  if (transposed)  // [groups * in, outs, taps] to [groups, outs, in * taps]
    by = transpose(reshape(by, {groups, in, outs, taps}), 1, 2);
  Tensor made = reshape(matmul(reshape(by, {groups, outs, in * taps}), read), shape);
  if (!bias.defined()) return made;
  Sizes along(size_t(n + 1), 1);
  along[0] = shape[1];
  return made + reshape(bias, along);
}

}  // namespace

aj_status* convolution_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& k) {
    const Tensor &x = k.tensor(0), &w = k.tensor(1), &bias = k.tensor(2);
    Conv c(k, 3);
    check(c, x, w);
    Sizes shape = shape_of(c, x, w);
    if (bias.defined())
      want(bias.ndim() == 1 && bias.size(0) == shape[1] && bias.dtype() == x.dtype(),
           "bias must be ", x.dtype(), " of shape [", shape[1], "], it is ", bias.dtype(), " ",
           shown(bias));
    k.out_in_order(0, x.dtype(), shape, is_channels_last(w) ? w : x);
  });
}

namespace {

Conv checked_backward(const kit::Values& k) {
  const Tensor &x = k.tensor(1), &w = k.tensor(2);
  Conv c(k, 3);
  check(c, x, w);
  want_shape(k.tensor(0), "grad", shape_of(c, x, w));
  want_dtype(k.tensor(0), "grad", x.dtype());
  three_needs(k.bools(9));
  return c;
}

}  // namespace

aj_status* convolution_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& k) {
    const Tensor &x = k.tensor(1), &w = k.tensor(2);
    checked_backward(k);
    Bools needs = k.bools(9);
    Sizes none{0}, channels{k.tensor(0).size(1)};
    const Tensor& like = is_channels_last(w) ? w : x;
    needs[0] ? k.out_in_order(0, x.dtype(), x.shape(), like) : k.out(0, x.dtype(), none);
    needs[1] ? k.out_in_order(1, x.dtype(), w.shape(), w) : k.out(1, x.dtype(), none);
    k.out(2, x.dtype(), needs[2] ? channels : none);
  });
}

namespace {

Tensor input_gradient(const Conv& c, const Tensor& g, const Tensor& x, const Tensor& w) {
  Conv back = c;
  back.transposed = !c.transposed;
  for (size_t i = 0; i < c.stride.size(); ++i) {
    int64_t reach = c.dilation[i] * (w.size(i + 2) - 1) + 1, out = g.size(i + 2);
    back.output_padding[i] =
        c.transposed ? 0 : x.size(i + 2) - ((out - 1) * c.stride[i] - 2 * c.padding[i] + reach);
  }
  Tensor made = back(g, conjugate(w));
  for (int64_t d = 2; d < x.ndim(); ++d)  // an output_padding above the stride leaves a rest
    if (made.size(d) != x.size(d)) made = cut(made, d, 0, x.size(d));
  return made;
}

// The sum over batch and places of small * big moved by the kernel: batch and channels change
// places, stride and dilation too. wide: [N, G * C, ...], small: [N, O, ...]; the result is [O, C,
// kernel].
Tensor weight_gradient(const Conv& c, const Tensor& wide, const Tensor& small, const Tensor& w) {
  int64_t batch = wide.size(0), channels = wide.size(1) / c.groups;
  Sizes split{batch, c.groups, channels}, order{2, 1, 0}, joined{channels, c.groups * batch};
  for (int64_t d = 2; d < wide.ndim(); ++d) {
    split.push_back(wide.size(d));
    order.push_back(d + 1);
    joined.push_back(wide.size(d));
  }
  Tensor turned = reshape(permute(reshape(wide, split), order), joined);
  Conv swapped(c.stride.size(), c.dilation, c.padding, c.stride, c.groups);
  Tensor made = transpose(swapped(turned, transpose(small, 0, 1)), 0, 1);
  for (int64_t d = 2; d < w.ndim(); ++d)
    if (made.size(d) != w.size(d)) made = cut(made, d, 0, w.size(d));
  return made;
}

}  // namespace

// Runs when this derivative is itself recorded, or where a backend has no kernel for it.
aj_status* convolution_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &g = b.tensor(0), &x = b.tensor(1), &w = b.tensor(2);
    Conv c = checked_backward(b);
    Bools needs = b.bools(9);
    Tensor nothing = zeros_of(x, {0});
    b.ret(0, needs[0] ? input_gradient(c, g, x, w) : nothing);
    if (!needs[1])
      b.ret(1, nothing);
    else
      b.ret(1, c.transposed ? weight_gradient(c, g, conjugate(x), w)
                            : weight_gradient(c, conjugate(x), g, w));
    Sizes others{0};
    for (int64_t d = 2; d < g.ndim(); ++d) others.push_back(d);
    b.ret(2, needs[2] ? sum(g, others) : nothing);
  });
}

namespace {

// A layer's input without a batch gets one for the call.
template <class F>
Tensor batched(const Tensor& x, int64_t n, F f) {
  want(x.ndim() == n + 1 || x.ndim() == n + 2, "input must have ", n + 1, " or ", n + 2,
       " dimensions, its shape is ", shown(x));
  return x.ndim() == n + 2 ? f(x) : squeeze(f(unsqueeze(x, 0)), {0});
}

void want_kernel(const Tensor& w) {
  for (int64_t d = 2; d < w.ndim(); ++d)
    want(w.size(d) > 0, "the kernel must have elements, weight is ", shown(w));
}

aj_status* conv(aj_call* call, int64_t n) {
  return kit::compose(call, [&](kit::Body& b) {
    Conv c(size_t(n), n_of(b.ints(3), n, "stride"), n_of(b.ints(4), n, "padding"),
           n_of(b.ints(5), n, "dilation"), b.integer(6));
    want_kernel(b.tensor(1));
    b.ret(0,
          batched(b.tensor(0), n, [&](const Tensor& x) { return c(x, b.tensor(1), b.tensor(2)); }));
  });
}

// padding 'same': as many results as elements; an odd rest is padded behind.
aj_status* conv_padding(aj_call* call, int64_t n) {
  return kit::compose(call, [&](kit::Body& b) {
    const Tensor& w = b.tensor(1);
    std::string_view padding = b.text(4);
    want(padding == "same" || padding == "valid",
         "padding must be 'same', 'valid' or numbers, it is '", padding, "'");
    Conv c(size_t(n), n_of(b.ints(3), n, "stride"), Sizes(size_t(n), 0),
           n_of(b.ints(5), n, "dilation"), b.integer(6));
    want(w.ndim() == n + 2, "weight must have ", n + 2, " dimensions, its shape is ", shown(w));
    Sizes rest(size_t(2 * n), 0);
    bool uneven = false;
    if (padding == "same") {
      for (int64_t i = 0; i < n; ++i) {
        want(c.stride[i] == 1, "padding 'same' wants stride 1: ", shown(c.stride));
        int64_t total = times(c.dilation[i], w.size(i + 2) - 1);
        c.padding[i] = total / 2;
        rest[2 * (n - 1 - i) + 1] = total % 2;
        uneven |= total % 2 != 0;
      }
    }
    b.ret(0, batched(b.tensor(0), n, [&](const Tensor& x) {
            return c(uneven ? constant_pad_nd(x, rest) : x, w, b.tensor(2));
          }));
  });
}

aj_status* conv_transpose(aj_call* call, int64_t n) {
  return kit::compose(call, [&](kit::Body& b) {
    Conv c(size_t(n), n_of(b.ints(3), n, "stride"), n_of(b.ints(4), n, "padding"),
           n_of(b.ints(7), n, "dilation"), b.integer(6));
    c.output_padding = n_of(b.ints(5), n, "output_padding");
    c.transposed = true;
    want_kernel(b.tensor(1));
    b.ret(0,
          batched(b.tensor(0), n, [&](const Tensor& x) { return c(x, b.tensor(1), b.tensor(2)); }));
  });
}

}  // namespace

aj_status* conv1d_body(void*, aj_call* call) { return conv(call, 1); }
aj_status* conv2d_body(void*, aj_call* call) { return conv(call, 2); }
aj_status* conv3d_body(void*, aj_call* call) { return conv(call, 3); }
aj_status* conv1d_padding_body(void*, aj_call* call) { return conv_padding(call, 1); }
aj_status* conv2d_padding_body(void*, aj_call* call) { return conv_padding(call, 2); }
aj_status* conv3d_padding_body(void*, aj_call* call) { return conv_padding(call, 3); }
aj_status* conv_transpose1d_body(void*, aj_call* call) { return conv_transpose(call, 1); }
aj_status* conv_transpose2d_body(void*, aj_call* call) { return conv_transpose(call, 2); }
aj_status* conv_transpose3d_body(void*, aj_call* call) { return conv_transpose(call, 3); }

aj_status* conv_tbc_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &weight = b.tensor(1);
    want(t.ndim() == 3, "input must be (time, batch, channels), its shape is ", shown(t));
    want(weight.ndim() == 3, "weight must be (kernel, channels in, channels out), its shape is ",
         shown(weight));
    Tensor out = in_own_name([&] {
      return conv1d(permute(t, {1, 2, 0}), permute(weight, {2, 1, 0}), b.tensor(2), {1},
                    {b.integer(3)});
    });
    b.ret(0, permute(out, {2, 0, 1}));
  });
}

}  // namespace adjoin::ops
