// core/ops/creation.cpp: bodies of creation.toml: shapes, orders of memory and dtypes are decided
// here, kernels fill.
#include <adjoin/kit/fits.hpp>
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/make.hpp>
#include <adjoin/kit/memory.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace adjoin::ops {
namespace {

DLDataType kind_of(const Scalar& s) {
  if (s.is_bool()) return boolean;
  if (s.is_integer()) return int64;
  DLDataType real = kit::env.core->default_dtype();
  return s.is_complex() ? DLDataType{kDLComplex, uint8_t(real.bits * 2), 1} : real;
}

// dtype and device of a factory stand next to each other; without a device the core has chosen one.
struct Options {
  DLDataType dtype;
  DLDevice device;
};
Options options(const kit::Body& b, uint32_t at, std::optional<DLDataType> otherwise = {}) {
  auto dtype = b.maybe<DLDataType>(at);
  if (!dtype) dtype = otherwise ? *otherwise : kit::env.core->default_dtype();
  return {*dtype, b.maybe<DLDevice>(at + 1).value_or(b.call()->device)};
}
Options options_like(const kit::Body& b, uint32_t at) {
  const Tensor& t = b.tensor(0);
  return {b.maybe<DLDataType>(at).value_or(t.dtype()),
          b.maybe<DLDevice>(at + 1).value_or(t.device())};
}

Tensor filled(Tensor t, const Scalar& x) {
  if (t.numel()) fill_(t, x);
  return t;
}

Tensor like(const kit::Body& b, uint32_t at) {
  const Tensor& t = b.tensor(0);
  auto [dtype, device] = options_like(b, at);
  return empty_in_order(t, dtype, device,
                        b.maybe<MemoryFormat>(at + 2).value_or(MemoryFormat::preserve));
}

// dtype and device of numbers between two ends, which may be complex.
Options options_between(const kit::Body& b, const Scalar& start, const Scalar& end, uint32_t at) {
  const bool complex = start.is_complex() || end.is_complex();
  Options o = options(b, at, kind_of(complex ? Scalar(std::complex<double>()) : Scalar(0.0)));
  want_fits(start, "start", o.dtype);
  want_fits(end, "end", o.dtype);
  return o;
}

int64_t steps_between(const Scalar& start, const Scalar& end, const Scalar& step) {
  if (start.is_integer() && end.is_integer() && step.is_integer()) {
    int64_t a = start.to_int(), b = end.to_int(), s = step.to_int();
    want(s != 0, "step must not be 0");
    want(s > 0 ? a <= b : a >= b, "start ", a, " and end ", b, " do not fit the sign of step ", s);
    uint64_t way = s > 0 ? uint64_t(b) - uint64_t(a) : uint64_t(a) - uint64_t(b);
    uint64_t stride = s > 0 ? uint64_t(s) : -uint64_t(s), n = way / stride + (way % stride != 0);
    want(n < 1ull << 62, "from ", a, " to ", b, " by ", s,
         " are more elements than memory can hold");
    return int64_t(n);
  }
  double a = start.to_double(), b = end.to_double(), s = step.to_double();
  want(s != 0, "step must not be 0");
  want(std::isfinite(s), "step must be finite: ", s);
  want(std::isfinite(a) && std::isfinite(b), "start ", a, " and end ", b, " must be finite");
  want(s > 0 ? a <= b : a >= b, "start ", a, " and end ", b, " do not fit the sign of step ", s);
  double n = std::ceil((b - a) / s);
  want(n < 0x1p62, "from ", a, " to ", b, " by ", s, " are more elements than memory can hold");
  return int64_t(n);
}

}  // namespace

aj_status* empty_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto [dtype, device] = options(b, 1);
    Ints size = b.ints(0);
    auto format = b.maybe<MemoryFormat>(3).value_or(MemoryFormat::contiguous);
    Sizes strides = strides_of(size, format);
    b.ret(0, empty_strides(size, strides.data(), dtype, device));
  });
}

aj_status* empty_strided_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto [dtype, device] = options(b, 2);
    Ints size = b.ints(0), stride = b.ints(1);
    want(size.size() == stride.size(), "dimensionality of sizes (", size.size(),
         ") must match dimensionality of strides (", stride.size(), ")");
    b.ret(0, empty_strides(size, stride.data(), dtype, device));
  });
}

aj_status* zeros_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto [dtype, device] = options(b, 1);
    b.ret(0, filled(empty_dense(b.ints(0), dtype, device), 0));
  });
}

aj_status* ones_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto [dtype, device] = options(b, 1);
    b.ret(0, filled(empty_dense(b.ints(0), dtype, device), 1));
  });
}

aj_status* full_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Scalar value = b.scalar(1);
    auto [dtype, device] = options(b, 2, kind_of(value));
    b.ret(0, filled(empty_dense(b.ints(0), dtype, device), value));
  });
}

aj_status* empty_like_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, like(b, 1)); });
}
aj_status* zeros_like_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, filled(like(b, 1), 0)); });
}
aj_status* ones_like_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, filled(like(b, 1), 1)); });
}
aj_status* full_like_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, filled(like(b, 2), b.scalar(1))); });
}

namespace {

Tensor new_one(const kit::Body& b, uint32_t at) {
  auto [dtype, device] = options_like(b, at);
  return empty_dense(b.ints(1), dtype, device);
}

}  // namespace

aj_status* new_empty_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, new_one(b, 2)); });
}
aj_status* new_zeros_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, filled(new_one(b, 2), 0)); });
}
aj_status* new_ones_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, filled(new_one(b, 2), 1)); });
}
aj_status* new_full_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, filled(new_one(b, 3), b.scalar(2))); });
}

