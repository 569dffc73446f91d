// plugins/hip/solver_library.cpp: hipSOLVER and hipBLAS: where they are looked for. Their functions
// for who comes from CUDA have the prototypes of NVIDIA's, the same since ROCm 5.1; the numbers of
// words are those of their C interface. No header of AMD's is needed.
#include "../gpu/vendor/solver_library.hpp"

namespace adjoin::vendor {

const SolverWords solver_words = {.name = "hipsolver",
                                  .solver = "hipsolverDn",
                                  .blas = "hipblas",
                                  .blas_ending = "",
                                  .lower = 122,
                                  .upper = 121,
                                  .left = 141,
                                  .right = 142,
                                  .plain = 111,
                                  .not_unit = 131,
                                  .unit = 132,
                                  .no_vectors = 201,
                                  .vectors = 202,
                                  .remedy = "apt-get install hipsolver hipblas, packages of AMD's"};

SharedLibrary& solver_file_to_open() {
  static auto* one =
      new SharedLibrary("hipSOLVER", "ADJOIN_HIPSOLVER",
                        {"libhipsolver.so.1", "libhipsolver.so.0", "/opt/rocm/lib/libhipsolver.so"},
                        {"_rocm_sdk_libraries_*/lib", "torch/lib"});
  return *one;
}
SharedLibrary& triangle_file_to_open() {
  static auto* one = new SharedLibrary("hipBLAS", "ADJOIN_HIPBLAS",
                                       {"libhipblas.so.3", "libhipblas.so.2", "libhipblas.so.1",
                                        "libhipblas.so.0", "/opt/rocm/lib/libhipblas.so"},
                                       {"_rocm_sdk_libraries_*/lib", "torch/lib"});
  return *one;
}

namespace {
// Both number what went wrong alike.
constexpr int kNoMemory = 2;
constexpr const char* kSays[] = {nullptr,
                                 "it is not initialized",
                                 "memory was refused",
                                 "an argument is invalid",
                                 "memory cannot be reached",
                                 "a kernel has failed",
                                 "an internal error",
                                 "it does not serve this",
                                 "it does not serve this GPU"};
}  // namespace

const char* solver_says(int status) {
  return status > 0 && status < int(std::size(kSays)) ? kSays[status] : nullptr;
}
const char* triangle_says(int status) { return solver_says(status); }
bool lacks_memory(int status, bool) { return status == kNoMemory; }

int32_t scores_eigen(const aj_linalg_problem&) { return 0; }  // it has none
uint64_t eigen_workspace(const aj_linalg_problem&, Handle) { return 0; }
void run_eigen(const aj_linalg_problem&, Handle, void*) {}

}  // namespace adjoin::vendor
