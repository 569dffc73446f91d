// plugins/vector/stored.hpp: the types that tensors hold, and the kit's conversions between their
// dtypes, which a library compiles once, in convert.cpp.
#ifndef ADJOIN_PLUGINS_VECTOR_STORED_HPP
#define ADJOIN_PLUGINS_VECTOR_STORED_HPP
#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/kernel.hpp>

// Every type that a tensor of a built-in dtype holds.
// clang-format off
#define AJ_STORED(DO)                                        \
  DO(bool) DO(uint8_t) DO(int8_t) DO(int16_t) DO(int32_t)    \
  DO(int64_t) DO(uint16_t) DO(uint32_t) DO(uint64_t)         \
  DO(Half) DO(BFloat16) DO(float) DO(double)                 \
  DO(Complex64) DO(Complex128)
// clang-format on

namespace adjoin {
namespace AJ_HIDDEN kit {
#define AJ_CONVERT_HERE(T)                                                 \
  template <>                                                              \
  void Convert<T>::load(void*, const char*, DLDataType, int64_t, int64_t); \
  template <>                                                              \
  void Convert<T>::store(char*, DLDataType, int64_t, const void*, int64_t);
AJ_STORED(AJ_CONVERT_HERE)
#undef AJ_CONVERT_HERE
}  // namespace kit

namespace cpu {
using namespace kit;  // NOLINT: what compiles these sources is made of it
}  // namespace cpu
}  // namespace adjoin
#endif
