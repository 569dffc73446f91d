// plugins/ops_sparse/product.cpp: products of matrices of which one or both are sparse.
#include "register.hpp"
#include "sparse.hpp"

namespace adjoin::ops::sparse {
namespace {

void want_matrices(const Tensor& a, const Tensor& b) {
  want(a.ndim() == 2 && b.ndim() == 2 && a.size(1) == b.size(0),
       "matrices (n, k) and (k, m) are wanted, the shapes are ", shown(a), " and ", shown(b));
  want(a.dtype() == b.dtype(), "one dtype is wanted, they have ", a.dtype(), " and ", b.dtype(),
       "; cast one with .to()");
}

void want_matrix(const Parts& p) {
  if (p.dense_dim()) refuse("mm", p, "a matrix of sparse dimensions is wanted, it has dense ones");
}

Tensor line(const Parts& p, int64_t i) { return contiguous(select(p.indices, 0, i)); }

}  // namespace

// A sparse matrix times a strided one.
Tensor times_dense(const Parts& given, const Tensor& b) {
  want_matrix(given);
  if (given.layout == Layout::sparse_csr)
    return csr_mm(given.indices, given.plain, contiguous(given.values), contiguous(b));
  Parts p = coalesced(coo_of(given));
  return csr_mm(row_begins(line(p, 0), p.size[0]), line(p, 1), p.values, contiguous(b));
}

namespace {

Parts transposed(const Parts& p) {
  Parts made = p;
  made.indices = flip(p.indices, {0});
  made.size = {p.size[1], p.size[0]};
  made.coalesced = p.count() < 2;
  return made;
}

// Each element (i, k) of a meets the row k of b.
Parts times_sparse(const Parts& x, const Parts& y) {
  Parts a = coalesced(coo_of(x)), b = coalesced(coo_of(y));
  want_matrix(a), want_matrix(b);
  Tensor begins = row_begins(line(b, 0), b.size[0]), k = line(a, 1);
  Tensor first = index_select(begins, 0, k), many = index_select(begins, 0, k + 1) - first;
  Tensor mine = repeat_interleave(counting(many, a.count()), many);
  Tensor ends = cumsum(many, 0);
  Tensor other = index_select(first - (ends - many), 0, mine) + counting(mine, mine.numel());
  Parts made = a;
  made.size = {a.size[0], b.size[1]};
  made.indices = stack({index_select(line(a, 0), 0, mine), index_select(line(b, 1), 0, other)}, 0);
  made.values = index_select(a.values, 0, mine) * index_select(b.values, 0, other);
  made.coalesced = false;
  return coalesced(made);
}

Tensor product_of(const Tensor& a, const Tensor& b) {
  want_matrices(a, b);
  const Parts *x = maybe_parts(a), *y = maybe_parts(b);
  for (const Parts* p : {x, y})
    if (p && p->batch())
      refuse("matmul", *p, "a stack of matrices is not multiplied, one matrix is");
  if (x && y) {
    Parts made = times_sparse(*x, *y);
    // By rows, where both are compressed.
    return wrapped(x->layout == Layout::sparse_csc ? in_layout(made, Layout::sparse_csr, Ints())
                                                   : laid_like(made, *x));
  }
  if (x) return times_dense(*x, b);
  if (y) {  // (b^T a^T)^T
    Parts turned = y->is_coo() ? transposed(*y) : transposed_name(*y);
    return transpose(times_dense(turned, contiguous(transpose(a, 0, 1))), 0, 1);
  }
  return mm(a, b);
}

aj_status* mm_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) { return product_of(v.tensor(0), v.tensor(1)); });
}

// A stack of products: the matrices of the first stand along the diagonal of one.
aj_status* bmm_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Tensor &a = v.tensor(0), &b = v.tensor(1);
    want(is_sparse(a) && !is_sparse(b),
         "the first of two stacks may be sparse; call to_dense() on the second");
    Parts p = coalesced(coo_of(parts_of(a, "input")));
    want(a.ndim() == 3 && b.ndim() == 3 && p.sparse_dim() == 3 && a.size(0) == b.size(0) &&
             a.size(2) == b.size(1),
         "stacks (b, n, k) and (b, k, m) are wanted, the shapes are ", shown(a), " and ", shown(b));
    const int64_t n = a.size(1), k = a.size(2);
    Tensor rows = line(p, 0) * n + line(p, 1), columns = line(p, 0) * k + line(p, 2);
    Tensor made = csr_mm(row_begins(rows, a.size(0) * n), columns, p.values,
                         contiguous(reshape(b, {b.size(0) * k, b.size(2)})));
    return reshape(made, {a.size(0), n, b.size(2)});
  });
}

aj_status* addmm_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    Tensor made = product_of(v.tensor(1), v.tensor(2));
    want(!is_sparse(v.tensor(0)) && !is_sparse(made),
         "input and the product must be strided; call to_dense() first");
    Scalar beta = v.scalar(3), alpha = v.scalar(4);
    made = scaled(made, alpha, made.dtype());
    return beta == Scalar(0) ? made : add(made, v.tensor(0), beta);
  });
}

Tensor adjoint_of(const Tensor& t) { return kit::conj(transpose(t, 0, 1)); }

