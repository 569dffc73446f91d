// plugins/cpu/image/window_sums.hpp: sums of windows along a line, and what each window's share
// adds to it.
#ifndef ADJOIN_PLUGINS_CPU_IMAGE_WINDOW_SUMS_HPP
#define ADJOIN_PLUGINS_CPU_IMAGE_WINDOW_SUMS_HPP
#include <adjoin/kit/geometry.hpp>
#include <vector>

namespace adjoin::cpu {

// Windows of a line, in order. Most are alike: those in [begin, end) have `taps` taps and begin
// `step` apart, so that one tap of many windows is added at once. The rest is cut by an end of the
// line.
struct LineWindows {
  using Range = kit::PoolGeometry::Range;

  explicit LineWindows(std::vector<Range> windows);

  std::vector<Range> all;
  int64_t begin = 0, end = 0, taps = 0, step = 0;
};

// to[o] = the sum of window o, of at most kShortWindow taps, in order.
constexpr int64_t kShortWindow = 32;
void sum_windows(const LineWindows&, const float* x, float* to);
void sum_windows(const LineWindows&, const double* x, double* to);

// Adds share[o] to every tap of window o, to each tap in the order of the windows.
void add_shares(const LineWindows&, const float* share, float* x);
void add_shares(const LineWindows&, const double* share, double* x);

// The same for a line of `width` that holds nothing yet: each element is written once where no two
// windows meet.
void lay_shares(const LineWindows&, const float* share, float* x, int64_t width);
void lay_shares(const LineWindows&, const double* share, double* x, int64_t width);

// to[i] = x[i] / n[i]; to may be x.
void divide(const float* x, const float* n, int64_t count, float* to);
void divide(const double* x, const double* n, int64_t count, double* to);

}  // namespace adjoin::cpu
#endif
