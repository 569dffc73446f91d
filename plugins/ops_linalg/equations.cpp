// plugins/ops_linalg/equations.cpp: Cholesky, LU, equations, inverses and determinants, and their
// derivatives (M. Giles, An extended collection of matrix derivative results, 2008; I. Murray,
// Differentiation of the Cholesky decomposition, 2016).
#include "matrices.hpp"

namespace adjoin::ops {

aj_status* cholesky_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_square(a);
    out_by_columns(c, 0, a.dtype(), a.shape());
    c.out(1, int32, batch_of(a));
  });
}

// A = L L^H: the gradient is L^-H P L^-1, P the Hermitian part of the lower half of L^H g.
aj_status* cholesky_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    if (!d.grad(0).defined()) return;
    const bool upper = d.flag(1);
    Tensor l = upper ? adjoint_of(d.tensor(0)) : d.tensor(0),
           g = upper ? adjoint_of(d.grad(0)) : d.grad(0);
    Tensor p = hermitian_of_lower(matmul(adjoint_of(l), g)) * 0.5;
    Tensor left = solve_triangle(adjoint_of(l), p, true);  // L^-H P
    d.set(0, solve_triangle(l, left, false, false));
  });
}

aj_status* linalg_cholesky_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, in_own_name(
                 [&] { return std::get<0>(linalg::cholesky_ex(b.tensor(0), b.flag(1), true)); }));
  });
}

namespace {

Tensor cholesky_solve_of(const Tensor& right, const Tensor& factor, bool upper) {
  want_square(factor);
  want(right.ndim() >= 2 && right.size(-2) == factor.size(-1), "the right side ", shown(right),
       " must have as many rows as the factor ", shown(factor));
  return in_own_name([&] {
    Tensor first = upper ? adjoint_of(factor) : factor, then = upper ? factor : adjoint_of(factor);
    return linalg::solve_triangular(then, linalg::solve_triangular(first, right, false), true);
  });
}

}  // namespace

aj_status* cholesky_solve_body(void*, aj_call* call) {
  return kit::compose(
      call, [](kit::Body& b) { b.ret(0, cholesky_solve_of(b.tensor(0), b.tensor(1), b.flag(2))); });
}
namespace {

// A factor with a zero on its diagonal has no inverse. Only the host is asked: another device would
// have to be waited for.
void want_no_zero(const Tensor& l) {
  if (!l.has_memory() || l.device().device_type != kDLCPU || l.numel() == 0) return;
  NoGradGuard off;
  Tensor zero = reshape(eq(diagonal(l.detach(), 0, -2, -1), 0), {-1});
  if (!any(zero).item<bool>()) return;
  const int64_t first = select(reshape(nonzero(zero), {-1}), 0, 0).item<int64_t>();
  kit::raise_as(
      "LinAlgError", AJ_INVALID_ARGUMENT,
      l.ndim() > 2 ? kit::text("(batch element ", first / l.size(-1), "): ") : std::string(),
      "The diagonal element ", first % l.size(-1) + 1,
      " is zero, so the matrix is singular and has no inverse; pinv finds the next best");
}

}  // namespace

aj_status* cholesky_inverse_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& l = numbers_in(b, 0);
    want_square(l);
    want_no_zero(l);
    b.ret(0, cholesky_solve_of(eye(l.size(-1), std::nullopt, l.dtype(), l.device()), l, b.flag(1)));
  });
}

aj_status* lu_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_matrix(a);
    Sizes pivots = batch_of(a);
    out_by_columns(c, 0, a.dtype(), a.shape());
    c.out(2, int32, pivots);
    pivots.push_back(least_size(a));
    c.out(1, int32, pivots);
  });
}

namespace {

// Rows of t in the order that `from` says, for each matrix of the stack.
Tensor rows_by(const Tensor& t, const Tensor& from) {
  return gather(t, -2, expand(unsqueeze(from, -1), t.shape()));
}
Tensor lower_of(const Tensor& lu, int64_t k) {
  Tensor l = tril(narrow(lu, -1, 0, k), -1);
  return l + eye(lu.size(-2), k, lu.dtype(), lu.device());
}
Tensor upper_of(const Tensor& lu, int64_t k) { return triu(narrow(lu, -2, 0, k)); }

}  // namespace

