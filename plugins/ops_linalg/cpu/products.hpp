// plugins/ops_linalg/cpu/products.hpp: products of parts of matrices, by "aj.blas/cpu".
#ifndef ADJOIN_PLUGINS_OPS_LINALG_PRODUCTS_HPP
#define ADJOIN_PLUGINS_OPS_LINALG_PRODUCTS_HPP
#include <vector>

#include "offers.hpp"

namespace adjoin::cpu {

// Who multiplies, looked up once for every revision of the services.
struct Products {
  uint64_t revision;
  std::vector<const aj_blas*> all;
  bool named;  // somebody named a library, which then serves whole problems

  static const Products& now();
  void run(const aj_gemm& g) const;
};

// Element (i, j) is at i * row + j * column; one of the two is 1.
template <class T>
struct Block {
  T* at;
  int64_t row, column;
  Block part(int64_t i, int64_t j) const { return {at + i * row + j * column, row, column}; }
  Block transposed() const { return {at, column, row}; }
  Block<const T> read() const { return {at, row, column}; }
};

// C = alpha A B + beta C; the columns of C are dense. Where beta is 0, C is not read.
template <class T>
void multiply(Block<T> c, Block<const T> a, Block<const T> b, int64_t m, int64_t n, int64_t k,
              double alpha, double beta) {
  if (m == 0 || n == 0 || k == 0) return;
  aj_gemm g{};  // by rows, so of everything the transposed
  g.struct_size = sizeof g;
  g.dtype = kit::dtype_of<T>, g.device = {kDLCPU, 0};
  g.batch = 1, g.m = n, g.n = m, g.k = k;
  g.a = b.at, g.trans_a = b.row != 1, g.lda = b.row != 1 ? b.row : b.column;
  g.b = a.at, g.trans_b = a.row != 1, g.ldb = a.row != 1 ? a.row : a.column;
  g.c = c.at, g.ldc = c.column;
  g.alpha = alpha, g.beta = beta;
  Products::now().run(g);
}

// C -= A B.
template <class T>
void subtract_product(Block<T> c, Block<const T> a, Block<const T> b, int64_t m, int64_t n,
                      int64_t k) {
  multiply(c, a, b, m, n, k, -1, 1);
}

}  // namespace adjoin::cpu
#endif
