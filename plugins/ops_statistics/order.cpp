// plugins/ops_statistics/order.cpp: distinct elements, modes and quantiles by sorting; running
// extremes.
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/memory.hpp>
#include <adjoin/kit/samples.hpp>
#include <limits>

namespace adjoin::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor vector_of(const Tensor& t) { return t.ndim() == 1 ? t : reshape(t, {-1}); }

struct Groups {
  Tensor first, inverse, counts;  // inverse in the order of the sorted elements
};

Groups groups_of(const Tensor& sorted, bool inverse, bool counts) {
  int64_t n = sorted.size(0);
  Tensor differ = ne(cut(sorted, 0, 1, n), cut(sorted, 0, 0, n - 1));
  if (sorted.ndim() > 1) differ = any(differ, 1);
  Groups g;
  Tensor begins = cat({ones({1}, boolean, sorted.device()), differ}, 0);
  g.first = reshape(nonzero(begins), {-1});
  if (inverse) g.inverse = cat({zeros({1}, int64, sorted.device()), cumsum(differ, 0)}, 0);
  if (counts) {
    Tensor end = full({1}, n, int64, sorted.device());
    g.counts = sub(cat({cut(g.first, 0, 1, g.first.numel()), end}, 0), g.first);
  }
  return g;
}

// The slices of dim as rows of a matrix.
Tensor rows_of(const Tensor& t, int64_t dim) {
  Tensor first = movedim(t, {dim}, {0});
  int64_t n = t.size(dim);
  return reshape(first, {n, n ? t.numel() / n : 0});
}

void none_of(const kit::Body& b, const Tensor& like, const Sizes& inverse) {
  b.ret(0, like);
  b.ret(1, empty(inverse, int64, like.device()));
  b.ret(2, empty({0}, int64, like.device()));
}

// The first of equal neighbours in one walk, without a jump. Integers alone: equal floats may
// differ in a sign.
template <class T>
Tensor first_of_equals(const Tensor& items) {
  const Tensor dense = contiguous(items);
  const int64_t n = dense.numel();
  Tensor out = empty_dense({n}, items.dtype(), items.device());
  const T* x = dense.data<T>();
  T* to = out.data<T>();
  int64_t last = 0, i = 1;
  to[0] = x[0];
  for (; i + 4 <= n; i += 4) {  // the compiler, asked for size, unrolls nothing
    const int64_t a = last + (x[i] != x[i - 1]), b = a + (x[i + 1] != x[i]),
                  c = b + (x[i + 2] != x[i + 1]), d = c + (x[i + 3] != x[i + 2]);
    to[a] = x[i], to[b] = x[i + 1], to[c] = x[i + 2], to[d] = x[i + 3];
    last = d;
  }
  for (; i < n; ++i) {
    last += x[i] != x[i - 1];
    to[last] = x[i];
  }
  return clone(cut(out, 0, 0, last + 1));
}
Tensor first_on_host(const Tensor& items) {
  switch (items.dtype().bits) {
    case 8:
      return first_of_equals<uint8_t>(items);
    case 16:
      return first_of_equals<uint16_t>(items);
    case 32:
      return first_of_equals<uint32_t>(items);
    default:
      return first_of_equals<uint64_t>(items);
  }
}

// order: where each of the sorted items stands in the input; not defined: they are as they came.
void distinct(const kit::Body& b, const Tensor& sorted, const Tensor& order, bool inverse,
              bool counts, std::optional<int64_t> dim) {
  const Tensor& t = b.tensor(0);
  if (!inverse && !counts && !dim && is_integral(t) && t.device().device_type == kDLCPU) {
    b.ret(0, first_on_host(sorted));
    b.ret(1, empty({0}, int64, t.device()));
    return b.ret(2, empty({0}, int64, t.device()));
  }
  Groups g = groups_of(sorted, inverse, counts);
  if (dim) {
    Tensor place = order.defined() ? index_select(order, 0, g.first) : g.first;
    b.ret(0, index_select(t, *dim, place));
  } else {
    b.ret(0, index_select(sorted, 0, g.first));
  }
  Tensor none = empty({0}, int64, t.device());
  if (inverse && order.defined()) g.inverse = scatter(order, 0, order, Operand(g.inverse));
  b.ret(1, !inverse ? none : dim ? g.inverse : reshape(g.inverse, t.shape()));
  b.ret(2, counts ? g.counts : none);
}

