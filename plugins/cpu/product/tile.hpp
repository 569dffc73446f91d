// plugins/cpu/product/tile.hpp: what the innermost loops of our products offer, for each type of
// matrix, on the processor at hand.
#ifndef ADJOIN_PLUGINS_CPU_PRODUCT_TILE_HPP
#define ADJOIN_PLUGINS_CPU_PRODUCT_TILE_HPP
#include <adjoin/abi/base.h>

#include <cstdint>

namespace adjoin::cpu {

// What a tile does with C: writes sums, adds to sums, or writes what is stored.
enum class Into { write, add, stored };
// Arguments as in tile_body.hpp.
using TileFn = void (*)(int64_t steps, const void* a, int64_t rs, int64_t ps, const void* b,
                        int64_t bs, void* c, int64_t ldc, Into into, const void* start);
using PackFn = void (*)(const void* x, int64_t ld, int64_t count, int64_t width, int64_t k,
                        void* out);
// Arguments as in few_rows_body.hpp.
using FewFn = void (*)(int64_t k, int64_t n, const void* x, int64_t xs, const void* b, int64_t ld,
                       void* out, int64_t out_ld);
constexpr int kFew = 8;
struct Finish {
  const void* from;
  int64_t ld, rows, columns;
  void* to;
  int64_t rs, cs;
  double alpha, beta;
  const void* bias;  // (optional) one number a row or a column, of the stored type
  bool bias_by_row;
};

// One type of stored elements on one instruction set.
struct Tiles {
  int lanes;    // of a vector
  int rows[3];  // of the largest tile of 1, 2 and 4 vectors
  int pair;     // how many k one step multiplies
  int stored, packed,
      sum;      // bytes of an element in memory, packed, and of a sum
  bool stores;  // tiles know Into::stored
  const TileFn *row_tiles[3],
      *panel_tiles[3];  // of 1, 2 and 4 vectors; by rows - 1
  PackFn along, across;
  void (*rows_of)(const void* x, int64_t ld, int64_t count, int64_t k, void* out, int64_t stride);
  void (*finish)(const Finish& f);
  const FewFn *few_along, *few_across;  // by rows - 1
  void (*pack_few)(const void* x, int64_t rs, int64_t qs, int64_t rows, int64_t k, void* out,
                   int64_t stride);
  int group;                                           // fewest columns of few_along
  void (*widen)(const void* x, int64_t n, void* out);  // stored elements as sums
};

// Null where there is no vector code for it.
const Tiles* tiles(DLDataType dtype);

}  // namespace adjoin::cpu
#endif
