// plugins/ops_linalg/solutions.cpp: what stands on factorisations: pseudoinverses, ranks, condition
// numbers, least squares, the exponential, equations of tensors.
#include <cmath>
#include <functional>

#include "matrices.hpp"

namespace adjoin::ops {
namespace {

double precision_of(DLDataType d) {
  return real_of(d).bits == 32 ? std::numeric_limits<float>::epsilon()
                               : std::numeric_limits<double>::epsilon();
}
// The relative tolerance where none is given.
double usual_tolerance(const Tensor& a) {
  return precision_of(a.dtype()) * double(std::max(a.size(-2), a.size(-1)));
}

// Below it a singular value counts as zero: of each matrix max(atol, rtol * largest), as a column.
Tensor least_counted(const Tensor& a, const Tensor& values, const Operand& atol,
                     const Operand& rtol) {
  Tensor largest = amax(values, -1, true);
  auto column = [](const Operand& x) -> Tensor {
    return x.is_tensor() && x.tensor().ndim() ? unsqueeze(x.tensor(), -1) : x.tensor();
  };
  auto times_largest = [&](const Operand& x) {
    return x.is_tensor() ? largest * column(x) : largest * x;
  };
  const double usual = usual_tolerance(a);
  if (atol.is_none()) return rtol.is_none() ? largest * usual : times_largest(rtol);
  Tensor absolute = atol.is_tensor() ? column(atol) : Tensor();
  Tensor relative;
  if (!rtol.is_none())
    relative = times_largest(rtol);
  else if (absolute.defined())
    relative = where(gt(absolute, 0), zeros_like(largest), largest * usual);
  else
    relative = atol.number().to_double() > 0 ? zeros_like(largest) : largest * usual;
  return absolute.defined() ? maximum(relative, absolute)
                            : clamp(relative, atol.number().to_double());
}

Tensor pseudoinverse(const Tensor& a, const Operand& atol, const Operand& rtol, bool hermitian) {
  if (hermitian) want_square(a);
  if (least_size(a) == 0) return zeros_like(transpose(a, -2, -1));
  auto inverted = [&](const Tensor& sizes, const Tensor& values) {
    return where(gt(sizes, least_counted(a, sizes, atol, rtol)), reciprocal(values), 0);
  };
  auto scaled = [&](const Tensor& columns, const Tensor& by) {
    Tensor row = unsqueeze(by, -2);
    return columns * (a.is_complex() ? to(row, a.dtype()) : row);
  };
  if (hermitian) {
    auto [l, v] = linalg::eigh(a);
    return matmul(scaled(v, inverted(abs(l), l)), adjoint_of(v));
  }
  auto [u, s, vh] = linalg::svd(a, false);
  return matmul(scaled(adjoint_of(vh), inverted(s, s)), adjoint_of(u));
}

void pinv_of(const kit::Body& b, const Operand& atol, const Operand& rtol, bool hermitian) {
  const Tensor& a = numbers_in(b, 0);
  want_matrix(a);
  b.ret(0, in_own_name([&] { return pseudoinverse(a, atol, rtol, hermitian); }));
}

}  // namespace

aj_status* pinv_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_matrix(a);
    Sizes shape = sizes_of(a);
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    c.out(0, a.dtype(), shape);
  });
}
aj_status* pinv_body(void*, aj_call* call) {
  return kit::compose(call,
                      [](kit::Body& b) { pinv_of(b, b.operand(1), b.operand(2), b.flag(3)); });
}
aj_status* pinv_rcond_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { pinv_of(b, Operand(), b.operand(1), b.flag(2)); });
}
aj_status* pinverse_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { pinv_of(b, Operand(), b.operand(1), false); });
}

// dK = -K dA K + K K^H dA^H (1 - A K) + (1 - K A) dA^H K^H K, where the rank does not change (G.
// Golub and V. Pereyra, 1973).
aj_status* pinv_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &a = d.tensor(0), &k = d.tensor(1), &g = d.grad(0);
    Tensor gh = adjoint_of(g), kh = adjoint_of(k);
    Tensor out = -matmul(kh, matmul(g, kh));
    Tensor right = matmul(matmul(gh, k), kh);
    out = out + right - matmul(a, matmul(k, right));
    Tensor left = matmul(kh, matmul(k, gh));
    d.set(0, out + left - matmul(matmul(left, k), a));
  });
}

