// plugins/cpu/lines/channel_values.hpp: what norms share: optional vectors of parameters.
#ifndef ADJOIN_PLUGINS_CPU_LINES_CHANNEL_VALUES_HPP
#define ADJOIN_PLUGINS_CPU_LINES_CHANNEL_VALUES_HPP
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <vector>

#include "vector/stored.hpp"

namespace adjoin::cpu {

// Optional values per channel.
template <class T>
std::vector<T> values(TensorView t, int64_t n, T otherwise) {
  std::vector<T> v(size_t(n), otherwise);
  if (t) {
    Dense<T> d(t);
    std::copy_n(d.data(), n, v.begin());
  }
  return v;
}
template <class T>
void store(MutView to, const std::vector<T>& v) {
  Dense<T> out(to);
  std::copy_n(v.begin(), to.numel(), out.data());
  out.commit();
}

}  // namespace adjoin::cpu
#endif
