// plugins/cpu/image/few_channels.cpp: convolutions of few channels, directly: a group's planes are
// copied with their padding and with their columns sorted by stride, so that every tap is a
// contiguous run; then rows of outputs go through registers.
#include "few_channels.hpp"

#include <adjoin/kit/parallel.hpp>

#include "plane_taps.hpp"
#include "vector/stored.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/image/few_channels.cpp"
#include "vector/simd.hpp"
// after it, once per target
#include "vector/lanes.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

template <class T>
void split_row(const T* from, size_t count, T* even, T* odd) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t x = 0;
  for (; x + 2 * lanes <= count; x += 2 * lanes, even += lanes, odd += lanes) {
    hn::Vec<decltype(d)> a, b;
    hn::LoadInterleaved2(d, from + x, a, b);
    hn::StoreU(a, d, even);
    hn::StoreU(b, d, odd);
  }
  for (; x + 1 < count; x += 2) *even++ = from[x], *odd++ = from[x + 1];
  if (x < count) *even = from[x];
}

template <class T>
void join_rows(const T* even, const T* odd, size_t count, T* to) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t x = 0;
  for (; x + lanes <= count; x += lanes)
    hn::StoreInterleaved2(hn::LoadU(d, even + x), hn::LoadU(d, odd + x), d, to + 2 * x);
  for (; x < count; ++x) to[2 * x] = even[x], to[2 * x + 1] = odd[x];
}

// kRows rows of one vector of outputs, kernel kSide by kSide: an input vector serves all rows that
// it meets.
template <class T, size_t kSide, size_t kRows>
HWY_INLINE void square_block(const PlaneTaps& p, const T* in, const T* weight, T start, T* out,
                             size_t count) {
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> sum[kRows];
  for (size_t r = 0; r < kRows; ++r) sum[r] = hn::Set(d, start);
#pragma GCC unroll 16
  for (size_t i = 0; i < kRows + kSide - 1; ++i)
#pragma GCC unroll 8
    for (size_t j = 0; j < kSide; ++j) {
      auto v = hn::LoadU(d, in + i * p.step[1] + p.place[j]);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r)
        if (i >= r && i - r < kSide)
          sum[r] = hn::MulAdd(v, hn::Set(d, weight[(i - r) * kSide + j]), sum[r]);
    }
  for (size_t r = 0; r < kRows; ++r) store_n(sum[r], d, out + r * p.size[2], count);
}

template <class T, size_t kSide, size_t kRows>
void correlate_square(const PlaneTaps& p, const T* in, const T* weight, T start, T* out) {
  const size_t lanes = hn::Lanes(hn::ScalableTag<T>()), width = p.size[2];
  size_t y = 0;
  for (; y + kRows <= p.size[1]; y += kRows)
    for (size_t x = 0; x < width; x += lanes)
      square_block<T, kSide, kRows>(p, in + y * p.step[1] + x, weight, start, out + y * width + x,
                                    width - x);
  for (; y < p.size[1]; ++y)
    for (size_t x = 0; x < width; x += lanes)
      square_block<T, kSide, 1>(p, in + y * p.step[1] + x, weight, start, out + y * width + x,
                                width - x);
}

// kOut channels of kRows rows of kVectors vectors.
template <class T, size_t kOut, size_t kRows, size_t kVectors>
HWY_INLINE void channels_block(const PlaneTaps& p, const T* in, const T* weight, const T* start,
                               T* out, size_t count) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d), taps = p.place.size(), outputs = p.outputs();
  const size_t* place = p.place.data();
  hn::Vec<decltype(d)> sum[kOut][kRows * kVectors], v[kRows * kVectors];
#pragma GCC unroll 4
  for (size_t o = 0; o < kOut; ++o)
#pragma GCC unroll 4
    for (size_t i = 0; i < kRows * kVectors; ++i) sum[o][i] = hn::Set(d, start[o]);
  for (size_t k = 0; k < taps; ++k) {
    const T* x = in + place[k];
#pragma GCC unroll 4
    for (size_t i = 0; i < kRows * kVectors; ++i)
      v[i] = hn::LoadU(d, x + i / kVectors * p.step[1] + i % kVectors * lanes);
#pragma GCC unroll 4
    for (size_t o = 0; o < kOut; ++o) {
      const auto w = hn::Set(d, weight[o * taps + k]);
#pragma GCC unroll 4
      for (size_t i = 0; i < kRows * kVectors; ++i) sum[o][i] = hn::MulAdd(v[i], w, sum[o][i]);
    }
  }
