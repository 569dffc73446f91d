// plugins/ops_fft/products.cpp: transforms by other ops, for devices that have no kernel: a length
// is cut into factors, each of which is a product with a small matrix of roots.
#include <adjoin/kit/make.hpp>
#include <cmath>
#include <numbers>

namespace adjoin::ops {

namespace {

constexpr int64_t kMatrix = 64;  // the largest matrix, where the factors allow it
constexpr int64_t kPrime = 256;  // a larger prime is a convolution

// exp(-+2 pi i k / n) of whole numbers k, which are brought below n while they are exact.
Tensor roots_of(const Tensor& k, int64_t n, bool forward, DLDataType dtype) {
  Tensor angle = to(remainder(k, n), float64) * ((forward ? -2 : 2) * std::numbers::pi / double(n));
  return to(polar(ones_like(angle), angle), dtype);
}

Tensor table(const Tensor& like, int64_t rows, int64_t columns, int64_t n, bool forward) {
  Tensor k = unsqueeze(counting(like, rows), 1) * counting(like, columns);
  return roots_of(k, n, forward, like.dtype());
}

// Of n the largest divisor that is small enough; a prime has itself.
int64_t factor_of(int64_t n) {
  for (int64_t f = std::min(n, kMatrix); f > 1; --f)
    if (n % f == 0) return f;
  for (int64_t f = kMatrix; f * f <= n; ++f)
    if (n % f == 0) return f;
  return n;
}

// Along the last dimension.
Tensor transform(const Tensor& x, bool forward);

// Bluestein: a product, a convolution, a product.
Tensor convolved(const Tensor& x, bool forward) {
  const int64_t n = x.size(-1);
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  Tensor k = counting(x, n), chirp = roots_of(k * k, 2 * n, forward, x.dtype());
  Tensor wave = conj(chirp);
  wave = cat({wave, zeros_of(x, {m - 2 * n + 1}), flip(slice(wave, 0, 1), 0)}, 0);
  Tensor spectrum = transform(constant_pad_nd(x * chirp, {0, m - n}), true) * transform(wave, true);
  return slice(transform(spectrum, false), -1, 0, n) * chirp / double(m);
}

Tensor transform(const Tensor& x, bool forward) {
  const int64_t n = x.size(-1), rows = factor_of(n), columns = n / rows;
  if (n == 1 || x.numel() == 0) return x;
  if (rows > kPrime) return convolved(x, forward);
  Tensor matrix = table(x, rows, rows, rows, forward);
  if (columns == 1) return matmul(x, matrix);
  Sizes shape(x.shape().begin(), x.shape().end());
  shape.back() = rows;
  shape.push_back(columns);
  Tensor turned = matmul(matrix, reshape(x, shape)) * table(x, rows, columns, n, forward);
  return reshape(transpose(transform(turned, forward), -1, -2), x.shape());
}

Tensor along(const Tensor& x, int64_t dim, bool forward) {
  return movedim(transform(movedim(x, dim, -1), forward), -1, dim);
}
Tensor along_all(Tensor x, std::span<const int64_t> dims, bool forward) {
  for (int64_t d : dims) x = along(x, d, forward);
  return x;
}
std::span<const int64_t> span_of(const Ints& dims) { return {dims.data(), dims.size()}; }

}  // namespace

aj_status* fft_c2c_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, along_all(b.tensor(0), span_of(b.ints(1)), b.flag(2)) * b.real(3));
  });
}

aj_status* fft_r2c_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Ints dims = b.ints(1);
    Tensor x = to(t, t.dtype() == float32 ? complex64 : complex128);
    x = along_all(x, span_of(dims), b.flag(3)) * b.real(4);
    const int64_t last = dims[dims.size() - 1];
    b.ret(0, b.flag(2) ? slice(x, last, 0, x.size(last) / 2 + 1) : x);
  });
}

// The half that is missing is the conjugate of the one that is there, the other way round.
aj_status* fft_c2r_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    std::span<const int64_t> dims = span_of(b.ints(1));
    const int64_t n = b.integer(2), last = dims.back();
    const bool forward = b.flag(3);
    Tensor x = along_all(b.tensor(0), dims.first(dims.size() - 1), forward);
    Tensor first = slice(x, last, 0, 1), inner = slice(x, last, 1, (n + 1) / 2);
    std::vector<Tensor> parts = {to(real(first), x.dtype()), inner};
    if (n % 2 == 0) parts.push_back(to(real(slice(x, last, n / 2, n / 2 + 1)), x.dtype()));
    parts.push_back(conj(flip(inner, last)));
    b.ret(0, real(along(cat(parts, last), last, forward)) * b.real(4));
  });
}

}  // namespace adjoin::ops
