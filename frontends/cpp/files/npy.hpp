// adjoin/files/npy.hpp: NumPy's .npy files: a header that describes one array, and its elements.
#ifndef ADJOIN_FILES_NPY_HPP
#define ADJOIN_FILES_NPY_HPP
#include <adjoin/kit/ops.hpp>

#include "atomic.hpp"
#include "memory.hpp"

namespace adjoin {
namespace AJ_HIDDEN files {

struct NpyName {
  const char* name;
  DLDataType dtype;
};
inline constexpr NpyName npy_names[] = {
    {"|b1", boolean}, {"|u1", uint8},   {"|i1", int8},      {"<i2", int16},      {"<i4", int32},
    {"<i8", int64},   {"<u2", uint16},  {"<u4", uint32},    {"<u8", uint64},     {"<f2", float16},
    {"<f4", float32}, {"<f8", float64}, {"<c8", complex64}, {"<c16", complex128}};

// What stands behind 'key': in the header, up to one of the characters in `end`.
inline std::string_view npy_field(std::string_view header, std::string_view key, char begin,
                                  char end) {
  size_t at = header.find(key);
  at = at == header.npos ? at : header.find(begin, at + key.size());
  size_t stop = at == header.npos ? at : header.find(end, at + 1);
  return stop == header.npos ? std::string_view() : header.substr(at + 1, stop - at - 1);
}

inline Tensor load_npy(const std::string& path) {
  auto map = std::make_shared<Mapping>(path);
  auto wrong = [&](const auto&... parts) {
    kit::raise(AJ_DATA_LOSS, "load: '", path, "': ", parts...);
  };
  std::string_view file = map->text();
  if (file.size() < 12 || file.substr(0, 6) != "\x93NUMPY") wrong("this is no .npy file");
  const bool wide = file[6] >= 2;
  uint32_t length = 0;
  std::memcpy(&length, file.data() + 8, wide ? 4 : 2);
  const uint64_t begin = (wide ? 12 : 10) + uint64_t(length);
  if (begin > file.size()) wrong("the header is longer than the file");
  std::string_view header = file.substr(wide ? 12 : 10, length);
  std::string_view descr = npy_field(header, "'descr'", '\'', '\'');
  std::string_view order = npy_field(header, "'fortran_order'", ':', ',');
  std::string_view sizes = npy_field(header, "'shape'", '(', ')');
  const NpyName* type = nullptr;
  for (const NpyName& n : npy_names)
    if (descr == n.name) type = &n;
  if (!type)
    wrong("elements of kind '", descr,
          "' are not read; save numbers in the order of this machine's bytes");
  if (order.find("False") == order.npos)
    wrong("the order is Fortran's; save numpy.ascontiguousarray(x)");
  std::vector<int64_t> shape;
  uint64_t bytes = type->dtype.bits / 8;
  for (const char *p = sizes.data(), *end = p + sizes.size(); p < end;) {
    int64_t n = 0;
    auto [stop, bad] = std::from_chars(p, end, n);
    if (bad != std::errc() || n < 0 || shape.size() == 64 ||
        __builtin_mul_overflow(bytes, uint64_t(n), &bytes))
      wrong("the shape is '", sizes, "'");
    shape.push_back(n);
    for (p = stop; p < end && (*p == ',' || *p == ' '); ++p) {
    }
  }
  if (bytes > file.size() - begin)
    wrong("the file holds ", uint64_t(file.size() - begin), " bytes of ", bytes);
  char* data = map->data + begin;
  const bool even = reinterpret_cast<uintptr_t>(data) % (type->dtype.bits / 8) == 0;
  auto home = even ? map : Mapping::of({data, size_t(bytes)});
  return tensor_in(home, even ? data : home->data, shape, type->dtype);
}

inline void save_npy(const Tensor& given, const std::string& path) {
  Tensor t = contiguous(given.detach());
  const NpyName* type = nullptr;
  for (const NpyName& n : npy_names)
    if (n.dtype == t.dtype()) type = &n;
  if (!type) kit::raise(AJ_WRONG_TYPE, "save: '", path, "': .npy has no name for ", t.dtype());
  std::string shape;
  for (int64_t n : t.shape()) shape += kit::text(n, ",");
  std::string header =
      kit::text("{'descr': '", type->name, "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::string bytes = std::string("\x93NUMPY\x01\x00", 8);
  bytes += char(header.size() & 255), bytes += char(header.size() >> 8);
  bytes += header;
  const size_t from = bytes.size();
  bytes.resize(from + size_t(t.numel()) * (t.dtype().bits / 8));
  if (bytes.size() > from)
    kit::check(
        kit::env.core->tensor_copy_bytes(t.get(), bytes.data() + from, bytes.size() - from, 1));
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace files
}  // namespace adjoin
#endif
