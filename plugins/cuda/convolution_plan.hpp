// plugins/cuda/convolution_plan.hpp: a convolution as a graph of cuDNN's, its plan chosen once and
// remembered.
#ifndef ADJOIN_PLUGINS_CUDA_CONVOLUTION_PLAN_HPP
#define ADJOIN_PLUGINS_CUDA_CONVOLUTION_PLAN_HPP
#include <adjoin/abi/base.h>

#include <cstdint>
#include <vector>

namespace adjoin::vendor {

// small = big * weight; each way computes one of the three from the others. Strides in elements, so
// any layout is served as it lies.
enum class Way : int64_t { small, big, weight };

struct Array {
  std::vector<int64_t> sizes, strides;
  void* data;
};

struct Convolution {
  Way way;
  DLDataType dtype;
  Array big, weight, small;
  std::vector<int64_t> stride, pad, dilation;
};

bool convolves(DLDataType dtype);
// by_shape: the plan depends on the problem alone, never on a measurement. Raises.
void run(const Convolution& c, DLDevice device, void* stream, bool by_shape);

// out += bias along the channels; gradient of that.
void add_bias(const Array& out, const void* bias, DLDataType dtype, int32_t device, void* stream);
void sum_bias(const Array& grad, void* bias, DLDataType dtype, int32_t device, void* stream);

}  // namespace adjoin::vendor
#endif
