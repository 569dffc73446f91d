// plugins/vector/softmax_rows.hpp: softmax of one row, or of neighbouring columns, in vector
// code.
#ifndef ADJOIN_PLUGINS_VECTOR_SOFTMAX_ROWS_HPP
#define ADJOIN_PLUGINS_VECTOR_SOFTMAX_ROWS_HPP
#include <cstdint>

namespace adjoin::cpu {

constexpr int64_t kSoftmaxWidth = 64;  // as many columns at most

template <class T>
struct SoftmaxRows {
  using Row = void (*)(const T* x, T* y, int64_t n, bool past_cache);
  Row softmax, log_softmax;
  // dx out of dy and the result y
  using Back = void (*)(const T* dy, const T* y, T* dx, int64_t n, bool past_cache);
  Back softmax_back, log_softmax_back;
  // `width` columns of `size` elements, `inner` apart
  using Columns = void (*)(const T* x, T* y, int64_t size, int64_t inner, int64_t width);
  Columns softmax_columns, log_softmax_columns;
  using ColumnsBack = void (*)(const T* dy, const T* y, T* dx, int64_t size, int64_t inner,
                               int64_t width);
  ColumnsBack softmax_columns_back, log_softmax_columns_back;
  T (*log_sum_exp)(const T* x, int64_t n);
  // dx = g (exp(x - log_sum_exp) - [i == target])
  void (*nll_back)(const T* x, T log_sum_exp, T g, int64_t target, T* dx, int64_t n,
                   bool past_cache);
};

template <class T>
const SoftmaxRows<T>& softmax_rows();

}  // namespace adjoin::cpu
#endif
