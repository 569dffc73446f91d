// plugins/cpu/blocked.hpp: our own products of floating types, cut into blocks that fit the caches
// and run by the tiles of tile.hpp.
#ifndef ADJOIN_PLUGINS_CPU_BLOCKED_HPP
#define ADJOIN_PLUGINS_CPU_BLOCKED_HPP
#include "tile.hpp"

namespace adjoin::cpu {

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
  bool few = false;  // the way of few.cpp
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

// Memory of the calling thread that stays: what one product needed the next one will.
void* scratch(int which, size_t bytes);

}  // namespace adjoin::cpu
#endif
