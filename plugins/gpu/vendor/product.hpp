// plugins/gpu/vendor/product.hpp: matrix products by a vendor's library: kernels for mm and bmm,
// and the service aj.blas/DEVICE. The library itself is the plugin's: CUDA's or HIP's.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_PRODUCT_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_PRODUCT_HPP
#include <adjoin/abi/service.h>

#include <adjoin/kit/kernel.hpp>
#include <string>

namespace adjoin::vendor {

// The plugin's own. Is there a library with a product of these numbers? Opens it at the first
// question.
bool multiplies(DLDataType dtype);
aj_status* multiply(const aj_gemm& g);
std::string product_library();  // its file; "" if there is none

extern const aj_blas blas_table;
extern const kit::Kernel product_kernels[];

}  // namespace adjoin::vendor
#endif
