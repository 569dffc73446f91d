// plugins/cpu/image/few_pixels.hpp: convolutions of few pixels by a large weight: one product over
// all images, so that the weight is read or written once, where it lies.
#ifndef ADJOIN_PLUGINS_CPU_IMAGE_FEW_PIXELS_HPP
#define ADJOIN_PLUGINS_CPU_IMAGE_FEW_PIXELS_HPP
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <memory>
#include <vector>

#include "cpu/product/gemm.hpp"

namespace adjoin::cpu {

using kit::ConvGeometry;

// Images are turned to [channels, pixels, batch]: what a tap reads of a line of pixels, for all
// images, is then one piece of memory.
template <class T>
class FewPixels {
 public:
  static bool serves(const ConvGeometry& g) {
    return g.groups == 1 &&
           kit::few_pixels(g.batch * g.small_pixels(), g.small_c * g.big_c * g.taps());
  }
  FewPixels(const ConvGeometry& g, bool by_shape)
      : g_(g),
        by_shape_(by_shape),
        small_each_(g.small_pixels()),
        big_each_(g.big_pixels()),
        pixels_(g.batch * small_each_),
        taps_(g.big_c * g.taps()) {
    for (int64_t k = 0; k < g.taps(); ++k)
      for (int64_t s = 0; s < small_each_; ++s) {
        int64_t from = g.meet(s, k), at = k * small_each_ + s;
        if (!runs_.empty() && continues(runs_.back(), from))
          ++runs_.back().count;
        else
          runs_.push_back({at, from, 1});
      }
  }

  // small = bias + weight cols
  void to_small(const T* big, const T* weight, const T* bias, T* small) const {
    auto cols = columns(big), out = scratch(g_.small_c * pixels_);
    product(g_.small_c, pixels_, taps_, {weight, taps_}, {cols.get(), pixels_}, out.get());
    turn_back(out.get(), g_.small_c, small_each_, bias, small);
  }
  // big = bias + weight^T small
  void to_big(const T* small, const T* weight, const T* bias, T* big) const {
    auto in = turned(small, g_.small_c, small_each_), cols = scratch(taps_ * pixels_),
         out = scratch(g_.big_c * big_each_ * g_.batch);
    product(taps_, pixels_, g_.small_c, {weight, taps_, true}, {in.get(), pixels_}, cols.get());
    kit::parallel_for(g_.big_c, per_channel(), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) {
        T* image = out.get() + lo * big_each_ * g_.batch;
        const T* x = cols.get() + lo * g_.taps() * pixels_;
        std::fill_n(image, big_each_ * g_.batch, T(0));
        for (const Run& r : runs_)
          for (int64_t i = 0; r.from >= 0 && i < r.count * g_.batch; ++i)
            image[r.from * g_.batch + i] += x[r.at * g_.batch + i];
      }
    });
    turn_back(out.get(), g_.big_c, big_each_, bias, big);
  }
  // weight = small cols^T
  void to_weight(const T* small, const T* big, T* weight) const {
    auto in = turned(small, g_.small_c, small_each_), cols = columns(big);
    product(g_.small_c, taps_, pixels_, {in.get(), pixels_}, {cols.get(), pixels_, true}, weight);
  }

 private:
  // Places [at, at + count) of a channel's cols [taps, pixels] meet pixels [from, ...) of the big
  // image; -1: padding.
  struct Run {
    int64_t at, from, count;
  };
  static bool continues(const Run& r, int64_t from) {
    return r.from < 0 ? from < 0 : from == r.from + r.count;
  }
  static std::unique_ptr<T[]> scratch(int64_t n) { return std::unique_ptr<T[]>(new T[size_t(n)]); }
  int64_t per_channel() const { return kit::grain_of(g_.taps() * pixels_); }

  // The taps under the pixels of all images.
  std::unique_ptr<T[]> columns(const T* big) const {
    auto to = scratch(taps_ * pixels_), images = turned(big, g_.big_c, big_each_);
    kit::parallel_for(g_.big_c, per_channel(), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) {
        const T* image = images.get() + lo * big_each_ * g_.batch;
        T* x = to.get() + lo * g_.taps() * pixels_;
        for (const Run& r : runs_)
          if (r.from < 0)
            std::fill_n(x + r.at * g_.batch, r.count * g_.batch, T(0));
          else
            std::copy_n(image + r.from * g_.batch, r.count * g_.batch, x + r.at * g_.batch);
      }
    });
    return to;
  }
  // [batch, channels, pixels] as [channels, pixels, batch], and back.
  std::unique_ptr<T[]> turned(const T* images, int64_t channels, int64_t each) const {
    auto to = scratch(channels * each * g_.batch);
    int64_t batch = g_.batch, size = channels * each;
    kit::parallel_for(size, kit::grain_of(batch), [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i)
        for (int64_t n = 0; n < batch; ++n) to[i * batch + n] = images[n * size + i];
    });
    return to;
  }
  void turn_back(const T* from, int64_t channels, int64_t each, const T* bias, T* images) const {
    int64_t batch = g_.batch, size = channels * each;
    kit::parallel_for(channels, kit::grain_of(each * batch), [&](int64_t lo, int64_t hi) {
      for (int64_t n = 0; n < batch; ++n)
        for (int64_t c = lo; c < hi; ++c)
          for (int64_t i = c * each; i < (c + 1) * each; ++i)
            images[n * size + i] = from[i * batch + n] + (bias ? bias[c] : T(0));
    });
  }
  void product(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c) const {
    Gemm<T> g{};
    g.m = m, g.n = n, g.k = k;
    g.a = a, g.b = b;
    g.c = c, g.ldc = n;
    multiply<T>(g, by_shape_);
  }

  const ConvGeometry& g_;
  bool by_shape_;
  int64_t small_each_, big_each_, pixels_, taps_;
  std::vector<Run> runs_;
};

}  // namespace adjoin::cpu
#endif
