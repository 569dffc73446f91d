// core/ops/product.cpp: shapes of matrix products, and products of every rank by mm and bmm.
#include <adjoin/kit/fits.hpp>
#include <adjoin/kit/make.hpp>
#include <cmath>

namespace adjoin::ops {
namespace {

void same_dtype(const Tensor& a, const Tensor& b) {
  want(a.dtype() == b.dtype(), "dtypes differ: ", a.dtype(), " and ", b.dtype(),
       "; cast one with .to()");
}

// The hint is given where the transpose of the second matrix would do.
void check_inner(const Tensor& a, const Tensor& b, int64_t inner, std::string_view name_a = "input",
                 std::string_view name_b = "mat2") {
  int64_t rows = b.size(b.ndim() - 2), columns = b.size(-1);
  if (inner == rows) return;
  std::string hint =
      inner == columns ? kit::text("; did you mean ", name_b, b.ndim() == 2 ? ".T?" : ".mT?") : "";
  want(inner == rows, name_a, " is ", shown(a), " and ", name_b, " is ", shown(b),
       ": the inner sizes ", inner, " and ", rows, " differ", hint);
}

void want_dims(const Tensor& t, int64_t ndim, std::string_view name) {
  want(t.ndim() == ndim, name, " must have ", ndim, ndim == 1 ? " dimension" : " dimensions",
       ", its shape is ", shown(t), "; matmul() takes others");
}

}  // namespace

aj_status* mm_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &a = c.tensor(0), &b = c.tensor(1);
    want_dims(a, 2, "input");
    want_dims(b, 2, "mat2");
    same_dtype(a, b);
    check_inner(a, b, a.size(1));
    c.out(0, a.dtype(), Sizes{a.size(0), b.size(1)});
  });
}

aj_status* bmm_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &a = c.tensor(0), &b = c.tensor(1);
    want_dims(a, 3, "input");
    want_dims(b, 3, "mat2");
    same_dtype(a, b);
    want(a.size(0) == b.size(0), "input is ", shown(a), " and mat2 is ", shown(b),
         ": the stacks differ, ", a.size(0), " and ", b.size(0));
    check_inner(a, b, a.size(2));
    c.out(0, a.dtype(), Sizes{a.size(0), a.size(1), b.size(2)});
  });
}

// Its body promotes.
aj_status* baddbmm_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &t = c.tensor(0), &a = c.tensor(1), &b = c.tensor(2);
    want_dims(a, 3, "batch1");
    want_dims(b, 3, "batch2");
    want(a.size(0) == b.size(0), "batch1 is ", shown(a), " and batch2 is ", shown(b),
         ": the stacks differ, ", a.size(0), " and ", b.size(0));
    check_inner(a, b, a.size(2), "batch1", "batch2");
    Sizes shape{a.size(0), a.size(1), b.size(2)};
    want(broadcast(t.shape(), shape) == shape, "input of shape ", shown(t),
         " does not broadcast to ", shown(shape));
    DLDataType dtype = t.dtype();
    for (const Tensor* factor : {&a, &b})
      if (factor->dtype() != dtype)
        kit::check(kit::env.core->dtype_promote(dtype, factor->dtype(), &dtype));
    c.out(0, dtype, shape);
  });
}

aj_status* addmm_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &t = c.tensor(0), &a = c.tensor(1), &b = c.tensor(2);
    want_dims(a, 2, "mat1");
    want_dims(b, 2, "mat2");
    same_dtype(a, b);
    same_dtype(t, a);
    check_inner(a, b, a.size(1), "mat1");
    Sizes shape{a.size(0), b.size(1)};
    want(broadcast(t.shape(), shape) == shape, "input of shape ", shown(t),
         " does not broadcast to ", shown(shape));
    want_whole(c.scalar(3), "beta", t.dtype());
    want_whole(c.scalar(4), "alpha", t.dtype());
    c.out(0, a.dtype(), shape);
  });
}

namespace {

void check_factors(const Tensor& x, const Tensor& w) {
  want(x.ndim() >= 1, "input must have a dimension, it is a number");
  want(w.ndim() == 1 || w.ndim() == 2, "weight must have 1 or 2 dimensions, its shape is ",
       shown(w));
  want(x.size(-1) == w.size(-1), "input is ", shown(x), " and weight is ", shown(w), ": the sizes ",
       x.size(-1), " and ", w.size(-1), " differ",
       x.size(-1) == w.size(0) ? "; did you mean weight.T?"
                               : "; input's last size must be weight's last, its in_features");
}

}  // namespace

