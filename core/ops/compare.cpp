// core/ops/compare.cpp: the composites of compare.toml.
#include <adjoin/kit/infer.hpp>
#include <adjoin/kit/ops.hpp>
#include <cmath>

namespace adjoin::ops {

aj_status* isclose_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &y = b.tensor(1);
    double rtol = b.real(2), atol = b.real(3);
    want(x.dtype() == y.dtype(), "input is ", x.dtype(), " and other is ", y.dtype(),
         "; they must agree");
    want(rtol >= 0 && atol >= 0, "rtol and atol must not be negative: ", rtol, ", ", atol);
    Tensor close = eq(x, y);
    if (b.flag(4) && !is_integral(x)) close = logical_or(close, logical_and(isnan(x), isnan(y)));
    if (rtol == 0 && atol == 0) return b.ret(0, close);
    if (is_integral(x)) {
      Tensor a = to(x, float64), o = to(y, float64);
      return b.ret(0, logical_or(close, le(abs(a - o), abs(o) * rtol + atol)));
    }
    Tensor error = abs(x - y);
    b.ret(0, logical_or(close, logical_and(isfinite(error), le(error, abs(y) * rtol + atol))));
  });
}

aj_status* allclose_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(
        0,
        Scalar(
            all(isclose(b.tensor(0), b.tensor(1), b.real(2), b.real(3), b.flag(4))).item<bool>()));
  });
}

aj_status* equal_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &y = b.tensor(1);
    if (sizes_of(x) != sizes_of(y)) return b.ret(0, Scalar(false));
    static constexpr int64_t first = 4096;  // most that differ do so early
    if (x.numel() > 16 * first && x.is_contiguous() && y.is_contiguous()) {
      auto start = [](const Tensor& t) { return slice(reshape(t, Sizes{-1}), 0, 0, first); };
      if (!all(eq(start(x), start(y))).item<bool>()) return b.ret(0, Scalar(false));
    }
    b.ret(0, Scalar(x.numel() == 0 || all(eq(x, y)).item<bool>()));
  });
}

aj_status* is_nonzero_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& x = b.tensor(0);
    want(x.numel() == 1, "Boolean value of Tensor with ",
         x.numel() ? "more than one value" : "no values", " is ambiguous: its shape is ", shown(x),
         "; use any() or all()");
    b.ret(0, Scalar(x.number().to_bool()));
  });
}

}  // namespace adjoin::ops
