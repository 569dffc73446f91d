// plugins/ops_statistics/histogram.cpp: elements counted by places in sorted ends.
#include <adjoin/kit/samples.hpp>
#include <cmath>

namespace adjoin::ops {
namespace {

struct Span {
  double low, high;
};

// The ends that were asked for, or the data's; never the same ones.
Span span_of(const Tensor& t, double low, double high, bool given, double around) {
  want(!given || low <= high, "the largest end must not be below the smallest: ", low, " and ",
       high);
  if (!given && t.numel()) {
    low = amin(t).item<double>();
    high = amax(t).item<double>();
  }
  want(std::isfinite(low) && std::isfinite(high), "the range from ", low, " to ", high,
       " is not finite");
  if (low == high) low -= around, high += around;
  return {low, high};
}

Tensor counted(const Tensor& place, const Tensor& inside, const Tensor& amount, int64_t bins) {
  Tensor amounts = where(inside, amount, number_of(amount, 0));
  return index_add_(zeros_of(amount, {bins}), 0, place, amounts);
}

// Is the data unlike for each sample of a batch, or each replay of a graph?
bool varies(const kit::Body& b, const Tensor& t) {
  return !t.has_memory() || b.call()->flags & AJ_CALL_CAPTURING;
}

// The smallest and the largest element, as tensors where they vary. A capture does not look.
std::pair<Tensor, Tensor> ends_of(const kit::Body& b, const Tensor& t, double around) {
  if (!(b.call()->flags & AJ_CALL_CAPTURING))
    see_values(t, [](const Tensor& values) {
      want(all(isfinite(values)).item<bool>(), "the range of the elements is not finite");
    });
  Tensor low = to(amin(t), float64), high = to(amax(t), float64);
  Tensor apart = to(eq(low, high), float64) * around;
  return {low - apart, high + apart};
}

Tensor counted_each(const kit::Body& b, const Tensor& t, int64_t bins, DLDataType wide) {
  auto [low, high] = ends_of(b, t, 1);
  Tensor scale = to(full({}, double(bins), float64, t.device()) / (high - low), wide);
  Tensor part = (to(t, wide) - to(low, wide)) * scale;
  Tensor amount = ones({1}, int64, t.device());
  Tensor counts = index_add(zeros({bins}, int64, t.device()), 0,
                            clamp(to(part, int64), 0, bins - 1), expand(amount, t.shape()));
  return to(counts, t.dtype());
}

}  // namespace

aj_status* histc_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor t = reshape(b.tensor(0).detach(), {-1});
    int64_t bins = b.integer(1);
    want(bins > 0, "bins must be positive: ", bins);
    want(!t.is_complex(), "complex numbers have no order");
    double low = b.real(2), high = b.real(3);
    want(low <= high, "max must be larger than min: ", high, " and ", low);
    DLDataType wide = t.dtype().bits <= 32 && t.is_floating_point() ? float32 : float64;
    if (low == high && t.numel() && varies(b, t)) return b.ret(0, counted_each(b, t, bins, wide));
    Span s = low == high ? span_of(t, low, high, !(low == 0 && high == 0) && t.numel() == 0, 1)
                         : Span{low, high};
    // On the processor a part at a time, which its caches hold.
    const int64_t n = t.numel(), most = t.device().device_type == kDLCPU ? 1 << 16 : n;
    Tensor counts = zeros({bins}, int64, t.device());
    for (int64_t at = 0; at < n; at += most) {
      Tensor x = to(cut(t, 0, at, std::min(n, at + most)), wide);
      Tensor inside = logical_and(ge(x, s.low), le(x, s.high));
      Tensor part = (where(inside, x, s.low) - s.low) * (double(bins) / (s.high - s.low));
      index_add_(counts, 0, clamp(to(part, int64), 0, bins - 1), to(inside, int64));
    }
    b.ret(0, to(counts, t.dtype()));
  });
}

namespace {

void histogram_of(const kit::Body& b, const Tensor& edges, const Tensor& weight, bool density) {
  const Tensor& input = b.tensor(0);
  Tensor t = reshape(input.detach(), {-1});
  want(edges.ndim() == 1 && edges.numel() > 1,
       "bins must be a vector of two ends at least, its shape is ", shown(edges));
  want(edges.dtype() == t.dtype(), "bins must be ", t.dtype(), ", they are ", edges.dtype());
  int64_t bins = edges.numel() - 1;
  Tensor last = select(edges, 0, bins);
  Tensor inside = logical_and(ge(t, select(edges, 0, 0)), le(t, last));
  Tensor place = clamp(search(edges, t, true) - 1, 0, bins - 1);
  Tensor amount = ones_like(t);
  if (weight.defined()) {
    want(std::ranges::equal(weight.shape(), input.shape()), "weight must have the shape ",
         shown(input), ", it has ", shown(weight));
    want(weight.dtype() == t.dtype(), "weight must be ", t.dtype(), ", it is ", weight.dtype());
    amount = reshape(weight.detach(), {-1});
  }
  Tensor hist = counted(place, inside, amount, bins);
  if (density) hist = hist / (sum(hist) * (cut(edges, 0, 1, bins + 1) - cut(edges, 0, 0, bins)));
  b.ret(0, hist);
  b.ret(1, edges);
}

// linspace between the elements' ends.
Tensor edges_each(const kit::Body& b, const Tensor& t, int64_t bins) {
  auto [low, high] = ends_of(b, t, 0.5);
  const int64_t half = (bins + 1) / 2;
  Tensor i = arange(0, bins + 1, 1, float64, t.device()), step = (high - low) / double(bins);
  Tensor upper = high - step * double(bins - half) + (i - half) * step;
  return to(where(lt(i, half), low + i * step, where(lt(i, bins), upper, high)), t.dtype());
}

}  // namespace

aj_status* histogram_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t bins = b.integer(1);
    want(bins > 0, "bins must be positive: ", bins);
    want(t.is_floating_point(), "input must be floating, it is ", t.dtype());
    Floats range = b.given(2) ? b.floats(2) : Floats();
    want(range.is_none() || range.size() == 2, "range must hold two numbers, it holds ",
         range.size());
    if (range.is_none() && t.numel() && varies(b, t))
      return histogram_of(b, edges_each(b, t, bins), b.tensor(3), b.flag(4));
    Span s = range.is_none() ? span_of(t, 0, t.numel() ? 0 : 1, t.numel() == 0, 0.5)
                             : span_of(t, range[0], range[1], true, 0.5);
    histogram_of(b, linspace(s.low, s.high, bins + 1, t.dtype(), t.device()), b.tensor(3),
                 b.flag(4));
  });
}

aj_status* histogram_edges_body(void*, aj_call* call) {
  return kit::compose(
      call, [](kit::Body& b) { histogram_of(b, b.tensor(1).detach(), b.tensor(2), b.flag(3)); });
}

}  // namespace adjoin::ops
