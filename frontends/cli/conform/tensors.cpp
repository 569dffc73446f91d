// frontends/cli/conform/tensors.cpp: values to a device and back, and their comparison.
#include "tensors.hpp"

#include <adjoin/kit/convert.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace adjoin::cli::conform {
namespace {

using Number = std::complex<double>;
constexpr unsigned char kGuard = 0x5a;
constexpr int64_t kMargin = 64;  // bytes of guard before and behind

// 1 is a value of every dtype, bool too: an op that takes strides by itself may read what lies
// between.
unsigned char guard_of(DLDataType dtype) { return dtype.code == kDLBool ? 1 : kGuard; }

// Strides and the first element, in elements, of a tensor that lies so in memory of `room`
// elements.
struct Geometry {
  Shape strides;
  int64_t first = 0, room = 0;
};

Geometry geometry(const Shape& shape, Lay lay, int64_t item) {
  Geometry g;
  size_t n = shape.size();
  g.strides.assign(n, 0);
  int64_t margin = kMargin / item, step = 1;
  if (lay == Lay::kTransposed) {
    for (size_t d = 0; d < n; ++d) g.strides[d] = step, step *= std::max<int64_t>(shape[d], 1);
  } else {
    if (lay == Lay::kStrided) step = 2;
    for (size_t d = n; d-- > 0;) {
      bool once = lay == Lay::kExpanded && d == 0;
      g.strides[d] = once ? 0 : step;
      step *= once ? 1 : std::max<int64_t>(shape[d], 1);
      if (lay == Lay::kStrided && d + 1 == n) step += 2;  // a gap behind every row
    }
  }
  g.first = margin + (lay == Lay::kOffset || lay == Lay::kStrided ? 1 : 0);
  g.room = g.first + step + margin;
  return g;
}

// Calls f(i, offset) for the i-th element in C order.
template <class F>
void for_each(const Shape& shape, const Shape& strides, F f) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  Shape at(shape.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < n; ++i) {
    f(i, offset);
    for (size_t d = shape.size(); d-- > 0;) {
      offset += strides[d];
      if (++at[d] < shape[d]) break;
      offset -= strides[d] * shape[d];
      at[d] = 0;
    }
  }
}

DLTensor like(DLDevice device, DLDataType dtype, const Shape& shape, const Shape* strides) {
  DLTensor l{};
  l.device = device;
  l.dtype = dtype;
  l.ndim = int32_t(shape.size());
  l.shape = const_cast<int64_t*>(shape.data());
  l.strides = strides ? const_cast<int64_t*>(strides->data()) : nullptr;
  return l;
}

Placed placed(DLDataType dtype, const Shape& shape, DLDevice device, const Geometry& g,
              std::vector<unsigned char> image) {
  Placed p;
  p.image = std::move(image);
  Shape flat = {g.room};
  DLTensor all = like(device, dtype, flat, nullptr), part = like(device, dtype, shape, &g.strides);
  aj_tensor* t = nullptr;
  kit::check(kit::core().tensor_empty(&all, 0, &t));
  p.memory = Tensor::steal(t);
  kit::check(kit::core().tensor_copy_bytes(t, p.image.data(), p.image.size(), 0));
  kit::check(kit::core().tensor_view(t, &part, g.first, &t));
  p.tensor = Tensor::steal(t);
  return p;
}

std::vector<unsigned char> bytes_of(const Tensor& dense) {
  std::vector<unsigned char> bytes(size_t(dense.numel() * item_size(dense.dtype())));
  kit::check(kit::core().device_synchronize(dense.device()));
  if (!bytes.empty())
    kit::check(kit::core().tensor_copy_bytes(dense.get(), bytes.data(), bytes.size(), 1));
  return bytes;
}

std::string element(Number x, bool complex) {
  char text[96];
  if (complex)
    snprintf(text, sizeof text, "%.9g%+.9gi", x.real(), x.imag());
  else
    snprintf(text, sizeof text, "%.9g", x.real());
  return text;
}

bool near(double a, double b, double tol) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  return std::fabs(a - b) <= tol + tol * std::fabs(b);
}

