// plugins/ops_linalg/spectral.cpp: QR, eigenvalues and singular values, and their derivatives
// (M. Giles, An extended collection of matrix derivative results, 2008; for complex numbers
// Z. Wan and S. Zhang, Automatic differentiation for complex valued SVD, 2019).
#include "matrices.hpp"

namespace adjoin::ops {

aj_status* geqrf_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_matrix(a);
    Sizes tau = batch_of(a);
    tau.push_back(least_size(a));
    out_by_columns(c, 0, a.dtype(), a.shape());
    c.out(1, a.dtype(), tau);
  });
}

aj_status* householder_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &a = numbers_in(c, 0), &tau = c.tensor(1);
    want_matrix(a);
    want(a.size(-2) >= a.size(-1), "no more columns than rows are wanted, the shape is ", shown(a));
    want_dtype(tau, "tau", a.dtype());
    want(tau.ndim() == a.ndim() - 1 && tau.size(-1) <= a.size(-1) &&
             std::equal(tau.shape().begin(), tau.shape().end() - 1, a.shape().begin()),
         "tau ", shown(tau), " does not fit the vectors ", shown(a));
    out_by_columns(c, 0, a.dtype(), a.shape());
  });
}

// By reflections, the last first: each is taken from Q, and its gradient read off what is left.
aj_status* householder_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &a = d.tensor(0), &tau = d.tensor(1);
    const int64_t m = a.size(-2), n = a.size(-1), k = tau.size(-1);
    Tensor below = tril(a, -1) + eye(m, n, a.dtype(), a.device());
    // Q = H(0) ... H(k-1) E. x(j) = H(j) ... E; backwards through x(j) = H(j) x(j + 1).
    std::vector<Tensor> v, t, x(size_t(k) + 1);
    for (int64_t j = 0; j < k; ++j) {
      v.push_back(narrow(below, -1, j, 1));
      t.push_back(unsqueeze(narrow(tau, -1, j, 1), -1));
    }
    Sizes shape = sizes_of(a);
    x[size_t(k)] = expand(eye(m, n, a.dtype(), a.device()), shape);
    for (int64_t j = k; j-- > 0;) {
      const Tensor &u = v[size_t(j)], &next = x[size_t(j) + 1];
      x[size_t(j)] = next - t[size_t(j)] * matmul(u, matmul(adjoint_of(u), next));
    }
    Tensor g = d.grad(0);
    std::vector<Tensor> by_v, by_tau;
    for (int64_t j = 0; j < k; ++j) {
      const Tensor &u = v[size_t(j)], &next = x[size_t(j) + 1];
      Tensor left = matmul(adjoint_of(u), g), right = matmul(adjoint_of(u), next);  // rows
      by_tau.push_back(-squeeze(matmul(left, adjoint_of(right)), -1));
      by_v.push_back(-(conjugate(t[size_t(j)]) * matmul(g, adjoint_of(right)) +
                       t[size_t(j)] * matmul(next, adjoint_of(left))));
      g = g - conjugate(t[size_t(j)]) * matmul(u, left);
    }
    if (d.need(0)) {
      if (n > k) by_v.push_back(zeros_like(narrow(a, -1, k, n - k)));
      d.set(0, k ? tril(cat(by_v, -1), -1) : zeros_like(a));
    }
    if (d.need(1)) {
      d.set(1, k ? cat(by_tau, -1) : zeros_like(tau));
    }
  });
}

aj_status* qr_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_matrix(a);
    const std::string_view mode = c.text(1);
    want(mode == "reduced" || mode == "complete" || mode == "r",
         "the mode must be reduced, complete or r: '", mode, "'");
    const int64_t m = a.size(-2), n = a.size(-1), k = mode == "complete" ? m : std::min(m, n);
    Sizes q = batch_of(a), r = q;
    q.push_back(m), q.push_back(k), r.push_back(k), r.push_back(n);
    if (mode == "r")
      c.out(0, a.dtype(), Sizes{0});
    else
      out_by_columns(c, 0, a.dtype(), q);
    out_by_columns(c, 1, a.dtype(), r);
  });
}

