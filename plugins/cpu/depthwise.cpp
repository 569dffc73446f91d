// plugins/cpu/depthwise.cpp: depthwise convolutions, directly: a plane is copied with its padding
// and with its columns sorted by stride, so that every tap is a contiguous run; then rows of
// outputs go through registers.
#include "depthwise.hpp"

#include <adjoin/kit/parallel.hpp>
#include <vector>

#include "tables.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "depthwise.cpp"
#include "simd.hpp"
// after it, once per target
#include "lanes.hpp"

#ifndef ADJOIN_PLUGINS_CPU_DEPTHWISE_ONCE
#define ADJOIN_PLUGINS_CPU_DEPTHWISE_ONCE
namespace adjoin::cpu {

// Where tap (i, j) of output (y, x) stands in a padded plane: (y * stride + i * dilation) * row +
// column[j] + x.
struct PlaneTaps {
  size_t height, width;  // outputs
  size_t kernel[2], stride, dilation, row;
  std::vector<size_t> column;
};

}  // namespace adjoin::cpu
#endif

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

// kRows rows of one vector of outputs, stride and dilation 1: an input vector serves all rows that
// it meets.
template <class T, size_t kKernel, size_t kRows>
HWY_INLINE void correlate_block(const PlaneTaps& p, const T* in, const T* weight, T start, T* out,
                                size_t count) {
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> sum[kRows];
  for (size_t r = 0; r < kRows; ++r) sum[r] = hn::Set(d, start);
#pragma GCC unroll 16
  for (size_t i = 0; i < kRows + kKernel - 1; ++i)
#pragma GCC unroll 8
    for (size_t j = 0; j < kKernel; ++j) {
      auto v = hn::LoadU(d, in + i * p.row + p.column[j]);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r)
        if (i >= r && i - r < kKernel)
          sum[r] = hn::MulAdd(v, hn::Set(d, weight[(i - r) * kKernel + j]), sum[r]);
    }
  for (size_t r = 0; r < kRows; ++r) store_n(sum[r], d, out + r * p.width, count);
}

template <class T, size_t kKernel>
void correlate_square(const PlaneTaps& p, const T* in, const T* weight, T start, T* out) {
  const size_t lanes = hn::Lanes(hn::ScalableTag<T>());
  size_t y = 0;
  for (; y + 4 <= p.height; y += 4)
    for (size_t x = 0; x < p.width; x += lanes)
      correlate_block<T, kKernel, 4>(p, in + y * p.row + x, weight, start, out + y * p.width + x,
                                     p.width - x);
  for (; y < p.height; ++y)
    for (size_t x = 0; x < p.width; x += lanes)
      correlate_block<T, kKernel, 1>(p, in + y * p.row + x, weight, start, out + y * p.width + x,
                                     p.width - x);
}

// out = start + the plane under the kernel
template <class T>
void correlate(const PlaneTaps& p, const T* in, const T* weight, T start, T* out) {
  const hn::ScalableTag<T> d;
  if (p.stride == 1 && p.dilation == 1 && p.kernel[0] == p.kernel[1]) {
    if (p.kernel[0] == 3) return correlate_square<T, 3>(p, in, weight, start, out);
    if (p.kernel[0] == 5) return correlate_square<T, 5>(p, in, weight, start, out);
  }
  for (size_t y = 0; y < p.height; ++y, out += p.width)
    for (size_t x = 0; x < p.width; x += hn::Lanes(d)) {
      auto sum = hn::Set(d, start);
      for (size_t i = 0; i < p.kernel[0]; ++i)
        for (size_t j = 0; j < p.kernel[1]; ++j) {
          const T* at = in + (y * p.stride + i * p.dilation) * p.row + p.column[j] + x;
          sum = hn::MulAdd(hn::LoadU(d, at), hn::Set(d, weight[i * p.kernel[1] + j]), sum);
        }
      store_n(sum, d, out + x, p.width - x);
    }
}