// The distance in units of the last place that the dtype has there; of complex numbers in those of
// the larger part. 0 for two NaN, infinite where one is infinite or NaN and the other is not.
double steps_apart(Number a, Number b, DLDataType dtype, double floor) {
  int bits = dtype.code == kDLComplex ? dtype.bits / 2 : dtype.bits;
  int digits = dtype.code == kDLBfloat ? 7 : bits == 64 ? 52 : bits == 32 ? 23 : 10;
  int least = bits == 64 ? -1022 : bits == 32 || dtype.code == kDLBfloat ? -126 : -14;
  auto apart = [](double x, double y) {
    if (x == y || (std::isnan(x) && std::isnan(y))) return 0.0;
    double d = std::fabs(x - y);
    return std::isnan(d) ? HUGE_VAL : d;
  };
  double size = std::max({std::fabs(b.real()), std::fabs(b.imag()), floor});
  int power = std::isfinite(size) && size > 0 ? std::max(std::ilogb(size), least) : least;
  double d = std::max(apart(a.real(), b.real()), apart(a.imag(), b.imag()));
  return std::isinf(size) && d > 0 ? HUGE_VAL : std::ldexp(d, digits - power);
}

std::string place_text(const Shape& shape, int64_t i) {
  Shape at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) at[d] = i % shape[d], i /= shape[d];
  return shape_text(at);
}

}  // namespace

