// core/ops/rare/search.cpp: places in sorted sequences, and histograms by them.
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/make.hpp>
#include <cmath>

namespace adjoin::ops {

aj_status* search_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &s = c.tensor(0), &v = c.tensor(1);
    want(!s.is_complex(), "complex numbers have no order");
    want(s.dtype() == v.dtype(), "the sequence is ", s.dtype(), ", the values are ", v.dtype(),
         "; cast one with .to()");
    bool fits = s.ndim() == 1 || (s.ndim() == v.ndim() && s.ndim() > 0);
    for (int64_t d = 0; fits && s.ndim() > 1 && d < s.ndim() - 1; ++d)
      fits = s.size(d) == v.size(d);
    want(fits, "the sequence must be a vector or have the sizes of the values but for the last: ",
         shown(s), " and ", shown(v));
    c.out(0, int64, v.shape());
  });
}

// By halving, all values at once, where a device has no kernel.
aj_status* search_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &s = b.tensor(0), &v = b.tensor(1);
    bool right = b.flag(2);
    int64_t n = s.size(-1);
    Tensor low = zeros_like(v, int64), high = full_like(v, n, int64);
    for (int64_t width = n; width > 0; width /= 2) {
      Tensor middle = floor_divide(low + high, 2), open = lt(low, high);
      Tensor place = clamp(middle, 0, n - 1);
      Tensor item = s.ndim() == 1 ? reshape(index_select(s, 0, reshape(place, {-1})), v.shape())
                                  : gather(s, -1, place);
      Tensor after = logical_and(open, logical_not(right ? gt(item, v) : ge(item, v)));
      low = where(after, middle + 1, low);
      high = where(logical_and(open, logical_not(after)), middle, high);
    }
    b.ret(0, low);
  });
}

namespace {

// A number beside a tensor: of its dtype, unless that would take the number's fraction away, or say
// only whether it is 0.
Tensor beside(const Operand& x, const Tensor& like) {
  if (x.is_tensor()) return x.tensor();
  bool fraction = is_integral(like) && !x.number().is_integer();
  DLDataType whole = like.dtype() == boolean ? int64 : like.dtype();
  return full({}, x.number(), fraction ? kit::env.core->default_dtype() : whole, like.device());
}

Tensor search_of(const Tensor& sequence, const Operand& given, bool right, bool narrow) {
  Tensor values = beside(given, sequence), ordered = sequence.detach();
  DLDataType dtype = ordered.dtype();
  kit::check(kit::env.core->dtype_promote(dtype, values.dtype(), &dtype));
  ordered = to(ordered, dtype);
  values = to(values.detach(), dtype);
  bool flat = values.ndim() == 0 && sequence.ndim() == 1;
  Tensor found =
      in_own_name([&] { return search(ordered, flat ? reshape(values, {1}) : values, right); });
  if (flat) found = reshape(found, Sizes());
  return narrow ? to(found, int32) : found;
}

void want_narrow(const Tensor& sequence, bool narrow) {
  want(!narrow || (sequence.ndim() && sequence.size(-1) < int64_t(1) << 31),
       "out_int32 has no room for a sequence of ", sequence.ndim() ? sequence.size(-1) : 0);
}

}  // namespace

aj_status* searchsorted_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor sequence = b.tensor(0);
    bool right = b.flag(3);
    if (b.given(4)) {
      std::string_view side = b.text(4);
      want(side == "left" || side == "right", "side must be 'left' or 'right', it is '", side, "'");
      want(!(right && side == "left"), "side 'left' and right=True say opposite things");
      right = side == "right";
    }
    want_narrow(sequence, b.flag(2));
    if (b.given(5)) {
      const Tensor& sorter = b.tensor(5);
      want(std::ranges::equal(sorter.shape(), sequence.shape()), "sorter must have the shape ",
           shown(sequence), ", it has ", shown(sorter));
      want(sorter.dtype() == int64, "sorter must be int64, it is ", sorter.dtype());
      sequence = gather(sequence, -1, sorter);
    }
    b.ret(0, search_of(sequence, b.operand(1), right, b.flag(2)));
  });
}

aj_status* bucketize_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& boundaries = b.tensor(1);
    want(boundaries.ndim() == 1, "boundaries must be a vector, its shape is ", shown(boundaries));
    want_narrow(boundaries, b.flag(2));
    b.ret(0, search_of(boundaries, b.operand(0), b.flag(3), b.flag(2)));
  });
}

aj_status* isin_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Operand first = b.operand(0), second = b.operand(1);
    want(first.is_tensor() || second.is_tensor(), "one of both must be a tensor");
    Tensor x = beside(first, second.tensor()), y = beside(second, first.tensor());
    x = x.detach(), y = reshape(y.detach(), {-1});
    DLDataType dtype = x.dtype();
    kit::check(kit::env.core->dtype_promote(dtype, y.dtype(), &dtype));
    x = to(x, dtype), y = to(y, dtype);
    Tensor found;
    if (y.numel() == 0) {
      found = zeros_like(x, boolean);
    } else if (x.is_complex() || x.numel() <= 1024 / y.numel()) {  // few: no sort
      found = any(eq(unsqueeze(x, -1), y), -1);
    } else {
      Tensor sorted = std::get<0>(sort(y, 0)), flat = reshape(x, {-1});
      Tensor place = clamp(search(sorted, flat, false), 0, y.numel() - 1);
      found = reshape(eq(index_select(sorted, 0, place), flat), x.shape());
    }
    b.ret(0, b.flag(3) ? logical_not(found) : found);
  });
}

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
  return index_add(zeros_of(amount, {bins}), 0, place, amounts);
}

}  // namespace

aj_status* histc_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor t = reshape(b.tensor(0).detach(), {-1});
    int64_t bins = b.integer(1);
    want(bins > 0, "bins must be positive: ", bins);
    want(!t.is_complex(), "complex numbers have no order");
    double low = b.real(2), high = b.real(3);
    want(low <= high, "max must not be below min: ", high, " and ", low);
    Span s = low == high ? span_of(t, low, high, !(low == 0 && high == 0) && t.numel() == 0, 1)
                         : Span{low, high};
    DLDataType wide = t.dtype().bits <= 32 && t.is_floating_point() ? float32 : float64;
    Tensor x = to(t, wide), inside = logical_and(ge(x, s.low), le(x, s.high));
    Tensor part = (where(inside, x, s.low) - s.low) * (double(bins) / (s.high - s.low));
    Tensor place = clamp(to(part, int64), 0, bins - 1);
    b.ret(0, to(counted(place, inside, ones_like(place), bins), t.dtype()));
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
