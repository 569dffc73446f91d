// plugins/ops_image/cpu/grid.cpp: images read at coordinates: for a block of places where their
// taps lie and what they weigh, then channel by channel.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/resample.hpp>

#include "grid_rows.hpp"
#include "vector/rows.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_image/cpu/grid.cpp"
#include "vector/simd.hpp"
// after it, once per target
#include "vector/lanes.hpp"
// after that one
#include "taps-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

// Coordinates of -1 to 1 along a dimension as places, and the derivatives of those.
template <class T, class D = hn::ScalableTag<T>>
HWY_INLINE hn::Vec<D> places_of(hn::Vec<D> x, T size, const Plane<T>& p, hn::Vec<D>* slope) {
  const D d;
  const auto zero = hn::Zero(d), one = hn::Set(d, T(1)), last = hn::Set(d, size - 1);
  const auto unit = hn::Set(d, (p.align ? size - 1 : size) / 2);
  x = hn::Mul(hn::Add(x, one), unit);
  if (!p.align) x = hn::Sub(x, hn::Set(d, T(0.5)));
  *slope = unit;
  const T length = p.align ? size - 1 : size;
  if (p.mirror && length > 0) {
    const auto span = hn::Set(d, length), least = hn::Set(d, p.align ? T(0) : T(-0.5));
    auto from = hn::Sub(x, least);
    const auto back = hn::Lt(from, zero);
    from = hn::Abs(from);
    auto turns = hn::Floor(hn::Div(from, span));
    auto extra = hn::Sub(from, hn::Mul(turns, span));
    const auto half = hn::Mul(turns, hn::Set(d, T(0.5)));
    const auto odd = hn::Ne(half, hn::Floor(half));
    x = hn::Add(hn::IfThenElse(odd, hn::Sub(span, extra), extra), least);
    *slope = hn::IfThenElse(hn::Xor(back, odd), hn::Neg(unit), unit);
  }
  if (p.border) {
    auto within = hn::And(hn::Gt(x, zero), hn::Lt(x, last));
    *slope = hn::IfThenElseZero(within, *slope);
    x = hn::IfThenElseZero(hn::Gt(x, zero), hn::Min(x, last));
  }
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, T(1e9))), x, hn::Set(d, T(-100)));
}

// Coordinates of n places, x first, as one vector for each dimension.
template <size_t kDims, class T, class V>
HWY_INLINE void load_places(const T* grid, size_t i, V* at) {
  const hn::ScalableTag<T> d;
  if constexpr (kDims == 2)
    hn::LoadInterleaved2(d, grid + 2 * i, at[0], at[1]);
  else
    hn::LoadInterleaved3(d, grid + 3 * i, at[0], at[1], at[2]);
}

