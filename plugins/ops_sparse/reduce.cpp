// plugins/ops_sparse/reduce.cpp: sums of sparse tensors.
#include "register.hpp"
#include "sparse.hpp"

namespace adjoin::ops::sparse {
namespace {

// Over the dimensions `over`; a strided tensor where no sparse dimension is left.
Tensor summed(const Parts& p, const std::vector<bool>& over, std::optional<DLDataType> dtype) {
  const int64_t sd = p.sparse_dim();
  Parts made = p;
  made.size.clear();
  std::vector<int64_t> rows;
  Sizes inner;
  for (size_t d = 0; d < p.size.size(); ++d) {
    const bool sparse = int64_t(d) < sd;
    if (over[d]) {
      if (!sparse) inner.push_back(int64_t(d) - sd + 1);
      continue;
    }
    made.size.push_back(p.size[d]);
    if (sparse) rows.push_back(int64_t(d));
  }
  if (rows.empty()) {
    inner.push_back(0);
    return sum(p.values, inner, false, dtype);
  }
  if (!inner.empty())
    made.values = sum(p.values, inner, false, dtype);
  else if (dtype)
    made.values = to(p.values, *dtype);
  if (int64_t(rows.size()) < sd) {
    made.indices = index_select(p.indices, 0, indices_of(p.indices, rows));
    made.coalesced = false;
    made = coalesced(made);
  }
  return wrapped(std::move(made));
}

std::vector<bool> marked(const Ints& dim, int64_t ndim) {
  std::vector<bool> over(size_t(ndim), dim.is_none() || dim.empty());
  for (size_t i = 0; i < dim.size(); ++i) {
    const size_t d = size_t(wrap_dim(dim[i], ndim));
    want(!over[d], "dim has dimension ", d, " twice");
    over[d] = true;
  }
  return over;
}

// With the reduced dimensions as sizes of 1; behind the last sparse one they are sparse, too.
Tensor with_ones(const Tensor& t, const std::vector<bool>& over) {
  const Parts* p = maybe_parts(t);
  Sizes size;
  for (size_t d = 0, from = 0; d < over.size(); ++d)
    size.push_back(over[d] ? 1 : t.shape()[from++]);
  if (!p) return reshape(t, size);
  Parts made = *p;
  for (int64_t d = 0; d < int64_t(over.size()); ++d) {
    if (!over[size_t(d)]) continue;
    const int64_t sd = made.indices.size(0), n = made.indices.size(1);
    if (d > sd) {
      made.values = unsqueeze(made.values, d - sd + 1);
      continue;
    }
    Tensor zeros = indices_of(made.indices, std::vector<int64_t>(size_t(n), 0));
    made.indices =
        cat({slice(made.indices, 0, 0, d), unsqueeze(zeros, 0), slice(made.indices, 0, d, sd)}, 0);
  }
  made.size = size;
  return wrapped(std::move(made));
}

// Where elements with the sparse coordinates `at` are added to: reduced dimensions keep a size
// of 1.
Tensor kept_places(const Tensor& at, const std::vector<bool>& over) {
  std::vector<int64_t> stays;
  for (int64_t d = 0; d < at.size(0); ++d) stays.push_back(!over[size_t(d)]);
  return at * unsqueeze(indices_of(at, stays), 1);
}

// Of CSR, which stays CSR.
Tensor summed_rows(const Parts& p, const std::vector<bool>& over, std::optional<DLDataType> dtype) {
  Parts made = coo_of(p);
  made.indices = kept_places(made.indices, over);
  for (size_t d = 0; d < made.size.size(); ++d)
    if (over[d]) made.size[d] = 1;
  if (dtype) made.values = to(made.values, *dtype);
  made.coalesced = false;
  return wrapped(in_layout(coalesced(made), p.layout, Ints()));
}

aj_status* sum_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Parts& p = any_parts_of(v.tensor(0), "input");
    Ints dim = v.ints(1);
    if (dim.is_none() || dim.empty()) {
      Tensor made = sum(p.values, {}, false, v.maybe<DLDataType>(3));
      return v.flag(2) ? reshape(made, Sizes(p.size.size(), 1)) : made;
    }
    auto dtype = v.maybe<DLDataType>(3);
    if (!dtype && is_integral(p.values)) dtype = int64;
    if (p.batch()) refuse("sum", p, "a stack of matrices is summed as a whole");
    if (p.layout == Layout::sparse_csr && v.flag(2) && !p.dense_dim())
      return summed_rows(p, marked(dim, int64_t(p.size.size())), dtype);
    if (!p.is_coo())
      refuse("sum", p, "sums along dimensions are there for COO, and for CSR with keepdim=True");
    const std::vector<bool> over = marked(dim, int64_t(p.size.size()));
    Tensor made = summed(p, over, dtype);
    return v.flag(2) ? with_ones(made, over) : made;
  });
}

aj_status* mean_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Parts& p = any_parts_of(v.tensor(0), "input");
    Ints dim = v.ints(1);
    if (!dim.is_none() && !dim.empty()) refuse("mean", p, "the mean of all elements is there");
    Tensor made = sum(p.values, {}, false, v.maybe<DLDataType>(3)) / double(product(p.size));
    return v.flag(2) ? reshape(made, Sizes(p.size.size(), 1)) : made;
  });
}

aj_status* any_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Parts p = coalesced(any_parts_of(v.tensor(0), "input"));
    Ints dim = v.ints(1);
    if (!dim.is_none() && !dim.empty()) refuse("any", p, "any of all elements is there");
    Tensor made = any(p.values);
    return v.flag(2) ? reshape(made, Sizes(p.size.size(), 1)) : made;
  });
}