// Of P A' = L U, k = min(m, n): what is beyond the square part depends on it by one triangle.
aj_status* lu_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    if (!d.grad(0).defined()) return;
    const Tensor &lu = d.tensor(0), &g = d.grad(0);
    const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
    Tensor l = lower_of(narrow(lu, -2, 0, k), k), u = upper_of(narrow(lu, -1, 0, k), k);
    Tensor square = narrow(narrow(g, -2, 0, k), -1, 0, k), gl = tril(square, -1), gu = triu(square);
    Tensor beyond;
    if (n > k) {  // U2 = L^-1 A2
      Tensor g2 = narrow(g, -1, k, n - k), u2 = narrow(lu, -1, k, n - k);
      beyond = solve_triangle(adjoint_of(l), g2, true, true, true);
      gl = gl - matmul(beyond, adjoint_of(u2));
    } else if (m > k) {  // L2 = A2 U^-1
      Tensor g2 = narrow(g, -2, k, m - k), l2 = narrow(lu, -2, k, m - k);
      beyond = solve_triangle(adjoint_of(u), g2, false, false);
      gu = gu - matmul(adjoint_of(l2), beyond);
    }
    Tensor middle = tril(matmul(adjoint_of(l), gl), -1) + triu(matmul(gu, adjoint_of(u)));
    middle = solve_triangle(adjoint_of(l), middle, true, true, true);
    Tensor out = solve_triangle(adjoint_of(u), middle, false, false);
    if (beyond.defined()) out = cat({out, beyond}, n > k ? -1 : -2);
    d.set(0, rows_by(out, argsort(pivot_order(d.tensor(1) - 1, m), -1)));
  });
}

aj_status* lu_factor_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto [lu, pivots, info] =
        in_own_name([&] { return linalg::lu_factor_ex(b.tensor(0), b.flag(1), true); });
    b.ret(0, lu);
    b.ret(1, pivots);
  });
}

aj_status* pivot_order_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& p = c.tensor(0);
    const int64_t rows = c.integer(1);
    want(p.ndim() >= 1 && p.size(-1) <= rows, "pivots ", shown(p), " are more than ", rows,
         " rows");
    Sizes shape = sizes_of(p);
    shape.back() = rows;
    c.out(0, int64, shape);
  });
}

namespace {

void want_pivots(const Tensor& lu, const Tensor& pivots) {
  want(pivots.dtype() == int32, "pivots must be int32, as lu_factor gives them; they are ",
       pivots.dtype());
  Sizes wanted = batch_of(lu);
  wanted.push_back(least_size(lu));
  want(sizes_of(pivots) == wanted, "pivots ", shown(pivots), " do not fit ", shown(lu),
       ": their shape must be ", shown(wanted));
}

std::tuple<Tensor, Tensor, Tensor> unpacked(const Tensor& lu, const Tensor& pivots, bool data,
                                            bool order) {
  want_matrix(lu);
  const int64_t m = lu.size(-2), k = least_size(lu);
  Tensor none = empty({0}, lu.dtype(), lu.device()), p = none, l = none, u = none;
  if (order) {
    want_pivots(lu, pivots);
    Tensor from = in_own_name([&] { return pivot_order(pivots - 1, m); });
    p = to(eq(unsqueeze(counting(lu, m), -1), unsqueeze(from, -2)), lu.dtype());
  }
  if (data) l = lower_of(lu, k), u = upper_of(lu, k);
  return {p, l, u};
}

}  // namespace

aj_status* lu_unpack_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret_all(unpacked(b.tensor(0), b.tensor(1), b.flag(2), b.flag(3)));
  });
}
aj_status* lu_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto [lu, pivots, info] =
        in_own_name([&] { return linalg::lu_factor_ex(b.tensor(0), b.flag(1), false); });
    b.ret_all(unpacked(lu, pivots, true, true));
  });
}

namespace {

Tensor solve_by_lu(Tensor lu, Tensor pivots, Tensor right, bool turned) {
  want_square(lu);
  const int64_t n = lu.size(-1);
  want_pivots(lu, pivots);
  want(right.ndim() >= 2 && right.size(-2) == n, "the right side ", shown(right), " does not fit ",
       shown(lu));
  return in_own_name([&] {
    Tensor from = pivot_order(pivots - 1, n);
    Sizes batch = broadcast(batch_of(lu), batch_of(right)), wide = batch, order = batch;
    wide.push_back(n), wide.push_back(right.size(-1)), order.push_back(n);
    right = expand(right, wide), from = expand(from, order);
    if (!turned)
      return linalg::solve_triangular(
          lu, linalg::solve_triangular(lu, rows_by(right, from), false, true, true), true);
    Tensor x = linalg::solve_triangular(adjoint_of(lu), right, false);
    x = linalg::solve_triangular(adjoint_of(lu), x, true, true, true);
    return rows_by(x, argsort(from, -1));
  });
}

}  // namespace