// The taps of n coordinates (x, y) or (x, y, z) of a linear reading, n a whole number of vectors:
// index, weight and, if there is room for them, the weights' derivatives by z, y and x; rows lie
// `step` apart.
template <class T, size_t kDims>
void linear_taps_of(const T* grid, size_t n, const Plane<T>& p, size_t step, Offset<T>* index,
                    T* weight, T* change) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto zero = hn::Zero(d), one = hn::Set(d, T(1));
  constexpr size_t taps = size_t(1) << kDims;
  const int64_t all[3] = {p.depth, p.height, p.width}, *size = all + 3 - kDims;
  struct Ends {
    decltype(hn::Zero(d)) weight[2], slope;
    decltype(hn::Zero(di)) place[2];
    decltype(hn::Eq(zero, zero)) inside[2];
  };
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    decltype(hn::Zero(d)) at[kDims];
    load_places<kDims>(grid, i, at);
    Ends ends[kDims];
    for (size_t a = 0; a < kDims; ++a) {
      Ends& e = ends[a];
      const auto last = hn::Set(d, T(size[a] - 1));
      auto x = places_of<T>(at[kDims - 1 - a], T(size[a]), p, &e.slope);
      auto low = hn::Floor(x), part = hn::Sub(x, low);
      for (int k = 0; k < 2; ++k) {
        auto place = k ? hn::Add(low, one) : low;
        e.inside[k] = hn::And(hn::Ge(place, zero), hn::Le(place, last));
        e.place[k] = hn::ConvertTo(di, hn::Min(hn::Max(place, zero), last));
      }
      e.weight[0] = hn::Sub(one, part);
      e.weight[1] = part;
    }
    for (size_t k = 0; k < taps; ++k) {
      auto end = [&](size_t a) { return k >> (kDims - 1 - a) & 1; };  // the last dimension first
      auto inside = ends[0].inside[end(0)];
      auto place = ends[0].place[end(0)];
      auto w = ends[0].weight[end(0)];
      for (size_t a = 1; a < kDims; ++a) {
        inside = hn::And(inside, ends[a].inside[end(a)]);
        place = hn::Add(hn::Mul(place, hn::Set(di, Offset<T>(size[a]))), ends[a].place[end(a)]);
        w = hn::Mul(w, ends[a].weight[end(a)]);
      }
      hn::StoreU(place, di, index + k * step + i);
      hn::StoreU(hn::IfThenElseZero(inside, w), d, weight + k * step + i);
      for (size_t a = 0; change && a < kDims; ++a) {
        auto part = end(a) ? ends[a].slope : hn::Neg(ends[a].slope);
        for (size_t b = 0; b < kDims; ++b)
          if (b != a) part = hn::Mul(part, ends[b].weight[end(b)]);
        hn::StoreU(hn::IfThenElseZero(inside, part), d, change + (a * taps + k) * step + i);
      }
    }
  }
}

template <class T>
void linear_taps(const T* grid, size_t dims, size_t n, const Plane<T>& p, size_t step,
                 Offset<T>* index, T* weight, T* change) {
  if (dims == 2) return linear_taps_of<T, 2>(grid, n, p, step, index, weight, change);
  linear_taps_of<T, 3>(grid, n, p, step, index, weight, change);
}

// The one tap of each of n coordinates of two or three dimensions, x first: its weight is 1, or 0
// outside.
template <class T>
void nearest_taps(const T* grid, size_t dims, size_t n, const Plane<T>& p, Offset<T>* index,
                  T* weight) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto zero = hn::Zero(d), one = hn::Set(d, T(1));
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    decltype(hn::Zero(d)) at[3], slope;
    if (dims == 2)
      load_places<2>(grid, i, at);
    else
      load_places<3>(grid, i, at);
    const int64_t size[3] = {p.width, p.height, p.depth};
    auto place = hn::Zero(di);
    auto inside = hn::Eq(zero, zero);
    for (size_t k = dims; k-- > 0;) {
      auto x = hn::Round(places_of<T>(at[k], T(size[k]), p, &slope));
      auto within = hn::And(hn::Ge(x, zero), hn::Le(x, hn::Set(d, T(size[k] - 1))));
      inside = hn::And(inside, within);
      place = hn::Add(hn::Mul(place, hn::Set(di, Offset<T>(size[k]))),
                      hn::ConvertTo(di, hn::IfThenElseZero(within, x)));
    }
    hn::StoreU(place, di, index + i);
    hn::StoreU(hn::IfThenElseZero(inside, one), d, weight + i);
  }
}

// slopes[axis, i] += g[i] * sum over taps of change[axis, tap, i] * image[index[tap, i]]
template <class T>
void slope_block(const T* image, const Offset<T>* index, const T* change, const T* g, size_t axes,
                 size_t taps, size_t step, size_t n, T* slopes) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    auto grad = load_n(d, g + i, n - i);
    for (size_t k = 0; k < taps; ++k) {
      auto v = hn::GatherIndex(d, image, hn::LoadU(di, index + k * step + i));
      auto product = hn::Mul(v, grad);
      for (size_t a = 0; a < axes; ++a) {
        auto w = hn::LoadU(d, change + (a * taps + k) * step + i);
        T* to = slopes + a * step + i;
        auto more = hn::IfThenZeroElse(hn::Eq(w, hn::Zero(d)), hn::Mul(w, product));
        hn::StoreU(hn::Add(hn::LoadU(d, to), more), d, to);
      }
    }
  }
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

