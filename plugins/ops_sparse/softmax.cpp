// plugins/ops_sparse/softmax.cpp: softmax of the elements that a COO tensor keeps, along one
// dimension.
#include "sparse.hpp"

namespace adjoin::ops {

using namespace sparse;

namespace {

// Elements of one line along a sparse dimension: a number for each element, and how many lines
// there are.
struct Lines {
  Tensor of;
  int64_t count;
};

Lines lines_of(const Parts& p, int64_t dim) {
  std::vector<int64_t> rows;
  Sizes size;
  for (int64_t d = 0; d < p.sparse_dim(); ++d)
    if (d != dim) rows.push_back(d), size.push_back(p.size[size_t(d)]);
  Tensor flat = flat_places(index_select(p.indices, 0, indices_of(p.indices, rows)), size);
  auto [keys, group, counts] = unique(flat, true, true, false);
  return {group, keys.numel()};
}

Tensor as_rows(const Tensor& values) {
  int64_t width = 1;
  for (int64_t d = 1; d < values.ndim(); ++d) width *= values.size(d);
  return reshape(values, {values.size(0), width});
}

Tensor per_line(const Tensor& rows, const Lines& lines) {
  return index_add(zeros_of(rows, {lines.count, rows.size(1)}), 0, lines.of, rows);
}

Tensor softmax_values(const Parts& p, int64_t dim, bool log) {
  if (dim >= p.sparse_dim()) {
    const int64_t inner = dim - p.sparse_dim() + 1;
    return log ? log_softmax(p.values, inner) : softmax(p.values, inner);
  }
  if (p.count() == 0) return p.values;
  Lines lines = lines_of(p, dim);
  Tensor rows = as_rows(p.values);
  Tensor most = index_reduce(filled(rows, {lines.count, rows.size(1)},
                                    -std::numeric_limits<double>::infinity(), rows.dtype()),
                             0, lines.of, rows, "amax");
  Tensor beyond = rows - index_select(most, 0, lines.of), e = exp(beyond);
  Tensor sums = index_select(per_line(e, lines), 0, lines.of);
  return reshape(log ? beyond - adjoin::log(sums) : e / sums, p.values.shape());
}

void want_floats(const Parts& p, std::string_view op) {
  if (!p.is_coo()) refuse(op, p, "it is there for COO tensors");
  want(p.values.is_floating_point(), "floating-point numbers are wanted, the tensor is ",
       p.dtype());
}

aj_status* public_softmax(aj_call* call, bool log) {
  return kit::compose(call, [&](kit::Body& b) {
    Tensor t = b.tensor(0);
    want_floats(parts_of(t, "input"), log ? "log_softmax" : "softmax");
    const int64_t dim = wrap_dim(b.integer(1), t.ndim());
    if (b.given(2)) t = to(t, b.dtype(2));
    b.ret(0, sparse_softmax(coalesce(t), dim, log));
  });
}

}  // namespace

aj_status* sparse_softmax_public_body(void*, aj_call* c) { return public_softmax(c, false); }
aj_status* sparse_log_softmax_public_body(void*, aj_call* c) { return public_softmax(c, true); }

aj_status* sparse_softmax_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Parts p = coalesced(parts_of(b.tensor(0), "input"));
    want_floats(p, "softmax");
    give(b.call(),
         wrapped(with_values(
             p, softmax_values(p, wrap_dim(b.integer(1), int64_t(p.size.size())), b.flag(2)))));
  });
}

// saved: the result, dim, log.
aj_status* sparse_softmax_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    if (!d.grad(0).defined() || !d.need(0)) return;
    const Parts& p = parts_of(d.tensor(0), "out");
    const int64_t dim = d.integer(1);
    Tensor g = sparse_at(d.grad(0), p.indices), out = _values(d.tensor(0)), made;
    const bool log = d.flag(2);
    Tensor weights = log ? exp(out) : out;
    if (dim >= p.sparse_dim()) {
      Tensor all = sum(log ? g : g * out, {dim - p.sparse_dim() + 1}, true);
      made = log ? g - weights * all : weights * (g - all);
    } else if (p.count() == 0) {
      made = g;
    } else {
      Lines lines = lines_of(p, dim);
      Tensor rows = as_rows(g), w = as_rows(weights);
      Tensor all = index_select(per_line(log ? rows : rows * w, lines), 0, lines.of);
      made = reshape(log ? rows - w * all : w * (rows - all), g.shape());
    }
    d.set(0, sparse_coo(p.indices, made, p.size, true));
  });
}

}  // namespace adjoin::ops