namespace {

void rank_of(const kit::Body& b, const Operand& atol, const Operand& rtol, bool hermitian) {
  NoGradGuard off;
  const Tensor& a = numbers_in(b, 0);
  want_matrix(a);
  if (least_size(a) == 0) return b.ret(0, zeros(batch_of(a), int64, a.device()));
  b.ret(0, in_own_name([&] {
          Tensor s = hermitian ? abs(linalg::eigvalsh(a)) : linalg::svdvals(a);
          return sum(gt(s, least_counted(a, s, atol, rtol)), -1);
        }));
}

}  // namespace

aj_status* rank_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_matrix(a);
    c.out(0, int64, batch_of(a));
  });
}
aj_status* rank_body(void*, aj_call* call) {
  return kit::compose(call,
                      [](kit::Body& b) { rank_of(b, b.operand(1), b.operand(2), b.flag(3)); });
}
aj_status* rank_tol_body(void*, aj_call* call) {
  return kit::compose(
      call, [](kit::Body& b) { rank_of(b, b.operand(1), Operand(Scalar(0.0)), b.flag(2)); });
}

namespace {

// Of a singular matrix infinite.
Tensor condition_by_inverse(const Tensor& a, const std::function<Tensor(const Tensor&)>& norm) {
  want_square(a);
  auto [inverse, info] = linalg::inv_ex(a);
  const Tensor singular =
      ne(info, 0);  // what stands in its inverse has no norm that all would take
  inverse = where(unsqueeze(unsqueeze(singular, -1), -1), 0, inverse);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return where(singular, infinity, norm(a) * norm(inverse));
}

void condition(const kit::Body& b, const Tensor& a) {
  if (least_size(a) == 0) return b.ret(0, zeros(batch_of(a), real_of(a.dtype()), a.device()));
  const double p = b.given(1) ? b.real(1) : 2;
  if (std::fabs(p) == 2) {
    Tensor s = linalg::svdvals(a), most = select(s, -1, 0), least = select(s, -1, -1);
    return b.ret(0, p > 0 ? most / least : least / most);
  }
  if (std::fabs(p) != 1 && !std::isinf(p))
    kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "p ", p,
                  " is not known; 1, -1, 2, -2, inf, -inf, 'fro' and 'nuc' are");
  b.ret(0, condition_by_inverse(a, [&](const Tensor& t) { return linalg::matrix_norm(t, p); }));
}

}  // namespace

aj_status* cond_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& a = numbers_in(b, 0);
    want_matrix(a);
    in_own_name([&] { condition(b, a); });
  });
}
aj_status* cond_name_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& a = numbers_in(b, 0);
    want_matrix(a);
    if (least_size(a) == 0) return b.ret(0, zeros(batch_of(a), real_of(a.dtype()), a.device()));
    std::string_view name = b.text(1);
    if (name != "fro" && name != "nuc")
      kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "p '", name,
                    "' is not known; 1, -1, 2, -2, inf, -inf, 'fro' and 'nuc' are");
    b.ret(0, in_own_name([&] {
            return condition_by_inverse(
                a, [&](const Tensor& t) { return linalg::matrix_norm(t, name); });
          }));
  });
}

namespace {

struct Equations {
  Tensor a, right;
  bool vector;
};

Equations least_squares_of(const kit::Body& b) {
  Equations e{numbers_in(b, 0), b.tensor(1), false};
  want_matrix(e.a);
  Sizes of_vectors = sizes_of(e.a);
  of_vectors.pop_back();
  e.vector = e.right.ndim() == 1 || sizes_of(e.right) == of_vectors;
  if (e.vector) e.right = unsqueeze(e.right, -1);
  want_matrix(e.right);
  want(e.right.dtype() == e.a.dtype(), "dtypes differ: ", e.a.dtype(), " and ", e.right.dtype());
  want(e.right.size(-2) == e.a.size(-2), "sizes differ: A is ", shown(e.a), " and B is ",
       shown(b.tensor(1)), ", so ", e.a.size(-2), " and ", e.right.size(-2), " rows differ");
  return e;
}

// Of matrices of full rank.
Tensor solution_by_qr(const Tensor& a, const Tensor& right) {
  if (a.size(-2) >= a.size(-1)) {
    auto [q, r] = linalg::qr(a);
    return linalg::solve_triangular(r, matmul(adjoint_of(q), right), true);
  }
  auto [q, r] = linalg::qr(adjoint_of(a));
  return matmul(q, linalg::solve_triangular(adjoint_of(r), right, false));
}

}  // namespace