constexpr int64_t kBlock = 128;  // places at once
constexpr int64_t kStep = kBlock;
constexpr int64_t kExact = 1 << 24;  // sizes up to here are exact in every dtype

enum class Pad { kZeros, kBorder, kReflection };
enum class Mode { kLinear, kNearest, kCubic };

template <class T>
T mirrored(T x, T low, T high, T* slope) {
  if (low == high) return *slope = 0, T(0);
  T least = low / 2, span = (high - low) / 2, from = x - least;
  if (from < 0) from = -from, *slope = -*slope;
  // As fmod, but for a rounding, and many times faster.
  T turns = std::floor(from / span), extra = from - turns * span;
  bool odd = turns / 2 != std::floor(turns / 2);
  if (odd) *slope = -*slope;
  return (odd ? span - extra : extra) + least;
}

template <class T>
struct Sampler {
  Mode mode;
  Pad pad;
  bool align;
  int64_t dims, size[3];

  Sampler(Args args, uint32_t at, TensorView input) : dims(input.ndim() - 2) {
    std::string_view m = args.string(at), p = args.string(at + 1);
    mode = m == "bilinear" ? Mode::kLinear : m == "nearest" ? Mode::kNearest : Mode::kCubic;
    pad = p == "zeros" ? Pad::kZeros : p == "border" ? Pad::kBorder : Pad::kReflection;
    align = args.flag(at + 2);
    for (int64_t d = 0; d < dims; ++d) size[d] = input.size(2 + d);
  }
  int64_t each() const { return mode == Mode::kNearest ? 1 : mode == Mode::kLinear ? 2 : 4; }
  int64_t taps() const { return dims == 2 ? each() * each() : each() * each() * each(); }
  bool in_vectors() const {
    if (mode == Mode::kCubic) return false;
    return std::all_of(size, size + dims, [](int64_t n) { return n < kExact; });
  }

  T inside(T x, int64_t n, T* slope) const {
    if (pad == Pad::kZeros) return x;
    if (pad == Pad::kReflection)
      x = align ? mirrored<T>(x, 0, T(2 * (n - 1)), slope)
                : mirrored<T>(x, -1, T(2 * n - 1), slope);
    T last = T(n - 1);
    if (!(x > 0)) return *slope = 0, T(0);
    if (x >= last) return *slope = 0, last;
    return x;
  }
  // Places, weights and their derivatives along one dimension; place -1 is outside.
  void axis(T coordinate, int64_t n, int64_t* at, T* weight, T* change) const {
    T unit = T(align ? n - 1 : n) / 2, slope = unit;
    T x = align ? (coordinate + 1) * unit : (coordinate + 1) * unit - T(0.5);
    if (mode != Mode::kCubic) x = inside(x, n, &slope);
    if (!(std::abs(x) < T(1e9))) x = -100;  // outside
    auto place = [&](T p) { return p >= 0 && p <= T(n - 1) ? int64_t(p) : -1; };
    if (mode == Mode::kNearest) {
      at[0] = place(std::nearbyint(x)), weight[0] = 1, change[0] = 0;
      return;
    }
    T low = std::floor(x), t = x - low;
    if (mode == Mode::kLinear) {
      at[0] = place(low), weight[0] = 1 - t, change[0] = -slope;
      at[1] = place(low + 1), weight[1] = t, change[1] = slope;
      return;
    }
    constexpr T a = T(-0.75);  // Keys, 1981
    for (int64_t k = -1; k <= 2; ++k) {
      T y = k < 1 ? t - T(k) : T(k) - t, sign = k < 1 ? slope : -slope, unused = 1;
      bool near = k == 0 || k == 1;
      at[k + 1] = place(inside(low + T(k), n, &unused));
      weight[k + 1] = near ? ((a + 2) * y - (a + 3)) * y * y + 1 : (((y - 5) * y + 8) * y - 4) * a;
      change[k + 1] =
          sign * (near ? (3 * (a + 2) * y - 2 * (a + 3)) * y : ((3 * y - 10) * y + 8) * a);
    }
  }
};

