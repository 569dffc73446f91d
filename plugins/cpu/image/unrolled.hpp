// plugins/cpu/image/unrolled.hpp: an image as a matrix: the taps of a convolution under each pixel.
#ifndef ADJOIN_PLUGINS_CPU_IMAGE_UNROLLED_HPP
#define ADJOIN_PLUGINS_CPU_IMAGE_UNROLLED_HPP
#include <adjoin/kit/geometry.hpp>
#include <algorithm>

namespace adjoin::cpu {

using kit::ConvGeometry;

template <class T>
class Unrolled {
 public:
  explicit Unrolled(const ConvGeometry& g) : g_(g) {
    bool plain = g.taps() == 1;
    for (int d = 0; d < 3; ++d) plain &= g.stride[d] == 1 && g.pad[d] == 0;
    plain_ = plain;
  }
  bool plain() const { return plain_; }  // cols are the image itself

  // Rows of `channels` channels, pixels [lo, hi); cols has rows of ld.
  void unroll(const T* big, int64_t channels, int64_t lo, int64_t hi, T* cols, int64_t ld) const {
    walk(channels, lo, hi, ld,
         [&](int64_t channel, int64_t at, int64_t from, int64_t step, int64_t n, int64_t skip,
             int64_t rest) {
           T* to = cols + at;
           const T* p = big + channel * g_.big_pixels() + from;
           for (int64_t i = 0; i < skip; ++i) *to++ = T(0);
           if (step == 1) {
             for (int64_t i = 0; i < n; ++i) *to++ = p[i];
           } else {
             for (int64_t i = 0; i < n; ++i) *to++ = p[i * step];
           }
           for (int64_t i = 0; i < rest; ++i) *to++ = T(0);
         });
  }
  // The other way: adds cols to the image.
  void fold(const T* cols, int64_t channels, int64_t lo, int64_t hi, T* big, int64_t ld) const {
    walk(channels, lo, hi, ld,
         [&](int64_t channel, int64_t at, int64_t from, int64_t step, int64_t n, int64_t skip,
             int64_t) {
           T* p = big + channel * g_.big_pixels() + from;
           const T* x = cols + at + skip;
           for (int64_t i = 0; i < n; ++i) p[i * step] += x[i];
         });
  }

 private:
  // For each channel, tap and line of pixels: f(channel, place in cols, first pixel, step, inside,
  // before, behind).
  template <class F>
  void walk(int64_t channels, int64_t lo, int64_t hi, int64_t ld, F f) const {
    const ConvGeometry& g = g_;
    int64_t taps = g.taps(), line = g.small[2], stride = g.stride[2];
    for (int64_t r = 0; r < channels * taps; ++r) {
      int64_t k = r % taps, shift[3];
      for (int d = 2; d >= 0; k /= g.kernel[d--])
        shift[d] = k % g.kernel[d] * g.dilation[d] - g.pad[d];
      // Pixels x of a line read x * stride + shift: those inside are [begin, end).
      int64_t begin = std::clamp<int64_t>((stride - 1 - shift[2]) / stride, 0, line);
      int64_t end =
          g.big[2] > shift[2]
              ? std::clamp<int64_t>((g.big[2] - shift[2] + stride - 1) / stride, begin, line)
              : begin;
      int64_t x = lo % line, row = lo / line % g.small[1], plane = lo / line / g.small[1];
      for (int64_t s = lo, at = r * ld; s < hi;) {
        int64_t n = std::min(hi - s, line - x), y = row * g.stride[1] + shift[1],
                z = plane * g.stride[0] + shift[0];
        if (y < 0 || y >= g.big[1] || z < 0 || z >= g.big[0]) {
          f(r / taps, at, 0, 1, 0, n, 0);
        } else {
          int64_t first = std::clamp(begin, x, x + n), last = std::clamp(end, first, x + n);
          int64_t from =
              first < last ? (z * g.big[1] + y) * g.big[2] + first * stride + shift[2] : 0;
          f(r / taps, at, from, stride, last - first, first - x, x + n - last);
        }
        s += n;
        at += n;
        x = 0;
        if (++row == g.small[1]) row = 0, ++plane;
      }
    }
  }
  const ConvGeometry& g_;
  bool plain_;
};

}  // namespace adjoin::cpu
#endif
