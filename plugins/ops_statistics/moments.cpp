// plugins/ops_statistics/moments.cpp: differences, integrals and covariances by sums and products.
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {

aj_status* diff_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t n = b.integer(1), d = b.integer(2);
    want(t.ndim() > 0, "at least one dimension is wanted, this is a number");
    want(n >= 0, "n must not be negative: ", n);
    std::vector<Tensor> parts;
    if (b.given(3)) parts.push_back(b.tensor(3));
    parts.push_back(t);
    if (b.given(4)) parts.push_back(b.tensor(4));
    for (const Tensor& part : parts)
      want(part.ndim() == t.ndim(),
           "diff expects prepend or append to be the same dimension as input: ", shown(part),
           " and ", shown(t));
    if (n == 0) return b.ret(0, clone(t));
    Tensor out = parts.size() > 1 ? cat(parts, d) : t;
    for (int64_t size = out.size(d); n > 0; --n, --size) {
      if (size < 2) {
        out = cut(out, d, 0, 0);
        break;
      }
      Tensor left = cut(out, d, 0, size - 1), right = cut(out, d, 1, size);
      out = out.dtype() == boolean ? logical_xor(right, left) : right - left;
    }
    b.ret(0, out);
  });
}

namespace {

// Sums and distances of whole numbers would go round the ends of a small dtype.
Tensor with_fractions(const Tensor& t) {
  return t.is_floating_point() || t.is_complex() ? t : true_divide(t, Scalar(1));
}

// Sums or distances of neighbours. Whole numbers near each other would lose theirs in float32.
Tensor of_neighbours(const Tensor& t, int64_t dim, Tensor (*f)(const Tensor&, const Tensor&)) {
  const bool whole = is_integral(t);
  const Tensor wide = whole ? to(t, float64) : t;
  const int64_t n = t.size(dim);
  const Tensor out = n ? f(cut(wide, dim, 1, n), cut(wide, dim, 0, n - 1)) : wide;
  return whole ? to(out, kit::env.core->default_dtype()) : out;
}
Tensor their_sum(const Tensor& a, const Tensor& b) { return a + b; }
Tensor their_distance(const Tensor& a, const Tensor& b) { return a - b; }

// Neighbours' means times their distance.
Tensor trapezoids(const kit::Body& b) {
  const Tensor& y = b.tensor(0);
  want(y.ndim() > 0, "y must have a dimension, it is a number");
  want(!b.given(1) || !b.given(2), "x and dx cannot both be given");
  int64_t d = b.integer(3), n = y.size(d);
  Tensor mean = of_neighbours(y, d, their_sum) * 0.5;
  if (!b.given(1)) return mean * (b.given(2) ? b.scalar(2) : Scalar(1));
  const Tensor& x = b.tensor(1);
  want(x.ndim() > 0, "x must have a dimension, it is a number");
  if (x.ndim() == 1) {
    want(x.numel() == n, "x has ", x.numel(), " elements, dimension ", d, " of y has ", n);
    Sizes shape(size_t(y.ndim()), 1);
    shape[size_t(d)] = n ? n - 1 : 0;
    return mean * reshape(of_neighbours(x, 0, their_distance), shape);
  }
  int64_t dx = d - y.ndim() + x.ndim();
  want(dx >= 0 && dx < x.ndim() && x.size(dx) == n, "x ", shown(x), " and y ", shown(y),
       " differ along the dimension ", d, " of y");
  return mean * of_neighbours(x, dx, their_distance);
}

}  // namespace

// Without places, what lies between the ends counts whole and the ends half.
aj_status* trapezoid_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor y = with_fractions(b.tensor(0));
    int64_t d = b.integer(3);
    if (y.ndim() && y.size(d) > 2 && y.is_floating_point() && !b.given(1)) {
      Tensor ends = (select(y, d, 0) + select(y, d, -1)) * 0.5;
      Tensor whole = sum(cut(y, d, 1, y.size(d) - 1), d - y.ndim());
      return b.ret(0, (whole + ends) * (b.given(2) ? b.scalar(2) : Scalar(1)));
    }
    Tensor parts = trapezoids(b);
    b.ret(0, sum(parts, b.integer(3) - b.tensor(0).ndim()));
  });
}

aj_status* cumulative_trapezoid_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor parts = trapezoids(b);
    b.ret(0, cumsum(parts, b.integer(3) - b.tensor(0).ndim()));
  });
}

namespace {

Tensor weights_of(const kit::Body& b, uint32_t i, std::string_view name, int64_t n, bool whole) {
  const Tensor& w = b.tensor(i);
  if (!w.defined()) return w;
  want(w.ndim() <= 1 && w.numel() == n, name, " must be a vector of ", n,
       " elements, its shape is ", shown(w));
  want(is_integral(w) == whole, name, " must be ", whole ? "integers" : "floating", ", they are ",
       w.dtype());
  want(n == 0 || amin(w).item<double>() >= 0, name, " must not be negative");
  return reshape(w, {n});
}

Tensor covariance(const Tensor& input, double correction, const Tensor& f, const Tensor& a) {
  want(input.ndim() <= 2, "at most two dimensions are wanted, the shape is ", shown(input));
  want(!(input.dtype() == boolean), "bool has no covariance; cast with .to()");
  Tensor x = input.ndim() == 2 ? input : reshape(input, {1, input.numel()});
  if (is_integral(x)) x = to(x, kit::env.core->default_dtype());
  int64_t n = x.size(1);
  Tensor w = f.defined() && a.defined() ? f * a : f.defined() ? f : a;
  Tensor total, freedom, centre;
  if (w.defined()) {
    total = sum(w);
    want(total.item<double>() != 0, "the weights sum to zero");
    centre = sum(x * w, {1}, true) / total;
    freedom = a.defined() && correction != 0 ? total - correction * sum(w * a) / total
                                             : total - correction;
  } else {
    centre = mean(x, {1}, true);
    freedom = number_of(sum(x.is_complex() ? real(x) : x), std::max(0.0, double(n) - correction));
  }
  x = x - centre;
  if (w.defined()) freedom = clamp(to(freedom, real_of(x.dtype())), 0);
  Tensor weighted = w.defined() ? x * w : x;
  Tensor out = matmul(weighted, conjugate(transpose(x, 0, 1))) / freedom;
  return squeeze(out);
}

}  // namespace

aj_status* cov_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t n = t.ndim() == 2 ? t.size(1) : t.numel();
    Tensor f = weights_of(b, 2, "fweights", n, true), a = weights_of(b, 3, "aweights", n, false);
    b.ret(0, covariance(t, double(b.integer(1)), f, a));
  });
}

aj_status* corrcoef_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor c = covariance(b.tensor(0), 1, Tensor(), Tensor());
    if (c.ndim() == 0) return b.ret(0, c / c);
    Tensor variance = diagonal(c);
    Tensor spread = sqrt(c.is_complex() ? real(variance) : variance);
    Tensor out = c / unsqueeze(spread, 1) / spread;
    if (!out.is_complex()) return b.ret(0, clamp(out, -1, 1));
    b.ret(0, complex(clamp(real(out), -1, 1), clamp(imag(out), -1, 1)));
  });
}

}  // namespace adjoin::ops