aj_status* linear_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &x = c.tensor(0), &w = c.tensor(1), &bias = c.tensor(2);
    same_dtype(x, w);
    check_factors(x, w);
    Sizes shape = sizes_of(x);
    shape.pop_back();
    if (w.ndim() == 2) shape.push_back(w.size(0));
    if (bias.defined()) {
      same_dtype(x, bias);
      want(broadcast(bias.shape(), shape) == shape, "bias of shape ", shown(bias),
           " does not broadcast to ", shown(shape));
    }
    c.out(0, x.dtype(), shape);
  });
}

namespace {

// A factor as tensors of whole numbers take it: without its fraction.
Scalar whole_for(const Tensor& t, const Scalar& factor, std::string_view name) {
  switch (t.dtype().code) {
    case kDLBool:
      return factor.to_bool();
    case kDLInt:
    case kDLUInt:
      want_whole(factor, name, t.dtype());
      return factor.to_int();
    default:
      return factor;
  }
}

bool has_fractions(const Tensor& t) { return t.is_floating_point() || t.is_complex(); }

// beta * t + alpha * made, of their dtype; with beta 0 t is not looked at, so its NaNs vanish.
Tensor add_scaled(const Tensor& t, const Tensor& made, const Scalar& by_t, const Scalar& by_made) {
  if (has_fractions(t) != has_fractions(made))  // a factor of whole numbers keeps its fraction
    return has_fractions(t) ? add_scaled(t, to(made, t.dtype()), by_t, by_made)
                            : add_scaled(to(t, made.dtype()), made, by_t, by_made);
  const Scalar beta = whole_for(t, by_t, "beta"), alpha = whole_for(made, by_made, "alpha");
  Tensor scaled = alpha.is_integer() && alpha.to_int() == 1 ? made : made * alpha;
  if (!beta.to_bool()) {
    Tensor out = beta.is_complex() ? add(scaled, beta) : scaled;
    // The gradient of t is 0; without this there would be none.
    return t.requires_grad() ? where(zeros_like(out, boolean), t, out) : out;
  }
  return add(beta.is_integer() && beta.to_int() == 1 ? t : t * beta, scaled);
}

Tensor folded(const Tensor& t) {
  return t.ndim() == 2 ? t
                       : reshape(t, {product(t.shape().first(size_t(t.ndim() - 1))), t.size(-1)});
}

Tensor matrix_times_vector(const Tensor& m, const Tensor& v) {
  return squeeze(mm(m, unsqueeze(v, 1)), {1});
}

// All cases with a stack on at least one side.
Tensor stacked(const Tensor& a, const Tensor& b) {
  if (b.ndim() <= 2) {  // one matrix for all: the stack becomes rows
    Sizes shape(a.shape().begin(), a.shape().end() - 1);
    if (b.ndim() == 2) shape.push_back(b.size(1));
    Tensor flat = b.ndim() == 2 ? mm(folded(a), b) : matrix_times_vector(folded(a), b);
    return view(flat, shape);
  }
  Tensor left = a.ndim() == 1 ? unsqueeze(a, 0) : a;
  std::span<const int64_t> batch_a = left.shape().first(left.ndim() - 2),
                           batch_b = b.shape().first(b.ndim() - 2);
  Sizes batch = broadcast(batch_a, batch_b), wide_a = batch, wide_b = batch;
  int64_t n = product(batch), rows = left.size(-2), inner = left.size(-1), columns = b.size(-1);
  wide_a.insert(wide_a.end(), {rows, inner});
  wide_b.insert(wide_b.end(), {inner, columns});
  auto as_stack = [&](const Tensor& t, const Sizes& wide) {
    Tensor all = std::ranges::equal(t.shape(), wide) ? t : expand(t, wide);
    return all.ndim() == 3 ? all : reshape(all, {n, wide[wide.size() - 2], wide.back()});
  };
  Tensor flat = bmm(as_stack(left, wide_a), as_stack(b, wide_b));
  if (batch.size() == 1 && a.ndim() > 1) return flat;
  Sizes shape = batch;
  if (a.ndim() > 1) shape.push_back(rows);
  shape.push_back(columns);
  return reshape(flat, shape);
}

}  // namespace

