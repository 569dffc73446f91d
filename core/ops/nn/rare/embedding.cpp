// core/ops/nn/rare/embedding.cpp: rows of a table by index, and dropout.
#include <adjoin/kit/make.hpp>
#include <adjoin/kit/order.hpp>

#include "draw.hpp"

namespace adjoin::ops {
namespace {

Tensor to_index(const Tensor& t) {
  want(is_integral(t) && t.dtype().code != kDLBool, "indices must be integers, they are ",
       t.dtype(), "; use .long()");
  return t.dtype() == int64 ? t : to(t, int64);
}

// Rows in use that are longer than max_norm are shortened to it, in the table itself.
void renormalize(const Tensor& weight, const Tensor& indices, double max_norm, double norm_type) {
  NoGradGuard off;
  Tensor used = index_select(weight, 0, indices), length = vector_norm(used, norm_type, {1}, true);
  Tensor shorter = where(gt(length, max_norm), used * (max_norm / (length + 1e-7)), used);
  std::vector<Tensor> places{indices};
  index_put_(weight, places, shorter);
}

// The same rows; what comes back to one is divided by how often its index occurs. A product is
// recorded for that, and what it was multiplied to is overwritten, unrecorded, by the rows
// themselves.
Tensor shared_gradient(const Tensor& found, const Tensor& indices, int64_t rows) {
  Tensor times = gather(bincount(indices, Tensor(), rows), 0, indices);
  Tensor made = found * unsqueeze(reciprocal(to(times, found.dtype())), 1);
  copy_(made.detach(), found.detach());
  return made;
}

}  // namespace

aj_status* embedding_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& weight = b.tensor(1);
    want(weight.ndim() == 2, "'weight' must be 2-D, its shape is ", shown(weight));
    const bool sparse = b.flag(6) && weight.requires_grad() && kit::env.autograd->grad_mode();
    Tensor indices = to_index(b.tensor(0)), flat = reshape(indices, {-1});
    int64_t rows = weight.size(0), padding = -1;
    if (b.given(2)) {
      padding = b.integer(2);
      want(padding >= -rows && padding < rows,
           "padding_idx must be within the number of embeddings: ", padding,
           " is out of range for ", rows, " rows");
      if (padding < 0) padding += rows;
    }
    if (b.given(3)) renormalize(weight, flat, b.real(3), b.real(4));
    Sizes shape = sizes_of(indices);
    shape.push_back(weight.size(1));
    Tensor found = in_own_name([&] {
      return sparse ? embedding_rows_sparse(weight, flat, padding)
                    : embedding_rows(weight, flat, padding);
    });
    if (b.flag(5) &&
        ((found.requires_grad() && kit::env.autograd->grad_mode()) || !found.has_memory()))
      found = shared_gradient(found, flat, rows);
    b.ret(0, reshape(found, shape));
  });
}

aj_status* embedding_rows_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, in_own_name([&] { return index_select(b.tensor(0), 0, b.tensor(1)); }));
  });
}

namespace {

void check_embedding_backward(const Tensor& g, const Tensor& indices) {
  want(g.ndim() > 0, "grad must have the dimensions of indices and one more, it is a number");
  Sizes shape = sizes_of(indices);
  shape.push_back(g.size(-1));
  want_shape(g, "grad", shape);
}

}  // namespace

aj_status* embedding_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& g = c.tensor(0);
    check_embedding_backward(g, c.tensor(1));
    c.out(0, g.dtype(), Sizes{c.integer(2), g.size(-1)});
  });
}

aj_status* embedding_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    check_embedding_backward(b.tensor(0), b.tensor(1));
    Tensor indices = reshape(b.tensor(1), {-1}),
           g = reshape(b.tensor(0), {indices.numel(), b.tensor(0).size(-1)});
    int64_t padding = b.integer(3);
    if (padding >= 0) g = where(unsqueeze(ne(indices, padding), 1), g, number_of(g, 0));
    b.ret(0, index_add_(zeros_of(g, {b.integer(2), g.size(1)}), 0, indices, g));
  });
}

namespace {

void check_p(double p) {
  if (!(p >= 0 && p <= 1))
    kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "p must be between 0 and 1: ", p);
}

}  // namespace

aj_status* dropout_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    double p = b.real(1);
    check_p(p);
    if (!b.flag(2) || p == 0) return b.ret(0, t);
    auto [seed, offset] = draw_for(t, t.numel());
    if (b.flag(3))
      b.ret(0, dropout_philox_(t, p, seed, offset));
    else
      b.ret(0, in_order_of(t, dropout_philox(t, p, seed, offset)));
  });
}

aj_status* feature_dropout_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    double p = b.real(1);
    check_p(p);
    if (!b.flag(2) || p == 0) return b.ret(0, t);
    want(t.ndim() >= 2, "input must have batch and channels, its shape is ", shown(t));
    Sizes shape(size_t(t.ndim()), 1);
    shape[0] = t.size(0);
    shape[1] = t.size(1);
    Tensor ones = filled(t, shape, 1, t.dtype());
    auto [seed, offset] = draw_for(ones, ones.numel());
    Tensor mask = dropout_philox(ones, p, seed, offset);
    if (b.flag(3))
      b.ret(0, mul_(t, mask));
    else
      b.ret(0, t * mask);
  });
}

}  // namespace adjoin::ops