void unique_of(const kit::Body& b, bool sorts, uint32_t flags) {
  NoGradGuard off;
  Tensor t = b.tensor(0).detach();
  bool inverse = b.flag(flags), counts = b.flag(flags + 1);
  if (!b.given(flags + 2)) {
    if (t.numel() == 0) return none_of(b, vector_of(t), sizes_of(t));
    Tensor flat = vector_of(t);
    if (!sorts) return distinct(b, flat, Tensor(), inverse, counts, std::nullopt);
    auto [sorted, order] = sort(flat, 0, false, true);
    return distinct(b, sorted, order, inverse, counts, std::nullopt);
  }
  int64_t dim = b.integer(flags + 2);
  if (t.ndim() == 0) t = reshape(t, {1});
  if (t.size(dim) == 0) return none_of(b, t, {0});
  want(t.numel() > 0, "the slices of dimension ", dim, " of shape ", shown(t), " are empty");
  Tensor rows = rows_of(t, dim);
  if (!sorts) return distinct(b, rows, Tensor(), inverse, counts, dim);
  Tensor order = row_order(rows);
  distinct(b, index_select(rows, 0, order), order, inverse, counts, dim);
}

}  // namespace

aj_status* unique_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { unique_of(b, true, 2); });
}
aj_status* unique_consecutive_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { unique_of(b, false, 1); });
}

aj_status* row_order_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    want(t.ndim() == 2, "a matrix is wanted, the shape is ", shown(t));
    want(!t.is_complex(), "complex numbers have no order");
    c.out(0, int64, Sizes{t.size(0)});
  });
}

// Stable sorts by the last column first.
aj_status* row_order_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(!t.is_complex(), "complex numbers have no order");
    Tensor order = counting(t, t.size(0));
    for (int64_t c = t.size(1) - 1; c >= 0; --c) {
      Tensor column = index_select(select(t, 1, c), 0, order);
      order = index_select(order, 0, std::get<1>(sort(column, 0, false, true)));
    }
    b.ret(0, order);
  });
}

namespace {

// A reduced dimension's value and place, gathered so that the gradient goes straight there.
void ret_at(const kit::Body& b, const Tensor& t, const Tensor& place, int64_t dim, bool keepdim) {
  Tensor value = gather(t, dim, place);
  bool flat = b.tensor(0).ndim() == 0;
  if (flat || !keepdim) {
    b.ret(0, squeeze(value, dim));
    return b.ret(1, squeeze(place, dim));
  }
  b.ret(0, value);
  b.ret(1, place);
}

void check_mode(const Tensor& t, int64_t dim) {
  if (t.is_complex()) kit::raise(AJ_UNIMPLEMENTED, "complex numbers have no order");
  if (t.ndim() == 0 || t.size(dim) == 0)
    kit::raise(AJ_OUT_OF_RANGE, "dimension ", dim, " without elements has no mode");
}

}  // namespace

aj_status* mode_place_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    int64_t dim = c.integer(1);
    check_mode(t, dim);
    Sizes shape = sizes_of(t);
    shape[size_t(dim)] = 1;
    c.out(0, int64, shape);
  });
}

// The longest run of equal elements in the sorted line; argmax takes the first of several.
aj_status* mode_place_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    check_mode(t, b.integer(1));
    int64_t dim = b.integer(1), n = t.size(dim);
    auto [sorted, order] = sort(t, dim, false, true);
    Tensor differ = ne(cut(sorted, dim, 1, n), cut(sorted, dim, 0, n - 1));
    Sizes one(size_t(t.ndim()), 1), first = sizes_of(t);
    one[size_t(dim)] = n;
    first[size_t(dim)] = 1;
    Tensor places = reshape(counting(t, n), one);
    Tensor begins = where(cat({ones(first, boolean, t.device()), differ}, dim), places, 0);
    Tensor run = places - std::get<0>(cummax(begins, dim));
    b.ret(0, gather(order, dim, argmax(run, dim, true)));
  });
}

aj_status* mode_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor t = b.tensor(0).ndim() ? b.tensor(0) : unsqueeze(b.tensor(0), 0);
    int64_t dim = b.integer(1);
    ret_at(b, t, in_own_name([&] { return mode_place(t.detach(), dim); }), dim, b.flag(2));
  });
}

