// plugins/cpu/image/plane_taps.hpp: where the taps of a convolution of few channels stand in planes
// that are copied with their padding.
#ifndef ADJOIN_PLUGINS_CPU_IMAGE_PLANE_TAPS_HPP
#define ADJOIN_PLUGINS_CPU_IMAGE_PLANE_TAPS_HPP
#include <adjoin/kit/geometry.hpp>
#include <algorithm>
#include <array>
#include <vector>

namespace adjoin::cpu {

using kit::ConvGeometry;

// Tap k of output (z, y, x) stands at place[k] + z * step[0] + y * step[1] + x of padded planes.
struct PlaneTaps {
  size_t size[3], step[2];  // of outputs
  std::vector<size_t> place;
  size_t square;  // the side of a square kernel whose rows are outputs' rows, else 0
  size_t outputs() const { return size[0] * size[1] * size[2]; }
};

// Three neighbouring places at most, for sums over outputs.
struct TapRun {
  size_t place[3], count;
};

// Every other element of a row to `even`, the rest to `odd`.
template <class T>
void split_columns(const T* from, size_t count, T* even, T* odd);

constexpr int64_t kBehindPlanes = 1024;  // elements that vectors may read behind the planes

// Planes with zeros around them, the first element at `before`; column c stands at c / phases of
// the run c % phases.
template <class T>
class PaddedPlanes {
 public:
  PaddedPlanes(const int64_t* size, const int64_t* before, const int64_t* full, int64_t phases,
               int64_t channels)
      : size_(size), before_(before), full_(full), phases_(phases), channels_(channels) {
    run_ = (full[2] + phases - 1) / phases;
    data_.assign(size_t(channels * each() + kBehindPlanes), T(0));
  }

  int64_t row() const { return phases_ * run_; }
  int64_t plane() const { return full_[1] * row(); }
  int64_t each() const { return full_[0] * plane(); }
  size_t place(int64_t z, int64_t y, int64_t x) const {
    return size_t(z * plane() + y * row() + x % phases_ * run_ + x / phases_);
  }

  // Places outside hold zeros since the beginning and are not written.
  const T* fill(const T* from) {
    for (int64_t c = 0; c < channels_; ++c)
      for (int64_t z = 0; z < size_[0]; ++z)
        for (int64_t y = 0; y < size_[1]; ++y, from += size_[2]) {
          int64_t at_z = z + before_[0], at_y = y + before_[1];
          if (at_z < full_[0] && at_y < full_[1])
            fill_row(from, data_.data() + c * each() + at_z * plane() + at_y * row());
        }
    return data_.data();
  }

 private:
  void fill_row(const T* from, T* to) const {
    int64_t count = std::min(size_[2], full_[2] - before_[2]);
    if (phases_ == 1) {
      if (count > 0) std::copy_n(from, count, to + before_[2]);
      return;
    }
    if (phases_ == 2 && count > 0) {
      T *even = to + before_[2] / 2, *odd = to + run_ + before_[2] / 2;
      if (before_[2] % 2)
        split_columns(from, size_t(count), odd, even + 1);
      else
        split_columns(from, size_t(count), even, odd);
      return;
    }
    for (int64_t f = 0; f < phases_; ++f) {
      int64_t x = f - before_[2] % phases_;
      if (x < 0) x += phases_;
      for (T* p = to + f * run_ + (x + before_[2]) / phases_; x < count; x += phases_)
        *p++ = from[x];
    }
  }

  const int64_t *size_, *before_, *full_;
  int64_t phases_, channels_, run_;
  std::vector<T> data_;
};

// The big image of one group under the taps of the small one, `channels` of it at once.
template <class T>
struct ForwardTaps {
  int64_t full[3];
  PaddedPlanes<T> padded;
  PlaneTaps taps;
  std::vector<TapRun> runs;

