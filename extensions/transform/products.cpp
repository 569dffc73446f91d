// extensions/transform/products.cpp: rules of matrix products: one larger product, or a batch of
// them.
#include <adjoin/kit/ops.hpp>

#include "written.hpp"

namespace adjoin::transform {
namespace {

int64_t at(const Tensor& t, int64_t d) { return t.shape()[size_t(d < 0 ? t.ndim() + d : d)]; }

// Samples of matrices times matrices: [B, n, k] or [n, k] by [B, k, m] or [k, m].
Tensor product(const Tensor& a, bool a_batched, const Tensor& b, bool b_batched, int64_t size) {
  if (!b_batched) {  // the samples' rows one below the other
    const int64_t n = at(a, 1), k = at(a, 2);
    return reshape(mm(reshape(a, {size * n, k}), b), {size, n, at(b, 1)});
  }
  return bmm(spread(a, a_batched, size), spread(b, b_batched, size));
}

// The dimensions between the samples and the last one as one.
Tensor as_rows(const Tensor& t, int64_t size) {
  int64_t rows = 1;
  for (int64_t d = 1; d < t.ndim() - 1; d++) rows *= at(t, d);
  return reshape(t, {size, rows, at(t, -1)});
}

void scaled_sum(Batch& b, const Tensor& made, const Operand& beta, const Operand& alpha,
                int64_t rank) {
  static constinit Op multiply("mul");
  auto times = [&](const Tensor& t, const Operand& by) {
    if (!by.is_tensor() && by.number() == Scalar(1)) return t;
    const aj_value args[] = {value(t), value(by)};
    return kit::run(multiply.get(), args, 2);
  };
  Tensor bias = aligned(b.tensor(0), b.is_batched(0), rank);
  const bool no_bias = !beta.is_tensor() && beta.number() == Scalar(0);
  Tensor out = times(made, alpha);
  if (!no_bias) out = times(bias, beta) + out;
  if (!b.in_place()) return b.give(0, out);
  const aj_value args[] = {b.args[0], value(out)};
  static constinit Op copy("copy_");
  run_into(copy.get(), args, 2, b.tensor(0));
  b.give(0, b.tensor(0));
}

}  // namespace

void rule_mm(Batch& b) {
  b.give(0, product(b.tensor(0), b.is_batched(0), b.tensor(1), b.is_batched(1), b.size()));
}

void rule_bmm(Batch& b) {
  Tensor x = b.spread(0), y = b.spread(1);
  const int64_t n = at(x, 1);
  Tensor made = bmm(reshape(x, {b.size() * n, at(x, 2), at(x, 3)}),
                    reshape(y, {b.size() * n, at(y, 2), at(y, 3)}));
  b.give(0, reshape(made, {b.size(), n, at(x, 2), at(y, 3)}));
}

void rule_addmm(Batch& b) {
  if (!b.is_batched(0) && b.is_batched(1) && !b.is_batched(2) && b.rank(0) <= 1 && !b.in_place()) {
    const int64_t n = at(b.tensor(1), 1), k = at(b.tensor(1), 2);
    b.set(1, reshape(b.tensor(1), {b.size() * n, k}), true);
    b.run();
    return b.give(0, reshape(b.result(0), {b.size(), n, at(b.tensor(2), 1)}));
  }
  if (!b.is_batched(1) && !b.is_batched(2))
    return scaled_sum(b, mm(b.tensor(1), b.tensor(2)), Operand::of(b.args[3]),
                      Operand::of(b.args[4]), 2);
  scaled_sum(b, product(b.tensor(1), b.is_batched(1), b.tensor(2), b.is_batched(2), b.size()),
             Operand::of(b.args[3]), Operand::of(b.args[4]), 2);
}

// The last dimension of input times the rows of weight, plus bias.
void rule_linear(Batch& b) {
  const bool biased = b.is_tensor(2);
  if (!b.is_batched(1) && !(biased && b.is_batched(2)) && b.rank(0) >= 1) return b.run();
  if (b.rank(1) != 2 || b.rank(0) < 1) {  // a weight of one row
    Tensor x = b.spread(0), w = b.spread(1);
    Tensor y = sum(x * aligned(w, true, x.ndim() - 1), Ints{-1});
    return b.give(0, biased ? y + aligned(b.tensor(2), b.is_batched(2), y.ndim() - 1) : y);
  }
  Tensor x = b.spread(0), made;
  std::vector<int64_t> sizes(x.shape().begin(), x.shape().end());
  if (b.is_batched(1)) {
    made = bmm(as_rows(x, b.size()), transpose(b.tensor(1), 1, 2));
    sizes.back() = at(b.tensor(1), 1);
    if (made.ndim() != int64_t(sizes.size()) || at(made, 1) != sizes[1])
      made = reshape(made, sizes);
  } else {
    made = linear(x, b.tensor(1));
    sizes.back() = at(b.tensor(1), 0);
  }
  if (biased) made = made + aligned(b.tensor(2), b.is_batched(2), made.ndim() - 1);
  b.give(0, made);
}

// The gradient of linear's weight: a sum over all rows of one sample.
void rule_linear_weight_backward(Batch& b) {
  Tensor grad = b.spread(0);
  const bool row = b.rank(1) == b.rank(0) + 1;  // of a weight that is a vector
  if (row) grad = unsqueeze(grad, -1);
  Tensor g = as_rows(grad, b.size()), x = as_rows(b.spread(1), b.size());
  if (x.is_complex()) x = adjoin::conj(x);
  Tensor made = bmm(transpose(g, 1, 2), x);
  b.give(0, row ? reshape(made, {b.size(), at(made, 2)}) : made);
}

}  // namespace adjoin::transform
