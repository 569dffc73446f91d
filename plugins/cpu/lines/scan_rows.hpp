// plugins/cpu/lines/scan_rows.hpp: running sums of float32 and float64 in vector code, carried in
// double.
#ifndef ADJOIN_PLUGINS_CPU_LINES_SCAN_ROWS_HPP
#define ADJOIN_PLUGINS_CPU_LINES_SCAN_ROWS_HPP
#include <cstdint>

namespace adjoin::cpu {

constexpr int64_t kScanColumns = 256;

template <class T>
struct ScanRows {
  double (*sum)(const T* x, int64_t n);
  void (*scan)(const T* x, T* y, int64_t n, double carry);  // y[i] = carry + x[0] + ... + x[i]
  // `width` <= kScanColumns neighbouring columns of n elements; steps between rows in elements
  void (*columns)(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t n, int64_t width);
};
template <class T>
const ScanRows<T>& scan_rows();

}  // namespace adjoin::cpu
#endif