  ForwardTaps(const ConvGeometry& g, int64_t channels)
      : full{reach(g, 0), reach(g, 1), reach(g, 2)},
        padded(g.big, g.pad, full, g.stride[2], channels) {
    for (int d = 0; d < 3; ++d) taps.size[d] = size_t(g.small[d]);
    taps.step[0] = size_t(g.stride[0] * padded.plane());
    taps.step[1] = size_t(g.stride[1] * padded.row());
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < g.kernel[0]; ++i)
        for (int64_t j = 0; j < g.kernel[1]; ++j)
          for (int64_t k = 0; k < g.kernel[2]; ++k)
            taps.place.push_back(size_t(c * padded.each()) + padded.place(i * g.dilation[0],
                                                                          j * g.dilation[1],
                                                                          k * g.dilation[2]));
    bool square =
        channels * g.kernel[0] * g.stride[1] * g.dilation[1] == 1 && g.kernel[1] == g.kernel[2];
    taps.square = square ? size_t(g.kernel[1]) : 0;
    for (size_t k = 0, n = taps.place.size(); k < n; k += 3)
      runs.push_back(
          {{taps.place[k], taps.place[std::min(k + 1, n - 1)], taps.place[std::min(k + 2, n - 1)]},
           std::min<size_t>(3, n - k)});
  }
  static int64_t reach(const ConvGeometry& g, int d) {
    return (g.small[d] - 1) * g.stride[d] + g.dilation[d] * (g.kernel[d] - 1) + 1;
  }
};

// The way back: places of the big image whose distance to the padding's begin leaves the same
// remainder by the stride meet the same taps, neighbours among them neighbours of the small image.
struct TapPhase {
  PlaneTaps taps;
  std::vector<size_t> kernel;  // which taps
  int64_t first[3];            // place of the big image
  size_t base;                 // of the first output in the padded planes
};

template <class T>
struct BackwardTaps {
  int64_t before[3], full[3];
  PaddedPlanes<T> padded;
  std::vector<TapPhase> phases;

  explicit BackwardTaps(const ConvGeometry& g)
      : before{behind(g, 0), behind(g, 1), behind(g, 2)},
        full{reach(g, 0), reach(g, 1), reach(g, 2)},
        padded(g.small, before, full, 1, g.small_c) {
    for (int64_t i = 0; i < g.stride[0]; ++i)
      for (int64_t j = 0; j < g.stride[1]; ++j)
        for (int64_t k = 0; k < g.stride[2]; ++k) add(g, {i, j, k});
  }
  static int64_t behind(const ConvGeometry& g, int d) {
    return g.dilation[d] * (g.kernel[d] - 1) / g.stride[d];
  }
  static int64_t reach(const ConvGeometry& g, int d) {
    return behind(g, d) + (g.big[d] - 1 + g.pad[d]) / g.stride[d] + 1;
  }

 private:
  void add(const ConvGeometry& g, std::array<int64_t, 3> rest) {
    TapPhase phase;
    int64_t from[3];
    std::vector<int64_t> taps[3], back[3];
    for (size_t d = 0; d < 3; ++d) {
      from[d] = std::max<int64_t>(0, (g.pad[d] - rest[d] + g.stride[d] - 1) / g.stride[d]);
      phase.first[d] = from[d] * g.stride[d] + rest[d] - g.pad[d];
      if (phase.first[d] >= g.big[d]) return;
      phase.taps.size[d] = size_t((g.big[d] - 1 - phase.first[d]) / g.stride[d] + 1);
      for (int64_t k = g.kernel[d]; k-- > 0;)
        if (k * g.dilation[d] % g.stride[d] == rest[d]) {
          taps[d].push_back(k);
          back[d].push_back(before[d] - k * g.dilation[d] / g.stride[d]);
        }
    }
    phase.taps.step[0] = size_t(padded.plane()), phase.taps.step[1] = size_t(padded.row());
    phase.base = padded.place(from[0], from[1], from[2]);
    for (int64_t c = 0; c < g.small_c; ++c)
      for (size_t i = 0; i < taps[0].size(); ++i)
        for (size_t j = 0; j < taps[1].size(); ++j)
          for (size_t k = 0; k < taps[2].size(); ++k) {
            phase.taps.place.push_back(size_t(c * padded.each()) +
                                       padded.place(back[0][i], back[1][j], back[2][k]));
            phase.kernel.push_back(
                size_t((taps[0][i] * g.kernel[1] + taps[1][j]) * g.kernel[2] + taps[2][k]));
          }
    bool square =
        g.small_c * g.kernel[0] * g.dilation[1] * g.stride[0] * g.stride[1] * g.stride[2] == 1 &&
        g.kernel[1] == g.kernel[2];
    phase.taps.square = square ? size_t(g.kernel[1]) : 0;
    phases.push_back(std::move(phase));
  }
};

}  // namespace adjoin::cpu
#endif