aj_status* matmul_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& k) {
    const Tensor &a = k.tensor(0), &b = k.tensor(1);
    want(a.ndim() > 0 && b.ndim() > 0, "both must have a dimension: a is ", shown(a), " and b is ",
         shown(b), "; use * for numbers");
    same_dtype(a, b);
    if (b.ndim() == 1)
      want(a.size(-1) == b.size(0), "a is ", shown(a), " and b is ", shown(b), ": the inner sizes ",
           a.size(-1), " and ", b.size(0), " differ");
    else
      check_inner(a, b, a.size(-1), "a", "b");
    if (a.ndim() == 2 && b.ndim() == 2) return k.ret(0, mm(a, b));
    if (a.ndim() == 1 && b.ndim() == 1) return k.ret(0, dot(a, b));
    if (a.ndim() == 2 && b.ndim() == 1) return k.ret(0, matrix_times_vector(a, b));
    if (a.ndim() == 1 && b.ndim() == 2) return k.ret(0, squeeze(mm(unsqueeze(a, 0), b), {0}));
    k.ret(0, stacked(a, b));
  });
}

aj_status* mv_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &m = b.tensor(0), &v = b.tensor(1);
    want_dims(m, 2, "input");
    want_dims(v, 1, "vec");
    want(m.size(1) == v.size(0), "input is ", shown(m), " and vec is ", shown(v),
         ": the inner sizes ", m.size(1), " and ", v.size(0), " differ");
    b.ret(0, matrix_times_vector(m, v));
  });
}

aj_status* dot_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& k) {
    const Tensor &a = k.tensor(0), &b = k.tensor(1);
    want_dims(a, 1, "input");
    want_dims(b, 1, "tensor");
    same_dtype(a, b);
    want(a.size(0) == b.size(0), "the vectors have ", a.size(0), " and ", b.size(0), " elements");
    k.ret(0, view(mm(unsqueeze(a, 0), unsqueeze(b, 1)), Sizes()));
  });
}

aj_status* inner_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& k) {
    const Tensor &a = k.tensor(0), &b = k.tensor(1);
    if (a.ndim() == 0 || b.ndim() == 0) return k.ret(0, a * b);
    want(a.size(-1) == b.size(-1), "input is ", shown(a), " and other is ", shown(b),
         ": the last sizes differ");
    Sizes shape(a.shape().begin(), a.shape().end() - 1);
    shape.insert(shape.end(), b.shape().begin(), b.shape().end() - 1);
    k.ret(0, reshape(mm(folded(a), t(folded(b))), shape));
  });
}

aj_status* outer_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    want_dims(b.tensor(0), 1, "input");
    want_dims(b.tensor(1), 1, "vec2");
    const Tensor &x = b.tensor(0), &y = b.tensor(1);
    const bool product =
        x.is_floating_point() && x.dtype() == y.dtype();  // whose derivatives are products
    b.ret(0, product ? mm(unsqueeze(x, 1), unsqueeze(y, 0)) : unsqueeze(x, 1) * y);
  });
}

aj_status* addmm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor made = mm(b.tensor(1), b.tensor(2));
    Tensor wide = expand(b.tensor(0), made.shape());
    b.ret(0, add_scaled(wide, made, b.scalar(3), b.scalar(4)));
  });
}

namespace {

// What is added and both factors, in their common dtype: a product of bytes would go round before
// it is added to wider numbers.
struct Terms {
  explicit Terms(const kit::Body& b) : added(b.tensor(0)), left(b.tensor(1)), right(b.tensor(2)) {
    DLDataType dtype = added.dtype();
    for (const Tensor* t : {&left, &right})
      if (t->dtype() != dtype) kit::check(kit::env.core->dtype_promote(dtype, t->dtype(), &dtype));
    for (Tensor* t : {&added, &left, &right})
      if (t->dtype() != dtype) *t = to(*t, dtype);
  }
  Tensor added, left, right;
};

}  // namespace

aj_status* baddbmm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Terms t(b);
    Tensor made = bmm(t.left, t.right);
    b.ret(0, add_scaled(expand(t.added, made.shape()), made, b.scalar(3), b.scalar(4)));
  });
}

aj_status* addbmm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Terms t(b);
    Tensor made = sum(bmm(t.left, t.right), {0});
    if (made.dtype() != t.added.dtype()) made = to(made, t.added.dtype());
    b.ret(0, add_scaled(expand(t.added, made.shape()), made, b.scalar(3), b.scalar(4)));
  });
}

