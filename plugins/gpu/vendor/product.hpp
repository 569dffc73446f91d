// plugins/gpu/vendor/product.hpp: matrix products by a vendor's library: kernels for mm, bmm,
// addmm, baddbmm and linear, and the service aj.blas/DEVICE. The library itself is the plugin's:
// CUDA's or HIP's.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_PRODUCT_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_PRODUCT_HPP
#include <adjoin/abi/service.h>

#include <adjoin/kit/kernel.hpp>
#include <string>

namespace adjoin::vendor {

// What is added to a product where that is not what stood in c: another matrix, by beta, or one row
// for all. The library rounds the sum once.
struct Addend {
  const void* matrix = nullptr;
  int64_t ld = 0, stride = 0;
  const void* row = nullptr;  // g.n numbers, packed
};

// The plugin's own. Is there a library with a product of these numbers? Opens it at the first
// question.
bool multiplies(DLDataType dtype);
bool adds_row(DLDataType dtype);
aj_status* multiply(const aj_gemm& g, const Addend& add = {});
std::string product_library();  // its file; "" if there is none

extern const aj_blas blas_table;
extern const kit::Kernel product_kernels[];

}  // namespace adjoin::vendor
#endif