// The elements of a @ b at the places of s; recorded.
Tensor sampled(const Tensor& s, const Tensor& a, const Tensor& b_transposed) {
  Tensor from = parts_of(s, "input").is_coo() ? coalesce(s) : s;
  const Parts& p = parts_of(from, "input");
  want_matrix(p);
  if (p.layout == Layout::sparse_csr)
    return with_places(p, row_dots(p.indices, p.plain, a, b_transposed));
  Tensor at = places(p);
  if (p.is_coo())
    return with_places(p, row_dots(row_begins(line(p, 0), p.size[0]), line(p, 1), a, b_transposed));
  Tensor dots = sum(
      index_select(a, 0, select(at, 0, 0)) * index_select(b_transposed, 0, select(at, 0, 1)), {1});
  return with_places(p, reshape(dots, p.values.shape()));
}

// The gradient of a factor: of a strided product as a strided matrix, unless `masked`.
void set_factors(kit::Grad& d, bool masked) {
  const Tensor &g = d.grad(0), &a = d.tensor(0), &b = d.tensor(1);
  if (!g.defined()) return;
  if (d.need(0)) {
    if (masked && is_sparse(a) && !is_sparse(b) && !is_sparse(g))
      d.set(0, sampled(a, g, kit::conj(b)));
    else
      d.set(0, mm(g, adjoint_of(b)));
  }
  if (d.need(1)) d.set(1, mm(adjoint_of(a), g));
}

aj_status* mm_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) { set_factors(d, false); });
}

}  // namespace

void define_product_vjps(const aj_plugin_env* env) {
  static const aj_save both[] = {{AJ_SAVE_ARG, 0, 0}, {AJ_SAVE_ARG, 1, 0}};
  define_vjp(env, "mm", both, 2, mm_vjp, nullptr);
}

Table product_kernels[] = {
    {"mm", at(mm_kernel)}, {"bmm", at(bmm_kernel)}, {"addmm", at(addmm_kernel)}, {nullptr, {}}};

}  // namespace adjoin::ops::sparse

namespace adjoin::ops {

using namespace sparse;

aj_status* sparse_mm_body(void*, aj_call* call) {
  return kit::compose(call,
                      [](kit::Body& b) { give(b.call(), product_of(b.tensor(0), b.tensor(1))); });
}
aj_status* sparse_mm_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) { set_factors(d, true); });
}

aj_status* csr_mm_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &begins = c.tensor(0), &values = c.tensor(2), &dense = c.tensor(3);
    want(begins.ndim() == 1 && begins.numel() >= 1,
         "begins must hold a number for each row and one more");
    want(dense.ndim() == 2, "dense must be a matrix, its shape is ", shown(dense));
    want_shape(c.tensor(1), "columns", values.shape());
    want_dtype(dense, "dense", values.dtype());
    c.out(0, values.dtype(), Sizes{begins.numel() - 1, dense.size(1)});
  });
}
aj_status* csr_mm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &begins = b.tensor(0), &columns = b.tensor(1), &values = b.tensor(2),
                 &dense = b.tensor(3);
    const int64_t n = begins.numel() - 1;
    Tensor many = slice(begins, 0, 1) - slice(begins, 0, 0, n);
    Tensor rows = repeat_interleave(counting(begins, n), to(many, int64));
    Tensor each = index_select(dense, 0, to(columns, int64)) * unsqueeze(values, 1);
    b.ret(0, index_add_(zeros_of(dense, {n, dense.size(1)}), 0, rows, each));
  });
}

aj_status* row_dots_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &begins = b.tensor(0), &columns = b.tensor(1), &x = b.tensor(2), &y = b.tensor(3);
    Tensor many = slice(begins, 0, 1) - slice(begins, 0, 0, begins.numel() - 1);
    Tensor rows = repeat_interleave(counting(begins, begins.numel() - 1), to(many, int64));
    b.ret(0, sum(index_select(x, 0, rows) * index_select(y, 0, to(columns, int64)), {1}));
  });
}

// saved: begins, columns, a, b.
aj_status* row_dots_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &g = d.grad(0), &a = d.tensor(2), &b = d.tensor(3);
    if (!g.defined()) return;
    Tensor s = sparse_compressed(d.tensor(0), d.tensor(1), g, Sizes{a.size(0), b.size(0)},
                                 int64_t(Layout::sparse_csr));
    if (d.need(2)) d.set(2, mm(s, kit::conj(b)));
    if (d.need(3)) d.set(3, mm(transpose(s, 0, 1), kit::conj(a)));
  });
}

aj_status* sampled_addmm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &s = b.tensor(0), &x = b.tensor(1), &y = b.tensor(2);
    parts_of(s, "input");
    want_matrices(x, y);
    want(s.ndim() == 2 && s.size(0) == x.size(0) && s.size(1) == y.size(1),
         "input must have shape (", x.size(0), ", ", y.size(1), "), it has ", shown(s));
    Tensor made = sampled(s, x, transpose(y, 0, 1));
    Scalar beta = b.scalar(3), alpha = b.scalar(4);
    if (!(alpha == Scalar(1))) made = made * alpha;
    if (beta == Scalar(0)) return b.ret(0, made);
    b.ret(0, made + (beta == Scalar(1) ? s : s * beta));
  });
}

// How many elements of a sorted list of rows stand before each row.
aj_status* row_begins_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, search(b.tensor(0), counting(b.tensor(0), b.integer(1) + 1), false));
  });
}

}  // namespace adjoin::ops
