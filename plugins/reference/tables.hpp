// plugins/reference/tables.hpp: the kernel tables of this plugin, one a file; each ends with an
// empty row.
#ifndef ADJOIN_PLUGINS_REFERENCE_TABLES_HPP
#define ADJOIN_PLUGINS_REFERENCE_TABLES_HPP
#include <adjoin/kit/kernel.hpp>

namespace adjoin::reference {

extern const kit::Kernel unary_kernels[], binary_kernels[], reduce_kernels[], random_kernels[],
    product_kernels[], convolution_kernels[], pool_kernels[], norm_kernels[], index_kernels[],
    sort_kernels[], optimizer_kernels[], special_function_kernels[], order_kernels[];

}  // namespace adjoin::reference
#endif
