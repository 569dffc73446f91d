// core/ops/rare/select.cpp: picking by masks, flat places and order, by other ops.
#include <adjoin/kit/fits.hpp>
#include <adjoin/kit/samples.hpp>

namespace adjoin::ops {

aj_status* masked_fill_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Operand value = b.operand(2);
    want(value.shape().empty(), "value must be a number or a 0-dim tensor, its shape is ",
         shown(value.shape()));
    broadcast(b.tensor(1).shape(), t.shape());
    if (!value.is_tensor()) return b.ret(0, where(b.tensor(1), number_of(t, value.number()), t));
    b.ret(0, where(b.tensor(1), fitting(value.tensor(), t), t));
  });
}

aj_status* masked_select_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Sizes shape = broadcast(b.tensor(0).shape(), b.tensor(1).shape());
    Tensor t = expand(b.tensor(0), shape), mask = expand(b.tensor(1), shape);
    if (shape.empty()) t = unsqueeze(t, 0), mask = unsqueeze(mask, 0);
    std::vector<Tensor> indices{mask};
    b.ret(0, index(t, indices));
  });
}

namespace {

void check_masked_put(const kit::Values& c) {
  const Tensor &t = c.tensor(0), &source = c.tensor(2);
  want_shape(c.tensor(1), "mask", t.shape());
  want(t.dtype() == source.dtype(), "source must be ", t.dtype(), ", it is ", source.dtype());
}

void want_source(int64_t n, const Tensor& source) {
  want(source.numel() >= n, "mask takes ", n, " elements, source has ", source.numel());
}

// No shape depends on how many elements the mask takes, which may differ between samples, or
// between replays of a graph: each place has the source's element of its rank among those that the
// mask takes. A capture does not look.
Tensor put_by_ranks(const Tensor& t, const Tensor& mask, const Tensor& source, bool captured) {
  const int64_t n = t.numel();
  if (n == 0) return clone(t);
  if (!captured)
    see_values(mask, [&](const Tensor& masks) {
      if (masks.numel()) want_source(amax(sum(reshape(masks, {-1, n}), 1)).item<int64_t>(), source);
    });
  if (source.numel() == 0) return clone(t);
  Tensor ranks = clamp(cumsum(reshape(mask, {-1}), 0) - 1, 0, source.numel() - 1);
  return where(mask, reshape(gather(reshape(source, {-1}), 0, ranks), t.shape()), t);
}

}  // namespace

aj_status* masked_put_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    check_masked_put(c);
    c.out(0, c.tensor(0).dtype(), c.tensor(0).shape());
  });
}

aj_status* masked_put_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &source = b.tensor(2);
    check_masked_put(b);
    const bool captured = b.call()->flags & AJ_CALL_CAPTURING;
    if (captured || !b.tensor(1).has_memory())
      return b.ret(0, put_by_ranks(t, b.tensor(1), source, captured));
    std::vector<Tensor> places = unbind(nonzero(reshape(b.tensor(1), {-1})), 1);
    int64_t n = places[0].numel();
    want_source(n, source);
    Tensor values = cut(reshape(source, {-1}), 0, 0, n);
    b.ret(0, reshape(index_put(reshape(t, {-1}), places, values), t.shape()));
  });
}

aj_status* masked_scatter_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &mask = b.tensor(1);
    Sizes shape = broadcast(t.shape(), mask.shape());
    b.ret(0, in_own_name(
                 [&] { return masked_put(expand(t, shape), expand(mask, shape), b.tensor(2)); }));
  });
}

aj_status* take_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    std::vector<Tensor> indices{b.tensor(1)};
    b.ret(0, index(reshape(b.tensor(0), {-1}), indices));
  });
}

aj_status* take_along_dim_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &indices = b.tensor(1);
    // gather counts from the front alone. What lies before the first element stays as it was given.
    auto counted = [](const Tensor& places, int64_t n) {
      return where(logical_and(lt(places, 0), ge(places, -n)), places + Scalar(n), places);
    };
    if (!b.given(2))
      return b.ret(0, gather(reshape(t, {-1}), 0, counted(reshape(indices, {-1}), t.numel())));
    int64_t d = b.integer(2);
    want(t.ndim() == indices.ndim(),
         "input and indices should have the same number of dimensions: ", shown(t), " and ",
         shown(indices));
    Sizes a = sizes_of(t), i = sizes_of(indices);
    a[d] = i[d] = 1;
    Sizes common = broadcast(a, i);
    Sizes wide = common, wide_index = common;
    wide[d] = t.size(d);
    wide_index[d] = indices.size(d);
    b.ret(0, gather(expand(t, wide), d, expand(counted(indices, t.size(d)), wide_index)));
  });
}

aj_status* where_nonzero_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    b.ret(0, unbind(nonzero(t.ndim() ? t : unsqueeze(t, 0)), 1));
  });
}

aj_status* argsort_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, std::get<1>(sort(b.tensor(0).detach(), b.integer(1), b.flag(2), b.flag(3))));
  });
}

aj_status* msort_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, std::get<0>(sort(b.tensor(0), 0))); });
}

aj_status* count_nonzero_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    b.ret(0, sum(t.dtype() == boolean ? t : ne(t, 0), b.ints(1)));
  });
}

aj_status* bincount_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &weights = b.tensor(1);
    if (!is_integral(t))
      kit::raise(AJ_UNIMPLEMENTED, "a vector of integers is wanted, this is ", t.dtype(), " ",
                 shown(t));
    want(t.ndim() == 1, "a vector is wanted, the shape is ", shown(t));
    want(!weights.defined() || std::ranges::equal(weights.shape(), t.shape()),
         "weights must have input's shape ", shown(t));
    Tensor places = to(t, int64);
    int64_t n = b.integer(2);
    if (t.numel() > 0)
      see_values(places, [&](const Tensor& values) {
        if (!values.numel()) return;
        want(amin(values).item<int64_t>() >= 0, "input has negative elements");
        Tensor most = amax(reshape(values, {-1, t.numel()}), 1);  // of each sample
        int64_t largest = amax(most).item<int64_t>() + 1;
        want(largest <= n || amin(most).item<int64_t>() + 1 == largest,
             "the samples have results of different lengths, up to ", largest,
             "; give minlength=", largest);
        n = std::max(n, largest);
      });
    Tensor amounts = !weights.defined() ? expand(ones({1}, int64, t.device()), places.shape())
                     : weights.is_floating_point() ? weights
                                                   : to(weights, float64);
    b.ret(0, scatter_add_(zeros_of(amounts, {n}), 0, places, amounts));
  });
}

}  // namespace adjoin::ops
