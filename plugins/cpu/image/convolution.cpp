// plugins/cpu/image/convolution.cpp: convolutions as matrix products over unrolled images, threaded
// over images, groups and blocks.
//
// With cols = the taps of the big image under each pixel of the small one, [big_c * taps, pixels],
// the three products are
//   small = weight cols        (forward; transposed: input's gradient)
//   big  += weight^T small     (input's gradient; transposed: forward), folded back
//   weight += small cols^T     (weight's gradient)
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <optional>

#include "cpu/product/gemm.hpp"
#include "few_channels.hpp"
#include "few_pixels.hpp"
#include "unrolled.hpp"
#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

constexpr int64_t kScratch =
    1 << 17;  // elements of cols at a time: they stay in the second-level cache

template <class T>
class Convolution {
 public:
  Convolution(const ConvGeometry& g)
      : g_(g), unrolled_(g), taps_(g.taps()), pixels_(g.small_pixels()) {}

  // small = bias + weight cols
  void to_small(const T* big, const T* weight, const T* bias, T* small) const {
    spread(bias, small, g_.small_c, pixels_);
    int64_t rows = g_.big_c * taps_,
            step = std::clamp<int64_t>(kScratch / std::max<int64_t>(1, rows), 64, 1 << 16);
    int64_t blocks = (pixels_ + step - 1) / step;
    parallel_for(
        g_.batch * g_.groups * blocks,
        grain_of(rows * std::min(step, pixels_) * g_.small_c, 1 << 18),
        [&](int64_t lo, int64_t hi) {
          std::unique_ptr<T[]> cols = scratch(rows * std::min(step, pixels_));
          for (int64_t i = lo; i < hi; ++i) {
            int64_t ng = i / blocks, from = i % blocks * step, to = std::min(pixels_, from + step);
            const T* image = big + ng * g_.big_c * g_.big_pixels();
            Matrix<T> x{image + from, std::max<int64_t>(1, pixels_)};
            if (!unrolled_.plain()) {
              unrolled_.unroll(image, g_.big_c, from, to, cols.get(), to - from);
              x = {cols.get(), to - from};
            }
            gemm<T>(g_.small_c, to - from, rows, T(1), {weight_of(weight, ng), rows}, x, T(1),
                    small + ng * g_.small_c * pixels_ + from, std::max<int64_t>(1, pixels_));
          }
        });
  }

  // big = bias + weight^T small
  void to_big(const T* small, const T* weight, const T* bias, T* big) const {
    spread(bias, big, g_.big_c, g_.big_pixels());
    int64_t step =
        std::clamp<int64_t>(kScratch / std::max<int64_t>(1, g_.big_c * taps_), 64, 1 << 16);
    int64_t blocks = channel_blocks(), each = (g_.big_c + blocks - 1) / blocks;
    parallel_for(g_.batch * g_.groups * blocks,
                 grain_of(each * taps_ * pixels_ * g_.small_c, 1 << 18),
                 [&](int64_t lo, int64_t hi) {
                   std::unique_ptr<T[]> cols = scratch(each * taps_ * std::min(step, pixels_));
                   for (int64_t i = lo; i < hi; ++i) {
                     int64_t ng = i / blocks, channel = i % blocks * each,
                             count = std::min(each, g_.big_c - channel);
                     if (count <= 0) continue;
                     T* image = big + (ng * g_.big_c + channel) * g_.big_pixels();
                     Matrix<T> w{weight_of(weight, ng) + channel * taps_, g_.big_c * taps_, true};
                     for (int64_t from = 0; from < pixels_; from += step) {
                       int64_t n = std::min(step, pixels_ - from);
                       Matrix<T> y{small + ng * g_.small_c * pixels_ + from, pixels_};
                       if (unrolled_.plain()) {
                         gemm<T>(count, n, g_.small_c, T(1), w, y, T(1), image + from, pixels_);
                         continue;
                       }
                       gemm<T>(count * taps_, n, g_.small_c, T(1), w, y, T(0), cols.get(), n);
                       unrolled_.fold(cols.get(), count, from, from + n, image, n);
                     }
                   }
                 });
  }

  // weight = sum over images of small cols^T: min(batch, 8) fixed parts, joined as a binary tree.
  void to_weight(const T* small, const T* big, T* weight) const {
    int64_t parts = std::min<int64_t>(std::max<int64_t>(g_.batch, 1), 8),
            size = g_.groups * g_.small_c * g_.big_c * taps_;
    int64_t step =
        std::clamp<int64_t>(kScratch / std::max<int64_t>(1, g_.big_c * taps_), 64, 1 << 16);
    int64_t blocks = channel_blocks(), each = (g_.big_c + blocks - 1) / blocks;
    std::unique_ptr<T[]> sums(new T[size_t(parts * size)]());
    parallel_for(parts * g_.groups * blocks, 1, [&](int64_t lo, int64_t hi) {
      std::unique_ptr<T[]> cols = scratch(each * taps_ * std::min(step, pixels_));
      for (int64_t i = lo; i < hi; ++i) {
        int64_t part = i / blocks / g_.groups, group = i / blocks % g_.groups,
                channel = i % blocks * each;
        int64_t count = std::min(each, g_.big_c - channel);
        if (count <= 0) continue;
        T* to = sums.get() + part * size + group * g_.small_c * g_.big_c * taps_ + channel * taps_;
        for (int64_t n = part * g_.batch / parts; n < (part + 1) * g_.batch / parts; ++n)
          for (int64_t from = 0; from < pixels_; from += step) {
            int64_t width = std::min(step, pixels_ - from), ng = n * g_.groups + group;
            const T* image = big + (ng * g_.big_c + channel) * g_.big_pixels();
            Matrix<T> x{image + from, pixels_, true};
            if (!unrolled_.plain()) {
              unrolled_.unroll(image, count, from, from + width, cols.get(), width);
              x = {cols.get(), width, true};
            }
            gemm<T>(g_.small_c, count * taps_, width, T(1),
                    {small + ng * g_.small_c * pixels_ + from, pixels_}, x, T(1), to,
                    g_.big_c * taps_);
          }
      }
    });
    for (int64_t half = 1; half < parts; half *= 2)
      for (int64_t p = 0; p + half < parts; p += 2 * half)
        for (int64_t i = 0; i < size; ++i) sums[p * size + i] += sums[(p + half) * size + i];
    std::copy_n(sums.get(), size, weight);
  }

