// plugins/vector/convert.cpp: rows of any dtype to any other: contiguous ones as vector casts,
// others element by element.
#include "convert_rows.hpp"
#include "stored.hpp"

namespace adjoin {
namespace cpu {
namespace {

constexpr int64_t kWorthALookup = 8;  // elements

template <class T>
void load(void* into, const char* from, DLDataType dtype, int64_t stride, int64_t n) {
  T* to = static_cast<T*>(into);
  if (stride == bytes_of(dtype)) {
    if (!std::is_same_v<T, bool> && same(dtype, dtype_of<T>))
      return void(std::memcpy(into, from, size_t(n) * sizeof(T)));
    if (n >= kWorthALookup)
      if (CastRow row = find_cast_row(dtype_of<T>, dtype)) return row(into, from, n, false);
  }
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8)
    if (stride == 2 * int64_t(sizeof(T)) && same(dtype, dtype_of<T>))
      return every_other(sizeof(T), to, from, n);
  visit<stored>(dtype, [&]<class From>() {
    for (int64_t i = 0; i < n; ++i) to[i] = cast<T>(element<From>(from + i * stride));
  });
}

template <class T>
void store(char* to, DLDataType dtype, int64_t stride, const void* out_of, int64_t n) {
  const T* from = static_cast<const T*>(out_of);
  if (stride == bytes_of(dtype)) {
    if (same(dtype, dtype_of<T>)) return void(std::memcpy(to, from, size_t(n) * sizeof(T)));
    if (n >= kWorthALookup)
      if (CastRow row = find_cast_row(dtype, dtype_of<T>)) return row(to, from, n, false);
  }
  visit<stored>(dtype, [&]<class To>() {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<To*>(to + i * stride) = cast<To>(from[i]);
  });
}

}  // namespace
}  // namespace cpu

namespace AJ_HIDDEN kit {
#define AJ_CONVERT_HERE(T)                                                                         \
  template <>                                                                                      \
  void Convert<T>::load(void* to, const char* from, DLDataType dtype, int64_t stride, int64_t n) { \
    cpu::load<T>(to, from, dtype, stride, n);                                                      \
  }                                                                                                \
  template <>                                                                                      \
  void Convert<T>::store(char* to, DLDataType dtype, int64_t stride, const void* from,             \
                         int64_t n) {                                                              \
    cpu::store<T>(to, dtype, stride, from, n);                                                     \
  }
AJ_STORED(AJ_CONVERT_HERE)
#undef AJ_CONVERT_HERE
}  // namespace kit
}  // namespace adjoin
