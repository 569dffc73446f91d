// core/ops/pointwise.cpp: derivatives with cases, and composites, of pointwise.toml.
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/make.hpp>
#include <adjoin/kit/ops.hpp>
#include <cmath>
#include <limits>

namespace adjoin::ops {
namespace {

Tensor pow_input(const Tensor& g, const Operand& x, const Operand& e) {
  if (e.is_tensor()) return g * kit::conj(where(eq(e, 0), 0, e * pow(x, e - 1)));
  const Scalar& n = e.number();
  if (n == 0) return zeros_like(g);
  if (n == 1) return g;
  if (n == 2) return g * kit::conj(x.tensor() * 2);
  return g * kit::conj(pow(x, n - Scalar(1)) * n);
}

Tensor pow_exponent(const Tensor& g, const Operand& x, const Operand& e, const Tensor& out) {
  auto harmless = [&] {  // 0 ** e is flat there
    const Tensor& n = e.tensor();
    return n.is_complex() ? logical_and(ge(real(n), 0), eq(imag(n), 0)) : ge(n, 0);
  };
  if (x.is_tensor()) {
    // Below 0 the power of a complex exponent has a slope; the logarithm of a real number has not.
    const Tensor base = out.is_complex() ? to(x.tensor(), out.dtype()) : x.tensor();
    Tensor slope = g * kit::conj(out * log(base));
    return where(logical_and(eq(x, 0), harmless()), 0, slope);
  }
  const Scalar& a = x.number();
  Scalar factor = a.is_complex() || out.is_complex() ? Scalar(std::log(a.to_complex()))
                                                     : Scalar(std::log(a.to_double()));
  Tensor slope = g * kit::conj(out * factor);
  return a == 0 ? where(harmless(), 0, slope) : slope;
}

Tensor both(const Tensor& a, const Tensor& b) { return logical_and(a, b); }

// t in the dtype that arithmetic with x, which is not of whole numbers, has.
Tensor joined(const Tensor& t, const Tensor& x) {
  if (t.is_complex()) return t;
  DLDataType dtype = x.dtype();
  if (t.ndim() || !x.ndim()) kit::check(kit::env.core->dtype_promote(dtype, t.dtype(), &dtype));
  return to(t, dtype);
}

// sigmoid(x). Of complex numbers the exponential that is taken is at most 1: a larger one leaves
// the range, and an infinite part times an infinite one is NaN.
Tensor share_of(const Tensor& x) {
  if (!x.is_complex()) return sigmoid(x);
  const Tensor above = ge(real(x), 0), e = exp(where(above, -x, x));
  return where(above, 1, e) / (e + 1);
}

}  // namespace

aj_status* pow_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    if (d.need(0)) d.set(0, pow_input(d.grad(0), d.operand(0), d.operand(1)));
    if (d.need(1)) d.set(1, pow_exponent(d.grad(0), d.operand(0), d.operand(1), d.tensor(2)));
  });
}

// At a tie a number takes the whole gradient away and a tensor half of it, as in PyTorch; where
// both bounds are the tensor's own value it passes whole. Where min is above max, max is the
// result.
aj_status* clamp_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &g = d.grad(0), &x = d.tensor(0);
    Operand low = d.operand(1), high = d.operand(2);
    auto above = [&] { return low.is_none() ? Tensor() : gt(x, low); };
    auto below = [&] { return high.is_none() ? Tensor() : lt(x, high); };
    Tensor a = above(), b = below(), inside = !a.defined() ? b : !b.defined() ? a : both(a, b);
    if (!inside.defined()) return d.set(0, g);
    if (!low.is_tensor() && !high.is_tensor()) return d.set(0, where(inside, g, 0));
    Tensor no = zeros_like(x, boolean), yes = logical_not(no);
    Tensor at_low = low.is_none() ? no : eq(x, low), at_high = high.is_none() ? no : eq(x, high);
    Tensor valid = low.is_none() || high.is_none() ? yes : lt(low, high);
    Tensor equal = low.is_none() || high.is_none() ? no : eq(low, high);
    Tensor tie = logical_or(low.is_tensor() ? at_low : no, high.is_tensor() ? at_high : no);
    Tensor half = g / 2;
    if (d.need(0)) {
      Tensor whole = logical_or(both(valid, inside), both(equal, at_low));
      d.set(0, where(whole, g, where(both(valid, tie), half, 0)));
    }
    if (d.need(1)) {
      Tensor whole = both(logical_or(valid, equal), lt(x, low));
      d.set(1, where(whole, g, where(both(valid, at_low), half, 0)));
    }
    if (d.need(2)) {
      Tensor whole = both(logical_or(valid, equal), gt(x, high));
      if (!low.is_none()) whole = logical_or(whole, gt(low, high));
      d.set(2, where(whole, g, where(both(valid, at_high), half, 0)));
    }
  });
}

