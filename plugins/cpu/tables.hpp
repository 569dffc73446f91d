// plugins/cpu/tables.hpp: the kernel tables of this plugin, one a file; each ends with an empty
// row. And conversions between dtypes, which are compiled once, in convert.cpp.
#ifndef ADJOIN_PLUGINS_CPU_TABLES_HPP
#define ADJOIN_PLUGINS_CPU_TABLES_HPP
#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/kernel.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {
extern template struct Convert<bool>;
extern template struct Convert<uint8_t>;
extern template struct Convert<int8_t>;
extern template struct Convert<int16_t>;
extern template struct Convert<int32_t>;
extern template struct Convert<int64_t>;
extern template struct Convert<uint16_t>;
extern template struct Convert<uint32_t>;
extern template struct Convert<uint64_t>;
extern template struct Convert<Half>;
extern template struct Convert<BFloat16>;
extern template struct Convert<float>;
extern template struct Convert<double>;
extern template struct Convert<Complex64>;
extern template struct Convert<Complex128>;
}  // namespace kit

namespace cpu {
using namespace kit;  // NOLINT: this library is made of it

extern const Kernel unary_kernels[], exp_kernels[], math_kernels[], special_kernels[],
    binary_kernels[], integer_kernels[], compare_kernels[], ternary_kernels[], copy_kernels[],
    reduce_kernels[], scan_kernels[], random_kernels[], product_kernels[], convolution_kernels[],
    pool_kernels[], pool_max_kernels[], batch_norm_kernels[], norm_kernels[], softmax_kernels[],
    index_kernels[], scatter_kernels[], cat_kernels[], sort_kernels[], attention_kernels[];
extern const Kernel optimizer_kernels[], rnn_kernels[], backward_kernels[];

}  // namespace cpu
}  // namespace adjoin
#endif
