// plugins/cuda/solver_library.cpp: cuSOLVER and cuBLAS: where they are looked for, and a comparison
// of the prototypes that the plugin calls them by with NVIDIA's headers.
#include "../gpu/vendor/solver_library.hpp"

#include <cublas_v2.h>
#include <cusolverDn.h>

#include "driver.hpp"
#include "prototypes.hpp"

namespace adjoin::vendor {
namespace {

std::vector<std::string> sonames(const char* stem, int newest, int before) {
  auto name = [&](int version) { return kit::text("lib", stem, ".so.", version); };
  if (driver_serves(13000)) return {name(newest), name(before)};
  return {name(before)};
}

#define AJ_COMPARE_(name, real, complex, parameters)                                             \
  static_assert(                                                                                 \
      agree<std::remove_extent_t<decltype(SolverLibrary::name)>, decltype(&cusolverDnS##real)>); \
  static_assert(agree<std::remove_extent_t<decltype(SolverLibrary::name)>,                       \
                      decltype(&cusolverDnZ##complex)>);
AJ_SOLVER_FUNCTIONS_(AJ_COMPARE_)
#undef AJ_COMPARE_
#define AJ_COMPARE_(name, symbol, ending, parameters) \
  static_assert(                                      \
      agree<std::remove_extent_t<decltype(SolverLibrary::name)>, decltype(&cublasZ##symbol)>);
AJ_TRIANGLE_FUNCTIONS_(AJ_COMPARE_)
#undef AJ_COMPARE_

}  // namespace

static_assert(CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1 && CUBLAS_OP_C == 2);
const SolverWords solver_words = {.name = "cusolver",
                                  .solver = "cusolverDn",
                                  .blas = "cublas",
                                  .blas_ending = "_v2",
                                  .lower = CUBLAS_FILL_MODE_LOWER,
                                  .upper = CUBLAS_FILL_MODE_UPPER,
                                  .left = CUBLAS_SIDE_LEFT,
                                  .right = CUBLAS_SIDE_RIGHT,
                                  .plain = CUBLAS_OP_N,
                                  .not_unit = CUBLAS_DIAG_NON_UNIT,
                                  .unit = CUBLAS_DIAG_UNIT,
                                  .no_vectors = CUSOLVER_EIG_MODE_NOVECTOR,
                                  .vectors = CUSOLVER_EIG_MODE_VECTOR,
                                  .remedy = "pip install nvidia-cusolver-cu12 nvidia-cublas-cu12"};

SharedLibrary& solver_file_to_open() {
  static auto* one = new SharedLibrary("cuSOLVER", "ADJOIN_CUSOLVER", sonames("cusolver", 12, 11),
                                       {"nvidia/*/lib"});
  return *one;
}
SharedLibrary& triangle_file_to_open() {
  static auto* one =
      new SharedLibrary("cuBLAS", "ADJOIN_CUBLAS", sonames("cublas", 13, 12), {"nvidia/*/lib"});
  return *one;
}

const char* solver_says(int status) {
  switch (status) {
    case CUSOLVER_STATUS_NOT_INITIALIZED:
      return "it is not initialized";
    case CUSOLVER_STATUS_ALLOC_FAILED:
      return "memory was refused";
    case CUSOLVER_STATUS_INVALID_VALUE:
      return "an argument is invalid";
    case CUSOLVER_STATUS_ARCH_MISMATCH:
      return "it does not serve this GPU";
    case CUSOLVER_STATUS_EXECUTION_FAILED:
      return "a kernel has failed";
    case CUSOLVER_STATUS_INTERNAL_ERROR:
      return "an internal error";
    case CUSOLVER_STATUS_NOT_SUPPORTED:
      return "it does not serve this";
    default:
      return nullptr;
  }
}
const char* triangle_says(int status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "it is not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "memory was refused";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an argument is invalid";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "it does not serve this GPU";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "a kernel has failed";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "an internal error";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "it does not serve this";
    default:
      return nullptr;
  }
}
bool lacks_memory(int status, bool solver) {
  return status == (solver ? int(CUSOLVER_STATUS_ALLOC_FAILED) : int(CUBLAS_STATUS_ALLOC_FAILED));
}

}  // namespace adjoin::vendor