#pragma GCC unroll 4
  for (size_t o = 0; o < kOut; ++o)
#pragma GCC unroll 4
    for (size_t i = 0; i < kRows * kVectors; ++i)
      store_n(sum[o][i], d, out + o * outputs + i / kVectors * p.size[2] + i % kVectors * lanes,
              count - i % kVectors * lanes);
}

template <class T, size_t kOut>
void correlate_channels(const PlaneTaps& p, const T* in, const T* weight, const T* start, T* out) {
  constexpr size_t kSpan = kOut == 4 ? 2 : 4;
  const size_t lanes = hn::Lanes(hn::ScalableTag<T>()), width = p.size[2];
  auto at = [&](size_t y, size_t x) { return in + y * p.step[1] + x; };
  size_t x = 0;
  for (; x + kSpan * lanes <= width; x += kSpan * lanes)
    for (size_t y = 0; y < p.size[1]; ++y)
      channels_block<T, kOut, 1, kSpan>(p, at(y, x), weight, start, out + y * width + x, width - x);
  for (; x < width; x += lanes) {
    size_t y = 0;
    for (; y + kSpan <= p.size[1]; y += kSpan)
      channels_block<T, kOut, kSpan, 1>(p, at(y, x), weight, start, out + y * width + x, width - x);
    for (; y < p.size[1]; ++y)
      channels_block<T, kOut, 1, 1>(p, at(y, x), weight, start, out + y * width + x, width - x);
  }
}

// out[o] = start[o] + the planes under kernel o, [channels, taps]
template <class T>
void correlate(const PlaneTaps& p, const T* in, const T* weight, const T* start, size_t channels,
               T* out) {
  const size_t taps = p.place.size(), outputs = p.outputs(), area = p.size[1] * p.size[2];
  for (size_t o = 0; o < channels;) {
    size_t step = channels - o >= 4 ? 4 : channels - o >= 2 ? 2 : 1;
    for (size_t z = 0; z < p.size[0]; ++z) {
      const T* x = in + z * p.step[0];
      const T* w = weight + o * taps;
      T* to = out + o * outputs + z * area;
      if (step == 4)
        correlate_channels<T, 4>(p, x, w, start + o, to);
      else if (step == 2)
        correlate_channels<T, 2>(p, x, w, start + o, to);
      else if (p.square == 3)
        correlate_square<T, 3, 4>(p, x, w, start[o], to);
      else if (p.square == 5)
        correlate_square<T, 5, 4>(p, x, w, start[o], to);
      else if (p.square == 7)
        correlate_square<T, 7, 8>(p, x, w, start[o], to);
      else
        correlate_channels<T, 1>(p, x, w, start + o, to);
    }
    o += step;
  }
}

// sums[k] += the sum over outputs of g times tap k, of a run; the next channel's stand `next`
// behind.
template <class T, size_t kOut>
HWY_INLINE void gradient_run(const PlaneTaps& p, const TapRun& run, const T* in, const T* g,
                             double* sums, size_t next) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d), width = p.size[2], outputs = p.outputs();
  hn::Vec<decltype(d)> s[kOut][3];
  for (size_t z = 0; z < p.size[0]; ++z) {
    for (size_t o = 0; o < kOut; ++o)
      for (size_t k = 0; k < 3; ++k) s[o][k] = hn::Zero(d);
    for (size_t y = 0; y < p.size[1]; ++y) {
      const T* row = in + z * p.step[0] + y * p.step[1];
      const T* grad = g + (z * p.size[1] + y) * width;
      auto add = [&](size_t x, auto load) HWY_ATTR {
        auto v0 = load(row + run.place[0] + x), v1 = load(row + run.place[1] + x),
             v2 = load(row + run.place[2] + x);
#pragma GCC unroll 2
        for (size_t o = 0; o < kOut; ++o) {
          auto v = load(grad + o * outputs + x);
          s[o][0] = hn::MulAdd(v, v0, s[o][0]);
          s[o][1] = hn::MulAdd(v, v1, s[o][1]);
          s[o][2] = hn::MulAdd(v, v2, s[o][2]);
        }
      };
      size_t x = 0;
      for (; x + lanes <= width; x += lanes)
        add(x, [&](const T* q) HWY_ATTR { return hn::LoadU(d, q); });
      // What lies behind the row is no part of the sum.
      if (x < width) add(x, [&](const T* q) HWY_ATTR { return load_n(d, q, width - x); });
    }
    for (size_t o = 0; o < kOut; ++o)
      for (size_t k = 0; k < run.count; ++k)
        sums[o * next + k] += double(hn::GetLane(hn::SumOfLanes(d, s[o][k])));
  }
}

