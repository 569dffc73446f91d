// plugins/cuda/blas_library.hpp: cuBLASLt, opened when the first product asks for it.
#ifndef ADJOIN_PLUGINS_CUDA_BLAS_LIBRARY_HPP
#define ADJOIN_PLUGINS_CUDA_BLAS_LIBRARY_HPP
#include <cublasLt.h>

#include <adjoin/kit/error.hpp>

#include "../gpu/vendor/libraries.hpp"

namespace adjoin::vendor {

// Every function that is called, without its prefix cublasLt.
#define AJ_CUBLASLT_FUNCTIONS_(F) \
  F(GetVersion)                   \
  F(GetStatusString)              \
  F(Create)                       \
  F(Matmul)                       \
  F(MatmulDescCreate)             \
  F(MatmulDescSetAttribute)       \
  F(MatmulDescDestroy)            \
  F(MatrixLayoutCreate)           \
  F(MatrixLayoutSetAttribute)     \
  F(MatrixLayoutDestroy)          \
  F(MatmulPreferenceCreate)       \
  F(MatmulPreferenceSetAttribute) \
  F(MatmulPreferenceDestroy)      \
  F(MatmulAlgoGetHeuristic)

struct BlasLt {
#define AJ_POINTER_(name) decltype(&cublasLt##name) name;
  AJ_CUBLASLT_FUNCTIONS_(AJ_POINTER_)
#undef AJ_POINTER_
  static const BlasLt* find();  // null if there is none that can be used
};
const SharedLibrary& blas_file();

// Raises what the library says.
inline void must(const BlasLt& lt, cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  raise_if_lost(doing);
  int32_t code = status == CUBLAS_STATUS_ALLOC_FAILED    ? AJ_OUT_OF_MEMORY
                 : status == CUBLAS_STATUS_NOT_SUPPORTED ? AJ_UNIMPLEMENTED
                                                         : AJ_INTERNAL;
  kit::raise(code, "cuda: cuBLASLt: ", doing, ": ", lt.GetStatusString(status), " (", int(status),
             "), found as ", blas_file().where());
}

// A descriptor that ends with its scope.
template <class T, class Destroy>
class Owned {
 public:
  Owned(T what, Destroy destroy) : what_(what), destroy_(destroy) {}
  ~Owned() { destroy_(what_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  operator T() const { return what_; }

 private:
  T what_;
  Destroy destroy_;
};

}  // namespace adjoin::vendor
#endif