aj_status* linalg_lu_solve_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const bool left = b.flag(3), turned = b.flag(4);
    const Tensor& right = b.tensor(2);
    if (left) return b.ret(0, solve_by_lu(b.tensor(0), b.tensor(1), right, turned));
    want_matrix(right);
    b.ret(0, adjoint_of(solve_by_lu(b.tensor(0), b.tensor(1), adjoint_of(right), !turned)));
  });
}
aj_status* lu_solve_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    static constinit std::atomic_flag said;
    deprecated(said, "lu_solve", "linalg.lu_solve(LU, pivots, B)");
    b.ret(0, solve_by_lu(b.tensor(1), b.tensor(2), b.tensor(0), false));
  });
}

namespace {

void want_pair(const Tensor& a, const Tensor& b, bool left) {
  want_square(a);
  want_matrix(b);
  want(b.dtype() == a.dtype(), "dtypes differ: ", a.dtype(), " and ", b.dtype());
  want(b.size(left ? -2 : -1) == a.size(-1), "sizes differ: A is ", shown(a), " and B is ",
       shown(b), ", so ", a.size(-1), " and ", b.size(left ? -2 : -1), " differ");
}
void want_one_batch(const Tensor& a, const Tensor& b) {
  want(batch_of(a) == batch_of(b), "stacks of one shape are wanted: ", shown(a), " and ", shown(b));
}
// Both with all the dimensions of either's stack.
void expand_both(Tensor& a, Tensor& b) {
  if (batch_of(a) == batch_of(b)) return;
  Sizes batch = broadcast(batch_of(a), batch_of(b));
  for (Tensor* t : {&a, &b}) {
    Sizes shape = batch;
    shape.push_back(t->size(-2)), shape.push_back(t->size(-1));
    *t = expand(*t, shape);
  }
}

}  // namespace

aj_status* triangular_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &a = numbers_in(c, 0), &b = c.tensor(1);
    want_pair(a, b, c.flag(3));
    want_one_batch(a, b);
    out_by_columns(c, 0, b.dtype(), b.shape());
  });
}

aj_status* triangular_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &a = d.tensor(0), &x = d.tensor(1);
    const bool upper = d.flag(2), left = d.flag(3), unit = d.flag(4);
    Tensor gb = solve_triangle(adjoint_of(a), d.grad(0), !upper, left, unit);
    d.set(1, gb);
    if (!d.need(0)) return;
    Tensor ga = left ? matmul(gb, adjoint_of(x)) : matmul(adjoint_of(x), gb);
    d.set(0, -(upper ? triu(ga, unit ? 1 : 0) : tril(ga, unit ? -1 : 0)));
  });
}

aj_status* solve_triangular_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor a = numbers_in(b, 0), right = b.tensor(1);
    want_pair(a, right, b.flag(3));
    expand_both(a, right);
    b.ret(0,
          in_own_name([&] { return solve_triangle(a, right, b.flag(2), b.flag(3), b.flag(4)); }));
  });
}
aj_status* triangular_solve_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    static constinit std::atomic_flag said;
    deprecated(said, "triangular_solve",
               "linalg.solve_triangular(A, B, upper=), which leaves A as it is");
    Tensor a = b.tensor(1), right = numbers_in(b, 0);
    want_pair(a, right, true);
    expand_both(a, right);
    const bool upper = b.flag(2), turned = b.flag(3);
    b.ret(0, in_own_name([&] {
            return solve_triangle(turned ? transpose(a, -2, -1) : a, right, upper != turned, true,
                                  b.flag(4));
          }));
    b.ret(1, clone(a));
  });
}

aj_status* solve_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &a = numbers_in(c, 0), &b = c.tensor(1);
    want_pair(a, b, true);
    want_one_batch(a, b);
    out_by_columns(c, 0, b.dtype(), b.shape());
    c.out(1, int32, batch_of(a));
  });
}
aj_status* solve_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    if (!d.grad(0).defined()) return;
    Tensor gb = std::get<0>(solve_stack(adjoint_of(d.tensor(0)), d.grad(0), false));
    d.set(1, gb);
    if (d.need(0)) d.set(0, -matmul(gb, adjoint_of(d.tensor(1))));
  });
}

