// core/ops/reduce.cpp: what reduce.toml cannot say in a formula: the way back from a reduced shape,
// products with zeros, norms.
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/infer.hpp>
#include <adjoin/kit/losses.hpp>
#include <adjoin/kit/ops.hpp>
#include <algorithm>
#include <cmath>

namespace adjoin::ops {
namespace {

// A reduced tensor in the shape before, as a view.
Tensor spread(const Tensor& t, std::span<const int64_t> shape, const Ints& dim, bool keepdim) {
  Tensor out = t;
  if (!keepdim && !dim.is_none() && !dim.empty() && !shape.empty()) {
    std::vector<bool> reduced(shape.size());
    for (int64_t d : dim) reduced[size_t(wrap_dim(d, int64_t(shape.size())))] = true;
    for (size_t d = 0; d < shape.size(); ++d)
      if (reduced[d]) out = unsqueeze(out, int64_t(d));
  }
  return shape.empty() ? reshape(out, Ints(nullptr, 0)) : expand(out, shape);
}

int64_t reduced_count(const Tensor& x, const Ints& dim) {
  if (dim.is_none() || dim.empty() || x.ndim() == 0) return x.numel();
  int64_t n = 1;
  for (int64_t d : dim) n *= x.size(wrap_dim(d, x.ndim()));
  return n;
}

// Whether an element is 0, or may be: a batch has an answer for each sample, and none that can be
// read.
bool has_zero(const Tensor& x) {
  if (!x.numel()) return false;
  try {
    return !all(x.detach()).item<bool>();
  } catch (const kit::Error&) {
    if (x.has_memory()) throw;
    return true;
  }
}

// Products of all elements but one, along dim.
Tensor product_of_others(const Tensor& x, int64_t dim) {
  int64_t n = x.size(dim);
  Tensor one = ones_like(slice(x, dim, 0, 1));
  auto before = [&](const Tensor& t) {
    return cat({one, cumprod(slice(t, dim, 0, n - 1), dim)}, dim);
  };
  return before(x) * flip(before(flip(x, dim)), dim);
}

Tensor prod_gradient(const Tensor& g, const Tensor& x, const Tensor& out, int64_t dim) {
  if (!has_zero(x)) return g * kit::conj(out / x);
  return g * kit::conj(product_of_others(x, dim));
}

// Element k's share, with x[k] left out: n products of n elements; for inputs that contain zeros
// only.
Tensor cumprod_with_zeros(const Tensor& g, const Tensor& x, int64_t dim) {
  Tensor last = movedim(x, dim, -1), grad = movedim(g, dim, -1);
  int64_t n = last.size(-1);
  Tensor diagonal = eye(n, std::nullopt, boolean, x.device());
  Tensor products = cumprod(where(diagonal, 1, unsqueeze(last, -2)), -1);
  Tensor later = triu(ones({n, n}, boolean, x.device()));
  Tensor terms = where(later, unsqueeze(grad, -2) * kit::conj(products), 0);
  return movedim(sum(terms, -1), -1, dim);
}

Tensor norm_gradient(const Tensor& g, const Tensor& x, const Tensor& out, double p, const Ints& dim,
                     bool keepdim) {
  auto all_of = [&](const Tensor& t) { return spread(t, x.shape(), dim, keepdim); };
  if (p == 0) return zeros_like(x);
  if (p == 1) return all_of(g) * sgn(x);
  // Of nothing the gradient is 0, and so are its own derivatives: divided by infinity.
  auto over = [&](const Tensor& size) { return g / where(eq(out, 0), INFINITY, size); };
  if (p == 2) return x * all_of(over(out));
  if (std::isinf(p)) {
    Tensor hit = eq(abs(x), all_of(out));
    return sgn(x) * where(hit, all_of(g / sum(hit, dim, keepdim)), 0);
  }
  Tensor size = abs(x), scale = over(pow(out, p - 1));
  Tensor power = p < 2 ? sgn(x) * where(eq(size, 0), 0, pow(size, p - 1)) : x * pow(size, p - 2);
  return power * all_of(scale);
}

}  // namespace

aj_status* unreduce_body(void*, aj_call* call) {
  return kit::compose(
      call, [](kit::Body& b) { b.ret(0, spread(b.tensor(0), b.ints(1), b.ints(2), b.flag(3))); });
}

aj_status* unreduce_at_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& g = b.tensor(0);
    Ints shape = b.ints(2);
    if (shape.empty()) return b.ret(0, reshape(g, shape));
    int64_t dim = wrap_dim(b.integer(3), int64_t(shape.size()));
    bool kept = b.flag(4);
    Tensor grad = kept ? g : unsqueeze(g, dim),
           at = kept ? b.tensor(1) : unsqueeze(b.tensor(1), dim);
    b.ret(0, scatter_(zeros(shape, g.dtype(), g.device()), dim, at, Operand(grad)));
  });
}