aj_status* arange_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Scalar start = b.scalar(0), end = b.scalar(1), step = b.scalar(2);
    for (const Scalar& x : {start, end, step})
      want(!x.is_complex() || x.to_complex().imag() == 0, "complex numbers have no order");
    bool whole = start.is_integer() && end.is_integer() && step.is_integer();
    auto [dtype, device] = options(b, 3, whole ? int64 : kit::env.core->default_dtype());
    int64_t n = steps_between(start, end, step);
    Tensor t = empty_dense({n}, dtype, device);
    b.ret(0, n ? arange_fill_(t, start, step) : t);
  });
}

// From both ends towards the middle in float64, so both ends are exact.
aj_status* linspace_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Scalar start = b.scalar(0), end = b.scalar(1);
    int64_t n = b.integer(2);
    auto [dtype, device] = options_between(b, start, end, 3);
    if (n < 2) return b.ret(0, filled(empty_dense({n}, dtype, device), start));
    Scalar step = (end * 1.0 - start) / Scalar(n - 1);
    if (dtype.code == kDLFloat || dtype.code == kDLBfloat) {
      int64_t half = n / 2;
      Tensor t = empty_dense({n}, float64, device);
      arange_fill_(cut(t, 0, 0, half), start, step);
      arange_fill_(cut(t, 0, half, n), end - step * Scalar(n - 1 - half), step);
      filled(cut(t, 0, n - 1, n), end);
      return b.ret(0, to(t, dtype));
    }
    Tensor i = arange(0, n, 1, float64, device);
    Tensor t = where(lt(i, n / 2), i * step + start, (i - (n - 1)) * step + end);
    b.ret(0, to(t, dtype));
  });
}

// In float64, for powers lose what their exponents have lost.
aj_status* logspace_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto [dtype, device] = options(b, 4, options_between(b, b.scalar(0), b.scalar(1), 4).dtype);
    DLDataType wide = dtype.code == kDLComplex ? complex128 : float64;
    const bool whole = dtype.code == kDLInt || dtype.code == kDLUInt;  // and so are both ends
    auto end = [&](uint32_t i) {
      return whole ? Scalar(std::trunc(b.scalar(i).to_double())) : b.scalar(i);
    };
    Tensor exponents = linspace(end(0), end(1), b.integer(2), wide, device);
    b.ret(0, to(pow(b.real(3), exponents), dtype));
  });
}

aj_status* eye_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    int64_t n = b.integer(0), m = b.maybe<int64_t>(1).value_or(n), diagonal = std::min(n, m),
            stride = plus(m, 1);
    auto [dtype, device] = options(b, 2);
    Tensor t = filled(empty_dense({n, m}, dtype, device), 0);
    if (diagonal) {
      DLTensor view{nullptr, device, 1, dtype, &diagonal, &stride, 0};
      aj_tensor* ones = nullptr;
      kit::check(kit::env.core->tensor_view(t.get(), &view, 0, &ones));
      fill_(Tensor::steal(ones), 1);
    }
    b.ret(0, t);
  });
}

aj_status* clone_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Tensor copy = empty_in_order(t, t.dtype(), t.device(),
                                 b.maybe<MemoryFormat>(1).value_or(MemoryFormat::preserve));
    b.ret(0, copy_(copy, t));
  });
}

aj_status* contiguous_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    auto format = b.maybe<MemoryFormat>(1).value_or(MemoryFormat::contiguous);
    want(format != MemoryFormat::preserve, "the order 'preserve' is for clone and to");
    b.ret(0, is_in_order(t, format) ? t : clone(t, format));
  });
}

aj_status* to_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    DLDataType dtype = b.maybe<DLDataType>(1).value_or(t.dtype());
    DLDevice device = b.maybe<DLDevice>(2).value_or(t.device());
    auto format = b.maybe<MemoryFormat>(5).value_or(MemoryFormat::preserve);
    bool same = dtype == t.dtype() && device == t.device() && !b.flag(4) && is_in_order(t, format);
    b.ret(0, same ? t : to_copy(t, dtype, device, format, b.flag(3)));
  });
}

aj_status* to_copy_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Tensor copy = empty_in_order(t, b.dtype(1), b.device(2),
                                 b.maybe<MemoryFormat>(3).value_or(MemoryFormat::preserve));
    b.ret(0, copy_(copy, t, b.flag(4)));
  });
}

aj_status* item_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(t.numel() == 1, "a tensor of shape ", shown(t), " has ", t.numel(),
         " elements; only one is a number");
    DLDataType wide = t.is_complex()              ? complex128
                      : t.is_floating_point()     ? float64
                      : t.dtype().code == kDLUInt ? uint64
                                                  : int64;
    if (t.dtype() == boolean) wide = boolean;
    // One strided element lies as it is asked for; float32 is widened here.
    bool as_is =
        t.get()->obj.flags & AJ_TENSOR_STRIDED && (t.dtype() == wide || t.dtype() == float32);
    Tensor one = as_is ? t : to(contiguous(t), wide);
    double bytes[2] = {0, 0};
    kit::check(kit::env.core->tensor_copy_bytes(one.get(), bytes, one.dtype().bits / 8, 1));
    if (one.dtype() == float32) {
      float narrow;
      std::memcpy(&narrow, bytes, sizeof narrow);
      return b.ret(0, Scalar(double(narrow)));
    }
    int64_t whole = std::bit_cast<int64_t>(bytes[0]);
    if (wide == boolean) return b.ret(0, Scalar((whole & 0xff) != 0));
    if (wide == complex128) return b.ret(0, Scalar(std::complex<double>(bytes[0], bytes[1])));
    b.ret(0, wide == float64 ? Scalar(bytes[0]) : Scalar(whole));
  });
}

}  // namespace adjoin::ops