namespace {

// Place of the lower median of what is not NaN; NaN are sorted behind all else.
Tensor median_place(const Tensor& t, int64_t dim) {
  if (t.size(dim) == 0)
    kit::raise(AJ_OUT_OF_RANGE, "dimension ", dim, " without elements has no median");
  Tensor order = std::get<1>(sort(t, dim, false, true));
  Tensor good = sum(logical_not(isnan(t)), dim, true);
  return gather(order, dim, clamp(floor_divide(good - 1, 2), 0));
}

}  // namespace

aj_status* nanmedian_dim_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor t = b.tensor(0).ndim() ? b.tensor(0) : unsqueeze(b.tensor(0), 0);
    ret_at(b, t, median_place(t.detach(), b.integer(1)), b.integer(1), b.flag(2));
  });
}

namespace {

struct Ranks {
  Tensor below, above, weight;
};

// Where in a sorted line of `last` + 1 elements the parts q end.
Ranks ranks_of(const Tensor& at, std::string_view how, DLDataType dtype) {
  if (how == "linear") {
    Tensor below = floor(at.detach());
    return {to(below, int64), to(ceil(at.detach()), int64), to(at - below, dtype)};
  }
  Tensor place = at.detach();
  if (how == "midpoint") return {to(floor(place), int64), to(ceil(place), int64), Tensor()};
  place = how == "lower" ? floor(place) : how == "higher" ? ceil(place) : round(place);
  want(how == "lower" || how == "higher" || how == "nearest",
       "interpolation must be linear, lower, higher, midpoint or nearest: '", how, "'");
  return {to(place, int64), Tensor(), Tensor()};
}

Tensor parts_wanted(const kit::Body& b, const Tensor& t) {
  if (!b.tensor(1).defined()) {
    double q = b.real(1);
    want(q >= 0 && q <= 1, "q must be from 0 to 1: ", q);
    return full({}, q, float64, t.device());
  }
  const Tensor& q = b.tensor(1);
  want(q.ndim() <= 1, "q must be a number or a vector, its shape is ", shown(q));
  want(q.dtype() == t.dtype(), "q must be ", t.dtype(), ", it is ", q.dtype());
  if (b.call()->flags & AJ_CALL_CAPTURING) return q;  // a capture does not look
  see_values(q, [](const Tensor& values) {
    want(values.numel() == 0 ||
             (amin(values).item<double>() >= 0 && amax(values).item<double>() <= 1),
         "q must be from 0 to 1");
  });
  return q;
}

void quantile_of(const kit::Body& b, bool skips_nan) {
  const Tensor& t = b.tensor(0);
  want(t.is_floating_point(), "input must be floating, it is ", t.dtype());
  want(t.numel() > 0, "a tensor without elements has no quantiles");
  Tensor q = parts_wanted(b, t);
  bool flat = !b.given(2) || t.ndim() == 0;
  int64_t dim = flat ? 0 : b.integer(2);
  Tensor lines = flat ? vector_of(t) : movedim(t, {dim}, {-1});
  Tensor sorted = std::get<0>(sort(lines, -1));
  Tensor bad = isnan(sorted.detach());
  Tensor last = skips_nan ? clamp(sum(logical_not(bad), -1, true) - 1, 0)
                          : full({1}, lines.size(-1) - 1, int64, t.device());
  Tensor at = to(vector_of(q), float64) * last;
  if (!skips_nan)
    at = where(select(bad, -1, -1).ndim() ? unsqueeze(select(bad, -1, -1), -1)
                                          : reshape(select(bad, -1, -1), {1}),
               last, at);
  Sizes wide = sizes_of(lines);
  wide.back() = q.numel();
  Ranks r = ranks_of(expand(at, wide), b.text(4), t.dtype());
  Tensor out = gather(sorted, -1, r.below);
  if (r.above.defined()) {
    Tensor above = gather(sorted, -1, r.above);
    out = r.weight.defined() ? lerp(out, above, r.weight) : lerp(out, above, 0.5);
  }
  Sizes kept = sizes_of(t);
  for (int64_t d = 0; d < t.ndim(); ++d)
    if (flat || d == dim) kept[size_t(d)] = 1;
  out = movedim(out, {-1}, {0});
  if (b.flag(3)) {
    kept.insert(kept.begin(), q.numel());
    out = reshape(out, kept);
  }
  b.ret(0, q.ndim() == 0 ? squeeze(out, 0) : out);
}

}  // namespace