aj_status* sum_to_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Ints shape = b.ints(1);
    want(int64_t(shape.size()) <= t.ndim(), "grad of shape ", shown(t),
         " has fewer dimensions than ", shown(shape));
    size_t lead = size_t(t.ndim()) - shape.size();
    Sizes dims;
    for (size_t d = 0; d < size_t(t.ndim()); ++d)
      if (d < lead || (shape[d - lead] == 1 && t.shape()[d] != 1)) dims.push_back(int64_t(d));
    b.ret(0, dims.empty() ? t : reshape(sum(t, dims, true), shape));
  });
}

aj_status* share_ties_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& x = b.tensor(1);
    Ints dim = b.ints(3);
    bool kept = b.flag(4);
    Tensor hit = eq(x, spread(b.tensor(2), x.shape(), dim, kept));
    Tensor share = b.tensor(0) / sum(hit, dim, kept);
    // A product: where NaN won, nothing is hit, and no element may have a gradient of zero.
    b.ret(0, spread(share, x.shape(), dim, kept) * hit);
  });
}

aj_status* var_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& x = b.tensor(1);
    Ints dim = b.ints(2);
    // As the variance is divided by nothing where fewer than nothing is left, so is this.
    double freedom = std::max(0.0, double(reduced_count(x, dim)) - (b.given(3) ? b.real(3) : 1));
    Tensor centred = x - mean(x, dim, true);
    b.ret(0, centred * spread(b.tensor(0) * (2 / freedom), x.shape(), dim, b.flag(4)));
  });
}

aj_status* prod_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &g = d.grad(0), &out = d.tensor(1);
    Tensor x = to(d.tensor(0), out.dtype());
    if (!d.given(2) || x.ndim() == 0) {
      Tensor flat = reshape(x, -1);
      return d.set(0, reshape(prod_gradient(reshape(g, -1), flat, reshape(out, -1), 0), x.shape()));
    }
    int64_t dim = wrap_dim(d.integer(2), x.ndim());
    bool kept = d.flag(3);
    d.set(0, prod_gradient(kept ? g : unsqueeze(g, dim), x, kept ? out : unsqueeze(out, dim), dim));
  });
}

aj_status* cumprod_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &g = d.grad(0), &out = d.tensor(1);
    Tensor x = to(d.tensor(0), out.dtype());
    if (x.ndim() == 0 || x.numel() == 0) return d.set(0, g);
    int64_t dim = wrap_dim(d.integer(2), x.ndim());
    if (has_zero(x)) return d.set(0, cumprod_with_zeros(g, x, dim));
    d.set(0, flip(cumsum(flip(g * kit::conj(out), dim), dim), dim) / kit::conj(x));
  });
}

aj_status* vector_norm_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    d.set(0, norm_gradient(d.grad(0), d.tensor(0), d.tensor(1), d.real(2), d.ints(3), d.flag(4)));
  });
}

aj_status* norm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor x = b.given(4) ? to(b.tensor(0), b.dtype(4)) : b.tensor(0);
    b.ret(0, vector_norm(x, b.given(1) ? b.scalar(1) : Scalar(2), b.ints(2), b.flag(3)));
  });
}

