// adjoin/values.hpp: tensors of numbers that stand in the program or in its memory, and back; how a
// tensor prints.
//
//   Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});    // float32, as in Python; tensor({1, 2}): int64
//   Tensor y = from_memory(samples.data(), {100, 3}); // shares the memory, which has to outlive it
//   std::vector<float> v = to_vector<float>(x);
//   std::cout << x;
#ifndef ADJOIN_VALUES_HPP
#define ADJOIN_VALUES_HPP
#include <adjoin/joined.hpp>
#include <adjoin/kit/ops.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace AJ_HIDDEN adjoin {

// The dtype that has elements of type T.
template <class T>
constexpr DLDataType dtype_of() {
  if constexpr (std::same_as<T, bool>)
    return boolean;
  else if constexpr (std::same_as<T, std::complex<float>>)
    return complex64;
  else if constexpr (std::same_as<T, std::complex<double>>)
    return complex128;
  else {
    static_assert(Number<T> && sizeof(T) <= 8, "a tensor holds numbers, bool or std::complex");
    uint8_t code = std::floating_point<T> ? kDLFloat : std::is_signed_v<T> ? kDLInt : kDLUInt;
    return {code, uint8_t(8 * sizeof(T)), 1};
  }
}

// Numbers in nested braces.
class Values {
 public:
  template <class T>
  requires(!std::same_as<T, Scalar> && std::convertible_to<T, Scalar>) Values(T number)
      : flat_{Scalar(number)} {}
  Values(std::initializer_list<Values> rows) : shape_{int64_t(rows.size())} {
    for (const Values& row : rows) {
      const Values& first = *rows.begin();
      if (row.shape_ != first.shape_)
        kit::raise(AJ_INVALID_ARGUMENT, "tensor: rows of different shapes: ", first.text(), " and ",
                   row.text());
      flat_.insert(flat_.end(), row.flat_.begin(), row.flat_.end());
    }
    if (rows.size())
      shape_.insert(shape_.end(), rows.begin()->shape_.begin(), rows.begin()->shape_.end());
  }

  const std::vector<int64_t>& shape() const { return shape_; }
  const std::vector<Scalar>& flat() const { return flat_; }
  DLDataType dtype() const {  // as Python chooses: the widest kind among the numbers
    auto any = [&](bool (Scalar::*is)() const) {
      return std::ranges::any_of(flat_, [&](const Scalar& s) { return (s.*is)(); });
    };
    if (any(&Scalar::is_complex)) return complex64;
    if (flat_.empty() || any(&Scalar::is_floating)) return float32;
    return std::ranges::all_of(flat_, &Scalar::is_bool) ? boolean : int64;
  }

 private:
  kit::Shape text() const { return {shape_.data(), int64_t(shape_.size())}; }
  std::vector<int64_t> shape_;
  std::vector<Scalar> flat_;
};

// A copy of contiguous memory, of the elements' own dtype.
template <class T>
Tensor tensor(std::span<const T> numbers, std::optional<DLDevice> device = std::nullopt) {
  Tensor t = empty({int64_t(numbers.size())}, dtype_of<T>(), adjoin::device("cpu"));
  if (!numbers.empty()) std::memcpy(t.data_ptr(), numbers.data(), numbers.size_bytes());
  return device ? to(t, std::nullopt, *device) : t;
}
template <class T>
Tensor tensor(const std::vector<T>& numbers, std::optional<DLDevice> device = std::nullopt) {
  static_assert(!std::same_as<T, bool>,
                "std::vector<bool> has no memory to copy; use vector<char>");
  return tensor(std::span<const T>(numbers), device);
}