// A = Q R, M the lower half of R gR^H - gQ^H Q and its mirror image: (gQ + Q M) R^-H.
aj_status* qr_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &q = d.tensor(0), &r = d.tensor(1), &gq = d.grad(0), &gr = d.grad(1);
    const std::string_view mode = d.text(2);
    if (mode == "r")
      kit::raise(AJ_INVALID_ARGUMENT, "qr: the derivative needs Q, which the mode 'r' leaves out; ",
                 "take the mode 'reduced'");
    const int64_t m = q.size(-2), n = r.size(-1), k = std::min(m, n);
    if (mode == "complete" && m > n)
      kit::raise(AJ_INVALID_ARGUMENT, "qr: with ", m, " rows and ", n, " columns the last columns ",
                 "of a complete Q are any, so there is no derivative; take the mode 'reduced'");
    Tensor square = narrow(r, -1, 0, k), beside = n > k ? narrow(r, -1, k, n - k) : Tensor();
    Tensor g = gq, g_square, g_beside;
    if (gr.defined()) {
      g_square = narrow(gr, -1, 0, k);
      if (n > k) {  // R = [U V], A = [Q U, Q V]
        Tensor gv = narrow(gr, -1, k, n - k);
        g_beside = matmul(q, gv);
        Tensor more = matmul(matmul(q, beside), adjoint_of(gv));
        g = g.defined() ? g + more : more;
      }
    }
    Tensor middle;
    if (g_square.defined()) middle = matmul(square, adjoint_of(g_square));
    if (g.defined()) {
      Tensor own = matmul(adjoint_of(g), q);
      middle = middle.defined() ? middle - own : -own;
    }
    Tensor out = matmul(q, hermitian_of_lower(middle));
    if (g.defined()) out = out + g;
    out = solve_triangle(adjoint_of(square), out, false, false);
    if (n > k) {
      if (!g_beside.defined()) g_beside = zeros_like(matmul(q, beside));
      out = cat({out, g_beside}, -1);
    }
    d.set(0, out);
  });
}

aj_status* old_qr_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret_all(
        in_own_name([&] { return linalg::qr(b.tensor(0), b.flag(1) ? "reduced" : "complete"); }));
  });
}

namespace {

void want_side(std::string_view side) {
  want(side == "L" || side == "U" || side == "l" || side == "u", "UPLO must be L or U: '", side,
       "'");
}
Sizes with(Sizes shape, int64_t n) {
  shape.push_back(n);
  return shape;
}
// Is a derivative by t going to be asked for?
// Or a tensor of a transform, which may stand for one.
bool is_recorded(const Tensor& t) {
  return (t.requires_grad() && kit::env.autograd->grad_mode()) || !t.has_memory();
}

}  // namespace

aj_status* eigh_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_square(a);
    want_side(c.text(1));
    c.out(0, real_of(a.dtype()), with(batch_of(a), a.size(-1)));
    if (c.flag(2))
      out_by_columns(c, 1, a.dtype(), a.shape());
    else
      c.out(1, a.dtype(), Sizes{0});
  });
}

namespace {

// x[j] - x[i] for i, j; 1 on the diagonal.
Tensor gaps(const Tensor& x) {
  Tensor one = eye(x.size(-1), std::nullopt, boolean, x.device());
  Tensor d = unsqueeze(x, -2) - unsqueeze(x, -1);
  return where(one, ones_like(d), d);
}
Tensor skew(const Tensor& t) { return t - adjoint_of(t); }
Tensor diagonal_of(const Tensor& t) { return adjoin::diagonal(t, 0, -2, -1); }
Tensor as_numbers_of(const Tensor& t, const Tensor& like) {
  return t.dtype() == like.dtype() ? t : to(t, like.dtype());
}

}  // namespace

// V (diag(gL) + (V^H gV)' / (lj - li)) V^H, ' the skew part. Of eigenvalues alone nothing is
// divided.
aj_status* eigh_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &l = d.tensor(0), &v = d.tensor(1), &gl = d.grad(0), &gv = d.grad(1);
    if (!gv.defined()) {
      if (gl.defined()) d.set(0, matmul(v * unsqueeze(as_numbers_of(gl, v), -2), adjoint_of(v)));
      return;
    }
    Tensor middle = skew(matmul(adjoint_of(v), gv)) * 0.5 / gaps(l);
    middle = middle - diag_embed(diagonal_of(middle));
    if (gl.defined()) middle = middle + diag_embed(as_numbers_of(gl, v));
    d.set(0, matmul(v, matmul(middle, adjoint_of(v))));
  });
}

aj_status* linalg_eigh_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret_all(in_own_name([&] { return eigh_stack(b.tensor(0), b.text(1), true); }));
  });
}
aj_status* eigvalsh_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& a = b.tensor(0);
    b.ret(0, in_own_name([&] { return std::get<0>(eigh_stack(a, b.text(1), is_recorded(a))); }));
  });
}

aj_status* svd_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_matrix(a);
    const int64_t m = a.size(-2), n = a.size(-1), k = least_size(a);
    const bool full = c.flag(1);
    c.out(1, real_of(a.dtype()), with(batch_of(a), k));
    if (!c.flag(2)) {
      c.out(0, a.dtype(), Sizes{0});
      return c.out(2, a.dtype(), Sizes{0});
    }
    out_by_columns(c, 0, a.dtype(), with(with(batch_of(a), m), full ? m : k));
    out_by_columns(c, 2, a.dtype(), with(with(batch_of(a), full ? n : k), n));
  });
}