aj_status* norm_name_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor x = b.given(4) ? to(b.tensor(0), b.dtype(4)) : b.tensor(0);
    if (b.text(1) == "nuc") {  // of a pack
      Sizes dims{-2, -1};
      if (b.given(2)) dims.assign(b.ints(2).begin(), b.ints(2).end());
      return b.ret(0, adjoin::call("linalg::matrix_norm", x, b.text(1), dims, b.flag(3)));
    }
    want(b.text(1) == "fro", "the norm '", b.text(1),
         "' is not known here; 'fro', 'nuc' and numbers are");
    b.ret(0, vector_norm(x, 2, b.ints(2), b.flag(3)));
  });
}

aj_status* nansum_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& x = b.tensor(0);
    const Ints dim = b.ints(1);
    const bool kept = b.flag(2);
    std::optional<DLDataType> dtype;
    if (b.given(3)) dtype = b.dtype(3);
    bool whole =
        dtype && dtype->code != kDLComplex && dtype->code != kDLFloat && dtype->code != kDLBfloat;
    if (is_integral(x)) return b.ret(0, sum(x, dim, kept, dtype));
    if (whole)
      return b.ret(0, sum(where(isnan(x), 0, x), dim, kept, dtype));  // which have no NaN to show
    Tensor total = sum(x, dim, kept, dtype);
    // A sum that is a number had none but numbers to add; asking a processor further away costs
    // more.
    if (x.has_memory() && x.device().device_type == kDLCPU && has_values(x) &&
        !any(isnan(total.detach())).item<bool>())
      return b.ret(0, total);
    b.ret(0, sum(where(isnan(x), 0, x), dim, kept, dtype));
  });
}

namespace {

bool is_half(DLDataType d) { return d == float16 || d == bfloat16; }

}  // namespace

// Whole numbers are averaged as mean() does, whose sum goes round no ends.
aj_status* nanmean_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& x = b.tensor(0);
    const Ints dim = b.ints(1);
    const bool kept = b.flag(2);
    std::optional<DLDataType> dtype;
    if (b.given(3)) dtype = b.dtype(3);
    if (is_integral(x)) return b.ret(0, mean(x, dim, kept, dtype));
    const DLDataType rounded = dtype.value_or(x.dtype());
    if (is_half(rounded)) dtype = float32;
    Tensor out = nansum(x, dim, kept, dtype) / sum(logical_not(isnan(x)), dim, kept);
    b.ret(0, is_half(rounded) ? to(out, rounded) : out);
  });
}

// Where a backend has no kernel. The variance of halves may be beyond their range where its root is
// not.
aj_status* std_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    const bool half = is_half(t.dtype());
    Tensor out = sqrt(
        var(half ? to(t, float32) : t, b.ints(1), b.given(2) ? b.scalar(2) : Scalar(), b.flag(3)));
    b.ret(0, half ? to(out, t.dtype()) : out);
  });
}

aj_status* aminmax_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Ints dim = b.given(1) ? Ints(b.integer(1)) : Ints();
    b.ret(0, amin(b.tensor(0), dim, b.flag(2)));
    b.ret(1, amax(b.tensor(0), dim, b.flag(2)));
  });
}

aj_status* logsumexp_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor x =
        is_integral(b.tensor(0)) ? to(b.tensor(0), kit::env.core->default_dtype()) : b.tensor(0);
    Ints dim = b.ints(1);
    bool kept = b.flag(2);
    if (x.numel() == 0) return b.ret(0, log(sum(exp(x), dim, kept)));
    Tensor top = amax(x.is_complex() ? real(x) : x, dim, true);
    top = where(isfinite(top), top, 0);
    Tensor total = log(sum(exp(x - top), dim, true)) + top;
    if (!kept && x.ndim()) total = dim.empty() ? reshape(total, Sizes()) : squeeze(total, dim);
    b.ret(0, total);
  });
}

}  // namespace adjoin::ops
