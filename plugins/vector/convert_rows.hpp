// plugins/vector/convert_rows.hpp: vector casts by dtype.
#ifndef ADJOIN_PLUGINS_VECTOR_CONVERT_ROWS_HPP
#define ADJOIN_PLUGINS_VECTOR_CONVERT_ROWS_HPP
#include <adjoin/kit/dtype.hpp>

namespace adjoin::cpu {
// Casts a contiguous row, past the caches if asked; NULL: that pair has no vector code.
using CastRow = void (*)(void* to, const void* from, int64_t n, bool past_caches);
CastRow find_cast_row(DLDataType to, DLDataType from);
// The first of each two elements of 4 or 8 bytes, n of them.
void every_other(size_t size, void* to, const void* from, int64_t n);
}  // namespace adjoin::cpu
#endif
