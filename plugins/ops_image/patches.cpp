// plugins/ops_image/patches.cpp: windows of images as columns, and columns added back.
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {
namespace {

struct Windows {
  // The sizes of an image, and the places of the four lists from `at` on.
  Windows(const kit::Values& c, uint32_t at, Ints image) {
    static constexpr std::string_view names[] = {"kernel_size", "dilation", "padding", "stride"};
    Sizes* lists[] = {&kernel, &dilation, &padding, &stride};
    for (uint32_t i = 0; i < 4; ++i) {
      *lists[i] = n_of(c.ints(at + i), 2, names[i]);
      for (int64_t x : *lists[i])
        want(x >= (i == 2 ? 0 : 1) && x <= 1 << 20, names[i], " must be ",
             i == 2 ? "0 or more" : "positive", ", at most 2^20: ", shown(*lists[i]));
    }
    for (size_t d = 0; d < 2; ++d) {
      want(image[d] >= 0 && image[d] <= kMost / 8, "an image cannot have sizes ", shown(image));
      int64_t room = image[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
      want(room >= 0, "windows of ", shown(kernel), " do not fit into images of ", shown(image),
           " with padding ", shown(padding));
      count.push_back(room / stride[d] + 1);
    }
  }
  Sizes kernel, dilation, padding, stride, count;
};

Sizes last_two(std::span<const int64_t> shape) { return Sizes(shape.last(2)); }

Sizes columns_shape(const Tensor& t, const Windows& w) {
  return {t.size(0), times(t.size(1), times(w.kernel[0], w.kernel[1])),
          times(w.count[0], w.count[1])};
}

void want_images(const Tensor& t) {
  want(t.ndim() == 4, "input must be (N, C, H, W), its shape is ", shown(t));
}

Sizes image_of(const kit::Values& c, const Windows& w, Ints size) {
  const Tensor& t = c.tensor(0);
  want(t.ndim() == 3, "input must be (N, C kernel places, windows), its shape is ", shown(t));
  int64_t taps = times(w.kernel[0], w.kernel[1]);
  want(t.size(1) % taps == 0, "channels must be divisible by the ", taps,
       " places of a window: input is ", shown(t));
  want(t.size(2) == times(w.count[0], w.count[1]), "input of shape ", shown(t),
       " does not hold the ", shown(w.count), " windows that images of ", shown(size), " have");
  return {t.size(0), t.size(1) / taps, size[0], size[1]};
}

// f(slice of the padded images, tap's row, tap's column) for every tap of the windows.
template <class F>
void for_taps(const Tensor& padded, const Windows& w, F f) {
  for (int64_t i = 0; i < w.kernel[0]; ++i)
    for (int64_t j = 0; j < w.kernel[1]; ++j) {
      int64_t y = i * w.dilation[0], x = j * w.dilation[1];
      Tensor rows = cut(padded, 2, y, y + (w.count[0] - 1) * w.stride[0] + 1, w.stride[0]);
      f(cut(rows, 3, x, x + (w.count[1] - 1) * w.stride[1] + 1, w.stride[1]), i, j);
    }
}

}  // namespace

aj_status* patches_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    want_images(t);
    c.out(0, t.dtype(), columns_shape(t, Windows(c, 1, last_two(t.shape()))));
  });
}

aj_status* patches_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    Sizes size = n_of(c.ints(1), 2, "output_size");
    c.out(0, c.tensor(0).dtype(), image_of(c, Windows(c, 2, size), size));
  });
}

aj_status* patches_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want_images(t);
    Windows w(b, 1, last_two(t.shape()));
    Tensor padded = constant_pad_nd(t, {w.padding[1], w.padding[1], w.padding[0], w.padding[0]}, 0);
    std::vector<Tensor> taps;
    for_taps(padded, w, [&](const Tensor& tap, int64_t, int64_t) { taps.push_back(tap); });
    b.ret(0, reshape(stack(taps, 2), columns_shape(t, w)));
  });
}

aj_status* patches_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Sizes size = n_of(b.ints(1), 2, "output_size");
    Windows w(b, 2, size);
    Sizes image = image_of(b, w, size);
    Tensor columns =
        reshape(t, {image[0], image[1], w.kernel[0], w.kernel[1], w.count[0], w.count[1]});
    Tensor padded =
        zeros_of(t, {image[0], image[1], size[0] + 2 * w.padding[0], size[1] + 2 * w.padding[1]});
    for_taps(padded, w, [&](const Tensor& tap, int64_t i, int64_t j) {
      add_(tap, select(select(columns, 2, i), 2, j));
    });
    Tensor rows = cut(padded, 2, w.padding[0], w.padding[0] + size[0]);
    b.ret(0, contiguous(cut(rows, 3, w.padding[1], w.padding[1] + size[1])));
  });
}

aj_status* unfold_patches_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(t.ndim() == 3 || t.ndim() == 4, "input must be (N, C, H, W) or (C, H, W), its shape is ",
         shown(t));
    Tensor images = t.ndim() == 3 ? unsqueeze(t, 0) : t;
    Windows w(b, 1, last_two(t.shape()));
    Tensor columns =
        in_own_name([&] { return patches(images, w.kernel, w.dilation, w.padding, w.stride); });
    b.ret(0, t.ndim() == 3 ? squeeze(columns, {0}) : columns);
  });
}

aj_status* fold_patches_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(t.ndim() == 2 || t.ndim() == 3,
         "input must be (N, C kernel places, windows) or without N, its shape is ", shown(t));
    Sizes size = n_of(b.ints(1), 2, "output_size");
    Windows w(b, 2, size);
    Tensor images = in_own_name([&] {
      return patches_backward(t.ndim() == 2 ? unsqueeze(t, 0) : t, size, w.kernel, w.dilation,
                              w.padding, w.stride);
    });
    b.ret(0, t.ndim() == 2 ? squeeze(images, {0}) : images);
  });
}

}  // namespace adjoin::ops