// psi'(x): up by eight steps of the recurrence, then the asymptotic series; below 1/2 by
// reflection.
aj_status* trigamma_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& x = b.tensor(0);
    const double pi = 3.141592653589793;
    Tensor low = lt(x, 0.5), y = where(low, 1 - x, x), sum;
    for (int k = 0; k < 8; ++k) {
      Tensor step = square(reciprocal(y + k));
      sum = sum.defined() ? sum + step : step;
    }
    Tensor z = reciprocal(y + 8), zz = square(z);
    Tensor series =
        z + zz * 0.5 + z * zz * (1.0 / 6 + zz * (-1.0 / 30 + zz * (1.0 / 42 - zz * (1.0 / 30))));
    Tensor safe = where(
        low, x, 0.25);  // an integer would make the unused branch infinite, and its gradient NaN
    sum = sum + series;
    // The sine of a multiple of pi is not 0 in floating-point numbers, that of 0 is.
    Tensor within = safe - round(safe.detach());
    b.ret(0, where(low, square(pi / sin(within * pi)) - sum, sum));
  });
}

// Halves in float32: near 1/2 the quotient's digits are the result.
aj_status* logit_each_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const DLDataType dtype = b.tensor(0).dtype();
    Tensor p = to(b.tensor(0), statistics_dtype(dtype));
    // Not clamp(): bounds that cross, as of eps above 1/2, keep both sides, as in the kernels.
    p = where(lt(p, b.real(1)), b.real(1), where(gt(p, b.real(2)), b.real(2), p));
    b.ret(0, to(log(p / (1 - p)), dtype));
  });
}

aj_status* logit_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor p =
        is_integral(b.tensor(0)) ? to(b.tensor(0), kit::env.core->default_dtype()) : b.tensor(0);
    want(!p.is_complex() || !b.given(1), "eps bounds real numbers, input is ", p.dtype());
    if (p.is_complex()) return b.ret(0, log(p / (1 - p)));
    double eps = b.given(1) ? b.real(1) : -std::numeric_limits<double>::infinity();
    b.ret(0, logit_each(p, eps, 1 - eps));
  });
}

// Behind the bounds it is constant; without them there is nothing.
aj_status* logit_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& p = d.tensor(0);
    if (p.is_complex()) return d.set(0, d.grad(0) / conjugate(p * (1 - p)));
    double low = d.given(1) ? d.real(1) : 0;
    d.set(0, logit_backward(d.grad(0), p, low, 1 - low, d.given(1) ? 0 : NAN));
  });
}

aj_status* float_power_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto is_complex = [&](uint32_t i) {
      Operand x = b.operand(i);
      return x.is_tensor() ? x.tensor().is_complex() : x.number().is_complex();
    };
    DLDataType wide = is_complex(0) || is_complex(1) ? complex128 : float64;
    auto widen = [&](uint32_t i) {
      return b.operand(i).is_tensor() ? to(b.tensor(i), wide) : Tensor();
    };
    Tensor x = widen(0), e = widen(1);
    b.ret(0, pow(x.defined() ? Operand(x) : b.operand(0), e.defined() ? Operand(e) : b.operand(1)));
  });
}

aj_status* xlogy_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Operand x = b.operand(0), y = b.operand(1);
    want(x.is_tensor() || y.is_tensor(),
         "at least one argument must be a tensor; pass adjoin.tensor(...)");
    const Tensor& any = x.is_tensor() ? x.tensor() : y.tensor();
    Tensor other = kit::as_tensor(y, any), good = logical_not(isnan(other)), none;
    if (x.is_tensor())
      none = both(eq(x.tensor(), 0), good);
    else
      none = x.number() == 0 ? good : zeros_like(good);
    // log(1) instead of log(0): no NaN, and no gradient from there.
    bool takes_dtype = x.is_tensor() && !is_integral(x.tensor());
    Tensor kept = takes_dtype ? where(none, 1, joined(other, x.tensor())) : where(none, 1, y);
    b.ret(0, x * log(kept));
  });
}

// Where no kernel is: complex numbers are ordered by their real parts. Equal infinities have no
// difference.
aj_status* logaddexp_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &y = b.tensor(1);
    Tensor larger = x.is_complex() || y.is_complex() ? ge(real(x), real(y)) : ge(x, y);
    Tensor top = where(larger, x, y), below = where(larger, y, x);
    Tensor distance = where(both(eq(real(top), real(below)), isinf(real(top))), 0, below - top);
    b.ret(0, top + log1p(exp(distance)));
  });
}

aj_status* logaddexp_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &g = d.grad(0), &x = d.tensor(0), &y = d.tensor(1);
    if (d.need(0)) d.set(0, g * kit::conj(share_of(x - y)));
    if (d.need(1)) d.set(1, g * kit::conj(share_of(y - x)));
  });
}

aj_status* nan_to_num_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& x = b.tensor(0);
    if (is_integral(x)) return b.ret(0, clone(x));
    Tensor t = x.is_complex() ? view_as_real(x) : x;
    DLDataType d = t.dtype();
    double largest = d.bits == 64          ? std::numeric_limits<double>::max()
                     : d.code == kDLBfloat ? 3.3895313892515355e38
                     : d.bits == 16        ? 65504
                                           : double(std::numeric_limits<float>::max());
    Tensor y =
        nan_to_num_each(t, b.maybe<double>(1).value_or(0), b.maybe<double>(2).value_or(largest),
                        b.maybe<double>(3).value_or(-largest));
    b.ret(0, x.is_complex() ? view_as_complex(y) : y);
  });
}

}  // namespace adjoin::ops
