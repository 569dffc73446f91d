// plugins/ops_special/special.cpp: special functions by others.
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/make.hpp>
#include <cmath>
#include <limits>

namespace adjoin::ops {
namespace {

constexpr double kPi = 3.141592653589793, kInf = std::numeric_limits<double>::infinity();

Tensor floated(const Tensor& t) {
  return is_integral(t) ? to(t, kit::env.core->default_dtype()) : t;
}

}  // namespace

aj_status* sinc_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor x = floated(b.tensor(0)), none = eq(x, 0), y = where(none, 1, x) * kPi;
    b.ret(0, where(none, 1, sin(y) / y));
  });
}

// What has fewer bits is computed in float64, where no power overflows that could matter; float64
// in three steps, two by a whole power, which rounds nothing.
static Tensor times_power(Tensor x, Tensor n, DLDataType dtype) {
  const DLDataType wide = dtype.code == kDLComplex ? complex128 : float64;
  const bool whole = is_integral(n);
  x = to(x, wide), n = to(n, float64);
  // An infinite power makes NaN of 0 and of infinity; one that is only large leaves both.
  if (!whole) x = x * where(isinf(n), exp2(n.detach()), 1);
  if (dtype.bits < wide.bits) return to(x * exp2(clamp(n, -600, 600)), dtype);
  n = clamp(n, -2400, 2400);
  Tensor third = to(floor(n.detach() / 3), float64), power = exp2(third);
  return to(x * power * power * exp2(n - third - third), dtype);
}

aj_status* ldexp_each_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor x = floated(b.tensor(0));
    b.ret(0, times_power(x, b.tensor(1), x.dtype()));
  });
}

aj_status* ldexp_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor x = floated(b.tensor(0));
    const Tensor& n = b.tensor(1);
    if (n.is_complex()) return b.ret(0, x * pow(Scalar(2.0), n));
    DLDataType dtype = x.dtype();
    if (n.is_floating_point() && (is_integral(b.tensor(0)) || (n.ndim() && !x.ndim())))
      dtype = x.is_complex() ? dtype : n.dtype();
    else if (n.is_floating_point() && (n.ndim() || !x.ndim()))
      kit::check(kit::env.core->dtype_promote(dtype, n.dtype(), &dtype));
    // Halves hold few whole numbers, and a dtype of fewer bits than other's might make it infinite.
    const DLDataType own = dtype.bits < 32 && n.dtype() != dtype ? float32 : dtype;
    if (dtype.code == kDLComplex || (n.is_floating_point() && n.dtype().bits > own.bits))
      return b.ret(0, times_power(x, n, dtype));
    b.ret(0, to(ldexp_each(to(x, own), to(n, own)), dtype));
  });
}

// (cos(pi x) - sinc(x)) / x; near 0, where the difference has lost its digits, the series.
aj_status* sinc_slope_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& x = b.tensor(0);
    Tensor near = lt(abs(x), 1e-3), y = square(x * kPi);
    Tensor series = x * (-kPi * kPi / 3) * (1 - y * 0.1 * (1 - y / 28));
    b.ret(0, where(near, series, (cos(x * kPi) - b.tensor(1)) / where(near, 1, x)));
  });
}

aj_status* logaddexp2_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor x = floated(b.tensor(0)), y = floated(b.tensor(1)), same = eq(x, y);
    Tensor distance = where(same, 0, abs(x - y));
    b.ret(0, maximum(x, y) + log1p(exp2(-distance)) * 1.4426950408889634);
  });
}

aj_status* copysign_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    want(!b.tensor(0).is_complex(), "complex numbers have no sign");
    Tensor size = abs(floated(b.tensor(0)));
    b.ret(0, where(signbit(kit::as_tensor(b.operand(1), size)), -size, size));
  });
}

aj_status* heaviside_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &at_zero = b.tensor(1);
    if (x.is_complex() || at_zero.is_complex())
      kit::raise(AJ_UNIMPLEMENTED, "complex numbers are not ordered; take real(), or abs()");
    want(x.dtype() == at_zero.dtype(), "values must be ", x.dtype(), ", they are ",
         at_zero.dtype());
    b.ret(0, unit_step(x, at_zero));
  });
}

