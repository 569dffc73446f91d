// plugins/vector/layer_norm_rows.hpp: a row of a layer norm, forward and backward, in vector
// code.
#ifndef ADJOIN_PLUGINS_VECTOR_LAYER_NORM_ROWS_HPP
#define ADJOIN_PLUGINS_VECTOR_LAYER_NORM_ROWS_HPP
#include <cstdint>

namespace adjoin::cpu {

template <class T>
struct NormRows {
  // y = (x - mean) rstd weight + bias; weight and bias are both NULL for 1 and 0.
  void (*forward)(const T* x, const T* weight, const T* bias, T* y, int64_t n, double eps,
                  bool past_cache, T* mean, T* rstd);
  // dx, unless it is NULL; weight may be NULL; sums has g (x - mean) rstd, then g, added, unless it
  // is NULL.
  void (*backward)(const T* g, const T* x, const T* weight, T mean, T rstd, T* dx, T* sums,
                   int64_t n, bool past_cache);
};

template <class T>
const NormRows<T>& norm_rows();

}  // namespace adjoin::cpu
#endif
