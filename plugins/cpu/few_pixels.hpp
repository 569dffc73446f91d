// plugins/cpu/few_pixels.hpp: convolutions of few pixels by a large weight: one product over all
// images, so that the weight is read or written once, where it lies.
#ifndef ADJOIN_PLUGINS_CPU_FEW_PIXELS_HPP
#define ADJOIN_PLUGINS_CPU_FEW_PIXELS_HPP
#include <adjoin/kit/parallel.hpp>
#include <memory>

#include "gemm.hpp"
#include "unrolled.hpp"

namespace adjoin::cpu {

template <class T>
class FewPixels {
 public:
  static bool serves(const ConvGeometry& g) {
    return g.groups == 1 &&
           kit::few_pixels(g.batch * g.small_pixels(), g.small_c * g.big_c * g.taps());
  }
  FewPixels(const ConvGeometry& g, bool by_shape)
      : g_(g),
        unrolled_(g),
        by_shape_(by_shape),
        each_(g.small_pixels()),
        pixels_(g.batch * each_),
        taps_(g.big_c * g.taps()) {}

  // small = bias + weight cols
  void to_small(const T* big, const T* weight, const T* bias, T* small) const {
    auto cols = columns(big), out = scratch(g_.small_c);
    product(g_.small_c, pixels_, taps_, {weight, taps_}, {cols.get(), pixels_}, out.get());
    for (int64_t n = 0; n < g_.batch; ++n)
      for (int64_t c = 0; c < g_.small_c; ++c)
        for (int64_t i = 0; i < each_; ++i)
          *small++ = out[c * pixels_ + n * each_ + i] + (bias ? bias[c] : T(0));
  }
  // big = bias + weight^T small
  void to_big(const T* small, const T* weight, const T* bias, T* big) const {
    auto in = joined(small), cols = scratch(taps_);
    product(taps_, pixels_, g_.small_c, {weight, taps_, true}, {in.get(), pixels_}, cols.get());
    kit::parallel_for(g_.batch, 1, [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) {
        T* image = big + lo * g_.big_c * g_.big_pixels();
        for (int64_t c = 0; c < g_.big_c; ++c)
          std::fill_n(image + c * g_.big_pixels(), g_.big_pixels(), bias ? bias[c] : T(0));
        unrolled_.fold(cols.get() + lo * each_, g_.big_c, 0, each_, image, pixels_);
      }
    });
  }
  // weight = small cols^T
  void to_weight(const T* small, const T* big, T* weight) const {
    auto in = joined(small), cols = columns(big);
    product(g_.small_c, taps_, pixels_, {in.get(), pixels_}, {cols.get(), pixels_, true}, weight);
  }

 private:
  std::unique_ptr<T[]> scratch(int64_t rows) const {
    return std::unique_ptr<T[]>(new T[size_t(rows * pixels_)]);
  }
  // The taps under the pixels of all images.
  std::unique_ptr<T[]> columns(const T* big) const {
    auto to = scratch(taps_);
    kit::parallel_for(g_.batch, 1, [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo)
        unrolled_.unroll(big + lo * g_.big_c * g_.big_pixels(), g_.big_c, 0, each_,
                         to.get() + lo * each_, pixels_);
    });
    return to;
  }
  // [batch, channels, pixels] as [channels, batch * pixels]
  std::unique_ptr<T[]> joined(const T* small) const {
    auto to = scratch(g_.small_c);
    for (int64_t n = 0; n < g_.batch; ++n)
      for (int64_t c = 0; c < g_.small_c; ++c, small += each_)
        std::copy_n(small, each_, to.get() + c * pixels_ + n * each_);
    return to;
  }
  void product(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c) const {
    Gemm<T> g{};
    g.m = m, g.n = n, g.k = k;
    g.a = a, g.b = b;
    g.c = c, g.ldc = n;
    multiply<T>(g, by_shape_);
  }

  const ConvGeometry& g_;
  Unrolled<T> unrolled_;
  bool by_shape_;
  int64_t each_, pixels_, taps_;
};

}  // namespace adjoin::cpu
#endif