aj_status* lstsq_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Equations e = least_squares_of(b);
    const std::string_view driver = b.given(3) ? b.text(3) : "gelsy";
    want(driver == "gels" || driver == "gelsy" || driver == "gelsd" || driver == "gelss",
         "driver must be gels, gelsy, gelsd or gelss: '", driver, "'");
    const bool full = driver == "gels", tells = driver == "gelsd" || driver == "gelss";
    const int64_t m = e.a.size(-2), n = e.a.size(-1);
    DLDataType number = real_of(e.a.dtype());
    Tensor none = empty({0}, number, e.a.device()), rank = empty({0}, int64, e.a.device()),
           values = none, residuals = none;
    in_own_name([&] {
      const double usual = usual_tolerance(e.a), given = b.given(2) ? b.real(2) : usual;
      double rcond = given < 0 ? usual : given;
      // As LAPACK's drivers: gelsd takes no share from 1 on, gelsy keeps what is just as large.
      if (driver == "gelsd" && rcond >= 1) rcond = precision_of(e.a.dtype());
      if (driver == "gelsy") rcond *= 1 - 8 * precision_of(e.a.dtype());
      if (!full) {
        NoGradGuard off;
        Tensor s = linalg::svdvals(e.a.detach());
        rank = least_size(e.a) ? sum(gt(s, amax(s, -1, true) * rcond), -1)
                               : zeros(batch_of(e.a), int64, e.a.device());
        if (tells) values = s;
      }
      Tensor x = full ? solution_by_qr(e.a, e.right)
                      : matmul(linalg::pinv(e.a, Operand(), Operand(Scalar(rcond))), e.right);
      const bool certain = full || (tells && !any(lt(rank, n)).item<bool>());
      if (m > n && certain) residuals = sum(square(abs(matmul(e.a, x) - e.right)), -2);
      b.ret(0, e.vector ? squeeze(x, -1) : x);
    });
    if (e.vector && residuals.numel()) residuals = squeeze(residuals, -1);
    b.ret(1, residuals), b.ret(2, rank), b.ret(3, values);
  });
}

aj_status* ormqr_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &v = numbers_in(b, 0), &tau = b.tensor(1), &other = b.tensor(2);
    want_matrix(v);
    want_matrix(other);
    const bool left = b.flag(3);
    const int64_t m = v.size(-2), n = v.size(-1), k = tau.ndim() ? tau.size(-1) : 0;
    want(other.size(left ? -2 : -1) == m && k <= std::min(m, n), "the vectors ", shown(v), ", tau ",
         shown(tau), " and other ", shown(other), " do not fit");
    in_own_name([&] {
      Sizes rest = sizes_of(v);
      rest.back() = m - k;
      Tensor all = cat({narrow(v, -1, 0, k), zeros_of(v, rest)}, -1);
      Tensor q = linalg::householder_product(all, tau);
      if (b.flag(4)) q = adjoint_of(q);
      b.ret(0, left ? matmul(q, other) : matmul(other, q));
    });
  });
}