// U ((skew(U^H gU) / E) S + S (skew(V^H gV) / E) + gS) V^H and what leaves the spaces of U and V;
// E = sj^2 - si^2.
aj_status* svd_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &s = d.tensor(1), &gs = d.grad(1);
    const int64_t k = s.size(-1);
    auto first = [&](const Tensor& t, int64_t dim) {
      return t.defined() && t.size(dim) != k ? narrow(t, dim, 0, k) : t;
    };
    Tensor u = first(d.tensor(0), -1), v = adjoint_of(first(d.tensor(2), -2));
    Tensor gu = first(d.grad(0), -1), gv = first(d.grad(2), -2);
    if (gv.defined()) gv = adjoint_of(gv);
    if (!gu.defined() && !gv.defined()) {
      if (gs.defined()) d.set(0, matmul(u * unsqueeze(as_numbers_of(gs, u), -2), adjoint_of(v)));
      return;
    }
    Tensor row = unsqueeze(as_numbers_of(s, u), -2), column = unsqueeze(as_numbers_of(s, u), -1);
    Tensor e = gaps(square(s)), middle;
    auto add = [&](const Tensor& t) { middle = middle.defined() ? middle + t : t; };
    auto without_diagonal = [](const Tensor& t) { return t - diag_embed(diagonal_of(t)); };
    if (gu.defined()) add(without_diagonal(skew(matmul(adjoint_of(u), gu)) / e) * row);
    if (gv.defined()) add(without_diagonal(skew(matmul(adjoint_of(v), gv)) / e) * column);
    if (u.is_complex() && gu.defined())
      add(diag_embed(diagonal_of(skew(matmul(adjoint_of(u), gu))) / as_numbers_of(s * 2, u)));
    if (gs.defined()) add(diag_embed(as_numbers_of(gs, u)));
    Tensor out = matmul(u, matmul(middle, adjoint_of(v)));
    if (gu.defined() && u.size(-2) > k) {
      Tensor scaled = gu / row;
      out = out + matmul(scaled - matmul(u, matmul(adjoint_of(u), scaled)), adjoint_of(v));
    }
    if (gv.defined() && v.size(-2) > k) {
      Tensor scaled = gv / row;
      out = out + matmul(u, adjoint_of(scaled - matmul(v, matmul(adjoint_of(v), scaled))));
    }
    d.set(0, out);
  });
}

namespace {

void check_driver(const kit::Body& b, uint32_t i) {
  if (!b.given(i)) return;
  const std::string_view driver = b.text(i);
  want(driver.empty(), "driver '", driver, "' is one of CUDA's; leave it out");
}

}  // namespace

aj_status* linalg_svd_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    check_driver(b, 2);
    b.ret_all(in_own_name([&] { return svd_stack(b.tensor(0), b.flag(1), true); }));
  });
}
aj_status* svdvals_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    check_driver(b, 1);
    const Tensor& a = b.tensor(0);
    b.ret(0, in_own_name([&] { return std::get<1>(svd_stack(a, false, is_recorded(a))); }));
  });
}
aj_status* old_svd_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& a = numbers_in(b, 0);
    want_matrix(a);
    const bool some = b.flag(1);
    if (!b.flag(2)) {  // zeros in the places of U and V
      b.ret(1, in_own_name([&] { return linalg::svdvals(a); }));
      b.ret(0, zeros_of(a, with(with(batch_of(a), a.size(-2)), a.size(-2))));
      return b.ret(2, zeros_of(a, with(with(batch_of(a), a.size(-1)), a.size(-1))));
    }
    auto [u, s, vh] = in_own_name([&] { return linalg::svd(a, !some); });
    b.ret(0, u), b.ret(1, s), b.ret(2, adjoint_of(vh));
  });
}

namespace {

DLDataType complex_of(DLDataType d) {
  return d.code == kDLComplex ? d : DLDataType{kDLComplex, uint8_t(d.bits * 2), 1};
}

}  // namespace

aj_status* eig_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_square(a);
    c.out(0, complex_of(a.dtype()), with(batch_of(a), a.size(-1)));
    if (c.flag(1))
      out_by_columns(c, 1, complex_of(a.dtype()), a.shape());
    else
      c.out(1, complex_of(a.dtype()), Sizes{0});
  });
}

// V^-H (diag(gL) + (V^H gV - V^H V Re diag(V^H gV)) / conj(lj - li)) V^H.
aj_status* eig_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &l = d.tensor(1), &v = d.tensor(2), &gl = d.grad(0), &gv = d.grad(1);
    Tensor middle;
    if (gv.defined()) {
      Tensor own = matmul(adjoint_of(v), gv);
      Tensor along = unsqueeze(as_numbers_of(real(diagonal_of(own)), v), -2);
      middle = (own - matmul(adjoint_of(v), v * along)) / conjugate(gaps(l));
      middle = middle - diag_embed(diagonal_of(middle));
    }
    if (gl.defined()) middle = middle.defined() ? middle + diag_embed(gl) : diag_embed(gl);
    if (!middle.defined()) return;
    Tensor out = std::get<0>(solve_stack(adjoint_of(v), matmul(middle, adjoint_of(v)), false));
    d.set(0, d.tensor(0).is_complex() ? out : real(out));
  });
}

aj_status* linalg_eig_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret_all(in_own_name([&] { return eig_stack(b.tensor(0), true); }));
  });
}
aj_status* eigvals_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& a = b.tensor(0);
    b.ret(0, in_own_name([&] { return std::get<0>(eig_stack(a, is_recorded(a))); }));
  });
}

}  // namespace adjoin::ops
