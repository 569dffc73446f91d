// plugins/ops_losses/margin.cpp: losses of classes with margins.
#include <adjoin/kit/losses.hpp>
#include <adjoin/kit/memory.hpp>
#include <algorithm>
#include <cmath>

namespace adjoin::ops {
namespace {

// (N, C) of what may come without N.
Tensor rows_of(const Tensor& t) {
  want(t.ndim() <= 2, "input must be (N, C) or (C), its shape is ", shown(t));
  return t.ndim() == 2 ? t : reshape(t, {1, t.numel()});  // a number is one class
}
Tensor classes_of(const Tensor& t, const Sizes& shape) {
  want(is_integral(t) && t.dtype() != boolean, "target classes must be int64, they are ",
       t.dtype());
  want(t.numel() == product(shape), "target must have shape ", shown(shape), ", it has ", shown(t));
  return reshape(to(t, int64), shape);
}

}  // namespace

aj_status* multi_margin_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    check_reduction(b.text(5));
    double p = b.real(2);
    if (p != 1 && p != 2)
      kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "p must be 1 or 2, it is ", p);
    const Tensor& weight = b.tensor(4);
    if (weight.defined() && weight.ndim() != 1)
      kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "weight must be a vector, its shape is ",
                    shown(weight));
    Tensor x = rows_of(b.tensor(0));
    int64_t rows = x.size(0), classes = x.size(1);
    Tensor target = classes_of(b.tensor(1), {rows, 1});
    want(!weight.defined() || weight.size(0) == classes,
         "weight must have one element for each of the ", classes, " classes");
    Tensor own;
    try {
      own = gather(x, 1, target);
    } catch (const kit::Error& e) {
      if (e.code() != AJ_OUT_OF_RANGE) throw;
      raise_target(target, classes);
    }
    Tensor near = clamp(b.real(3) - own + x, 0);
    if (p == 2) near = near * near;
    if (weight.defined())
      near = near * unsqueeze(index_select(weight, 0, reshape(target, {-1})), 1);
    Tensor other = ne(unsqueeze(counting(x, classes), 0), target);
    Tensor each = sum(where(other, near, number_of(near, 0)), {1}) / double(classes);
    b.ret(0, reduced(b.tensor(0).ndim() < 2 && b.tensor(1).ndim() == 0 ? squeeze(each, {0}) : each,
                     b.text(5)));
  });
}

namespace {

// The classes that each row of the target lists before its first -1, as places of columns (the
// first class, where the row lists no more), and which of the other classes each of them is
// compared with.
struct Listed {
  Tensor places;    // (rows, most)
  Tensor compared;  // (rows, most, classes)
};

Listed listed_on_host(const Tensor& target, int64_t classes) {
  const int64_t rows = target.size(0), width = target.size(1);
  const Tensor dense = contiguous(target);
  const int64_t* at = dense.data<int64_t>();
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t *row = at + i * width, *end = std::find_if(row, row + width, [&](int64_t k) {
      return k < 0 || k >= classes;
    });
    counts.push_back(end - row);
    if (std::any_of(end, row + width, [&](int64_t k) { return k < -1 || k >= classes; }))
      raise_target(target, classes, -1, "the end of a row");
  }
  const int64_t most = rows ? std::ranges::max(counts) : 0;
  Listed made{empty_dense({rows, most}, int64, target.device()),
              empty_dense({rows, most, classes}, boolean, target.device())};
  int64_t* places = made.places.data<int64_t>();
  bool* compared = made.compared.data<bool>();
  std::vector<char> other(static_cast<size_t>(classes));
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t* row = at + i * width;
    std::ranges::fill(other, 1);
    for (int64_t k = 0; k < counts[size_t(i)]; ++k) other[size_t(row[k])] = 0;
    for (int64_t k = 0; k < most; ++k, compared += classes) {
      const bool inside = k < counts[size_t(i)];
      *places++ = inside ? row[k] : 0;
      for (int64_t c = 0; c < classes; ++c) compared[c] = inside && other[size_t(c)];
    }
  }
  return made;
}

// looks: at the values of the target, which samples of a batch and captures do not have.
Listed listed_by_ops(const Tensor& x, const Tensor& target, bool looks) {
  const int64_t rows = x.size(0), classes = x.size(1);
  {
    NoGradGuard off;
    if (looks && any(logical_or(lt(target, -1), ge(target, classes))).item<bool>())
      raise_target(target, classes, -1, "the end of a row");
  }
  Tensor listed = eq(cumsum(to(lt(target, 0), int64), 1), 0);
  Tensor safe = where(listed, target, number_of(target, 0));
  Tensor hits = scatter_add_(filled(x, {rows, classes}, 0, int64), 1, safe, to(listed, int64));
  if (looks) {  // columns where no row lists a target add nothing
    int64_t most = amax(sum(listed, {1}), {}).item<int64_t>();
    listed = slice(listed, 1, 0, most);
    safe = slice(safe, 1, 0, most);
  }
  return {safe, logical_and(unsqueeze(listed, 2), unsqueeze(eq(hits, 0), 1))};
}

}  // namespace

aj_status* multilabel_margin_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    check_reduction(b.text(2));
    Tensor x = rows_of(b.tensor(0));
    int64_t rows = x.size(0), classes = x.size(1);
    if (b.tensor(0).ndim()) want_shape(b.tensor(1), "target", b.tensor(0).shape());
    Tensor target = classes_of(b.tensor(1), {rows, classes});
    const bool looks =
        target.has_memory() && has_values(target) && !(b.call()->flags & AJ_CALL_CAPTURING);
    auto [places, compared] = target.has_memory() && target.device().device_type == kDLCPU
                                  ? listed_on_host(target, classes)
                                  : listed_by_ops(x, target, looks);
    Tensor gap = unsqueeze(1 - gather(x, 1, places), 2) + unsqueeze(x, 1);
    Tensor each = sum(where(compared, clamp(gap, 0), number_of(gap, 0)), {1, 2}) / double(classes);
    b.ret(0, reduced(b.tensor(0).ndim() < 2 ? squeeze(each, {0}) : each, b.text(2)));
  });
}

aj_status* multilabel_soft_margin_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &target = b.tensor(1);
    want(x.ndim() > 0, "input must have a dimension of classes, it is a number");
    Tensor each = bce_logits_each(x, target);
    if (b.given(2)) each = each * b.tensor(2);
    b.ret(0, reduced(mean(each, {-1}), b.text(3)));
  });
}

}  // namespace adjoin::ops
