// plugins/reference/fourier.cpp: Fourier transforms by their definition, in double: for each
// frequency a sum over all elements.
#include <adjoin/kit/view.hpp>
#include <cmath>
#include <complex>
#include <numbers>

#include "element.hpp"

namespace adjoin::reference {
namespace {

using Number = std::complex<double>;

// An array in C order that is transformed one dimension after the other.
struct Array {
  std::vector<int64_t> shape;
  std::vector<Number> at;

  int64_t behind(int64_t d) const {
    int64_t n = 1;
    for (size_t i = size_t(d) + 1; i < shape.size(); ++i) n *= shape[i];
    return n;
  }

  // Along d, f gives the new elements of a line from the old ones.
  template <class F>
  void each_line(int64_t d, int64_t n, F f) {
    const int64_t old = shape[size_t(d)], step = behind(d);
    const int64_t lines = old ? int64_t(at.size()) / old : 0;
    std::vector<Number> to(size_t(lines * n)), line(static_cast<size_t>(old));
    for (int64_t i = 0; i < lines; ++i) {
      const int64_t outer = i / step, inner = i % step;
      for (int64_t j = 0; j < old; ++j)
        line[size_t(j)] = at[size_t((outer * old + j) * step + inner)];
      std::vector<Number> made = f(line);
      for (int64_t j = 0; j < n; ++j) to[size_t((outer * n + j) * step + inner)] = made[size_t(j)];
    }
    at = to;
    shape[size_t(d)] = n;
  }

  void transform(int64_t d, bool forward) {
    each_line(d, shape[size_t(d)], [&](const std::vector<Number>& x) {
      const int64_t n = int64_t(x.size());
      std::vector<Number> root(x.size()), y(x.size());
      for (int64_t k = 0; k < n; ++k) {
        const double angle = 2 * std::numbers::pi * double(k) / double(n);
        root[size_t(k)] = {std::cos(angle), forward ? -std::sin(angle) : std::sin(angle)};
      }
      for (int64_t k = 0; k < n; ++k) {
        Number sum = 0;
        for (int64_t j = 0, turn = 0; j < n; ++j, turn = (turn + k) % n)
          sum += x[size_t(j)] * root[size_t(turn)];
        y[size_t(k)] = sum;
      }
      return y;
    });
  }
};

template <class T>
Array read(TensorView t) {
  Array a{{t.shape().begin(), t.shape().end()}, {}};
  Dense<T> from(t);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const Complex128 x = cast<Complex128>(from[i]);
    a.at.push_back({x.re, x.im});
  }
  return a;
}

template <class T>
void write(const Array& a, MutView out, double scale) {
  Dense<T> to(out);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const Number x = a.at[size_t(i)] * scale;
    to[i] = cast<T>(Complex128(x.real(), x.imag()));
  }
  to.commit();
}

void c2c(Args args) {
  visit<complexes>(args.tensor(0).dtype(), [&]<class T>() {
    Array a = read<T>(args.tensor(0));
    for (int64_t d : args.ints(1)) a.transform(d, args.flag(2));
    write<T>(a, args.result(0), args.real(3));
  });
}

void r2c(Args args) {
  visit<floating>(args.tensor(0).dtype(), [&]<class T>() {
    Array a = read<T>(args.tensor(0));
    for (int64_t d : args.ints(1)) a.transform(d, args.flag(3));
    const int64_t last = args.ints(1).back(), n = args.result(0).size(last);
    if (a.shape[size_t(last)] != n) a.each_line(last, n, [](const auto& x) { return x; });
    write<Complex<T>>(a, args.result(0), args.real(4));
  });
}

// The other half of the last dimension is the conjugate, mirrored, of what the first half is after
// the other dimensions; what is its own mirror image is real.
void c2r(Args args) {
  visit<complexes>(args.tensor(0).dtype(), [&]<class T>() {
    using Real = decltype(T().re);
    Array a = read<T>(args.tensor(0));
    Span dims = args.ints(1);
    const int64_t last = dims.back(), n = args.integer(2);
    for (size_t i = 0; i + 1 < dims.size(); ++i) a.transform(dims[i], args.flag(3));
    a.each_line(last, n, [&](const std::vector<Number>& x) {
      std::vector<Number> y(static_cast<size_t>(n));
      for (int64_t k = 0; k < n; ++k)
        y[size_t(k)] = 2 * k <= n ? x[size_t(k)] : std::conj(x[size_t(n - k)]);
      for (int64_t k = 0; k < n; ++k)
        if (2 * k % n == 0) y[size_t(k)] = y[size_t(k)].real();
      return y;
    });
    a.transform(last, args.flag(3));
    write<Real>(a, args.result(0), args.real(4));
  });
}

}  // namespace

AJ_KERNELS(fourier_kernels) = {
    {"_::fft_c2c", custom<c2c, complexes>},
    {"_::fft_r2c", custom<r2c, floating>},
    {"_::fft_c2r", custom<c2r, complexes>},
    {nullptr, {}},
};

}  // namespace adjoin::reference