// One tap each: loads of single elements are faster than a gathering instruction then.
template <class T>
void pick(const T* in, const Offset<T>* index, int64_t n, std::span<const uint8_t> outside, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = in[index[i]];
  for (uint8_t i : outside) to[i] = T(0);
}

// The taps of a block of places.
template <class T>
struct Block {
  using Int = Offset<T>;
  explicit Block(const Sampler<T>& s, bool changes)
      : index(size_t(s.taps() * kStep)),
        weight(size_t(s.taps() * kStep)),
        change(changes ? size_t(s.dims * s.taps() * kStep) : 0) {}

  void fill(const Sampler<T>& s, const T* grid, int64_t n) {
    if (s.in_vectors()) {
      T given[3 * kStep];
      std::copy_n(grid, s.dims * n, given);
      std::fill(given + s.dims * n, given + s.dims * kStep, T(0));
      Plane<T> plane{s.dims == 2 ? 1 : s.size[0], s.size[s.dims - 2],
                     s.size[s.dims - 1],          s.align,
                     s.pad != Pad::kZeros,        s.pad == Pad::kReflection};
      if (s.mode == Mode::kNearest) {
        AJ_SIMD(nearest_taps<T>)
        (given, size_t(s.dims), size_t(kStep), plane, index.data(), weight.data());
        outside.clear();
        for (int64_t i = 0; i < n; ++i)
          if (weight[size_t(i)] == 0) outside.push_back(uint8_t(i));
        return;
      }
      return AJ_SIMD(linear_taps<T>)(given, size_t(s.dims), size_t(kStep), plane, size_t(kStep),
                                     index.data(), weight.data(),
                                     change.empty() ? nullptr : change.data());
    }
    int64_t each = s.each(), taps = s.taps();
    std::fill(weight.begin(), weight.end(), T(0));
    std::fill(index.begin(), index.end(), Int(0));
    std::fill(change.begin(), change.end(), T(0));
    outside.clear();
    for (int64_t i = 0; i < n; ++i, grid += s.dims) {
      int64_t at[3][4];
      T w[3][4], c[3][4];
      for (int64_t d = 0; d < s.dims; ++d)  // a grid has x first
        s.axis(grid[s.dims - 1 - d], s.size[d], at[d], w[d], c[d]);
      int64_t tap[3] = {};
      auto next = [&] {  // the last dimension first
        for (int64_t d = s.dims - 1; d >= 0 && ++tap[d] == each; --d) tap[d] = 0;
      };
      for (int64_t k = 0; k < taps; ++k, next()) {
        int64_t place = 0;
        bool out = false;
        for (int64_t d = 0; d < s.dims; ++d) {
          out = out || at[d][tap[d]] < 0;
          place = place * s.size[d] + at[d][tap[d]];
        }
        if (out) {
          if (taps == 1) outside.push_back(uint8_t(i));
          continue;
        }
        T all = 1;
        for (int64_t d = 0; d < s.dims; ++d) all *= w[d][tap[d]];
        index[size_t(k * kStep + i)] = Int(place);
        weight[size_t(k * kStep + i)] = all;
        if (change.empty()) continue;
        for (int64_t d = 0; d < s.dims; ++d) {
          T part = c[d][tap[d]];
          for (int64_t e = 0; e < s.dims; ++e)
            if (e != d) part *= w[e][tap[e]];
          change[size_t((d * taps + k) * kStep + i)] = part;
        }
      }
    }
  }
  std::vector<Int> index;
  std::vector<T> weight, change;
  std::vector<uint8_t> outside;  // of those with one tap, the places without any
};