// sums[i, j] += the sum over outputs of g times tap (i, j). Kernels of up to 3 columns at once.
template <class T>
void correlate_gradient(const PlaneTaps& p, const T* in, const T* g, double* sums) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < p.kernel[0]; ++i)
    for (size_t j = 0; j < p.kernel[1]; j += 3) {
      const size_t c0 = p.column[j], c1 = p.column[HWY_MIN(j + 1, p.kernel[1] - 1)],
                   c2 = p.column[HWY_MIN(j + 2, p.kernel[1] - 1)];
      auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d);
      for (size_t y = 0; y < p.height; ++y) {
        const T* row = in + (y * p.stride + i * p.dilation) * p.row;
        const T* grad = g + y * p.width;
        size_t x = 0;
        for (; x + lanes <= p.width; x += lanes) {
          auto v = hn::LoadU(d, grad + x);
          s0 = hn::MulAdd(v, hn::LoadU(d, row + c0 + x), s0);
          s1 = hn::MulAdd(v, hn::LoadU(d, row + c1 + x), s1);
          s2 = hn::MulAdd(v, hn::LoadU(d, row + c2 + x), s2);
        }
        if (x == p.width) continue;
        size_t n = p.width - x;  // what lies behind the row is no part of the sum
        auto v = load_n(d, grad + x, n);
        s0 = hn::MulAdd(v, load_n(d, row + c0 + x, n), s0);
        s1 = hn::MulAdd(v, load_n(d, row + c1 + x, n), s1);
        s2 = hn::MulAdd(v, load_n(d, row + c2 + x, n), s2);
      }
      double* to = sums + i * p.kernel[1] + j;
      to[0] += double(hn::GetLane(hn::SumOfLanes(d, s0)));
      if (j + 1 < p.kernel[1]) to[1] += double(hn::GetLane(hn::SumOfLanes(d, s1)));
      if (j + 2 < p.kernel[1]) to[2] += double(hn::GetLane(hn::SumOfLanes(d, s2)));
    }
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

constexpr int64_t kSlack = 64;  // elements that a vector may read behind a row

// Planes with zeros around them; element (y, x) of the source stands at spread * (y, x) + before,
// and column c at c / phases of the run c % phases.
template <class T>
class Padded {
 public:
  Padded(const int64_t* size, const int64_t* before, const int64_t* spread, int64_t height,
         int64_t width, int64_t phases)
      : size_(size),
        before_(before),
        spread_(spread),
        height_(height),
        width_(width),
        phases_(phases),
        run_(width / phases + 1 + kSlack),
        data_(size_t(height * phases * run_ + kSlack), T(0)) {}

  int64_t row() const { return phases_ * run_; }
  size_t column(int64_t c) const { return size_t(c % phases_ * run_ + c / phases_); }

  // Places outside hold zeros since the beginning and are not written.
  const T* fill(const T* plane) {
    for (int64_t y = 0; y < size_[0]; ++y) {
      int64_t to_y = y * spread_[0] + before_[0];
      if (to_y < 0 || to_y >= height_) continue;
      T* to = data_.data() + to_y * row();
      const T* from = plane + y * size_[1];
      if (phases_ == 1 && spread_[1] == 1) {
        int64_t skip = std::max<int64_t>(0, -before_[1]),
                count = std::min(size_[1], width_ - before_[1]) - skip;
        if (count > 0) std::copy_n(from + skip, count, to + before_[1] + skip);
        continue;
      }
      for (int64_t x = 0; x < size_[1]; ++x) {
        int64_t c = x * spread_[1] + before_[1];
        if (c >= 0 && c < width_) to[column(c)] = from[x];
      }
    }
    return data_.data();
  }

 private:
  const int64_t *size_, *before_, *spread_;
  int64_t height_, width_, phases_, run_;
  std::vector<T> data_;
};

constexpr int64_t kOnes[2] = {1, 1};

// The big image under the taps of the small one.
template <class T>
struct Taps {
  Padded<T> padded;
  PlaneTaps taps;

  explicit Taps(const ConvGeometry& g)
      : padded(g.big + 1, g.pad + 1, kOnes, reach(g, 1), reach(g, 2), g.stride[2]) {
    fill(g.small + 1, g, g.stride[1], padded);
  }
  // The small image, spread by the stride, under the taps of the big one: the kernel turned round.
  Taps(const ConvGeometry& g, const int64_t* before)
      : padded(g.small + 1, before, g.stride + 1, g.big[1] + g.dilation[1] * (g.kernel[1] - 1),
               g.big[2] + g.dilation[2] * (g.kernel[2] - 1), 1) {
    fill(g.big + 1, g, 1, padded);
  }