 private:
  void spread(const T* bias, T* out, int64_t each, int64_t pixels) const {
    int64_t channels = g_.groups * each;
    parallel_for(g_.batch * channels, grain_of(pixels), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo)
        std::fill_n(out + lo * pixels, pixels, bias ? bias[lo % channels] : T(0));
    });
  }
  const T* weight_of(const T* weight, int64_t ng) const {
    return weight + ng % g_.groups * g_.small_c * g_.big_c * taps_;
  }
  std::unique_ptr<T[]> scratch(int64_t n) const {
    return std::unique_ptr<T[]>(unrolled_.plain() ? nullptr : new T[size_t(n)]);
  }
  // Few images: channels are cut instead. By shape alone, so that the bits do not depend on the
  // pool.
  int64_t channel_blocks() const {
    int64_t tasks = g_.batch * g_.groups;
    return tasks >= 8 || g_.big_c < 16 ? 1 : std::min<int64_t>(8, g_.big_c / 8);
  }
  const ConvGeometry& g_;
  Unrolled<T> unrolled_;
  int64_t taps_, pixels_;
};

template <class T>
void conjugate(std::unique_ptr<T[]>& store, const T*& data, int64_t n) {
  if constexpr (is_complex<T>) {
    store.reset(new T[size_t(n)]);
    for (int64_t i = 0; i < n; ++i) store[i] = {data[i].re, -data[i].im};
    data = store.get();
  }
}

// The direct method where it serves, else products.
template <class T, class F>
void with_method(const ConvGeometry& g, bool by_shape, F f) {
  if constexpr (std::is_floating_point_v<T>)
    if (FewChannels<T>::serves(g)) return f(FewChannels<T>(g));
  if (FewPixels<T>::serves(g)) return f(FewPixels<T>(g, by_shape));
  f(Convolution<T>(g));
}

using convolved = Join<stored_floating, complexes>;

void convolution(Args args) {
  TensorView x = args.tensor(0), w = args.tensor(1);
  MutView out = args.result(0);
  bool transposed = args.flag(6), by_shape = args.call()->flags & AJ_CALL_DETERMINISTIC;
  ConvGeometry g(transposed ? x : out, transposed ? out : x, w, args.ints(3), args.ints(4),
                 args.ints(5), args.integer(8));
  visit_math<floating_complex>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), weight(w), y(out);
    std::optional<Dense<T>> held;
    if (args.tensor(2)) held.emplace(args.tensor(2));
    const T* bias = held ? held->data() : nullptr;
    with_method<T>(g, by_shape, [&](const auto& conv) {
      transposed ? conv.to_big(in.data(), weight.data(), bias, y.data())
                 : conv.to_small(in.data(), weight.data(), bias, y.data());
    });
    y.commit();
  });
}

void convolution_backward(Args args) {
  TensorView grad = args.tensor(0), x = args.tensor(1), w = args.tensor(2);
  bool transposed = args.flag(6), by_shape = args.call()->flags & AJ_CALL_DETERMINISTIC;
  ConvGeometry g(transposed ? x : grad, transposed ? grad : x, w, args.ints(3), args.ints(4),
                 args.ints(5), args.integer(8));
  int64_t channels = grad.size(1), pixels = transposed ? g.big_pixels() : g.small_pixels();
  visit_math<floating_complex>(x.dtype(), [&]<class T>() {
    Dense<T> dy(grad);
    std::unique_ptr<T[]> store;
    if (args.bit(9, 0)) {
      Dense<T> weight(w), dx(args.result(0));
      const T* data = weight.data();
      conjugate(store, data, w.numel());
      with_method<T>(g, by_shape, [&](const auto& conv) {
        transposed ? conv.to_small(dy.data(), data, nullptr, dx.data())
                   : conv.to_big(dy.data(), data, nullptr, dx.data());
      });
      dx.commit();
    }
    if (args.bit(9, 1)) {
      Dense<T> in(x), dw(args.result(1));
      const T* data = in.data();
      conjugate(store, data, x.numel());
      with_method<T>(g, by_shape, [&](const auto& conv) {
        transposed ? conv.to_weight(data, dy.data(), dw.data())
                   : conv.to_weight(dy.data(), data, dw.data());
      });
      dw.commit();
    }
    if (args.bit(9, 2)) {
      using Wide = std::conditional_t<is_complex<T>, Complex128, double>;
      Dense<T> db(args.result(2));
      parallel_for(channels, grain_of(g.batch * pixels), [&](int64_t lo, int64_t hi) {
        for (; lo < hi; ++lo) {
          Wide sum(0);
          for (int64_t n = 0; n < g.batch; ++n)
            for (int64_t i = 0; i < pixels; ++i) sum += Wide(dy[(n * channels + lo) * pixels + i]);
          db[lo] = cast<T>(sum);
        }
      });
      db.commit();
    }
  });
}

}  // namespace

AJ_KERNELS(convolution_kernels) = {
    {"convolution", custom<convolution, convolved>},
    {"convolution_backward", custom<convolution_backward, convolved>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