struct Sampled {
  Sampled(TensorView input, TensorView grid)
      : batch(input.size(0)), channels(input.size(1)), pixels(1), places(1) {
    for (int64_t d = 2; d < input.ndim(); ++d) pixels *= input.size(d);
    for (int64_t d = 1; d + 1 < grid.ndim(); ++d) places *= grid.size(d);
    blocks = blocks_of(places);
    if (pixels >= int64_t(1) << 31)
      raise(AJ_UNIMPLEMENTED, "images of 2^31 places and more are not read: ", input);
  }
  static int64_t blocks_of(int64_t n) { return (n + kBlock - 1) / kBlock; }
  int64_t batch, channels, pixels, places, blocks;
};

// Images and what is read from them with the channels side by side: many channels, and enough
// places that turning the images round is worth it.
template <class T>
class ByRows {
 public:
  ByRows(const Sampler<T>& s, const Sampled& p, int64_t channels)
      : s_(s), p_(p), channels_(channels), pitch_((channels + kLine - 1) / kLine * kLine) {}

  static bool serves(const Sampler<T>& s, const Sampled& p) {
    return p.channels >= 8 && p.places * s.taps() >= p.pixels;
  }
  std::vector<T> rows(int64_t n) const { return std::vector<T>(size_t(n * pitch_)); }
  // [channels, all] from element `at` on, n of them, to [n, channels]; and back.
  void turn(const T* planes, int64_t all, int64_t at, int64_t n, T* rows) const {
    transpose(sizeof(T), bytes(rows), pitch_ * kSize, bytes(planes + at), all * kSize, channels_,
              n);
  }
  void turn_back(const T* rows, int64_t n, T* planes, int64_t all, int64_t at) const {
    transpose(sizeof(T), bytes(planes + at), all * kSize, bytes(rows), pitch_ * kSize, n,
              channels_);
  }
  void turn_image(const T* image, T* rows) const {
    parallel_for(p_.blocks_of(p_.pixels), grain_of(kBlock * channels_),
                 [&](int64_t lo, int64_t hi) {
                   lo *= kBlock, hi = std::min(hi * kBlock, p_.pixels);
                   turn(image, p_.pixels, lo, hi - lo, rows + lo * pitch_);
                 });
  }
  PlaceTaps<T> taps(const Block<T>& b, int64_t n, bool change = false) const {
    return {b.index.data(),    change ? b.change.data() : b.weight.data(),
            size_t(s_.taps()), size_t(kStep),
            size_t(n),         size_t(pitch_)};
  }

 private:
  static constexpr int64_t kSize = sizeof(T), kLine = 64 / kSize;
  static char* bytes(const T* p) { return reinterpret_cast<char*>(const_cast<T*>(p)); }
  const Sampler<T>& s_;
  const Sampled& p_;
  int64_t channels_, pitch_;
};

template <class T>
void read_rows(const Sampler<T>& s, const Sampled& p, const T* images, const T* grid, T* out) {
  ByRows<T> by(s, p, p.channels);
  std::vector<T> pixels = by.rows(p.pixels);
  for (int64_t image = 0; image < p.batch; ++image) {
    by.turn_image(images + image * p.channels * p.pixels, pixels.data());
    parallel_for(p.blocks, grain_of(kBlock * p.channels * s.taps()), [&](int64_t lo, int64_t hi) {
      Block<T> block(s, false);
      std::vector<T> rows = by.rows(kBlock);
      for (; lo < hi; ++lo) {
        int64_t first = lo * kBlock, n = std::min(kBlock, p.places - first);
        block.fill(s, grid + (image * p.places + first) * s.dims, n);
        grid_rows<T>().read(by.taps(block, n), pixels.data(), rows.data());
        by.turn_back(rows.data(), n, out + image * p.channels * p.places, p.places, first);
      }
    });
  }
}

