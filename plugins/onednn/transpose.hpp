// plugins/onednn/transpose.hpp: matrices turned in memory, for images between planes and
// channels-last.
#ifndef ADJOIN_PLUGINS_ONEDNN_TRANSPOSE_HPP
#define ADJOIN_PLUGINS_ONEDNN_TRANSPOSE_HPP
#include <cstdint>

namespace adjoin::onednn {

// to[c * to_ld + r] = from[r * from_ld + c] for r < rows, c < columns; they don't overlap.
void transpose(const float* from, int64_t rows, int64_t columns, int64_t from_ld, float* to,
               int64_t to_ld);

// Tiles of 16 rows of 16, where has_tiles(). The first `rows` of a turned one go to places of `to`;
// or its rows come from places of `from`.
bool has_tiles();
void scatter_tile(const float* from, int64_t from_ld, int rows, float* to, const int64_t* place);
void gather_tile(const float* from, const int64_t* place, float* to, int64_t to_ld);

}  // namespace adjoin::onednn
#endif
