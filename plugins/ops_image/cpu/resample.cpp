// plugins/ops_image/cpu/resample.cpp: images resized and averaged over volumes: each line along the
// last dimension first, then sums of lines.
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/resample.hpp>
#include <adjoin/kit/view.hpp>

#include "plane.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_image/cpu/resample.cpp"
#include "vector/simd.hpp"
// after it, once per target
#include "vector/lanes.hpp"

#ifndef ADJOIN_PLUGINS_OPS_IMAGE_CPU_RESAMPLE_CPP
#define ADJOIN_PLUGINS_OPS_IMAGE_CPU_RESAMPLE_CPP
namespace adjoin::cpu {

// One tap of the outputs of a vector: the places that they read start at `base`, and lie within so
// many vectors; more than two are gathered.
struct Reach {
  int64_t base, vectors;
};

// A line made of another one: tap by tap where each output reads, counted from its vector's base,
// and what that weighs. Rows of both lie `step` apart; `reach` has one for each tap and vector.
template <class T>
struct LineTaps {
  const Offset<T>* index;
  const T* weight;  // NULL: the one tap as it stands
  const Reach* reach;
  size_t taps, step, in, out;
};

}  // namespace adjoin::cpu
#endif

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

template <class T>
size_t lanes_of() {
  return hn::Lanes(hn::ScalableTag<T>());
}

// Neighbouring outputs read neighbouring inputs: a vector or two of those, put in order, are much
// faster than gathering. A weight of zero hides what it is multiplied with.
template <class T>
void make_line(const LineTaps<T>& t, const T* in, T* to) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t lanes = hn::Lanes(d), vectors = (t.out + lanes - 1) / lanes;
  auto read = [&](size_t k, size_t v) HWY_ATTR {
    const Reach reach = t.reach[k * vectors + v];
    const T* from = in + reach.base;
    auto index = hn::LoadU(di, t.index + k * t.step + v * lanes);
    if (reach.vectors > 2) return hn::GatherIndex(d, from, index);
    const size_t left = t.in - size_t(reach.base);
    const auto last = hn::Set(di, Offset<T>(lanes - 1));
    auto order = hn::IndicesFromVec(d, hn::And(index, last));
    auto near = hn::TableLookupLanes(load_n(d, from, left), order);
    if (reach.vectors == 1) return near;
    auto far = hn::TableLookupLanes(load_n(d, from + lanes, left - lanes), order);
    return hn::IfThenElse(hn::RebindMask(d, hn::Gt(index, last)), far, near);
  };
  for (size_t v = 0; v < vectors; ++v) {
    const size_t o = v * lanes;
    if (!t.weight) {
      store_n(read(0, v), d, to + o, t.out - o);
      continue;
    }
    auto sum = hn::Zero(d);
    for (size_t k = 0; k < t.taps; ++k) {
      auto w = hn::LoadU(d, t.weight + k * t.step + o);
      sum = hn::Add(sum, hn::IfThenZeroElse(hn::Eq(w, hn::Zero(d)), hn::Mul(w, read(k, v))));
    }
    store_n(sum, d, to + o, t.out - o);
  }
}

// to = sum of weight[k] * lines[k], over n elements.
template <class T>
void blend_lines(const T* const* lines, const T* weight, size_t taps, size_t n, T* to) {
  const hn::ScalableTag<T> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    auto sum = hn::Zero(d);
    for (size_t k = 0; k < taps; ++k)
      sum = hn::Add(sum, hn::Mul(hn::Set(d, weight[k]), load_n(d, lines[k] + i, n - i)));
    store_n(sum, d, to + i, n - i);
  }
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

template <class T>
struct Axis {
  using Int = Offset<T>;
  Taps taps;
  int64_t in, out, reach = 1;  // reach: how many neighbouring inputs one output needs
  bool identity, picks;
  size_t step, most;
  std::vector<Int> index;  // tap by tap, for lines
  std::vector<T> weight, by;
  std::vector<Reach> reaches;