aj_status* addmv_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Terms t(b);
    Tensor made = mv(t.left, t.right);
    b.ret(0, add_scaled(expand(t.added, made.shape()), made, b.scalar(3), b.scalar(4)));
  });
}

aj_status* addr_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &u = b.tensor(1), &v = b.tensor(2);
    want_dims(u, 1, "vec1");
    want_dims(v, 1, "vec2");
    const Sizes shape{u.size(0), v.size(0)};
    if (x.is_floating_point() && u.dtype() == x.dtype() && v.dtype() == x.dtype() &&
        b.scalar(3) == Scalar(1))  // one pass
      return b.ret(0, addcmul(expand(x, shape), unsqueeze(u, 1), v, b.scalar(4)));
    const Terms t(b);
    for (size_t i : {3, 4}) {
      const Scalar by = b.scalar(i);
      const double factor = by.is_complex() ? 0 : by.to_double();
      want(has_fractions(t.added) || !std::isfinite(factor) || factor == std::trunc(factor),
           "For integral input tensors, argument ", i == 3 ? "beta" : "alpha",
           " must not be a floating point number: it is ", factor, ", the tensors are ",
           t.added.dtype(), "; cast them with .to()");
    }
    b.ret(0, add_scaled(expand(t.added, shape), outer(t.left, t.right), b.scalar(3), b.scalar(4)));
  });
}

aj_status* linear_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &w = b.tensor(1), &bias = b.tensor(2);
    check_factors(x, w);
    Tensor made = matmul(x, w.ndim() == 2 ? t(w) : w);
    b.ret(0, bias.defined() ? made + bias : made);
  });
}

aj_status* linear_weight_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &g = b.tensor(0), &x = b.tensor(1);
    want(x.ndim() > 0 && (g.ndim() == x.ndim() || g.ndim() == x.ndim() - 1),
         "grad must have as many dimensions as input, or one less: ", shown(g), " and ", shown(x));
    bool vector = g.ndim() < x.ndim();  // the weight was one
    Tensor made = mm(t(folded(vector ? unsqueeze(g, -1) : g)), conjugate(folded(x)));
    b.ret(0, vector ? squeeze(made, {0}) : made);
  });
}

aj_status* bilinear_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &y = b.tensor(1), &w = b.tensor(2), &bias = b.tensor(3);
    want_dims(w, 3, "weight");
    want(x.ndim() == y.ndim() && x.ndim() > 0, "inputs must have as many dimensions: ", shown(x),
         " and ", shown(y));
    want(x.size(-1) == w.size(1) && y.size(-1) == w.size(2), "weight ", shown(w),
         " does not fit inputs ", shown(x), " and ", shown(y));
    int64_t rows = x.numel() / std::max<int64_t>(x.size(-1), 1), outs = w.size(0), m = w.size(1),
            n = w.size(2);
    // x @ weight for all k at once: [rows, m] @ [m, outs * n].
    Tensor half = mm(folded(x), reshape(permute(w, {1, 0, 2}), {m, outs * n}));
    Tensor made = squeeze(bmm(reshape(half, {rows, outs, n}), unsqueeze(folded(y), 2)), {2});
    Sizes shape = sizes_of(x);
    shape.back() = outs;
    made = reshape(made, shape);
    b.ret(0, bias.defined() ? made + bias : made);
  });
}

aj_status* tensordot_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& k) {
    const Tensor &a = k.tensor(0), &b = k.tensor(1);
    int64_t n = k.integer(2);
    want(n >= 0 && n <= a.ndim() && n <= b.ndim(),
         "dims must be between 0 and the dimensions of both: ", n);
    Sizes left(a.shape().begin(), a.shape().end() - n),
        right(b.shape().begin() + n, b.shape().end());
    want(std::ranges::equal(a.shape().last(n), b.shape().first(n)), "a is ", shown(a), " and b is ",
         shown(b), ": the ", n, " sizes to sum over differ");
    int64_t inner = product(b.shape().first(n));
    Tensor made = mm(reshape(a, {product(left), inner}), reshape(b, {inner, product(right)}));
    left.insert(left.end(), right.begin(), right.end());
    k.ret(0, reshape(made, left));
  });
}

}  // namespace adjoin::ops
