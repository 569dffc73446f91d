// plugins/shadow/compare.cpp: are two tensors of different devices the same, within stated units in
// the last place?
#include "compare.hpp"

#include <adjoin/kit/dtype.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "copies.hpp"

namespace adjoin::shadow {
namespace {

using namespace kit;

std::vector<char> contents(const Tensor& t) {
  Tensor dense = packed(t);
  std::vector<char> bytes(size_t(t.numel() * kit::bytes_of(t.dtype())));
  if (!bytes.empty()) check(core().tensor_copy_bytes(dense.get(), bytes.data(), bytes.size(), 1));
  return bytes;
}

// How many digits of the mantissa a floating type has, and its least normal number.
struct Format {
  int digits;
  double least;
};
Format format_of(DLDataType d) {
  int bits = d.code == kDLComplex ? d.bits / 2 : d.bits;
  if (d.code == kDLBfloat) return {8, 0x1p-126};
  if (bits == 16) return {11, 0x1p-14};
  return bits == 32 ? Format{24, 0x1p-126} : Format{53, 0x1p-1022};
}

double ulp_at(double x, const Format& f) {
  x = std::max(std::abs(x), f.least);
  return std::ldexp(1.0, std::ilogb(x) - f.digits + 1);
}

// Each number as a double: complex ones are two.
template <class F>
void each_number(const Tensor& t, const std::vector<char>& bytes, F&& f) {
  visit<Join<floating_complex, halves>>(t.dtype(), [&]<class T>() {
    size_t n = bytes.size() / sizeof(T);
    for (size_t i = 0; i < n; ++i) {
      T x;
      std::memcpy(&x, bytes.data() + i * sizeof(T), sizeof(T));
      if constexpr (kit::is_complex<T>) {
        f(2 * i, double(x.re));
        f(2 * i + 1, double(x.im));
      } else {
        f(i, double(x));
      }
    }
  });
}

bool has_fraction(DLDataType d) {
  return d.code == kDLFloat || d.code == kDLBfloat || d.code == kDLComplex;
}

std::string place(const Tensor& t, int64_t i) {
  std::vector<int64_t> at(size_t(t.ndim()));
  for (size_t d = at.size(); d-- > 0;) {
    at[d] = i % t.size(int64_t(d));
    i /= t.size(int64_t(d));
  }
  return text(Shape{at.data(), int64_t(at.size())});
}

struct Worst {
  int64_t at = -1, count = 0;
  double ours = 0, theirs = 0, ulp = 0;
};

void judge(Worst* w, int64_t i, double a, double b, double unit, double limit) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return;
  double ulp = std::abs(a - b) / unit;
  if (ulp <= limit) return;
  if (std::isnan(ulp)) ulp = std::numeric_limits<double>::infinity();
  if (w->count++ == 0 || ulp > w->ulp) w->at = i, w->ours = a, w->theirs = b, w->ulp = ulp;
}

std::string difference_of_bits(const Tensor& t, const std::vector<char>& a,
                               const std::vector<char>& b) {
  size_t size = t.numel() ? a.size() / size_t(t.numel()) : 1;
  int64_t first = -1, count = 0;
  for (size_t i = 0; i < a.size(); i += size)
    if (std::memcmp(&a[i], &b[i], size) != 0 && count++ == 0) first = int64_t(i / size);
  return count ? text("element ", place(t, first), " is the first of ", count, " that differ, of ",
                      t.numel())
               : std::string();
}

}  // namespace

double largest_magnitude(const Tensor& t) {
  double most = 0;
  if (!has_fraction(t.dtype())) return most;
  each_number(t, contents(t), [&](size_t, double x) {
    if (std::isfinite(x)) most = std::max(most, std::abs(x));
  });
  return most;
}

std::string difference(const Tensor& ours, const Tensor& theirs, const Limits& limits,
                       bool pointwise, double largest) {
  if (!std::ranges::equal(ours.shape(), theirs.shape()) || !same(ours.dtype(), theirs.dtype()))
    return text("shapes or dtypes: ", describe(ours), " and ", describe(theirs));
  std::vector<char> a = contents(ours), b = contents(theirs);
  if (!has_fraction(ours.dtype())) return difference_of_bits(ours, a, b);
  Format format = format_of(ours.dtype());
  std::vector<double> other;
  each_number(theirs, b, [&](size_t, double x) {
    other.push_back(x);
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  });
  Worst worst;
  int parts = ours.dtype().code == kDLComplex ? 2 : 1;
  double limit = pointwise ? limits.element : limits.scale;
  each_number(ours, a, [&](size_t i, double x) {
    double y = other[i];
    // The parts of a complex number have its magnitude in common.
    double size = parts == 2 ? std::hypot(other[i & ~size_t(1)], other[i | 1]) : y;
    double unit = ulp_at(pointwise ? size : largest, format);
    judge(&worst, int64_t(i) / parts, x, y, unit, limit);
  });
  if (worst.count == 0) return {};
  return text("element ", place(ours, worst.at), ": ", worst.ours, " and ", worst.theirs, ", ",
              worst.ulp, pointwise ? " ULP" : " ULP of the largest magnitude", ", ", limit,
              " are allowed; ", worst.count, " of ", ours.numel() * parts, " differ");
}

}  // namespace adjoin::shadow
