// plugins/cpu/product/blocked.hpp: our own products of floating types, cut into blocks that fit the
// caches and run by the tiles of tile.hpp.
#ifndef ADJOIN_PLUGINS_CPU_PRODUCT_BLOCKED_HPP
#define ADJOIN_PLUGINS_CPU_PRODUCT_BLOCKED_HPP
#include "tile.hpp"

namespace adjoin::cpu {

// All of B as the tiles read it: of each block of k every panel of columns. Columns and rows of k
// are rounded up to whole panels and steps.
struct PackedB {
  const void* data = nullptr;
  int64_t block, columns;  // of k; of all panels
  int64_t from;            // the first column of C in them
  bool late_bias;          // is added to finished sums, as an exchanged product does
};

// C = alpha A B + beta C. A(i, p) lies at i * lda + p, turned at p * lda + i; B likewise; C(i, j)
// at i * rs + j * cs. Strides in elements.
struct Product {
  int64_t m, n, k;
  const void* a;
  int64_t lda;
  bool turned_a;
  const void* b;
  int64_t ldb;
  bool turned_b;
  void* c;
  int64_t rs, cs;
  double alpha, beta;
  const void* bias;  // (optional, with alpha 1 and beta 0) a number for each column of C; swapped:
  bool swapped;      // for each row. Swapped: C's columns were its rows
  bool few = false;  // the way of few_rows.cpp
  PackedB packed = {};
};

// The same product with the roles of A and B exchanged, when that has less to pack.
Product best_way(const Product& p, const Tiles& t);

// The part of C that begins at (i, j).
Product part(const Product& p, const Tiles& t, int64_t i, int64_t j, int64_t m, int64_t n);

// A few rows: one pass over B as it lies. few() wants what is_few() agrees to; by best_way().
bool is_few(const Product& p, const Tiles& t);
void few(const Product& p, const Tiles& t);

// On the calling thread. An element of C has the same bits in whatever part it is computed.
void blocked(const Product& p, const Tiles& t);

// How B would be packed for the product as a whole: without data where that is not worth it. The
// sums are the same as without, to the bit. pack_whole fills packed_bytes() of memory.
PackedB whole_packed(const Product& p, const Tiles& t);
size_t packed_bytes(const Product& p, const Tiles& t, const PackedB& b);
void pack_whole(const Product& p, const Tiles& t, const PackedB& b, void* to);

// Memory of the calling thread that stays: what one product needed the next one will.
void* scratch(int which, size_t bytes);

}  // namespace adjoin::cpu
#endif
