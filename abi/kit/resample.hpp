// adjoin/kit/resample.hpp: resizing and averaging along one dimension as a sparse matrix: what each
// output takes of which inputs.
#ifndef ADJOIN_KIT_RESAMPLE_HPP
#define ADJOIN_KIT_RESAMPLE_HPP
#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace adjoin {
namespace AJ_HIDDEN kit {

// Output o is the sum of weight[k] * input[index[k]] for k from start[o] to start[o + 1]. A weight
// of zero is never multiplied, so that it hides an infinity.
struct Taps {
  std::vector<int64_t> start{0}, index;
  std::vector<double> weight;

  int64_t size() const { return int64_t(start.size()) - 1; }
  void add(int64_t at, double w) {
    index.push_back(at);
    weight.push_back(w);
  }
  void end() { start.push_back(int64_t(index.size())); }

  // Each output is one input, as it stands.
  bool picks() const {
    if (int64_t(index.size()) != size()) return false;
    return std::all_of(weight.begin(), weight.end(), [](double w) { return w == 1; });
  }
  bool is_identity(int64_t n) const {
    if (size() != n || !picks()) return false;
    for (int64_t i = 0; i < n; ++i)
      if (index[size_t(i)] != i) return false;
    return true;
  }
  int64_t most() const {
    int64_t most = 0;
    for (int64_t o = 0; o < size(); ++o)
      most = std::max(most, start[size_t(o) + 1] - start[size_t(o)]);
    return most;
  }
  Taps transposed(int64_t n) const {
    Taps t;
    t.start.assign(size_t(n) + 1, 0);
    for (int64_t i : index) ++t.start[size_t(i) + 1];
    for (int64_t i = 0; i < n; ++i) t.start[size_t(i) + 1] += t.start[size_t(i)];
    t.index.resize(index.size());
    t.weight.resize(index.size());
    std::vector<int64_t> next(t.start.begin(), t.start.end() - 1);
    for (int64_t o = 0; o < size(); ++o)
      for (int64_t k = start[size_t(o)]; k < start[size_t(o) + 1]; ++k) {
        int64_t to = next[size_t(index[size_t(k)])]++;
        t.index[size_t(to)] = o;
        t.weight[size_t(to)] = weight[size_t(k)];
      }
    return t;
  }
};

namespace resampling {

// The cubic convolution of Keys, 1981, whose slope at 1 is a.
inline double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

inline double step(int64_t in, int64_t out, bool align_corners, double scale) {
  if (align_corners) return out > 1 ? double(in - 1) / double(out - 1) : 0;
  return scale > 0 ? 1 / scale : double(in) / double(out);
}

// Which element is nearest is decided in float, so that everybody decides alike.
inline void nearest(Taps& t, int64_t in, int64_t out, double scale, float middle) {
  float step = scale > 0 ? float(1 / scale) : float(in) / float(out);
  for (int64_t o = 0; o < out; ++o, t.end()) {
    auto at = int64_t(std::floor((float(o) + middle) * step));
    t.add(std::clamp<int64_t>(at, 0, in - 1), 1);
  }
}

inline void linear(Taps& t, int64_t in, int64_t out, bool align_corners, double step) {
  for (int64_t o = 0; o < out; ++o, t.end()) {
    double at = align_corners ? step * double(o) : step * (double(o) + 0.5) - 0.5;
    at = std::max(at, 0.0);
    int64_t low = std::min(int64_t(at), in - 1), high = std::min(low + 1, in - 1);
    double part = std::clamp(at - double(low), 0.0, 1.0);
    if (high == low || part == 0) {
      t.add(low, 1);
    } else {
      t.add(low, 1 - part);
      t.add(high, part);
    }
  }
}

inline void cubic(Taps& t, int64_t in, int64_t out, bool align_corners, double step) {
  for (int64_t o = 0; o < out; ++o, t.end()) {
    double at = align_corners ? step * double(o) : step * (double(o) + 0.5) - 0.5,
           low = std::floor(at);
    for (int64_t k = -1; k <= 2; ++k)
      t.add(std::clamp<int64_t>(int64_t(low) + k, 0, in - 1), cubic(at - low - double(k), -0.75));
  }
}

// A filter as wide as the step, if it is more than one.
inline void smooth(Taps& t, int64_t in, int64_t out, double step, bool by_cubics) {
  double widen = std::max(step, 1.0), support = (by_cubics ? 2 : 1) * widen;
  for (int64_t o = 0; o < out; ++o, t.end()) {
    double center = step * (double(o) + 0.5);
    int64_t low = std::max<int64_t>(int64_t(center - support + 0.5), 0),
            high = std::min<int64_t>(int64_t(center + support + 0.5), in);
    size_t first = t.weight.size();
    double sum = 0;
    for (int64_t i = low; i < high; ++i) {
      double x = (double(i) - center + 0.5) / widen;
      double w = by_cubics ? cubic(x, -0.5) : std::max(0.0, 1 - std::abs(x));
      t.add(i, w);
      sum += w;
    }
    if (sum != 0)
      for (size_t k = first; k < t.weight.size(); ++k) t.weight[k] /= sum;
  }
}

inline void area(Taps& t, int64_t in, int64_t out) {
  for (int64_t o = 0; o < out; ++o, t.end()) {
    int64_t low = o * in / out, high = ((o + 1) * in + out - 1) / out;
    for (int64_t i = low; i < high; ++i) t.add(i, 1 / double(high - low));
  }
}

}  // namespace resampling

// mode: nearest, nearest-exact, linear, cubic, linear-smooth, cubic-smooth or area. scale: how many
// outputs an input becomes, 0 for what the sizes say.
inline Taps resampling_taps(std::string_view mode, int64_t in, int64_t out, bool align_corners,
                            double scale) {
  Taps t;
  double step = out > 0 ? resampling::step(in, out, align_corners, scale) : 1;
  if (mode == "nearest" || mode == "nearest-exact")
    resampling::nearest(t, in, out, scale, mode == "nearest" ? 0.0f : 0.5f);
  else if (mode == "linear")
    resampling::linear(t, in, out, align_corners, step);
  else if (mode == "cubic")
    resampling::cubic(t, in, out, align_corners, step);
  else if (mode == "linear-smooth" || mode == "cubic-smooth")
    resampling::smooth(t, in, out, step, mode == "cubic-smooth");
  else if (mode == "area")
    resampling::area(t, in, out);
  else
    raise(AJ_INVALID_ARGUMENT, "mode '", mode, "' is not known; it is nearest, nearest-exact, ",
          "linear, cubic, linear-smooth, cubic-smooth or area");
  return t;
}

// Means of windows; whole: padding counts, and the divisor is the caller's if sums is set.
inline Taps average_taps(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
                         bool whole, bool sums) {
  Taps t;
  for (int64_t o = 0; o < out; ++o, t.end()) {
    int64_t low = o * stride - padding, padded = std::min(low + kernel, in + padding) - low;
    int64_t first = std::max<int64_t>(low, 0), last = std::min(low + kernel, in);
    double n = sums ? 1 : double(whole ? padded : last - first);
    for (int64_t i = first; i < last; ++i) t.add(i, 1 / n);
  }
  return t;
}

// The taps that the arguments of _::resample ask for, of dimension d: taps(d, in, out).
template <class Args>
auto resampling_taps_of(const Args& args) {
  return [&args, scales = args[4].v.floats](int64_t d, int64_t in, int64_t out) {
    return resampling_taps(args.string(2), in, out, args.flag(3), scales[d]);
  };
}

// Those of _::average.
template <class Args>
auto average_taps_of(const Args& args) {
  return [&args, sums = !args.none(6)](int64_t d, int64_t in, int64_t out) {
    auto number = [&](uint32_t argument) { return args.ints(argument)[size_t(d)]; };
    return average_taps(in, out, number(2), number(3), number(4), args.flag(5), sums);
  };
}

}  // namespace kit
}  // namespace adjoin
#endif