  Axis(Taps t, int64_t size, double scale = 1) : taps(std::move(t)), in(size), out(taps.size()) {
    for (double& w : taps.weight) w *= scale;
    identity = taps.is_identity(in);
    picks = taps.picks();
    constexpr size_t slack = 64;
    step = size_t(out) + slack;
    most = size_t(taps.most());
    index.assign(most * step, 0);
    weight.assign(most * step, T(0));
    by.assign(taps.weight.begin(), taps.weight.end());
    Int near = 0;  // what has fewer taps reads, with a weight of zero, what it read last
    for (size_t o = 0; o < size_t(out); ++o) {
      int64_t low = in, high = -1;
      for (size_t k = size_t(taps.start[o]), j = 0; k < size_t(taps.start[o + 1]); ++k, ++j) {
        index[j * step + o] = near = Int(taps.index[k]);
        weight[j * step + o] = by[k];
        low = std::min(low, taps.index[k]);
        high = std::max(high, taps.index[k]);
      }
      reach = std::max(reach, high - low + 1);
      for (auto j = size_t(taps.start[o + 1] - taps.start[o]); j < most; ++j)
        index[j * step + o] = near;
    }
    set_reaches();
  }
  void line(const T* from, T* to) const {
    AJ_SIMD(make_line<T>)
    (LineTaps<T>{index.data(), picks ? nullptr : weight.data(), reaches.data(), most, step,
                 size_t(in), size_t(out)},
     from, to);
  }
  // Indices become distances from the least one of their vector.
  void set_reaches() {
    const size_t lanes = AJ_SIMD(lanes_of<T>)();
    for (size_t k = 0; k < most; ++k)
      for (size_t o = 0; o < size_t(out); o += lanes) {
        auto begin = index.begin() + ptrdiff_t(k * step + o),
             end = begin + ptrdiff_t(std::min(lanes, size_t(out) - o));
        auto [low, high] = std::minmax_element(begin, end);
        const Int base = *low;
        reaches.push_back({int64_t(base), int64_t(size_t(*high - base) / lanes) + 1});
        std::for_each(begin, end, [&](Int& i) { i -= base; });
      }
  }
  // to = output o of lines that lie `n` apart; get(i) is line i.
  template <class Get>
  void blend(int64_t o, size_t n, Get get, std::vector<const T*>& lines, std::vector<T>& w,
             T* to) const {
    lines.clear();
    w.clear();
    for (size_t k = size_t(taps.start[size_t(o)]); k < size_t(taps.start[size_t(o) + 1]); ++k)
      if (by[k] != 0) lines.push_back(get(taps.index[k])), w.push_back(by[k]);
    if (lines.size() == 1 && w[0] == 1)
      std::copy_n(lines[0], n, to);
    else
      AJ_SIMD(blend_lines<T>)(lines.data(), w.data(), lines.size(), n, to);
  }
};

// Lines that were made, by input line: as many as one output reaches.
template <class T>
struct LineCache {
  LineCache(const Axis<T>& h, const Axis<T>& w)
      : height(h), width(w), made(size_t(h.reach), -1), lines(size_t(h.reach * w.out)) {}

  const T* line(const T* image, int64_t i) {
    const T* from = image + i * width.in;
    if (width.identity) return from;
    size_t slot = size_t(i % height.reach);
    T* to = lines.data() + slot * size_t(width.out);
    if (made[slot] != i) width.line(from, to), made[slot] = i;
    return to;
  }
  void rows(const T* image, int64_t lo, int64_t hi, T* to) {
    if (height.picks) return pick_rows(image, lo, hi, to);
    if (height.out < height.in && !width.identity) return blend_first(image, lo, hi, to);
    std::fill(made.begin(), made.end(), -1);
    for (; lo < hi; ++lo, to += width.out)
      height.blend(
          lo, size_t(width.out), [&](int64_t i) { return line(image, i); }, sources, weights, to);
  }

 private:
  // Neighbouring outputs are often one and the same line.
  void pick_rows(const T* image, int64_t lo, int64_t hi, T* to) {
    for (int64_t last = -1; lo < hi; ++lo, to += width.out) {
      int64_t at = height.taps.index[size_t(lo)];
      if (at == last)
        std::copy_n(to - width.out, width.out, to);
      else if (width.identity)
        std::copy_n(image + at * width.in, width.in, to);
      else
        width.line(image + at * width.in, to);
      last = at;
    }
  }
  // Where rows become fewer, sums of them come first, for they are read in order.
  void blend_first(const T* image, int64_t lo, int64_t hi, T* to) {
    lines.resize(size_t(width.in));
    for (; lo < hi; ++lo, to += width.out) {
      height.blend(
          lo, size_t(width.in), [&](int64_t i) { return image + i * width.in; }, sources, weights,
          lines.data());
      width.line(lines.data(), to);
    }
  }

