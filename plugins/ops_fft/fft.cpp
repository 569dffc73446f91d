// plugins/ops_fft/fft.cpp: the public transforms: sizes and dtypes are brought into form, a private
// row computes.
#include <adjoin/kit/make.hpp>
#include <cmath>

namespace adjoin::ops {

namespace {

// What a transform takes and gives; its last dimension has half of a spectrum on one side.
enum class Kind { complex, to_half, from_half };

struct Wanted {
  Sizes dims;   // 0 or more, the last one is that of a half spectrum
  Sizes sizes;  // of the transform along each of them; -1: as the tensor has it
};

// Whole numbers become the default dtype, as everywhere.
Tensor floats_of(const Tensor& t) {
  if (is_integral(t)) return to(t, kit::core().default_dtype());
  want(t.dtype().bits > 16 && !(t.is_complex() && t.dtype().bits < 64),
       "transforms of float32, float64, complex64 and complex128 are there; the tensor is ",
       t.dtype(), ": cast it with .to(float32) or .to(complex64)");
  return t;
}

DLDataType complex_of(DLDataType d) {
  return d.code == kDLComplex ? d : DLDataType{kDLComplex, uint8_t(d.bits * 2), 1};
}

// As many elements along each dimension as are wanted: cut off, or zeros behind.
Tensor resized(Tensor t, const Sizes& dims, const Sizes& sizes) {
  Sizes more(size_t(2 * t.ndim()), 0);
  bool grows = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t have = t.size(dims[i]), n = sizes[i];
    if (n < have) t = slice(t, dims[i], 0, n);
    if (n <= have) continue;
    grows = true;
    more[size_t(2 * (t.ndim() - 1 - dims[i]) + 1)] = n - have;
  }
  return grows ? constant_pad_nd(t, more) : t;
}

double scale_of(std::string_view norm, bool forward, const Sizes& sizes) {
  double n = 1;
  for (int64_t s : sizes) n *= double(s);
  if (norm == "ortho") return 1 / std::sqrt(n);
  want(norm == "backward" || norm == "forward",
       "norm must be 'backward', 'ortho' or 'forward', it is '", norm, "'");
  return (norm == "forward") == forward ? 1 / n : 1;
}

Tensor transformed(Kind kind, bool forward, Tensor t, Wanted w, std::string_view norm) {
  if (kind == Kind::to_half && t.is_complex())
    kit::raise(AJ_UNIMPLEMENTED, "real numbers are wanted, the tensor is ", t.dtype(),
               "; take .real, or the transform of complex numbers");
  t = floats_of(t);
  if (w.dims.empty()) {
    want(kind == Kind::complex, "at least one dimension is wanted");
    return t.is_complex() ? clone(t) : to(t, complex_of(t.dtype()));
  }
  Sizes whole = w.sizes;  // of the signal
  for (size_t i = 0; i < whole.size(); ++i) {
    const bool half = kind == Kind::from_half && i + 1 == whole.size();
    if (whole[i] == -1) whole[i] = half ? 2 * (t.size(w.dims[i]) - 1) : t.size(w.dims[i]);
    want(whole[i] >= 1, "a transform has at least one element, dimension ", w.dims[i], " has ",
         whole[i], ": the shape is ", shown(t));
  }
  const double scale = scale_of(norm, forward, whole);
  Sizes taken = whole;
  if (kind == Kind::from_half) taken.back() = whole.back() / 2 + 1;
  t = resized(t, w.dims, taken);
  return in_own_name([&] {
    if (kind == Kind::from_half) {
      if (!t.is_complex()) t = to(t, complex_of(t.dtype()));
      return fft_c2r(t, w.dims, whole.back(), forward, scale);
    }
    if (t.is_complex()) return fft_c2c(t, w.dims, forward, scale);
    return fft_r2c(t, w.dims, kind == Kind::to_half, forward, scale);
  });
}

std::string_view norm_of(const kit::Body& b, uint32_t i) {
  return b.given(i) ? b.text(i) : "backward";
}

// (input, n, dim, norm)
aj_status* along_one(aj_call* call, Kind kind, bool forward) {
  return kit::compose(call, [&](kit::Body& b) {
    if (!b.tensor(0).ndim())
      kit::raise(AJ_OUT_OF_RANGE, "a number has no dimension to transform; reshape it to (1,)");
    const int64_t n = b.given(1) ? b.integer(1) : -1;
    want(n >= 1 || !b.given(1), "n must be at least 1, it is ", n);
    Wanted w{{b.integer(2)}, {n}};
    b.ret(0, transformed(kind, forward, b.tensor(0), w, norm_of(b, 3)));
  });
}

Wanted wanted_of(const Tensor& t, const Ints& s, const Ints& dim) {
  Wanted w;
  if (!dim.is_none()) w.dims = dim.vec();
  if (!s.is_none()) w.sizes = s.vec();
  want(dim.is_none() || s.is_none() || dim.size() == s.size(),
       "s and dim differ in length: ", shown(s), " and ", shown(dim));
  if (dim.is_none()) {
    const int64_t n = s.is_none() ? t.ndim() : int64_t(s.size());
    want(n <= t.ndim(), "s has ", n, " sizes, the tensor ", t.ndim(), " dimensions");
    for (int64_t d = t.ndim() - n; d < t.ndim(); ++d) w.dims.push_back(d);
  }
  if (s.is_none()) w.sizes.assign(w.dims.size(), -1);
  for (int64_t n : w.sizes) want(n >= 1 || n == -1, "sizes must be at least 1, s is ", shown(s));
  for (size_t i = 0; i < w.dims.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      want(w.dims[i] != w.dims[j], "dim has a dimension twice: ", shown(dim));
  return w;
}

// (input, s, dim, norm)
aj_status* along_some(aj_call* call, Kind kind, bool forward) {
  return kit::compose(call, [&](kit::Body& b) {
    Wanted w = wanted_of(b.tensor(0), b.ints(1), b.ints(2));
    b.ret(0, transformed(kind, forward, b.tensor(0), w, norm_of(b, 3)));
  });
}

}  // namespace

aj_status* fft_body(void*, aj_call* c) { return along_one(c, Kind::complex, true); }
aj_status* ifft_body(void*, aj_call* c) { return along_one(c, Kind::complex, false); }
aj_status* rfft_body(void*, aj_call* c) { return along_one(c, Kind::to_half, true); }
aj_status* irfft_body(void*, aj_call* c) { return along_one(c, Kind::from_half, false); }
aj_status* hfft_body(void*, aj_call* c) { return along_one(c, Kind::from_half, true); }
aj_status* ihfft_body(void*, aj_call* c) { return along_one(c, Kind::to_half, false); }
aj_status* fftn_body(void*, aj_call* c) { return along_some(c, Kind::complex, true); }
aj_status* ifftn_body(void*, aj_call* c) { return along_some(c, Kind::complex, false); }
aj_status* rfftn_body(void*, aj_call* c) { return along_some(c, Kind::to_half, true); }
aj_status* irfftn_body(void*, aj_call* c) { return along_some(c, Kind::from_half, false); }
aj_status* hfftn_body(void*, aj_call* c) { return along_some(c, Kind::from_half, true); }
aj_status* ihfftn_body(void*, aj_call* c) { return along_some(c, Kind::to_half, false); }

namespace {

// k / (n d) for k of 0, 1, ..., and of fft behind them those below 0.
aj_status* frequencies(aj_call* call, bool half) {
  return kit::compose(call, [&](kit::Body& b) {
    const int64_t n = b.integer(0);
    want(n >= 1, "n must be at least 1, it is ", n);
    DLDataType dtype = b.given(2) ? b.dtype(2) : kit::core().default_dtype();
    want(dtype.code == kDLFloat || dtype.code == kDLBfloat || dtype.code == kDLComplex,
         "frequencies are no whole numbers, dtype is ", dtype);
    auto device = b.maybe<DLDevice>(3);
    Tensor k = half ? arange(0, n / 2 + 1, 1, float64, device)
                    : cat({arange(0, (n + 1) / 2, 1, float64, device),
                           arange(-(n / 2), 0, 1, float64, device)},
                          0);
    b.ret(0, to(k / (double(n) * b.real(1)), dtype));
  });
}

aj_status* shifted(aj_call* call, bool forward) {
  return kit::compose(call, [&](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Sizes dims = wanted_of(t, {}, b.ints(1)).dims, by;
    for (int64_t d : dims) by.push_back(forward ? t.size(d) / 2 : (t.size(d) + 1) / 2);
    b.ret(0, dims.empty() ? clone(t) : roll(t, by, dims));
  });
}

}  // namespace

aj_status* fftfreq_body(void*, aj_call* c) { return frequencies(c, false); }
aj_status* rfftfreq_body(void*, aj_call* c) { return frequencies(c, true); }
aj_status* fftshift_body(void*, aj_call* c) { return shifted(c, true); }
aj_status* ifftshift_body(void*, aj_call* c) { return shifted(c, false); }

}  // namespace adjoin::ops
