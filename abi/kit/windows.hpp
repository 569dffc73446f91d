// adjoin/kit/windows.hpp: where the windows of a pool lie along one dimension.
#ifndef ADJOIN_KIT_WINDOWS_HPP
#define ADJOIN_KIT_WINDOWS_HPP
#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

namespace adjoin {
namespace AJ_HIDDEN kit {

// Window o holds low[o], low[o] + step, ...: count[o] places, all inside.
struct WindowList {
  std::vector<int64_t> low, count;
  int64_t step = 1;

  int64_t size() const { return int64_t(low.size()); }
  void add(int64_t from, int64_t n) {
    low.push_back(from);
    count.push_back(n);
  }
};

struct WindowRule {
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
};

// Calls f(low, count) with window o of a rule.
template <class F>
auto even_window(int64_t in, int64_t o, const WindowRule& r, F&& f) {
  int64_t low = o * r.stride - r.padding, skip = low < 0 ? (-low + r.dilation - 1) / r.dilation : 0,
          end = std::min(r.kernel, low < in ? (in - 1 - low) / r.dilation + 1 : 0);
  return f(low + skip * r.dilation, std::max<int64_t>(0, end - skip));
}

inline WindowList even_windows(int64_t in, int64_t out, const WindowRule& r) {
  WindowList w;
  w.step = r.dilation;
  for (int64_t o = 0; o < out; ++o)
    even_window(in, o, r, [&](int64_t low, int64_t count) { w.add(low, count); });
  return w;
}

// Whether a window holds no place: one that begins in the padding before, or after, the input.
inline bool has_empty_window(int64_t in, int64_t out, const WindowRule& r) {
  auto empty = [&](int64_t o) {
    return even_window(in, o, r, [](int64_t, int64_t count) { return count == 0; });
  };
  for (int64_t o = 0; o < std::min(out, r.padding / r.stride + 1); ++o)
    if (empty(o)) return true;
  return out > 0 && empty(out - 1);
}

// How many windows fit; ceil_mode: the last may reach past the end.
inline int64_t pooled_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding,
                           int64_t dilation, bool ceil_mode) {
  int64_t room = in + 2 * padding - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  int64_t out = room < 0 ? 0 : room / stride + 1;
  if (ceil_mode && (out - 1) * stride >= in + padding)
    --out;  // the last window must begin within input or what is before it
  return out;
}

inline WindowList adaptive_windows(int64_t in, int64_t out) {
  WindowList w;
  for (int64_t o = 0; o < out; ++o) {
    int64_t low = o * in / out;
    w.add(low, ((o + 1) * in + out - 1) / out - low);
  }
  return w;
}

// Windows at pseudorandom distances (Graham, Fractional Max-Pooling, 2014); the sample is between 0
// and 1. In the images' own precision, so that everybody cuts alike.
template <class T>
WindowList fractional_windows(int64_t in, int64_t out, int64_t kernel, T sample) {
  WindowList w;
  T step = out > 1 ? T(in - kernel) / T(out - 1) : T(0);
  sample = sample >= T(0) && sample <= T(1) ? sample : T(0);
  for (int64_t o = 0; o + 1 < out; ++o) {
    int64_t low = int64_t((T(o) + sample) * step) - int64_t(sample * step);
    w.add(std::clamp<int64_t>(low, 0, in - kernel), kernel);
  }
  if (out > 0) w.add(in - kernel, kernel);
  return w;
}

}  // namespace kit
}  // namespace adjoin
#endif