template <class T>
void correlate_gradient(const PlaneTaps& p, const TapRun* runs, size_t count, const T* in,
                        const T* g, size_t channels, double* sums, size_t next) {
  for (size_t o = 0; o < channels; o += 2)
    for (size_t r = 0, k = 0; r < count; k += runs[r++].count) {
      const T* grad = g + o * p.outputs();
      if (o + 2 <= channels)
        gradient_run<T, 2>(p, runs[r], in, grad, sums + o * next + k, next);
      else
        gradient_run<T, 1>(p, runs[r], in, grad, sums + o * next + k, next);
    }
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {

template <class T>
void split_columns(const T* from, size_t count, T* even, T* odd) {
  AJ_SIMD(split_row<T>)(from, count, even, odd);
}

template <class T>
bool FewChannels<T>::serves(const ConvGeometry& g) {
  constexpr double most = 1 << 24;  // elements of padded planes
  bool alone = g.small_c == 1 && g.big_c == 1;
  if (g.small_c < 1 || g.big_c < 1) return false;
  if (!alone && (g.groups == 1 || std::max(g.small_c, g.big_c) > 8)) return false;
  double there = double(g.big_c), back = double(g.small_c), phases = 1;
  for (int d = 0; d < 3; ++d) {
    double reach = double(g.dilation[d]) * double(g.kernel[d]);
    there *= double(g.small[d]) * double(g.stride[d]) + reach;
    back *= (double(g.big[d]) + double(g.pad[d]) + reach) / double(g.stride[d]) + 2;
    phases *= double(g.stride[d]);
  }
  return g.taps() > 1 && there < most && back < most && phases <= 64 && g.small_pixels() > 0;
}

template <class T>
void FewChannels<T>::to_small(const T* big, const T* weight, const T* bias, T* small) const {
  int64_t each = g_.small_c * g_.big_c * g_.taps();
  const std::vector<T> none(size_t(g_.small_c), T(0));
  parallel_for(g_.batch * g_.groups, grain_of(g_.small_pixels() * each, 1 << 17),
               [&](int64_t lo, int64_t hi) {
                 ForwardTaps<T> t(g_, g_.big_c);
                 for (; lo < hi; ++lo) {
                   int64_t group = lo % g_.groups;
                   AJ_SIMD(correlate<T>)
                   (t.taps, t.padded.fill(big + lo * g_.big_c * g_.big_pixels()),
                    weight + group * each, bias ? bias + group * g_.small_c : none.data(),
                    size_t(g_.small_c), small + lo * g_.small_c * g_.small_pixels());
                 }
               });
}

namespace {

// A phase's outputs, dense, to their places of the big image.
template <class T>
void spread(const TapPhase& phase, const ConvGeometry& g, const T* from, T* big) {
  const size_t* n = phase.taps.size;
  for (int64_t c = 0; c < g.big_c; ++c, big += g.big_pixels())
    for (size_t z = 0; z < n[0]; ++z)
      for (size_t y = 0; y < n[1]; ++y) {
        T* to = big +
                ((phase.first[0] + int64_t(z) * g.stride[0]) * g.big[1] + phase.first[1] +
                 int64_t(y) * g.stride[1]) *
                    g.big[2] +
                phase.first[2];
        for (size_t x = 0; x < n[2]; ++x, to += g.stride[2]) *to = *from++;
      }
}

size_t outputs_of(const TapPhase& phase, const ConvGeometry& g) {
  const size_t* n = phase.taps.size;
  return size_t(g.big_c) * n[0] * n[1] * n[2];
}

// Does one of them fill the columns between those of the other?
bool beside(const TapPhase& a, const TapPhase& b, const ConvGeometry& g) {
  return g.stride[2] == 2 && a.first[2] + b.first[2] == 1 && a.first[0] == b.first[0] &&
         a.first[1] == b.first[1] && std::equal(a.taps.size, a.taps.size + 3, b.taps.size);
}

// Such two, dense, to whole rows of the big image.
template <class T>
void weave(const TapPhase& even, const ConvGeometry& g, const T* a, const T* b, T* big) {
  const size_t* n = even.taps.size;
  const auto join = AJ_SIMD(join_rows<T>);
  for (int64_t c = 0; c < g.big_c; ++c, big += g.big_pixels())
    for (size_t z = 0; z < n[0]; ++z)
      for (size_t y = 0; y < n[1]; ++y, a += n[2], b += n[2])
        join(a, b, n[2],
             big + ((even.first[0] + int64_t(z) * g.stride[0]) * g.big[1] + even.first[1] +
                    int64_t(y) * g.stride[1]) *
                       g.big[2]);
}

// Weights [small_c, big_c, taps] of a group as [big_c, small_c, the phase's taps].
template <class T>
void turn(const TapPhase& phase, const ConvGeometry& g, const T* weight, std::vector<T>& to) {
  size_t taps = size_t(g.taps()), count = phase.kernel.size() / size_t(g.small_c);
  to.clear();
  for (size_t c = 0; c < size_t(g.big_c); ++c)
    for (size_t o = 0; o < size_t(g.small_c); ++o)
      for (size_t k = 0; k < count; ++k)
        to.push_back(weight[(o * size_t(g.big_c) + c) * taps + phase.kernel[k]]);
}

}  // namespace

template <class T>
void FewChannels<T>::to_big(const T* small, const T* weight, const T* bias, T* big) const {
  int64_t each = g_.small_c * g_.big_c * g_.taps(),
          phases = g_.stride[0] * g_.stride[1] * g_.stride[2];
  const std::vector<T> none(size_t(g_.big_c), T(0));
  parallel_for(g_.batch * g_.groups, grain_of(g_.big_pixels() * each / phases, 1 << 17),
               [&](int64_t lo, int64_t hi) {
                 BackwardTaps<T> t(g_);
                 std::vector<T> turned, part(phases == 1 ? 0 : size_t(g_.big_c * g_.big_pixels()));
                 for (; lo < hi; ++lo) {
                   int64_t group = lo % g_.groups;
                   const T* planes = t.padded.fill(small + lo * g_.small_c * g_.small_pixels());
                   T* to = big + lo * g_.big_c * g_.big_pixels();
                   auto compute = [&](const TapPhase& phase, T* into) {
                     turn(phase, g_, weight + group * each, turned);
                     AJ_SIMD(correlate<T>)
                     (phase.taps, planes + phase.base, turned.data(),
                      bias ? bias + group * g_.big_c : none.data(), size_t(g_.big_c), into);
                   };
                   for (size_t k = 0; k < t.phases.size(); ++k) {
                     const TapPhase& phase = t.phases[k];
                     compute(phase, phases == 1 ? to : part.data());
                     if (phases == 1) continue;
                     if (k + 1 < t.phases.size() && beside(phase, t.phases[k + 1], g_)) {
                       T* second = part.data() + outputs_of(phase, g_);
                       compute(t.phases[++k], second);
                       if (phase.first[2] == 0)
                         weave(phase, g_, part.data(), second, to);
                       else
                         weave(phase, g_, second, part.data(), to);
                     } else {
                       spread(phase, g_, part.data(), to);
                     }
                   }
                 }
               });
}

template <class T>
void FewChannels<T>::to_weight(const T* small, const T* big, T* weight) const {
  int64_t taps = g_.taps(), each = g_.small_c * g_.big_c * taps;
  parallel_for(g_.groups * g_.big_c,
               grain_of(g_.batch * g_.small_c * g_.small_pixels() * taps, 1 << 17),
               [&](int64_t lo, int64_t hi) {
                 ForwardTaps<T> t(g_, 1);
                 std::vector<double> sums;
                 for (; lo < hi; ++lo) {
                   int64_t group = lo / g_.big_c, c = lo % g_.big_c;
                   sums.assign(size_t(g_.small_c * taps), 0);
                   for (int64_t n = 0; n < g_.batch; ++n) AJ_SIMD(correlate_gradient<T>)
                   (t.taps, t.runs.data(), t.runs.size(),
                    t.padded.fill(big + (n * g_.groups * g_.big_c + lo) * g_.big_pixels()),
                    small + (n * g_.groups + group) * g_.small_c * g_.small_pixels(),
                    size_t(g_.small_c), sums.data(), size_t(taps));
                   for (int64_t o = 0; o < g_.small_c; ++o)
                     std::copy_n(sums.data() + o * taps, taps,
                                 weight + group * each + (o * g_.big_c + c) * taps);
                 }
               });
}

template class FewChannels<float>;
template class FewChannels<double>;

}  // namespace adjoin::cpu
#endif