void grid_sampler(Args args) {
  TensorView input = args.tensor(0), grid = args.tensor(1);
  MutView out = args.result(0);
  if (out.numel() == 0) return;
  Sampled p(input, grid);
  visit<stored_floating>(input.dtype(), [&]<class S>() {
    using T = Math<S>;
    Sampler<T> s(args, 2, input);
    Dense<T> images(input), at(grid), to(out);
    if (s.taps() > 1 && ByRows<T>::serves(s, p)) {
      read_rows(s, p, images.data(), at.data(), to.data());
      return to.commit();
    }
    parallel_for(p.batch * p.blocks, grain_of(kBlock * (p.channels + 8) * s.taps()),
                 [&](int64_t lo, int64_t hi) {
                   Block<T> block(s, false);
                   for (; lo < hi; ++lo) {
                     int64_t image = lo / p.blocks, first = lo % p.blocks * kBlock,
                             n = std::min(kBlock, p.places - first);
                     block.fill(s, at.data() + (image * p.places + first) * s.dims, n);
                     for (int64_t c = image * p.channels; c < (image + 1) * p.channels; ++c)
                       if (s.taps() == 1)
                         pick(images.data() + c * p.pixels, block.index.data(), n,
                              std::span<const uint8_t>(block.outside),
                              to.data() + c * p.places + first);
                       else
                         AJ_SIMD(sum_taps<T>)
                     (images.data() + c * p.pixels, block.index.data(), block.weight.data(),
                      size_t(s.taps()), size_t(kStep), size_t(n), to.data() + c * p.places + first);
                   }
                 });
    to.commit();
  });
}

// Those of a block, [dims, kStep], as coordinates are: x first.
template <class T>
void put_slopes(const Sampler<T>& s, const std::vector<T>& slopes, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t d = 0; d < s.dims; ++d) *to++ = slopes[size_t((s.dims - 1 - d) * kStep + i)];
}

// One task owns some channels of an image, so that no two threads add to one place.
template <class T>
void add_rows(const Sampler<T>& s, const Sampled& p, const T* grid, const T* g, T* images) {
  constexpr int64_t most = 32;
  int64_t parts = (p.channels + most - 1) / most;
  parallel_for(p.batch * parts, 1, [&](int64_t lo, int64_t hi) {
    Block<T> block(s, false);
    for (; lo < hi; ++lo) {
      int64_t image = lo / parts, from = lo % parts * most,
              channels = std::min(most, p.channels - from);
      ByRows<T> by(s, p, channels);
      std::vector<T> pixels = by.rows(p.pixels), rows = by.rows(kBlock);
      from += image * p.channels;
      for (int64_t first = 0; first < p.places; first += kBlock) {
        int64_t n = std::min(kBlock, p.places - first);
        block.fill(s, grid + (image * p.places + first) * s.dims, n);
        by.turn(g + from * p.places, p.places, first, n, rows.data());
        grid_rows<T>().add(by.taps(block, n), rows.data(), pixels.data());
      }
      by.turn_back(pixels.data(), p.pixels, images + from * p.pixels, p.pixels, 0);
    }
  });
}

template <class T>
void slope_rows(const Sampler<T>& s, const Sampled& p, const T* images, const T* grid, const T* g,
                T* out) {
  ByRows<T> by(s, p, p.channels);
  std::vector<T> pixels = by.rows(p.pixels);
  for (int64_t image = 0; image < p.batch; ++image) {
    by.turn_image(images + image * p.channels * p.pixels, pixels.data());
    parallel_for(p.blocks, grain_of(kBlock * p.channels * s.taps()), [&](int64_t lo, int64_t hi) {
      Block<T> block(s, true);
      std::vector<T> rows = by.rows(kBlock), slopes(size_t(s.dims * kStep));
      for (; lo < hi; ++lo) {
        int64_t first = lo * kBlock, n = std::min(kBlock, p.places - first),
                at = image * p.places + first;
        block.fill(s, grid + at * s.dims, n);
        by.turn(g + image * p.channels * p.places, p.places, first, n, rows.data());
        grid_rows<T>().slopes(by.taps(block, n, true), size_t(s.dims), pixels.data(), rows.data(),
                              slopes.data());
        put_slopes(s, slopes, n, out + at * s.dims);
      }
    });
  }
}