// Numbers as they stand in the program: tensor(2.5), tensor({1, 2, 3}), tensor({{1, 0}, {0, 1}},
// float64).
inline Tensor tensor(const Values& numbers, std::optional<DLDataType> dtype = std::nullopt,
                     std::optional<DLDevice> device = std::nullopt) {
  auto of = [&]<class T>(T (*read)(const Scalar&)) {
    std::vector<T> list;
    for (const Scalar& s : numbers.flat()) list.push_back(read(s));
    return tensor(std::span<const T>(list));
  };
  DLDataType own = numbers.dtype();
  Tensor t = own == complex64 ? of(+[](const Scalar& s) { return s.to_complex(); })
             : own == float32 ? of(+[](const Scalar& s) { return s.to_double(); })
                              : of(+[](const Scalar& s) { return s.to_int(); });
  return to(reshape(t, numbers.shape()), dtype.value_or(own), device);
}

// A tensor in memory of the caller's, which is neither copied nor freed and has to outlive it.
template <class T>
Tensor from_memory(T* data, const std::vector<int64_t>& shape) {
  DLTensor like{data,
                {kDLCPU, 0},
                int32_t(shape.size()),
                dtype_of<T>(),
                const_cast<int64_t*>(shape.data()),
                nullptr,
                0};
  uint64_t bytes = sizeof(T);
  for (int64_t n : shape) bytes *= uint64_t(n);
  aj_tensor* t = nullptr;
  kit::check(kit::env.core->tensor_from_memory(&like, bytes, 0, nullptr, nullptr, &t));
  return Tensor::steal(t);
}

// The elements in C order, cast to T, from whichever device.
template <class T>
std::vector<T> to_vector(const Tensor& t) {
  static_assert(!std::same_as<T, bool>, "std::vector<bool> has no memory to copy to; ask for char");
  Tensor here = contiguous(to(t.detach(), dtype_of<T>(), device("cpu")));
  std::vector<T> list(size_t(here.numel()));
  if (!list.empty()) std::memcpy(list.data(), here.data_ptr(), list.size() * sizeof(T));
  return list;
}

namespace detail {

inline void put_number(std::string& out, const Scalar& s) {
  if (s.is_bool()) {
    out += s.to_bool() ? "true" : "false";
  } else if (s.is_integer()) {
    out += std::to_string(s.to_int());
  } else {
    auto part = [&](double v) {  // as "%.5g", whatever the program's locale
      char room[64];
      out.append(room,
                 std::to_chars(room, room + sizeof room, v, std::chars_format::general, 5).ptr);
    };
    part(s.to_complex().real());
    if (!s.is_complex()) return;
    double imag = s.to_complex().imag();
    if (!std::signbit(imag)) out += '+';
    part(imag);
    out += 'j';
  }
}

// Of more than a thousand elements the first and last three of each dimension.
inline void put_rows(std::string& out, const Tensor& t, bool all, size_t indent) {
  if (t.ndim() == 0) return put_number(out, t.number());
  out += '[';
  int64_t n = t.size(0);
  for (int64_t i = 0; i < n; ++i) {
    if (i) out += t.ndim() == 1 ? ", " : ",\n" + std::string(indent + 1, ' ');
    if (!all && n > 6 && i == 3) {
      out += "...";
      i = n - 4;
      continue;
    }
    put_rows(out, select(t, 0, i), all, indent + 1);
  }
  out += ']';
}

}  // namespace detail

// The elements, then what the tensor is: [[1, 2],\n [3, 4]] float32[2, 2] cpu
inline std::string to_string(const Tensor& t) {
  if (!t.defined()) return "undefined tensor";
  NoGradGuard off;
  std::string out;
  std::string at(kit::view_of(kit::env.core->device_name(t.device().device_type)));
  if (t.device().device_id) at += kit::text(":", t.device().device_id);
  if (at != "meta") {
    detail::put_rows(out, to(t.detach(), std::nullopt, device("cpu")), t.numel() <= 1000, 0);
    out += ' ';
  }
  return out + kit::text(t.dtype(), kit::Shape{t.shape().data(), t.ndim()}, " ", at);
}
template <class Stream>
requires requires(Stream& s) { s.rdbuf(); }
Stream& operator<<(Stream& out, const Tensor& t) {
  out << to_string(t);
  return out;
}

}  // namespace adjoin
#endif
