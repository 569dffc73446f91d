// plugins/cpu/image/max_pool_rows.hpp: maxima of windows of planes and volumes in C order.
#ifndef ADJOIN_PLUGINS_CPU_IMAGE_MAX_POOL_ROWS_HPP
#define ADJOIN_PLUGINS_CPU_IMAGE_MAX_POOL_ROWS_HPP
#include <adjoin/kit/windows.hpp>
#include <limits>

namespace adjoin::cpu {

// The maximum of nothing.
template <class T>
constexpr T kLeast = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                          : std::numeric_limits<T>::lowest();

struct MaxWindows {
  kit::WindowList list[3];
  int64_t in[3];
  bool even = false;     // the last dimension's windows follow `rule`
  kit::WindowRule rule;  // of the last dimension

  int64_t out(int d) const { return list[d].size(); }
  int64_t places() const { return in[0] * in[1] * in[2]; }
  int64_t outputs() const { return out(0) * out(1) * out(2); }
  void set(int d, int64_t size, int64_t outputs, const kit::WindowRule& r) {
    in[d] = size;
    list[d] = even_windows(size, outputs, r);
    if (d == 2) even = true, rule = r;
  }
};

// Of `count` volumes; at: places in a volume. The first of equal ones, the last NaN; an empty
// window has the least number at -1.
template <class T>
void max_of_volumes(const MaxWindows& w, const T* x, int64_t count, T* best, int64_t* at);

}  // namespace adjoin::cpu
#endif
