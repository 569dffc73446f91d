// plugins/onednn/bias.cpp: channels' biases, where the primitive adds none, and their gradients.
#include "bias.hpp"

#include <adjoin/kit/parallel.hpp>
#include <algorithm>
#include <cstring>
#include <vector>

namespace adjoin::onednn {

using namespace kit;

void add_bias(const Images& to, const float* bias) {
  parallel_for(to.batch, 1, [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {
      float* p = to.data + lo * to.each();
      int64_t outer = to.order == Order::last ? to.pixels : to.channels,
              inner = to.order == Order::last ? to.channels : to.pixels;
      for (int64_t i = 0; i < outer; ++i)
        for (int64_t j = 0; j < inner; ++j)
          p[i * inner + j] += bias[to.order == Order::last ? j : i];
    }
  });
}

namespace {

typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));

// Channels-last: kLanes times 16 neighbouring channels; 64 pixels are added in float, these sums in
// double.
template <int kLanes>
void sum_lanes(const Images& g, int64_t channel, int64_t row, int64_t end, double* total) {
  int64_t width = std::min<int64_t>(16 * kLanes, g.channels - channel);
  while (row < end) {
    const float* p = g.data + row * g.channels + channel;
    int64_t left = std::min<int64_t>(64, end - row);
    row += left;
    Lanes sum[kLanes] = {};
    if (width == 16 * kLanes) {
      for (; left-- > 0; p += g.channels)
        for (int k = 0; k < kLanes; ++k) sum[k] += reinterpret_cast<const Lanes*>(p)[k];
    } else {
      Lanes x[kLanes] = {};
      for (; left-- > 0; p += g.channels) {
        std::memcpy(x, p, size_t(width) * sizeof(float));
        for (int k = 0; k < kLanes; ++k) sum[k] += x[k];
      }
    }
    for (int64_t k = 0; k < width; ++k) total[k] += double(sum[k / 16][k % 16]);
  }
}

// Every pixel's channels in one pass, in a fixed number of parts that are joined in order.
void sum_last(const Images& g, float* bias) {
  int64_t rows = g.batch * g.pixels, parts = std::clamp<int64_t>(rows / 4096, 1, 8);
  std::vector<double> sums(size_t(parts * g.channels), 0.0);
  parallel_for(parts, grain_of(g.channels * rows / parts), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {
      int64_t from = rows * lo / parts, to = rows * (lo + 1) / parts;
      for (int64_t c = 0; c < g.channels;) {
        double* total = sums.data() + lo * g.channels + c;
        int64_t left = g.channels - c;
        if (left >= 64)
          sum_lanes<4>(g, c, from, to, total), c += 64;
        else if (left >= 32)
          sum_lanes<2>(g, c, from, to, total), c += 32;
        else
          sum_lanes<1>(g, c, from, to, total), c += 16;
      }
    }
  });
  for (int64_t c = 0; c < g.channels; ++c) {
    double all = 0;
    for (int64_t part = 0; part < parts; ++part) all += sums[size_t(part * g.channels + c)];
    bias[c] = float(all);
  }
}

// Planes: 16 lanes of float an image, joined in double.
float sum_plane(const Images& g, int64_t channel) {
  double total = 0;
  for (int64_t n = 0; n < g.batch; ++n) {
    const float* p = g.data + n * g.each() + channel * g.pixels;
    float lanes[16] = {}, sum = 0;
    int64_t i = 0;
    for (; i + 16 <= g.pixels; i += 16)
      for (int k = 0; k < 16; ++k) lanes[k] += p[i + k];
    for (; i < g.pixels; ++i) lanes[i % 16] += p[i];
    for (float lane : lanes) sum += lane;
    total += double(sum);
  }
  return float(total);
}

}  // namespace

void sum_to_bias(const Images& g, float* bias) {
  if (g.order == Order::last) return sum_last(g, bias);
  parallel_for(g.channels, grain_of(g.batch * g.pixels), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) bias[lo] = sum_plane(g, lo);
  });
}

}  // namespace adjoin::onednn