// Numbers of one sign are ordered as their bits are.
aj_status* nextafter_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    DLDataType dtype = b.tensor(0).dtype();
    kit::check(kit::env.core->dtype_promote(dtype, b.tensor(1).dtype(), &dtype));
    want(dtype.code == kDLFloat || dtype.code == kDLBfloat, "floating-point numbers are wanted, ",
         "not ", dtype);
    Sizes shape = broadcast(b.tensor(0).shape(), b.tensor(1).shape());
    Tensor x = contiguous(expand(to(b.tensor(0), dtype), shape));
    Tensor y = expand(to(b.tensor(1), dtype), shape);
    Tensor bits = view(x, dtype.bits == 64 ? int64 : dtype.bits == 32 ? int32 : int16);
    Tensor away = to(eq(gt(y, x), gt(x, 0)), bits.dtype());
    Tensor tiny = view(ones_like(bits), dtype), next = view(bits + away * 2 - 1, dtype);
    next = where(eq(x, 0), where(gt(y, 0), tiny, -tiny), next);
    next = where(eq(x, y), y, next);
    b.ret(0, where(logical_or(isnan(x), isnan(y)), x + y, next));
  });
}

aj_status* frexp_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& input = b.tensor(0);
    want(input.is_floating_point(), "floating-point numbers are wanted, input is ", input.dtype());
    b.ret(0, mantissa(input));
    b.ret(1, to(exponent(input), int32));
  });
}

aj_status* frexp_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    d.set(0, g / exp2(to(d.tensor(0).detach(), g.dtype())));
  });
}

aj_status* entr_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor x = floated(b.tensor(0)), above = gt(x, 0);
    Tensor inside = -x * log(where(above, x, 1));
    b.ret(0, where(logical_or(above, isnan(x)), inside, where(eq(x, 0), zeros_like(x), -kInf)));
  });
}

aj_status* xlog1py_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Operand x = b.operand(0), y = b.operand(1);
    want(x.is_tensor() || y.is_tensor(),
         "at least one argument must be a tensor; pass adjoin.tensor(...)");
    const Tensor& any = x.is_tensor() ? x.tensor() : y.tensor();
    auto beside = [&](const Operand& o) { return kit::as_tensor(o, floated(any)); };
    Tensor factor = beside(x), other = beside(y);
    Tensor none = logical_and(eq(factor, 0), logical_not(isnan(other)));
    b.ret(0, factor * log1p(where(none, 0, other)));  // log1p(0): no NaN, no gradient from there
  });
}

aj_status* polygamma_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    int64_t n = b.integer(0);
    want(n >= 0 && n <= INT32_MAX, "n must be from 0 to 2147483647: ", n);
    b.ret(0, n == 0 ? digamma(b.tensor(1)) : polygamma(b.tensor(1), n));
  });
}

aj_status* mvlgamma_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor x = floated(b.tensor(0));
    int64_t p = b.integer(1);
    want(p >= 1 && p <= 1 << 16, "p must be from 1 to 65536: ", p);
    Tensor out = lgamma(x);
    for (int64_t j = 1; j < p; ++j) out = out + lgamma(x - double(j) / 2);
    b.ret(0, out + double(p * (p - 1)) / 4 * std::log(kPi));
  });
}

namespace {

template <class Polynomial>
aj_status* shifted(aj_call* call, Polynomial* polynomial) {
  return kit::compose(call, [=](kit::Body& b) {
    Operand x = b.operand(0);
    if (!x.is_tensor())
      return b.ret(0, polynomial(2 * x.number().to_double() - 1, b.operand(1), {}));
    b.ret(0, polynomial(floated(x.tensor()) * 2 - 1, b.operand(1), {}));  // below 0, too
  });
}

}  // namespace

aj_status* shifted_chebyshev_t_body(void*, aj_call* call) {
  return shifted(call, &special::chebyshev_polynomial_t);
}
aj_status* shifted_chebyshev_u_body(void*, aj_call* call) {
  return shifted(call, &special::chebyshev_polynomial_u);
}
aj_status* shifted_chebyshev_v_body(void*, aj_call* call) {
  return shifted(call, &special::chebyshev_polynomial_v);
}
aj_status* shifted_chebyshev_w_body(void*, aj_call* call) {
  return shifted(call, &special::chebyshev_polynomial_w);
}

}  // namespace adjoin::ops
