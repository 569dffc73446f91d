// plugins/cpu/lines/group_norm_rows.hpp: parts of a group norm in vector code: a group's
// statistics, and what happens along a channel of it.
#ifndef ADJOIN_PLUGINS_CPU_LINES_GROUP_NORM_ROWS_HPP
#define ADJOIN_PLUGINS_CPU_LINES_GROUP_NORM_ROWS_HPP
#include <cstdint>

namespace adjoin::cpu {

template <class T>
struct GroupRows {
  void (*statistics)(const T* x, int64_t n, double eps, T* mean, T* rstd);
  // y = (x - mean) rstd weight + bias
  void (*scaled)(const T* x, T* y, int64_t n, T mean, T rstd, T weight, T bias, bool past_cache);
  // Sums of g, and of g (x - mean) rstd.
  void (*sums)(const T* g, const T* x, int64_t n, T mean, T rstd, double* of_g, double* of_hat);
  // dx = rstd (g weight - of_one - of_hat (x - mean) rstd)
  void (*gradient)(const T* g, const T* x, T* dx, int64_t n, T mean, T rstd, T weight, T of_one,
                   T of_hat, bool past_cache);
};

template <class T>
const GroupRows<T>& group_rows();

}  // namespace adjoin::cpu
#endif