  const Axis<T>&height, &width;
  std::vector<int64_t> made;
  std::vector<T> lines, weights;
  std::vector<const T*> sources;
};

template <class T>
void resize(const Axis<T>& depth, const Axis<T>& height, const Axis<T>& width, int64_t planes,
            const T* in, T* out) {
  int64_t image = height.in * width.in, made = height.out * width.out;
  if (depth.identity) {
    constexpr int64_t block = 64;  // output rows of one task
    int64_t blocks = (height.out + block - 1) / block;
    parallel_for(planes * depth.in * blocks, grain_of(block * (width.out + width.in)),
                 [&](int64_t lo, int64_t hi) {
                   LineCache<T> lines(height, width);
                   for (; lo < hi; ++lo) {
                     int64_t first = lo % blocks * block;
                     lines.rows(in + lo / blocks * image, first,
                                std::min(first + block, height.out),
                                out + lo / blocks * made + first * width.out);
                   }
                 });
    return;
  }
  if (depth.out < depth.in) {
    parallel_for(planes * depth.out, grain_of(image), [&](int64_t lo, int64_t hi) {
      LineCache<T> lines(height, width);
      std::vector<T> sum(static_cast<size_t>(image));
      std::vector<const T*> sources;
      std::vector<T> weights;
      for (; lo < hi; ++lo) {
        const T* volume = in + lo / depth.out * depth.in * image;
        depth.blend(
            lo % depth.out, size_t(image), [&](int64_t i) { return volume + i * image; }, sources,
            weights, sum.data());
        lines.rows(sum.data(), 0, height.out, out + lo * made);
      }
    });
    return;
  }
  parallel_for(planes, 1, [&](int64_t lo, int64_t hi) {
    LineCache<T> lines(height, width);
    std::vector<T> volume(size_t(depth.in * made));
    std::vector<const T*> sources;
    std::vector<T> weights;
    for (; lo < hi; ++lo) {
      for (int64_t d = 0; d < depth.in; ++d)
        lines.rows(in + (lo * depth.in + d) * image, 0, height.out, volume.data() + d * made);
      for (int64_t d = 0; d < depth.out; ++d)
        depth.blend(
            d, size_t(made), [&](int64_t i) { return volume.data() + i * made; }, sources, weights,
            out + (lo * depth.out + d) * made);
    }
  });
}

// make(dimension of three, inputs, outputs) gives the taps.
template <class Make>
void resize_by(Args args, bool backward, int64_t dims, Make make, double scale = 1) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  if (out.numel() == 0) return;
  int64_t planes = 1;
  for (int64_t d = 0; d < x.ndim() - dims; ++d) planes *= x.size(d);
  visit<stored_floating>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    auto axis = [&](int64_t d) {
      int64_t at = d - 3 + dims;  // of the spatial dimensions
      if (at < 0) return Axis<T>(average_taps(1, 1, 1, 1, 0, true, false), 1);
      int64_t from = x.size(x.ndim() - dims + at), to = out.size(x.ndim() - dims + at);
      Taps taps = make(at, backward ? to : from, backward ? from : to);
      return Axis<T>(backward ? taps.transposed(to) : std::move(taps), from, d == 2 ? scale : 1);
    };
    Axis<T> depth = axis(0), height = axis(1), width = axis(2);
    Dense<T> in(x), result(out);
    resize(depth, height, width, planes, in.data(), result.data());
    result.commit();
  });
}

template <bool Backward>
void resample(Args args) {
  resize_by(args, Backward, int64_t(args[4].aux), resampling_taps_of(args));
}

template <bool Backward>
void average(Args args) {
  double scale = args.none(6) ? 1 : 1 / double(args.integer(6));
  resize_by(args, Backward, 3, average_taps_of(args), scale);
}

}  // namespace

AJ_KERNELS(resample_kernels) = {
    {"_::average", custom<average<false>, stored_floating>},
    {"_::average_backward", custom<average<true>, stored_floating>},
    {"_::resample", custom<resample<false>, stored_floating>},
    {"_::resample_backward", custom<resample<true>, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
