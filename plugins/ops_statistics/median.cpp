// plugins/ops_statistics/median.cpp: medians and k-th smallest elements.
#include <adjoin/kit/losses.hpp>
#include <cmath>

namespace adjoin::ops {
namespace {

// The k-th smallest of a dimension: the last of the k smallest, however those stand. When NaN wins,
// the first one does.
std::pair<Tensor, Tensor> kth(const Tensor& input, int64_t k, int64_t d, bool keepdim,
                              bool nan_wins) {
  Tensor t = input.ndim() ? input : unsqueeze(input, 0), seen = t.detach();
  int64_t n = t.size(d);
  if (n == 0) kit::raise(AJ_OUT_OF_RANGE, "dimension ", d, " without elements has no k-th one");
  want(k >= 1 && k <= n, "k must be between 1 and the dimension's size ", n, ": ", k);
  Tensor index = cut(std::get<1>(topk(seen, k, d, false, false)), d, k - 1, k);
  if (nan_wins && t.is_floating_point() && t.numel()) {
    Tensor largest = argmax(seen, d, true);
    index = where(isnan(gather(seen, d, largest)), largest, index);
  }
  Tensor value = gather(t, d, index);
  if (!keepdim || input.ndim() == 0) value = select(value, d, 0), index = select(index, d, 0);
  return {value, index};
}

}  // namespace

aj_status* kthvalue_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto [value, index] = kth(b.tensor(0), b.integer(1), b.integer(2), b.flag(3), false);
    b.ret(0, value);
    b.ret(1, index);
  });
}

namespace {

// Or a tensor of a transform, which may stand for one.
bool recorded(const Tensor& t) {
  return (t.requires_grad() && kit::env.autograd->grad_mode()) || !t.has_memory();
}

// The median that was found in t, which all elements of `candidates` are at most: its gradient is
// shared by its equals.
Tensor shared_by_equals(const Tensor& t, const Tensor& candidates) {
  return amax(where(candidates, t, number_of(t, -INFINITY)));
}

Tensor number_without_elements(const Tensor& t) {
  return to(full(Sizes(), double(NAN), float64, t.device()), t.dtype());
}

}  // namespace

aj_status* median_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor flat = reshape(b.tensor(0), {-1}), seen = flat.detach();
    if (flat.numel() == 0) return b.ret(0, number_without_elements(flat));
    Tensor found = kth(seen, (flat.numel() + 1) / 2, 0, false, true).first;
    // A median that is NaN has no element above it: all stay.
    b.ret(0, recorded(flat) ? shared_by_equals(flat, logical_not(gt(seen, found))) : found);
  });
}

aj_status* nanmedian_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor flat = reshape(b.tensor(0), {-1}), seen = flat.detach();
    if (flat.numel() == 0) return b.ret(0, number_without_elements(flat));
    if (!has_values(seen)) return b.ret(0, reshape(cut(flat, 0, 0, 1), Sizes()));
    const bool captured = b.call()->flags & AJ_CALL_CAPTURING;
    if (captured || !seen.has_memory()) {  // the place differs between replays or samples
      Tensor good = sum(logical_not(isnan(seen)), 0, true);
      Tensor at = clamp(floor_divide(good - 1, 2), 0);
      Tensor found = gather(std::get<0>(sort(seen, 0)), 0, at);
      Tensor median = shared_by_equals(flat, le(seen, found));
      if (flat.is_floating_point())
        median = where(reshape(isnan(found), Sizes()), mean(flat), median);
      return b.ret(0, median);
    }
    int64_t good = sum(logical_not(isnan(seen))).item<int64_t>(),
            k = std::max<int64_t>(good + 1, 2) / 2;
    Tensor place = cut(std::get<1>(topk(seen, k, 0, false, false)), 0, k - 1, k);
    if (!recorded(flat)) return b.ret(0, reshape(gather(flat, 0, place), Sizes()));
    // All are NaN: so is their median, which is each one's.
    b.ret(0, good ? shared_by_equals(flat, le(seen, gather(seen, 0, place))) : mean(flat));
  });
}

aj_status* median_dim_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t d = b.integer(1), n = t.ndim() ? t.size(d) : 1;
    if (n == 0) kit::raise(AJ_OUT_OF_RANGE, "dimension ", d, " without elements has no median");
    auto [value, index] = kth(t, (n + 1) / 2, d, b.flag(2), true);
    b.ret(0, value);
    b.ret(1, index);
  });
}

}  // namespace adjoin::ops
