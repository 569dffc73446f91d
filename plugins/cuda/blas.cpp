// plugins/cuda/blas.cpp: matrix products by cuBLASLt: where it was found, which version it is, what
// its words are; and a comparison of the prototypes that it is called by with NVIDIA's header.
#include <cublasLt.h>

#include "../gpu/vendor/blas_lt.hpp"
#include "../gpu/vendor/capture.hpp"
#include "driver.hpp"
#include "prototypes.hpp"
#include "switches.hpp"

namespace adjoin::vendor {
namespace {

#define AJ_COMPARE_(name, parameters) \
  static_assert(agree<decltype(LtLibrary::name), decltype(&cublasLt##name)>);
AJ_LT_FUNCTIONS_(AJ_COMPARE_)
#undef AJ_COMPARE_
static_assert(sizeof(cublasLtMatmulAlgo_t) == 64);
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64);

constexpr double kWorthMeasuring = 1 << 27;  // multiplications; below, a launch costs more

LtTypes types_of(DLDataType d, bool tf32) {
  const bool real = d.code == kDLFloat;
  if (d.code == kDLBfloat && d.bits == 16)
    return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, false};
  if (real && d.bits == 16) return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, false};
  if (real && d.bits == 32)
    return {CUDA_R_32F, CUDA_R_32F, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
            false};
  if (real && d.bits == 64) return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, true};
  if (d.code == kDLComplex && d.bits == 64)
    return {CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F, false};
  if (d.code == kDLComplex && d.bits == 128)
    return {CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F, true};
  return {};
}

const char* says(int status) {
  static const auto text =
      reinterpret_cast<const char* (*)(int)>(lt_file_to_open().symbol("cublasLtGetStatusString"));
  return text ? text(status) : nullptr;
}

// The newest that the driver serves.
std::vector<std::string> sonames() {
  if (driver_serves(13000)) return {"libcublasLt.so.13", "libcublasLt.so.12"};
  return {"libcublasLt.so.12"};
}

}  // namespace

static_assert(CUBLASLT_EPILOGUE_BIAS == 4 && CUBLAS_OP_T == CUBLAS_OP_N + 1 &&
              CUBLAS_OP_C == CUBLAS_OP_N + 2);
static_assert(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + 3);
const LtWords lt_words = {.prefix = "cublasLt",
                          .plain = CUBLAS_OP_N,
                          .trans_a = CUBLASLT_MATMUL_DESC_TRANSA,
                          .trans_b = CUBLASLT_MATMUL_DESC_TRANSB,
                          .epilogue = CUBLASLT_MATMUL_DESC_EPILOGUE,
                          .bias = CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                          .bias_type = -1,
                          .batch = CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                          .stride = CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                          .workspace = CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                          .alignment = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                          .algorithm_bytes = sizeof(cublasLtMatmulAlgo_t),
                          .offer_bytes = sizeof(cublasLtMatmulHeuristicResult_t),
                          .types = types_of,
                          .says = says,
                          .no_memory = CUBLAS_STATUS_ALLOC_FAILED,
                          .not_supported = CUBLAS_STATUS_NOT_SUPPORTED};

SharedLibrary& lt_file_to_open() {
  static SharedLibrary& one = []() -> SharedLibrary& {
    auto* made = new SharedLibrary("cuBLASLt", "ADJOIN_CUBLASLT", sonames(), {"nvidia/*/lib"});
    size_t (*version)() = nullptr;
    if (made->open() && made->bind("cublasLtGetVersion", &version)) {
      const size_t v = version();  // 130100 is 13.1.0; until 12 it was 120103
      made->set_version(kit::text(v / 10000, ".", v / 100 % 100, ".", v % 100));
    }
    return *made;
  }();
  return one;
}

bool multiplies(DLDataType dtype) { return lt_multiplies(dtype); }

bool adds_row(DLDataType dtype) { return dtype.code != kDLComplex; }

aj_status* multiply(const aj_gemm& g, const Addend& add) {
  if (aj_status* s = ready()) return s;
  const double work = double(g.batch) * double(g.m) * double(g.n) * double(g.k);
  const LtHow how = {.tf32 = switches.tf32_products,
                     .measure = switches.benchmark && !switches.deterministic &&
                                !(g.flags & AJ_GEMM_DETERMINISTIC) && work >= kWorthMeasuring &&
                                !capturing(static_cast<Stream>(g.stream))};
  On here(g.device.device_id);
  if (here.failed()) return status_of(here.result(), "gemm");
  return kit::guard("", [&] {
    if (!lt_multiplies(g.dtype))
      kit::raise(AJ_UNIMPLEMENTED, "cuda: no library has a product of ", g.dtype, ": ",
                 lt_file().where());
    if (!lt_multiply(g, add, how))
      kit::raise(AJ_UNIMPLEMENTED, "cuda: cuBLASLt has no algorithm for this product");
  });
}

std::string product_library() { return LtLibrary::find() ? lt_file().path() : std::string(); }

}  // namespace adjoin::vendor