namespace {

std::tuple<Tensor, Tensor> solved(const kit::Body& b, bool left, bool check) {
  Tensor a = numbers_in(b, 0), right = b.tensor(1);
  want_square(a);
  // One vector, or one for each matrix of the stack, as PyTorch tells them apart.
  Sizes of_vectors = sizes_of(a);
  of_vectors.pop_back();
  const bool vector = right.ndim() == 1 || sizes_of(right) == of_vectors;
  want(left || !vector, "left=False wants matrices, B is ", shown(right), "; unsqueeze it");
  if (vector) right = unsqueeze(right, -1);
  want_pair(a, right, left);
  expand_both(a, right);
  return in_own_name([&] {
    if (!left) {
      auto [x, info] = solve_stack(transpose(a, -2, -1), transpose(right, -2, -1), check);
      return std::tuple(transpose(x, -2, -1), info);
    }
    auto [x, info] = solve_stack(a, right, check);
    return std::tuple(vector ? squeeze(x, -1) : x, info);
  });
}

}  // namespace

aj_status* solve_ex_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret_all(solved(b, b.flag(2), b.flag(3))); });
}
aj_status* linalg_solve_body(void*, aj_call* call) {
  return kit::compose(call,
                      [](kit::Body& b) { b.ret(0, std::get<0>(solved(b, b.flag(2), true))); });
}

aj_status* inv_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_square(a);
    out_by_columns(c, 0, a.dtype(), a.shape());
    c.out(1, int32, batch_of(a));
  });
}
aj_status* inv_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    if (!d.grad(0).defined()) return;
    Tensor x = adjoint_of(d.tensor(0));
    d.set(0, -matmul(x, matmul(d.grad(0), x)));
  });
}
aj_status* inv_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, in_own_name([&] { return std::get<0>(linalg::inv_ex(b.tensor(0), true)); }));
  });
}

aj_status* det_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_square(a);
    c.out(0, a.dtype(), batch_of(a));
  });
}
aj_status* slogdet_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_square(a);
    c.out(0, a.dtype(), batch_of(a));
    c.out(1, real_of(a.dtype()), batch_of(a));
  });
}

namespace {

Tensor over_matrices(const Tensor& t) { return unsqueeze(unsqueeze(t, -1), -1); }

}  // namespace

aj_status* det_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &a = d.tensor(0), &out = d.tensor(1), &g = d.grad(0);
    if (!any(eq(out.detach(), 0)).item<bool>()) {
      Tensor x = std::get<0>(linalg::inv_ex(a, false));
      return d.set(0, over_matrices(g * conjugate(out)) * adjoint_of(x));
    }
    // The cofactors of a singular matrix are products of the other singular values.
    auto [u, s, vh] = linalg::svd(a, false);
    const int64_t n = a.size(-1);
    Tensor one = eye(n, std::nullopt, boolean, a.device());
    Tensor others = prod(where(one, ones_like(unsqueeze(s, -2)), unsqueeze(s, -2)), -1);
    Tensor turn = conjugate(linalg::det(u) * linalg::det(vh));
    d.set(0, over_matrices(g * turn) * matmul(u * unsqueeze(others, -2), vh));
  });
}

// The gradient by A of c's inner product with log det is c A^-H.
aj_status* slogdet_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &a = d.tensor(0), &sign = d.tensor(1);
    Tensor c = d.grad(1);
    if (a.is_complex()) {
      if (!c.defined()) c = zeros_like(real(sign));
      Tensor angle = d.grad(0).defined() ? -imag(conjugate(d.grad(0)) * sign) : zeros_like(c);
      c = complex(c, angle);
    } else if (!c.defined()) {
      return d.set(0, zeros_like(a));
    }
    d.set(0, over_matrices(c) * adjoint_of(std::get<0>(linalg::inv_ex(a, false))));
  });
}

aj_status* logdet_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto [sign, log_size] = in_own_name([&] { return linalg::slogdet(b.tensor(0)); });
    // The angle of a negative zero would be pi, with a singular matrix.
    if (sign.is_complex()) return b.ret(0, log(sign + 0) + log_size);
    b.ret(0, where(lt(sign, 0), std::numeric_limits<double>::quiet_NaN(), log_size));
  });
}

}  // namespace adjoin::ops
