// adjoin/files/storages.hpp: what PyTorch calls its storages, and whether a tensor lies inside of
// one.
#ifndef ADJOIN_FILES_STORAGES_HPP
#define ADJOIN_FILES_STORAGES_HPP
#include <adjoin/kit/error.hpp>
#include <span>

namespace adjoin {
namespace AJ_HIDDEN files {

struct StorageName {
  const char* name;   // torch.NAME
  const char* dtype;  // of the core
  uint32_t bytes;     // of an element
};
inline constexpr StorageName storage_names[] = {{"BoolStorage", "bool", 1},
                                                {"ByteStorage", "uint8", 1},
                                                {"CharStorage", "int8", 1},
                                                {"ShortStorage", "int16", 2},
                                                {"IntStorage", "int32", 4},
                                                {"LongStorage", "int64", 8},
                                                {"HalfStorage", "float16", 2},
                                                {"BFloat16Storage", "bfloat16", 2},
                                                {"FloatStorage", "float32", 4},
                                                {"DoubleStorage", "float64", 8},
                                                {"ComplexFloatStorage", "complex64", 8},
                                                {"ComplexDoubleStorage", "complex128", 16},
                                                {"UntypedStorage", "uint8", 1},
                                                {"_UntypedStorage", "uint8", 1}};

inline const StorageName* find_storage_name(std::string_view name) {
  for (const StorageName& s : storage_names)
    if (name == s.name) return &s;
  return nullptr;
}
inline uint64_t element_size(std::string_view name) {
  const StorageName* found = find_storage_name(name);
  return found ? found->bytes : 0;
}
// The name of storages of a dtype, or NULL: they are untyped then.
inline const char* storage_of_dtype(std::string_view dtype) {
  for (const StorageName& s : storage_names)
    if (dtype == s.dtype) return s.name;
  return nullptr;
}

// Do all elements of such a tensor lie inside of n elements?
inline bool lies_inside(uint64_t n, int64_t offset, std::span<const int64_t> shape,
                        std::span<const int64_t> strides) {
  if (offset < 0 || uint64_t(offset) > n || shape.size() != strides.size() || shape.size() > 64)
    return false;
  int64_t last = offset, count = 1;
  bool empty = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t reach;
    if (shape[i] < 0 || strides[i] < 0) return false;
    empty = empty || shape[i] == 0;
    // The count too: a stride of 0 makes any number of elements of one.
    if (shape[i] > 0 && (__builtin_mul_overflow(count, shape[i], &count) || count > INT64_MAX / 16))
      return false;
    if (shape[i] > 0 && (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
                         __builtin_add_overflow(last, reach, &last)))
      return false;
  }
  return empty || uint64_t(last) < n;
}

// Swaps the bytes of each element of so many bytes; a complex number has two parts.
inline void swap_bytes(char* data, uint64_t n, uint64_t element) {
  if (element < 2) return;
  for (char* p = data; uint64_t(p - data) + element <= n; p += element)
    for (uint64_t i = 0; i < element / 2; ++i) std::swap(p[i], p[element - 1 - i]);
}

}  // namespace files
}  // namespace adjoin
#endif
