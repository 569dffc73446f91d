// plugins/ops_linalg/distance.cpp: distances between the rows of matrices, and their derivatives.
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/make.hpp>
#include <cmath>

namespace adjoin::ops {

aj_status* cdist_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &x = c.tensor(0), &y = c.tensor(1);
    want(x.ndim() == 3 && y.ndim() == 3 && x.size(0) == y.size(0) && x.size(2) == y.size(2),
         "stacks of matrices with rows of one size are wanted: ", shown(x), " and ", shown(y));
    want(x.dtype() == y.dtype() && x.is_floating_point(),
         "floating numbers of one dtype are wanted: ", x.dtype(), " and ", y.dtype());
    c.out(0, x.dtype(), Sizes{x.size(0), x.size(1), y.size(1)});
  });
}

// |a - b|^2 = |a|^2 + |b|^2 - 2 a b, by one product of (-2 a, |a|^2, 1) and (b, 1, |b|^2); what
// rounds below zero is zero.
aj_status* cdist_rows_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &y = b.tensor(1);
    double p = b.real(2);
    if (!b.flag(3) || p != 2)
      return b.ret(0, vector_norm(unsqueeze(x, 2) - unsqueeze(y, 1), p, -1));
    auto squares = [](const Tensor& t) { return sum(square(t), -1, true); };
    Tensor xx = squares(x), yy = squares(y), one = ones_like(xx), other = ones_like(yy);
    Tensor left = cat({x * -2, xx, one}, 2), right = cat({y, other, yy}, 2);
    b.ret(0, sqrt_(clamp_(bmm(left, transpose(right, 1, 2)), 0)));
  });
}

namespace {

// The part of each difference that a distance grows with.
Tensor slopes(const Tensor& g, const Tensor& x, const Tensor& y, const Tensor& out, double p) {
  Tensor d = unsqueeze(x, 2) - unsqueeze(y, 1), far = unsqueeze(out, 3), weight = unsqueeze(g, 3);
  if (p == 1) return weight * sgn(d);
  Tensor size = abs(d);
  if (std::isinf(p)) return where(eq(size, far), weight * sgn(d), 0);
  Tensor none = p < 2 ? eq(d, 0) : eq(far, 0);
  Tensor power = pow(where(none, 1, size), p - 1), scale = pow(where(eq(far, 0), 1, far), p - 1);
  return where(none, 0, weight * sgn(d) * power / scale);
}

}  // namespace

aj_status* cdist_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &g = d.grad(0), &x = d.tensor(0), &y = d.tensor(1), &out = d.tensor(2);
    double p = d.real(3);
    if (p == 0) {
      if (d.need(0)) d.set(0, zeros_like(x));
      if (d.need(1)) d.set(1, zeros_like(y));
      return;
    }
    if (p == 2) {
      Tensor none = eq(out, 0), w = where(none, 0, g / where(none, 1, out));
      if (d.need(0)) d.set(0, x * sum(w, 2, true) - bmm(w, y));
      if (d.need(1)) d.set(1, y * unsqueeze(sum(w, 1), 2) - bmm(transpose(w, 1, 2), x));
      return;
    }
    // Some rows of x at a time, so that their differences from all rows of y stay in the cache.
    const int64_t rows = x.size(1), one = std::max<int64_t>(y.numel(), 1);
    const int64_t most = std::max<int64_t>((1 << 18) / one, 1);
    std::vector<Tensor> parts;
    Tensor rest = d.need(1) ? zeros_like(y) : Tensor();
    for (int64_t from = 0; from < rows; from += most) {
      auto part = [&](const Tensor& t) { return slice(t, 1, from, std::min(from + most, rows)); };
      Tensor each = slopes(part(g), part(x), y, part(out), p);
      if (d.need(0)) parts.push_back(sum(each, 2));
      if (d.need(1)) rest = sub_(rest, sum(each, 1));
    }
    if (d.need(0)) d.set(0, rows ? cat(parts, 1) : zeros_like(x));
    if (d.need(1)) d.set(1, rest);
  });
}

