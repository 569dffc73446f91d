// plugins/cpu/tables.hpp: the kernel tables of this plugin, one a file; each ends with an empty
// row. And conversions between dtypes, which are compiled once, in convert.cpp.
#ifndef ADJOIN_PLUGINS_CPU_TABLES_HPP
#define ADJOIN_PLUGINS_CPU_TABLES_HPP
#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/kernel.hpp>

// Every type that a tensor of a built-in dtype holds.
#define AJ_STORED(DO)                                                                              \
  DO(bool)                                                                                         \
  DO(uint8_t)                                                                                      \
  DO(int8_t)                                                                                       \
  DO(int16_t) DO(int32_t) DO(int64_t) DO(uint16_t) DO(uint32_t) DO(uint64_t) DO(Half) DO(BFloat16) \
      DO(float) DO(double) DO(Complex64) DO(Complex128)

namespace adjoin {
namespace AJ_HIDDEN kit {
#define AJ_CONVERT_HERE(T)                                                 \
  template <>                                                              \
  void Convert<T>::load(void*, const char*, DLDataType, int64_t, int64_t); \
  template <>                                                              \
  void Convert<T>::store(char*, DLDataType, int64_t, const void*, int64_t);
AJ_STORED(AJ_CONVERT_HERE)
#undef AJ_CONVERT_HERE
}  // namespace kit

namespace cpu {
using namespace kit;  // NOLINT: this library is made of it

extern const Kernel unary_kernels[], exp_kernels[], math_kernels[], special_kernels[],
    binary_kernels[], integer_kernels[], compare_kernels[], ternary_kernels[], copy_kernels[],
    reduce_kernels[], scan_kernels[], random_kernels[], product_kernels[], convolution_kernels[],
    pool_kernels[], pool_max_kernels[], batch_norm_kernels[], norm_kernels[], softmax_kernels[],
    index_kernels[], scatter_kernels[], cat_kernels[], sort_kernels[], attention_kernels[];
extern const Kernel optimizer_kernels[], rnn_kernels[], backward_kernels[],
    special_function_kernels[], special_vector_kernels[], order_kernels[], scatter_reduce_kernels[],
    distance_kernels[], pieces_kernels[], flip_kernels[], masked_put_kernels[];

}  // namespace cpu
}  // namespace adjoin
#endif
