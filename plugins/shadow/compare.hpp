// plugins/shadow/compare.hpp: are two tensors of different devices the same, within stated units in
// the last place?
#ifndef ADJOIN_PLUGINS_SHADOW_COMPARE_HPP
#define ADJOIN_PLUGINS_SHADOW_COMPARE_HPP
#include <adjoin/kit/tensor.hpp>
#include <string>

namespace adjoin::shadow {

// How far results may be apart. Pointwise ops: in units of the element's own last place. Others add
// up and cancel: in units of the last place of the largest magnitude in results and inputs.
struct Limits {
  double element = 16, scale = 1024;
};

// What differs, or an empty string. largest: the greatest magnitude among the inputs.
std::string difference(const Tensor& ours, const Tensor& theirs, const Limits& limits,
                       bool pointwise, double largest);
double largest_magnitude(const Tensor& t);  // of finite elements; 0 where there are none

}  // namespace adjoin::shadow
#endif