namespace {

// Pade's approximation of order 13 (N. Higham, The scaling and squaring method, 2005).
Tensor pade(const Tensor& a) {
  constexpr double b[] = {64764752532480000.,
                          32382376266240000.,
                          7771770303897600.,
                          1187353796428800.,
                          129060195264000.,
                          10559470521600.,
                          670442572800.,
                          33522128640.,
                          1323241920.,
                          40840800.,
                          960960.,
                          16380.,
                          182.,
                          1.};
  auto c = [&](int i) { return b[i] / b[0]; };
  Tensor one = eye(a.size(-1), std::nullopt, a.dtype(), a.device());
  Tensor a2 = matmul(a, a), a4 = matmul(a2, a2), a6 = matmul(a4, a2);
  Tensor odd = matmul(a6, a6 * c(13) + a4 * c(11) + a2 * c(9)) + a6 * c(7) + a4 * c(5) + a2 * c(3);
  Tensor even = matmul(a6, a6 * c(12) + a4 * c(10) + a2 * c(8)) + a6 * c(6) + a4 * c(4) + a2 * c(2);
  Tensor u = matmul(a, odd + one * c(1)), v = even + one;
  return std::get<0>(linalg::solve_ex(v - u, v + u));
}

Tensor exponential(const Tensor& a) {
  if (a.numel() == 0) return clone(a);
  constexpr double reach = 5.3;  // of the approximation, in the 1-norm
  Tensor size = linalg::matrix_norm(a, 1);
  Tensor halvings = ceil(log2(size / reach));
  halvings = where(logical_and(isfinite(halvings), gt(halvings, 0)), halvings, 0);
  Tensor each = unsqueeze(unsqueeze(halvings, -1), -1);
  Tensor x = pade(a * exp2(-each));
  const int64_t most = int64_t(amax(halvings).item<double>());
  for (int64_t i = 0; i < most; ++i) x = where(gt(each, i), matmul(x, x), x);
  return x;
}

}  // namespace

aj_status* square_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_square(a);
    c.out(0, a.dtype(), a.shape());
  });
}
aj_status* matrix_exp_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const bool half = b.tensor(0).is_floating_point() && b.tensor(0).dtype().bits == 16;
    const Tensor a = half ? to(b.tensor(0), float32) : numbers_in(b, 0);
    want_square(a);
    Tensor made = in_own_name([&] { return exponential(a); });
    b.ret(0, half ? to(made, b.tensor(0).dtype()) : made);
  });
}
// exp of [[A^H, g], [0, A^H]] holds the gradient beside exp(A^H) (R. Mathias, 1996).
aj_status* matrix_exp_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const int64_t n = d.tensor(0).size(-1);
    Tensor a = adjoint_of(d.tensor(0));
    Tensor all = cat({cat({a, d.grad(0)}, -1), cat({zeros_like(a), a}, -1)}, -2);
    d.set(0, narrow(narrow(linalg::matrix_exp(all), -2, 0, n), -1, n, n));
  });
}

namespace {

int64_t product_of(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

}  // namespace

aj_status* tensorinv_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& a = numbers_in(b, 0);
    const int64_t ind = b.integer(1);
    want(ind > 0 && ind <= a.ndim(), "ind must be from 1 to ", a.ndim(), ": ", ind);
    Sizes first(a.shape().begin(), a.shape().begin() + ind),
        last(a.shape().begin() + ind, a.shape().end());
    const int64_t n = product_of(first);
    want(n == product_of(last), "the first ", ind, " dimensions of ", shown(a), " hold ", n,
         " elements, the others ", product_of(last));
    last.insert(last.end(), first.begin(), first.end());
    b.ret(0, in_own_name([&] { return reshape(linalg::inv(reshape(a, {n, n})), last); }));
  });
}

aj_status* tensorsolve_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor a = numbers_in(b, 0);
    const Tensor& right = b.tensor(1);
    if (Ints moved = b.ints(2); !moved.is_none()) {
      Sizes to(moved.size());
      for (size_t i = 0; i < to.size(); ++i) to[i] = a.ndim() - int64_t(to.size() - i);
      a = in_own_name([&] { return movedim(a, moved, to); });
    }
    want(right.dtype() == a.dtype(), "dtypes differ: ", a.dtype(), " and ", right.dtype());
    want(a.ndim() >= right.ndim(), "the tensor A ", shown(a), " has fewer dimensions than B ",
         shown(right));
    Sizes shape(a.shape().begin() + right.ndim(), a.shape().end());
    const int64_t n = product_of(shape);
    want(right.numel() == n && a.numel() == n * n, "the tensor A ", shown(a),
         " is no square matrix beside B ", shown(right));
    b.ret(0, in_own_name([&] {
            return reshape(linalg::solve(reshape(a, {n, n}), reshape(right, {n})), shape);
          }));
  });
}

}  // namespace adjoin::ops
