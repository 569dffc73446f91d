// adjoin/kit/geometry.hpp: which elements meet in a convolution and in a pooling window.
#ifndef ADJOIN_KIT_GEOMETRY_HPP
#define ADJOIN_KIT_GEOMETRY_HPP
#include <adjoin/kit/view.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {

// A convolution joins a small image with a big one through a weight [groups * small_c, big_c,
// kernel]: tap k of position s of the small image lies at s * stride - pad + k * dilation of the
// big one. Forward writes the small image (transposed: the big one), the input's gradient the other
// one. One to three dimensions; missing ones have size 1 and stand first.
struct ConvGeometry {
  int64_t batch, groups, small_c, big_c;  // channels of one group
  int64_t small[3] = {1, 1, 1}, big[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};

  ConvGeometry(TensorView small_image, TensorView big_image, TensorView weight, Span strides,
               Span pads, Span dilations, int64_t n_groups)
      : batch(small_image.size(0)),
        groups(n_groups),
        small_c(weight.size(0) / n_groups),
        big_c(weight.size(1)) {
    int64_t n = weight.ndim() - 2;
    if (n < 1 || n > 3)
      raise(AJ_UNIMPLEMENTED, "1 to 3 spatial dimensions are known, the weight is ", weight);
    for (int64_t d = 0; d < n; ++d) {
      int64_t to = 3 - n + d;
      small[to] = small_image.size(2 + d);
      big[to] = big_image.size(2 + d);
      kernel[to] = weight.size(2 + d);
      stride[to] = strides[d];
      pad[to] = pads[d];
      dilation[to] = dilations[d];
    }
  }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t small_pixels() const { return small[0] * small[1] * small[2]; }
  int64_t big_pixels() const { return big[0] * big[1] * big[2]; }

  // The pixel of the big image under tap k of pixel s of the small one, or -1 in the padding.
  AJ_HD int64_t meet(int64_t s, int64_t k) const {
    int64_t at = 0, weight = 1;
    for (int d = 2; d >= 0; --d) {
      int64_t x = s % small[d] * stride[d] - pad[d] + k % kernel[d] * dilation[d];
      if (x < 0 || x >= big[d]) return -1;
      at += x * weight;
      weight *= big[d];
      s /= small[d];
      k /= kernel[d];
    }
    return at;
  }
};

// Is the weight so large and are the pixels of all images so few that a convolution (of one group)
// is bound by reading the weight? Then it is best read where it lies.
inline bool few_pixels(int64_t pixels, int64_t weight) { return pixels <= 64 && weight >= 1 << 18; }

// Windows over planes of the last two dimensions.
struct PoolGeometry {
  int64_t planes, in[2], out[2], kernel[2], stride[2], pad[2], dilation[2] = {1, 1};

  PoolGeometry(Span in_shape, Span out_shape, Span kernels, Span strides, Span pads) : planes(1) {
    size_t n = in_shape.size();
    for (size_t d = 0; d + 2 < n; ++d) planes *= in_shape[d];
    for (int d = 0; d < 2; ++d) {
      in[d] = in_shape[n - 2 + d];
      out[d] = out_shape[out_shape.size() - 2 + d];
      kernel[d] = kernels[d];
      stride[d] = strides.empty() ? kernels[d] : strides[d];
      pad[d] = pads[d];
    }
  }
  int64_t in_pixels() const { return in[0] * in[1]; }
  int64_t out_pixels() const { return out[0] * out[1]; }
  struct Range {
    int64_t lo, hi;
  };
  // Of an average: the part of a window inside the plane, and how many elements it divides by.
  Range inside(int d, int64_t o) const {
    int64_t lo = o * stride[d] - pad[d];
    return {std::max<int64_t>(lo, 0), std::min(lo + kernel[d], in[d])};
  }
  int64_t padded(int d, int64_t o) const {
    int64_t lo = o * stride[d] - pad[d];
    return std::min(lo + kernel[d], in[d] + pad[d]) - lo;
  }
  static Range adaptive(int64_t o, int64_t n_out, int64_t n_in) {
    return {o * n_in / n_out, ((o + 1) * n_in + n_out - 1) / n_out};
  }
};

// A tensor seen along one dimension: outer * size lines of `inner` neighbours, in C order.
struct Lines {
  int64_t outer = 1, size = 1, inner = 1;
  Lines(Span shape, int64_t dim) {
    int64_t n = int64_t(shape.size());
    if (dim < 0) dim += n;
    for (int64_t d = 0; d < n; ++d) (d < dim ? outer : d == dim ? size : inner) *= shape[d];
  }
};

[[noreturn]] inline void index_error(int64_t index, int64_t size, int64_t dim) {
  raise_as("IndexError", AJ_OUT_OF_RANGE, "index ", index, " is out of range for dimension ", dim,
           " with size ", size);
}

// Indices from 0; all are looked at before one is complained about, so that the loop is vector
// code: the sign of i | (size - 1 - i) tells.
inline void check_indices(const int64_t* index, int64_t n, int64_t size, int64_t dim) {
  uint64_t outside = 0;
  for (int64_t k = 0; k < n; ++k)
    outside |= uint64_t(index[k]) | (uint64_t(size) - 1 - uint64_t(index[k]));
  if (!(outside >> 63)) return;
  for (int64_t k = 0; k < n; ++k)
    if (index[k] < 0 || index[k] >= size) index_error(index[k], size, dim);
}

}  // namespace kit
}  // namespace adjoin
#endif