 private:
  static int64_t reach(const ConvGeometry& g, int d) {
    return (g.small[d] - 1) * g.stride[d] + g.dilation[d] * (g.kernel[d] - 1) + 1;
  }
  void fill(const int64_t* out, const ConvGeometry& g, int64_t stride, const Padded<T>& p) {
    taps = {size_t(out[0]),
            size_t(out[1]),
            {size_t(g.kernel[1]), size_t(g.kernel[2])},
            size_t(stride),
            size_t(g.dilation[1]),
            size_t(p.row()),
            {}};
    for (int64_t j = 0; j < g.kernel[2]; ++j) taps.column.push_back(p.column(j * g.dilation[2]));
  }
};

}  // namespace

template <class T>
bool Depthwise<T>::serves(const ConvGeometry& g) {
  constexpr int64_t most = 1 << 24;  // elements of a padded plane
  if (g.small_c != 1 || g.big_c != 1 || g.big[0] * g.kernel[0] * g.stride[0] != 1 || g.pad[0] != 0)
    return false;
  double area = 1, back = 1;
  for (int d = 1; d < 3; ++d) {
    area *= double(g.small[d] - 1) * double(g.stride[d]) + double(g.dilation[d] * g.kernel[d]);
    back *= double(g.big[d]) + double(g.dilation[d] * g.kernel[d]);
  }
  return g.taps() > 1 && area < most && back < most && g.stride[2] <= 64;
}

template <class T>
void Depthwise<T>::to_small(const T* big, const T* weight, const T* bias, T* small) const {
  int64_t planes = g_.batch * g_.groups;
  parallel_for(
      planes, grain_of(g_.small_pixels() * g_.taps(), 1 << 17), [&](int64_t lo, int64_t hi) {
        Taps<T> t(g_);
        for (; lo < hi; ++lo) AJ_SIMD(correlate<T>)
        (t.taps, t.padded.fill(big + lo * g_.big_pixels()), weight + lo % g_.groups * g_.taps(),
         bias ? bias[lo % g_.groups] : T(0), small + lo * g_.small_pixels());
      });
}

template <class T>
void Depthwise<T>::to_big(const T* small, const T* weight, const T* bias, T* big) const {
  int64_t planes = g_.batch * g_.groups, taps = g_.taps();
  int64_t before[2];
  for (int d = 0; d < 2; ++d)
    before[d] = g_.dilation[d + 1] * (g_.kernel[d + 1] - 1) - g_.pad[d + 1];
  parallel_for(planes, grain_of(g_.big_pixels() * taps, 1 << 17), [&](int64_t lo, int64_t hi) {
    Taps<T> t(g_, before);
    std::vector<T> turned(size_t(taps), T(0));
    for (; lo < hi; ++lo) {
      std::reverse_copy(weight + lo % g_.groups * taps, weight + (lo % g_.groups + 1) * taps,
                        turned.begin());
      AJ_SIMD(correlate<T>)
      (t.taps, t.padded.fill(small + lo * g_.small_pixels()), turned.data(),
       bias ? bias[lo % g_.groups] : T(0), big + lo * g_.big_pixels());
    }
  });
}

template <class T>
void Depthwise<T>::to_weight(const T* small, const T* big, T* weight) const {
  int64_t taps = g_.taps();
  parallel_for(g_.groups, grain_of(g_.batch * g_.small_pixels() * taps, 1 << 17),
               [&](int64_t lo, int64_t hi) {
                 Taps<T> t(g_);
                 std::vector<double> sums;
                 for (; lo < hi; ++lo) {
                   sums.assign(size_t(taps), 0);
                   for (int64_t n = 0; n < g_.batch; ++n) {
                     int64_t plane = n * g_.groups + lo;
                     AJ_SIMD(correlate_gradient<T>)
                     (t.taps, t.padded.fill(big + plane * g_.big_pixels()),
                      small + plane * g_.small_pixels(), sums.data());
                   }
                   std::copy(sums.begin(), sums.end(), weight + lo * taps);
                 }
               });
}

template class Depthwise<float>;
template class Depthwise<double>;

}  // namespace adjoin::cpu
#endif