aj_status* quantile_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { quantile_of(b, false); });
}
aj_status* nanquantile_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { quantile_of(b, true); });
}

aj_status* running_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    want(!t.is_complex(), "complex numbers have no order");
    c.out(0, t.dtype(), t.shape());
    c.out(1, int64, t.shape());
  });
}
aj_status* log_sums_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    want(c.tensor(0).is_floating_point(), "floating-point numbers are wanted, input is ",
         c.tensor(0).dtype());
    c.out(0, c.tensor(0).dtype(), c.tensor(0).shape());
  });
}

namespace {

// Combines each element with the one `step` before it, steps doubling: log n passes.
template <class F>
void doubling(const Tensor& t, int64_t dim, F&& f) {
  int64_t n = t.ndim() ? t.size(dim) : 1;
  for (int64_t step = 1; step < n; step *= 2) f(step, n);
}

aj_status* running_extreme(aj_call* call, bool largest) {
  return kit::compose(call, [=](kit::Body& b) {
    Tensor values = b.tensor(0);
    want(!values.is_complex(), "complex numbers have no order");
    int64_t dim = b.integer(1);
    Sizes one(size_t(values.ndim()), 1);
    if (values.ndim()) one[size_t(dim)] = values.size(dim);
    Tensor places = expand(reshape(counting(values, values.ndim() ? values.size(dim) : 1), one),
                           values.shape());
    doubling(values, dim, [&](int64_t step, int64_t n) {
      Tensor before = cut(values, dim, 0, n - step), here = cut(values, dim, step, n);
      Tensor better = largest ? gt(before, here) : lt(before, here);
      if (values.is_floating_point())
        better = logical_and(logical_or(better, isnan(before)), logical_not(isnan(here)));
      Tensor kept = where(better, before, here);
      Tensor place = where(better, cut(places, dim, 0, n - step), cut(places, dim, step, n));
      values = cat({cut(values, dim, 0, step), kept}, dim);
      places = cat({cut(places, dim, 0, step), place}, dim);
    });
    b.ret(0, clone(values));
    b.ret(1, clone(places, MemoryFormat::contiguous));
  });
}

}  // namespace

aj_status* cummax_body(void*, aj_call* call) { return running_extreme(call, true); }
aj_status* cummin_body(void*, aj_call* call) { return running_extreme(call, false); }

aj_status* logcumsumexp_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    // By pairs: an early sum may be far below a later one.
    if (t.is_complex() && t.ndim() && t.numel()) {
      Tensor sums = clone(t);
      int64_t dim = b.integer(1);
      doubling(sums, dim, [&](int64_t step, int64_t n) {
        Tensor joined = logaddexp(cut(sums, dim, 0, n - step), cut(sums, dim, step, n));
        sums = cat({cut(sums, dim, 0, step), joined}, dim);
      });
      return b.ret(0, sums);
    }
    if (t.is_complex()) return b.ret(0, clone(t));
    b.ret(0, log_sums(is_integral(t) ? to(t, kit::env.core->default_dtype()) : t, b.integer(1)));
  });
}

aj_status* log_sums_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor sums = clone(b.tensor(0));
    int64_t dim = b.integer(1);
    doubling(sums, dim, [&](int64_t step, int64_t n) {
      Tensor joined = logaddexp(cut(sums, dim, 0, n - step), cut(sums, dim, step, n));
      sums = cat({cut(sums, dim, 0, step), joined}, dim);
    });
    b.ret(0, sums);
  });
}

// exp(x) times the sum over later places of g exp(-out), for both signs of g by logarithms.
aj_status* log_sums_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &g = d.grad(0), &x = d.tensor(0), &out = d.tensor(1);
    if (x.ndim() == 0) return d.set(0, g);
    int64_t dim = d.integer(2);
    auto part = [&](const Tensor& sign) {
      Tensor some = logical_and(gt(sign, 0), gt(out, -kInf));
      Tensor terms = where(some, log(where(some, sign, 1)) - out, -kInf);
      return exp(flip(log_sums(flip(terms, dim), dim), dim) + x);
    };
    d.set(0, part(g) - part(-g));
  });
}

}  // namespace adjoin::ops