aj_status* equal_kernel(void*, aj_call* call) {
  return kit::guard(call, [&] {
    const kit::Values v(call->args);
    const Parts *a = maybe_parts(v.tensor(0)), *b = maybe_parts(v.tensor(1));
    want(a && b, "a sparse and a strided tensor are not compared; call to_dense() first");
    bool same = a->size == b->size && a->sparse_dim() == b->sparse_dim();
    if (same) {
      Parts x = coalesced(coo_of(*a)), y = coalesced(coo_of(*b));
      same = x.count() == y.count() && equal(x.indices, y.indices) && equal(x.values, y.values);
    }
    call->rets[0] = kit::value(same);
  });
}

// Norms that what is not kept does not change.
aj_status* norm_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    Parts p = coalesced(parts_of(v.tensor(0), "input"));
    Ints dim = v.ints(2);
    const double order = v.scalar(1).to_double();
    if ((!dim.is_none() && !dim.empty()) || !(order >= 0) || p.count() == 0)
      refuse("vector_norm", p, "norms of all elements, of an order from 0 on, are there");
    Tensor made = vector_norm(p.values, v.scalar(1), {}, false);
    return v.flag(3) ? reshape(made, Sizes(p.size.size(), 1)) : made;
  });
}

// As spread(), of a gradient that has the reduced dimensions.
Tensor spread_from_ones(const Tensor& g, const Parts& given, const Ints& dim) {
  const Parts p = coalesced(given);
  const std::vector<bool> over = marked(dim, int64_t(p.size.size()));
  const int64_t sd = p.sparse_dim(), more = parts_of(g, "gradient").sparse_dim() - sd;
  want(more >= 0, "the gradient of a sum has ", sd + more, " sparse dimensions, the sum has ", sd);
  Tensor at = kept_places(p.indices, over);
  if (more) at = cat({at, zeros_of(at, {more, p.count()})}, 0);
  Sizes inner{p.count()};
  for (size_t d = size_t(sd); d < p.size.size(); ++d) inner.push_back(over[d] ? 1 : p.size[d]);
  return with_places(p, expand(reshape(sparse_at(g, at), inner), p.values.shape()));
}

// saved: input, dim, keepdim.
aj_status* sum_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    if (!g.defined() || !d.need(0)) return;
    const Parts& p = any_parts_of(d.tensor(0), "input");
    if (is_sparse(g) && !p.is_coo())
      return d.set(0, with_places(p, sparse_at(g, kept_places(places(p), marked(d.ints(1), 2)))));
    if (is_sparse(g) && d.flag(2)) return d.set(0, spread_from_ones(g, p, d.ints(1)));
    d.set(0, is_sparse(g) ? spread(g, p, d.ints(1)) : unreduce(g, p.size, d.ints(1), d.flag(2)));
  });
}

}  // namespace

void define_reduce_vjps(const aj_plugin_env* env) {
  static const aj_save three[] = {{AJ_SAVE_ARG, 0, 0}, {AJ_SAVE_ARG, 1, 0}, {AJ_SAVE_ARG, 2, 0}};
  define_vjp(env, "sum", three, 3, sum_vjp, nullptr);
}

// The gradient of a sum along `dim`, at each place that is given once; recorded.
Tensor spread(const Tensor& g, const Parts& given, const Ints& dim) {
  const Parts p = coalesced(given);
  std::vector<bool> over = marked(dim, int64_t(p.size.size()));
  const int64_t sd = p.sparse_dim();
  std::vector<int64_t> rows;
  Sizes inner{p.count()};
  for (size_t d = 0; d < p.size.size(); ++d) {
    if (int64_t(d) >= sd)
      inner.push_back(over[d] ? 1 : p.size[d]);
    else if (!over[d])
      rows.push_back(int64_t(d));
  }
  Tensor at;
  if (rows.empty()) {
    Sizes one = inner;
    one[0] = 1;
    at = reshape(g, one);
  } else {
    at = reshape(sparse_at(g, index_select(p.indices, 0, indices_of(p.indices, rows))), inner);
  }
  return with_places(p, expand(at, p.values.shape()));
}

Table reduce_kernels[] = {{"sum", at(sum_kernel)},     {"mean", at(mean_kernel)},
                          {"any", at(any_kernel)},     {"vector_norm", at(norm_kernel)},
                          {"equal", at(equal_kernel)}, {nullptr, {}}};

}  // namespace adjoin::ops::sparse

namespace adjoin::ops {

using namespace sparse;

aj_status* sparse_sum_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Parts& p = parts_of(b.tensor(0), "input");
    Ints dim = b.ints(1);
    if (dim.is_none() || dim.empty())
      return give(b.call(), sum(p.values, {}, false, b.maybe<DLDataType>(2)));
    if (!p.is_coo()) refuse("sum", p, "sums along dimensions are there for COO tensors");
    give(b.call(), summed(p, marked(dim, int64_t(p.size.size())), b.maybe<DLDataType>(2)));
  });
}

// saved: input, dim. Each place that input has gets the gradient of the sum that it went into.
aj_status* sparse_sum_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    if (!g.defined() || !d.need(0)) return;
    const Parts& p = parts_of(d.tensor(0), "input");
    d.set(0, spread(g, p, d.ints(1)));
  });
}

}  // namespace adjoin::ops