namespace {

// Few rows are compared one by one, which loses no digits.
bool by_product(std::string_view mode, double p, int64_t rows, int64_t others) {
  if (mode == "use_mm_for_euclid_dist") return p == 2;
  if (mode == "donot_use_mm_for_euclid_dist") return false;
  want(mode.empty() || mode == "use_mm_for_euclid_dist_if_necessary", "compute_mode '", mode,
       "' is not known");
  return p == 2 && (rows > 25 || others > 25);
}

}  // namespace

aj_status* cdist_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &y = b.tensor(1);
    double p = b.real(2);
    want(p >= 0, "p must not be negative: ", p);
    want(x.ndim() >= 2 && y.ndim() >= 2 && x.size(-1) == y.size(-1),
         "matrices with rows of one size are wanted: ", shown(x), " and ", shown(y));
    Sizes stack = broadcast(x.shape().first(x.ndim() - 2), y.shape().first(y.ndim() - 2));
    int64_t n = product(stack);
    auto folded = [&](const Tensor& t) {
      Sizes wide = stack;
      wide.insert(wide.end(), {t.size(-2), t.size(-1)});
      return reshape(expand(t, wide), {n, t.size(-2), t.size(-1)});
    };
    bool product = by_product(b.given(3) ? b.text(3) : "", p, x.size(-2), y.size(-2));
    Tensor out = in_own_name([&] { return cdist(folded(x), folded(y), p, product); });
    stack.insert(stack.end(), {x.size(-2), y.size(-2)});
    b.ret(0, reshape(out, stack));
  });
}

aj_status* pdist_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    double p = c.real(1);
    want(t.ndim() == 2, "a matrix is wanted, the shape is ", shown(t));
    want(t.is_floating_point(), "floating numbers are wanted: ", t.dtype());
    want(p >= 0, "p must not be negative: ", p);
    int64_t n = t.size(0);
    c.out(0, t.dtype(), Sizes{n % 2 ? times((n - 1) / 2, n) : times(n / 2, n - 1)});
  });
}

namespace {

// The first and the second row of each pair. Another device than the host finds them by itself.
std::pair<Tensor, Tensor> pairs_of(const Tensor& t) {
  const int64_t n = t.size(0);
  if (n > 1 && t.device().device_type != kDLCPU) {
    Tensor row = counting(t, n), begins = row * n - floor_divide(row * (row + 1), 2);
    Tensor pair = counting(t, n * (n - 1) / 2), first = search(begins, pair, true) - 1;
    return {first, pair - index_select(begins, 0, first) + first + 1};
  }
  Tensor places = triu_indices(n, n, 1, int64, t.device());
  return {select(places, 0, 0), select(places, 0, 1)};
}

}  // namespace

aj_status* pdist_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Tensor rows = unsqueeze(t, 0);
    Tensor all = in_own_name([&] { return cdist(rows, rows, b.real(1), false); });
    auto [first, second] = pairs_of(t);
    b.ret(0, index_select(reshape(all, {-1}), 0, first * t.size(0) + second));
  });
}

// For p = 2 by a product with the matrix of g / distance, else pair by pair.
aj_status* pdist_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &g = d.grad(0), &x = d.tensor(0), &out = d.tensor(1);
    double p = d.real(2);
    int64_t n = x.size(0);
    if (p == 0 || out.numel() == 0 || x.numel() == 0) return d.set(0, zeros_like(x));
    auto [first, second] = pairs_of(x);
    if (p == 2) {
      Tensor none = eq(out, 0), w = where(none, 0, g / where(none, 1, out));
      Tensor half = reshape(scatter_(zeros_of(w, {n * n}), 0, first * n + second, w), {n, n});
      Tensor whole = half + transpose(half, 0, 1);
      return d.set(0, x * sum(whole, 1, true) - mm(whole, x));
    }
    Tensor each =
        reshape(slopes(reshape(g, {-1, 1, 1}), unsqueeze(index_select(x, 0, first), 1),
                       unsqueeze(index_select(x, 0, second), 1), reshape(out, {-1, 1, 1}), p),
                {-1, x.size(1)});
    Tensor sums = index_add_(zeros_like(x), 0, first, each);
    d.set(0, index_add(sums, 0, second, each, -1));
  });
}

}  // namespace adjoin::ops
