// plugins/gpu/tables.cuh: the kernel tables of all GPU targets, one a file; each ends with an empty
// row.
#ifndef ADJOIN_PLUGINS_GPU_TABLES_CUH
#define ADJOIN_PLUGINS_GPU_TABLES_CUH
#include <adjoin/kit/kernel.hpp>

// Clang puts constants of a kernel's source on the device as well, where the functions in them are
// not.
#ifdef __HIPCC__
#define AJ_TABLE
#else
#define AJ_TABLE const
#endif

namespace adjoin::gpu {

extern AJ_TABLE kit::Kernel unary_kernels[], math_kernels[], binary_kernels[], compare_kernels[],
    copy_kernels[], reduce_kernels[], random_kernels[], product_kernels[], softmax_kernels[],
    optimizer_kernels[], index_kernels[], scatter_kernels[], convolution_kernels[], pool_kernels[],
    norm_kernels[], sort_kernels[], attention_kernels[], special_kernels[], order_kernels[],
    scatter_reduce_kernels[], resample_kernels[], windows_kernels[], grid_kernels[],
    pieces_kernels[];

inline constexpr const kit::Kernel* every_table[] = {
    unary_kernels,       math_kernels,      binary_kernels, compare_kernels,
    copy_kernels,        reduce_kernels,    random_kernels, product_kernels,
    softmax_kernels,     optimizer_kernels, index_kernels,  scatter_kernels,
    convolution_kernels, pool_kernels,      norm_kernels,   sort_kernels,
    attention_kernels,   special_kernels,   order_kernels,  scatter_reduce_kernels,
    resample_kernels,    windows_kernels,   grid_kernels,   pieces_kernels};

}  // namespace adjoin::gpu
#endif
