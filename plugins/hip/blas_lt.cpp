// plugins/hip/blas_lt.cpp: hipBLASLt: where it is looked for, and the numbers of its words, as its
// C interface has them since ROCm 6.0. No header of AMD's is needed.
#include "../gpu/vendor/blas_lt.hpp"

namespace adjoin::vendor {
namespace {

enum : int { kR32 = 0, kR16 = 2, kB16 = 14 };                        // hipDataType
enum : int { kCompute32 = 2 };                                       // hipblasComputeType_t
enum : int { kNoMemory = 2, kInvalidValue = 3, kNotSupported = 7 };  // hipblasStatus_t

// Doubles and complex numbers are rocBLAS's.
LtTypes types_of(DLDataType d, bool) {
  if (d.code == kDLBfloat && d.bits == 16) return {kB16, kR32, kCompute32, false};
  if (d.code != kDLFloat || d.bits > 32) return {};
  return {d.bits == 16 ? kR16 : kR32, kR32, kCompute32, false};
}

const char* says(int status) {
  switch (status) {
    case kNoMemory:
      return "memory was refused";
    case kInvalidValue:
      return "an argument is invalid";
    case kNotSupported:
      return "it does not serve this";
    default:
      return nullptr;
  }
}

}  // namespace

const LtWords lt_words = {.prefix = "hipblasLt",
                          .plain = 111,
                          .trans_a = 0,
                          .trans_b = 1,
                          .epilogue = 2,
                          .bias = 3,
                          .bias_type = 4,
                          .batch = 0,
                          .stride = 1,
                          .workspace = 1,
                          .alignment = -1,
                          .algorithm_bytes = 24,
                          .offer_bytes = 56,
                          .types = types_of,
                          .says = says,
                          .no_memory = kNoMemory,
                          .not_supported = kNotSupported};

SharedLibrary& lt_file_to_open() {
  static auto* one =
      new SharedLibrary("hipBLASLt", "ADJOIN_HIPBLASLT",
                        {"libhipblaslt.so.1", "libhipblaslt.so.0", "/opt/rocm/lib/libhipblaslt.so"},
                        {"_rocm_sdk_libraries_*/lib", "torch/lib"});
  return *one;
}

}  // namespace adjoin::vendor