int64_t HostTensor::numel() const {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

const char* lay_name(Lay lay) {
  constexpr const char* kNames[] = {"dense", "strided", "transposed", "offset", "expanded"};
  return kNames[int(lay)];
}

int64_t item_size(DLDataType dtype) { return kit::bytes_of(dtype); }

DLDataType dtype_named(const std::string& name) {
  DLDataType d;
  kit::check(kit::core().dtype_find(kit::str(name), &d));
  return d;
}

std::string dtype_name(DLDataType dtype) { return kit::text(dtype); }

std::string shape_text(const Shape& shape) {
  return kit::text(kit::Shape{shape.data(), int64_t(shape.size())});
}

HostTensor from_numbers(DLDataType dtype, Shape shape, const std::vector<Number>& x) {
  HostTensor t{dtype, std::move(shape), {}};
  t.bytes.resize(x.size() * size_t(item_size(dtype)));
  kit::visit<kit::stored>(dtype, [&]<class T>() {
    for (size_t i = 0; i < x.size(); ++i) {
      T value = kit::cast<T>(kit::Complex128(x[i].real(), x[i].imag()));
      std::memcpy(t.bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return t;
}

std::vector<Number> to_numbers(const HostTensor& t) {
  std::vector<Number> x(size_t(t.numel()));
  kit::visit<kit::stored>(t.dtype, [&]<class T>() {
    for (size_t i = 0; i < x.size(); ++i) {
      T value;
      std::memcpy(&value, t.bytes.data() + i * sizeof(T), sizeof(T));
      auto z = kit::cast<kit::Complex128>(value);
      x[i] = {z.re, z.im};
    }
  });
  return x;
}

HostTensor repeated(const HostTensor& t) {
  HostTensor r = t;
  if (t.shape.empty() || t.shape[0] < 2) return r;
  size_t slice = r.bytes.size() / size_t(t.shape[0]);
  for (size_t at = slice; at < r.bytes.size(); at += slice)
    std::copy_n(r.bytes.begin(), slice, r.bytes.begin() + ptrdiff_t(at));
  return r;
}

Placed place(const HostTensor& t, DLDevice device, Lay lay) {
  int64_t item = item_size(t.dtype);
  Geometry g = geometry(t.shape, lay, item);
  std::vector<unsigned char> image(size_t(g.room * item), guard_of(t.dtype));
  for_each(t.shape, g.strides, [&](int64_t i, int64_t offset) {
    std::memcpy(image.data() + (g.first + offset) * item, t.bytes.data() + i * item, size_t(item));
  });
  return placed(t.dtype, t.shape, device, g, std::move(image));
}

Placed place_empty(DLDataType dtype, const Shape& shape, DLDevice device, Lay lay) {
  int64_t item = item_size(dtype);
  Geometry g = geometry(shape, lay, item);
  std::vector<unsigned char> image(size_t(g.room * item), guard_of(dtype));
  return placed(dtype, shape, device, g, std::move(image));
}

int64_t touched(const Placed& p) {
  std::vector<unsigned char> now = bytes_of(p.memory), own(now.size(), 0);
  int64_t item = item_size(p.tensor.dtype());
  Shape shape(p.tensor.shape().begin(), p.tensor.shape().end()),
      strides(p.tensor.strides().begin(), p.tensor.strides().end());
  int64_t first = static_cast<char*>(p.tensor.data_ptr()) - static_cast<char*>(p.memory.data_ptr());
  for_each(shape, strides, [&](int64_t, int64_t offset) {
    std::memset(own.data() + first + offset * item, 1, size_t(item));
  });
  int64_t count = 0;
  for (size_t i = 0; i < now.size(); ++i) count += !own[i] && now[i] != p.image[i];
  return count;
}

bool unchanged(const Placed& p) { return bytes_of(p.memory) == p.image; }

HostTensor fetch(const Tensor& t) {
  HostTensor h{t.dtype(), {t.shape().begin(), t.shape().end()}, {}};
  int64_t item = item_size(h.dtype);
  if (h.numel() == 0) return h;
  if (t.is_contiguous()) {
    h.bytes = bytes_of(t);
    return h;
  }
  Shape strides(t.strides().begin(), t.strides().end()), reach = {1};
  for (size_t d = 0; d < strides.size(); ++d) reach[0] += (h.shape[d] - 1) * strides[d];
  DLTensor flat = like(t.device(), h.dtype, reach, nullptr);
  aj_tensor* all = nullptr;
  kit::check(kit::core().tensor_view(t.get(), &flat, 0, &all));
  std::vector<unsigned char> memory = bytes_of(Tensor::steal(all));
  h.bytes.resize(size_t(h.numel() * item));
  for_each(h.shape, strides, [&](int64_t i, int64_t offset) {
    std::memcpy(h.bytes.data() + i * item, memory.data() + offset * item, size_t(item));
  });
  return h;
}

double tolerance(DLDataType dtype) {
  if (dtype.code == kDLBfloat) return 4e-2;
  if (dtype.code == kDLFloat) return dtype.bits == 64 ? 1e-9 : dtype.bits == 32 ? 2e-5 : 5e-3;
  if (dtype.code == kDLComplex) return dtype.bits == 128 ? 1e-9 : 5e-5;
  return 0;
}

std::string difference(const HostTensor& got, const HostTensor& wanted, double scale, bool values,
                       DLDataType least) {
  double loose = std::max(tolerance(got.dtype), tolerance(least)) * scale;
  return difference(got, wanted, Tolerance{loose, 0, 0}, values);
}

std::string difference(const HostTensor& got, const HostTensor& wanted, const Tolerance& tolerance,
                       bool values, double* farthest) {
  if (!(got.dtype == wanted.dtype))
    return kit::text("dtype ", got.dtype, ", wanted ", wanted.dtype);
  if (got.shape != wanted.shape)
    return "shape " + shape_text(got.shape) + ", wanted " + shape_text(wanted.shape);
  if (!values || got.bytes == wanted.bytes) return {};
  std::vector<Number> a = to_numbers(got), b = to_numbers(wanted);
  int64_t bad = 0, where = 0;
  double worst = -1;
  size_t item = size_t(item_size(got.dtype));
  bool by_steps = tolerance.steps > 0 && got.exact();
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::memcmp(&got.bytes[i * item], &wanted.bytes[i * item], item)) continue;
    double off = std::abs(a[i] - b[i]);
    if (by_steps) {
      off = steps_apart(a[i], b[i], got.dtype, tolerance.floor);
      if (farthest && std::isfinite(off)) *farthest = std::max(*farthest, off);
    }
    if (by_steps ? off <= tolerance.steps
                 : got.exact() && near(a[i].real(), b[i].real(), tolerance.loose) &&
                       near(a[i].imag(), b[i].imag(), tolerance.loose))
      continue;
    if (!(off <= worst)) worst = off, where = int64_t(i);
    ++bad;
  }
  if (!bad) return {};
  char text[96];
  if (by_steps)
    snprintf(text, sizeof text, ": %.3g ULP apart (tolerance %g)", worst, tolerance.steps);
  else
    snprintf(text, sizeof text, " (tolerance %.1e)", tolerance.loose);
  return std::to_string(bad) + " of " + std::to_string(a.size()) + " elements differ, most at " +
         place_text(got.shape, where) + ": " + element(a[size_t(where)], got.complex()) +
         ", wanted " + element(b[size_t(where)], got.complex()) + text;
}

}  // namespace adjoin::cli::conform
