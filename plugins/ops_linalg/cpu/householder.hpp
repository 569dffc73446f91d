// plugins/ops_linalg/cpu/householder.hpp: QR of real matrices by blocks of reflections, over
// products; a block is I - V T V^T (R. Schreiber, C. Van Loan, 1989; E. Elmroth, F. Gustavson,
// 2000).
#ifndef ADJOIN_PLUGINS_OPS_LINALG_HOUSEHOLDER_HPP
#define ADJOIN_PLUGINS_OPS_LINALG_HOUSEHOLDER_HPP
#include "products.hpp"

namespace adjoin::cpu::householder {

// Elements of memory that both want, of a matrix with m rows and n columns.
int64_t work_of(int64_t m, int64_t n);
// R above the diagonal, vectors below it, as LAPACK's geqrf.
template <class T>
void factor(Block<T> a, int64_t m, int64_t n, T* tau, T* work);
// The first n columns of Q in the place of k vectors, as LAPACK's orgqr.
template <class T>
void form(Block<T> a, int64_t m, int64_t n, int64_t k, const T* tau, T* work);

// Vector code.
template <class T>
struct Code {
  // Column after column, n <= kPanel; columns lie ld apart.
  void (*panel)(T* a, int64_t ld, int64_t m, int64_t n, T* tau);
};
template <class T>
const Code<T>& code();

constexpr int64_t kPanel = 32;

}  // namespace adjoin::cpu::householder
#endif
