// plugins/cpu/convert.cpp: rows of any dtype to any other: the one place where these loops are
// compiled.
#include <adjoin/kit/convert.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {
template struct Convert<bool>;
template struct Convert<uint8_t>;
template struct Convert<int8_t>;
template struct Convert<int16_t>;
template struct Convert<int32_t>;
template struct Convert<int64_t>;
template struct Convert<uint16_t>;
template struct Convert<uint32_t>;
template struct Convert<uint64_t>;
template struct Convert<Half>;
template struct Convert<BFloat16>;
template struct Convert<float>;
template struct Convert<double>;
template struct Convert<Complex64>;
template struct Convert<Complex128>;
}  // namespace kit
}  // namespace adjoin
