// plugins/gpu/vendor/blas_lt.hpp: matrix products by cuBLASLt or hipBLASLt, which have the same
// functions under other names. The prototypes are our own; plugins/cuda compares them with NVIDIA's
// header.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_BLAS_LT_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_BLAS_LT_HPP
#include "libraries.hpp"
#include "product.hpp"
#include "status.hpp"

namespace adjoin::vendor {

// F(name, parameters): in the library behind the vendor's prefix. Descriptors are addresses.
#define AJ_LT_FUNCTIONS_(F)                                                                      \
  F(Create, (void**))                                                                            \
  F(MatmulDescCreate, (void**, int, int))                                                        \
  F(MatmulDescSetAttribute, (void*, int, const void*, size_t))                                   \
  F(MatmulDescDestroy, (void*))                                                                  \
  F(MatrixLayoutCreate, (void**, int, uint64_t, uint64_t, int64_t))                              \
  F(MatrixLayoutSetAttribute, (void*, int, const void*, size_t))                                 \
  F(MatrixLayoutDestroy, (void*))                                                                \
  F(MatmulPreferenceCreate, (void**))                                                            \
  F(MatmulPreferenceSetAttribute, (void*, int, const void*, size_t))                             \
  F(MatmulPreferenceDestroy, (void*))                                                            \
  F(MatmulAlgoGetHeuristic, (void*, void*, void*, void*, void*, void*, void*, int, void*, int*)) \
  F(Matmul, (void*, void*, const void*, const void*, void*, const void*, void*, const void*,     \
             const void*, void*, void*, void*, const void*, void*, size_t, Stream))

struct LtLibrary {
#define AJ_POINTER_(name, parameters) int(*name) parameters;
  AJ_LT_FUNCTIONS_(AJ_POINTER_)
#undef AJ_POINTER_
  static const LtLibrary* find();  // null if there is none that can be used
};
const SharedLibrary& lt_file();

// The types in which a product is computed; data is none (-1) where it is not.
struct LtTypes {
  int data = -1, scale, compute;
  bool wide;  // alpha and beta are double
};
// What differs between the vendors, the plugin's own.
struct LtWords {
  const char* prefix;
  int plain;                             // and two more: transposed, conjugated too
  int trans_a, trans_b, epilogue, bias;  // attributes of a product
  int bias_type;                         // or none (-1): it is the result's
  int batch, stride;                     // of a matrix
  int workspace, alignment;              // of a preference; alignment and three more, or none (-1)
  size_t algorithm_bytes, offer_bytes;   // an offer is an algorithm, its workspace, and more
  LtTypes (*types)(DLDataType, bool tf32);
  const char* (*says)(int status);
  int no_memory, not_supported;
};
extern const LtWords lt_words;
SharedLibrary& lt_file_to_open();

struct LtHow {
  bool tf32 = false, measure = false;
};
bool lt_multiplies(DLDataType dtype);
// False, and nothing is queued, where the library has no algorithm. On the current device.
bool lt_multiply(const aj_gemm& g, const Addend& add, const LtHow& how);

}  // namespace adjoin::vendor
#endif
