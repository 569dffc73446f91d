// frontends/cli/conform/tensors.hpp: values in the host's memory, and their way to a device and
// back without a kernel of the device: bytes alone are copied.
#pragma once

#include <adjoin/kit/call.hpp>
#include <complex>
#include <cstdint>
#include <string>
#include <vector>

namespace adjoin::cli::conform {

using Shape = std::vector<int64_t>;

// Elements in C order.
struct HostTensor {
  DLDataType dtype{};
  Shape shape;
  std::vector<unsigned char> bytes;

  int64_t numel() const;
  bool exact() const { return dtype.code == kDLFloat || dtype.code == kDLBfloat || complex(); }
  bool complex() const { return dtype.code == kDLComplex; }
};

// How the same values may lie in memory.
enum class Lay { kDense, kStrided, kTransposed, kOffset, kExpanded };
const char* lay_name(Lay lay);

int64_t item_size(DLDataType dtype);
DLDataType dtype_named(const std::string& name);
std::string dtype_name(DLDataType dtype);
std::string shape_text(const Shape& shape);

HostTensor from_numbers(DLDataType dtype, Shape shape, const std::vector<std::complex<double>>& x);
std::vector<std::complex<double>> to_numbers(const HostTensor& t);
// The first slice of the first dimension in all of them: what kExpanded stores once.
HostTensor repeated(const HostTensor& t);

// A tensor on the device whose memory holds `guard` before, between and behind its elements.
// `memory` is all of that memory as a flat tensor of bytes.
struct Placed {
  Tensor tensor, memory;
  std::vector<unsigned char> image;  // what `memory` held when it was made
};
Placed place(const HostTensor& t, DLDevice device, Lay lay);
// For a result that shall be written: nothing but guard.
Placed place_empty(DLDataType dtype, const Shape& shape, DLDevice device, Lay lay);
// How many bytes that are no element of the tensor differ from what stood there.
int64_t touched(const Placed& p);
bool unchanged(const Placed& p);

HostTensor fetch(const Tensor& t);

// How far two numbers may be apart: absolutely and relatively, or in steps of the dtype (units in
// the last place) at the larger of the number and `floor`.
struct Tolerance {
  double loose = 0;
  double steps = 0, floor = 0;
};
// Empty if the two agree: the same dtype and shape, numbers within tolerance, NaN where NaN is.
// farthest: becomes the largest distance in steps if that is larger.
std::string difference(const HostTensor& got, const HostTensor& wanted, const Tolerance& tolerance,
                       bool values, double* farthest = nullptr);
// The same with the tolerance of what adds up, times `scale`; at least that of the dtype `least`.
std::string difference(const HostTensor& got, const HostTensor& wanted, double scale, bool values,
                       DLDataType least = {});
double tolerance(DLDataType dtype);

}  // namespace adjoin::cli::conform