template <class T>
void to_images(const Sampler<T>& s, const Sampled& p, const T* grid, const T* g, T* images) {
  int64_t some = std::max<int64_t>(1, std::min<int64_t>(p.channels, 16)),
          parts = (p.channels + some - 1) / some;
  parallel_for(p.batch * parts, grain_of(some * p.places * s.taps()), [&](int64_t lo, int64_t hi) {
    Block<T> block(s, false);
    for (; lo < hi; ++lo) {
      int64_t image = lo / parts, from = image * p.channels + lo % parts * some,
              end = std::min(from + some, (image + 1) * p.channels);
      std::fill(images + from * p.pixels, images + end * p.pixels, T(0));
      for (int64_t first = 0; first < p.places; first += kBlock) {
        int64_t n = std::min(kBlock, p.places - first);
        block.fill(s, grid + (image * p.places + first) * s.dims, n);
        for (int64_t c = from; c < end; ++c)
          for (int64_t k = 0; k < s.taps(); ++k)
            for (int64_t i = 0; i < n; ++i) {
              T w = block.weight[size_t(k * kStep + i)];
              if (w != 0)
                images[c * p.pixels + block.index[size_t(k * kStep + i)]] +=
                    w * g[c * p.places + first + i];
            }
      }
    }
  });
}

template <class T>
void to_grid(const Sampler<T>& s, const Sampled& p, const T* images, const T* grid, const T* g,
             T* out) {
  parallel_for(p.batch * p.blocks, grain_of(kBlock * (p.channels + 8) * s.taps()),
               [&](int64_t lo, int64_t hi) {
                 Block<T> block(s, true);
                 std::vector<T> slopes(size_t(s.dims * kStep));
                 for (; lo < hi; ++lo) {
                   int64_t image = lo / p.blocks, first = lo % p.blocks * kBlock,
                           n = std::min(kBlock, p.places - first);
                   block.fill(s, grid + (image * p.places + first) * s.dims, n);
                   std::fill(slopes.begin(), slopes.end(), T(0));
                   for (int64_t c = image * p.channels; c < (image + 1) * p.channels; ++c)
                     AJ_SIMD(slope_block<T>)
                   (images + c * p.pixels, block.index.data(), block.change.data(),
                    g + c * p.places + first, size_t(s.dims), size_t(s.taps()), size_t(kStep),
                    size_t(n), slopes.data());
                   put_slopes(s, slopes, n, out + (image * p.places + first) * s.dims);
                 }
               });
}

void grid_sampler_backward(Args args) {
  TensorView grad = args.tensor(0), input = args.tensor(1), grid = args.tensor(2);
  MutView image_out = args.result(0), grid_out = args.result(1);
  Sampled p(input, grid);
  visit<stored_floating>(input.dtype(), [&]<class S>() {
    using T = Math<S>;
    Sampler<T> s(args, 3, input);
    Dense<T> g(grad), images(input), at(grid);
    bool rows = ByRows<T>::serves(s, p);
    if (args.bit(6, 0) && image_out.numel()) {
      Dense<T> to(image_out);
      auto images_of = rows ? &add_rows<T> : &to_images<T>;
      images_of(s, p, at.data(), g.data(), to.data());
      to.commit();
    }
    if (args.bit(6, 1) && grid_out.numel()) {
      Dense<T> to(grid_out);
      if (s.mode == Mode::kNearest)  // it stays the same nearby
        std::fill_n(to.data(), grid_out.numel(), T(0));
      else
        (rows ? &slope_rows<T> : &to_grid<T>)(s, p, images.data(), at.data(), g.data(), to.data());
      to.commit();
    }
  });
}

}  // namespace

AJ_KERNELS(grid_kernels) = {
    {"_::grid_sampler", custom<grid_sampler, stored_floating>},
    {"_::grid_sampler_backward", custom<grid_sampler_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
