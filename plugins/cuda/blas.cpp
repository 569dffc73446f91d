// plugins/cuda/blas.cpp: matrix products by cuBLASLt. The algorithm is the first that its
// heuristics offer for a problem, or, where measuring is switched on, the fastest; it is
// remembered.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include "../gpu/vendor/capture.hpp"
#include "../gpu/vendor/product.hpp"
#include "../gpu/vendor/status.hpp"
#include "../gpu/vendor/workspace.hpp"
#include "blas_library.hpp"
#include "switches.hpp"
#include "timing.hpp"

namespace adjoin::vendor {
namespace {

constexpr size_t kWorkspace = 32 << 20;      // what NVIDIA recommends for sm_90
constexpr int kOffers = 8;                   // algorithms that are measured
constexpr double kWorthMeasuring = 1 << 27;  // multiplications; below, a launch costs more

struct Types {
  cudaDataType_t data, scale;
  cublasComputeType_t compute;
};

bool types_of(DLDataType d, Types* out, bool tf32 = false) {
  if (d.lanes != 1) return false;
  bool real = d.code == kDLFloat;
  if (d.code == kDLBfloat && d.bits == 16)
    *out = {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  else if (real && d.bits == 16)
    *out = {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  else if (real && d.bits == 32)
    *out = {CUDA_R_32F, CUDA_R_32F, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
  else if (real && d.bits == 64)
    *out = {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
  else if (d.code == kDLComplex && d.bits == 64)
    *out = {CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F};
  else if (d.code == kDLComplex && d.bits == 128)
    *out = {CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F};
  else
    return false;
  return true;
}

// alpha or beta in the type that the library reads it in.
struct Number {
  double room[2] = {0, 0};
  Number(double x, cudaDataType_t type) {
    auto narrow = float(x);
    if (type == CUDA_R_64F || type == CUDA_C_64F)
      std::memcpy(room, &x, sizeof x);
    else
      std::memcpy(room, &narrow, sizeof narrow);
  }
};

uint32_t alignment(const void* p) {
  auto at = reinterpret_cast<uintptr_t>(p);
  return uint32_t(at ? std::min<uintptr_t>(256, at & (~at + 1)) : 256);
}

struct Choice {
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace;
};
using Key = std::array<int64_t, 23>;

std::mutex lock;
cublasLtHandle_t handle_of(const BlasLt& lt, int32_t device) {
  static auto* all = new std::map<int32_t, cublasLtHandle_t>;
  cublasLtHandle_t& handle = (*all)[device];
  if (!handle) must(lt, lt.Create(&handle), "its handle");
  return handle;
}
std::map<Key, Choice>& remembered() {
  static auto* all = new std::map<Key, Choice>;
  return *all;
}

// The problem as the library sees it: it counts columns first, so C' = B' A'.
class Problem {
 public:
  Problem(const BlasLt& lt, const aj_gemm& g, const Addend& add, const Types& t)
      : lt_(lt),
        g_(g),
        from_(add.matrix ? add.matrix : g.c),
        desc_(make_desc(lt, g, add, t), lt.MatmulDescDestroy),
        b_(make_layout(lt, t, g.trans_b ? g.k : g.n, g.trans_b ? g.n : g.k, g.ldb, g.stride_b, g),
           lt.MatrixLayoutDestroy),
        a_(make_layout(lt, t, g.trans_a ? g.m : g.k, g.trans_a ? g.k : g.m, g.lda, g.stride_a, g),
           lt.MatrixLayoutDestroy),
        c_(make_layout(lt, t, g.n, g.m, g.ldc, g.stride_c, g), lt.MatrixLayoutDestroy),
        added_(make_layout(lt, t, g.n, g.m, add.matrix ? add.ld : g.ldc,
                           add.matrix ? add.stride : g.stride_c, g),
               lt.MatrixLayoutDestroy),
        alpha_(g.alpha, t.scale),
        beta_(g.beta, t.scale) {}

  int offers(cublasLtHandle_t handle, cublasLtMatmulHeuristicResult_t* out, int wanted) const {
    cublasLtMatmulPreference_t made;
    must(lt_, lt_.MatmulPreferenceCreate(&made), "a preference");
    Owned preference(made, lt_.MatmulPreferenceDestroy);
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(kWorkspace));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(g_.b));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(g_.a));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(from_));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(g_.c));
    int found = 0;
    must(lt_,
         lt_.MatmulAlgoGetHeuristic(handle, desc_, b_, a_, added_, c_, preference, wanted, out,
                                    &found),
         "choosing an algorithm");
    return found;
  }
  cublasStatus_t run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algo, void* to,
                     void* workspace, size_t bytes) const {
    return lt_.Matmul(handle, desc_, alpha_.room, g_.b, b_, g_.a, a_, beta_.room, from_, added_, to,
                      c_, &algo, workspace, bytes, static_cast<cudaStream_t>(g_.stream));
  }
  bool adds_to_itself() const { return g_.beta != 0 && from_ == g_.c; }

 private:
  template <class T>
  void set(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what, T value) const {
    must(lt_, lt_.MatmulPreferenceSetAttribute(p, what, &value, sizeof value), "a preference");
  }
  static cublasLtMatmulDesc_t make_desc(const BlasLt& lt, const aj_gemm& g, const Addend& add,
                                        const Types& t) {
    cublasLtMatmulDesc_t made;
    must(lt, lt.MatmulDescCreate(&made, t.compute, t.scale), "a product's description");
    auto turn = [](int32_t how) {
      return how == 0 ? CUBLAS_OP_N : how == 1 ? CUBLAS_OP_T : CUBLAS_OP_C;
    };
    cublasOperation_t first = turn(g.trans_b), second = turn(g.trans_a);
    auto set = lt.MatmulDescSetAttribute;
    must(lt, set(made, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first), "a transposition");
    must(lt, set(made, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second), "a transposition");
    if (!add.row) return made;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    must(lt, set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue), "a bias");
    must(lt, set(made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &add.row, sizeof add.row), "a bias");
    return made;
  }
  static cublasLtMatrixLayout_t make_layout(const BlasLt& lt, const Types& t, int64_t rows,
                                            int64_t columns, int64_t ld, int64_t stride,
                                            const aj_gemm& g) {
    cublasLtMatrixLayout_t made;
    must(lt, lt.MatrixLayoutCreate(&made, t.data, uint64_t(rows), uint64_t(columns), ld),
         "a matrix");
    if (g.batch <= 1) return made;
    auto batch = int32_t(g.batch);
    auto set = lt.MatrixLayoutSetAttribute;
    must(lt, set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch), "a batch");
    must(lt, set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
         "a batch");
    return made;
  }

  const BlasLt& lt_;
  const aj_gemm& g_;
  const void* from_;  // what beta multiplies
  Owned<cublasLtMatmulDesc_t, decltype(BlasLt::MatmulDescDestroy)> desc_;
  Owned<cublasLtMatrixLayout_t, decltype(BlasLt::MatrixLayoutDestroy)> b_, a_, c_, added_;
  Number alpha_, beta_;
};

float time_of(const Problem& p, cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algo, void* to,
              void* workspace, Stream stream) {
  return milliseconds(stream, 3, [&] {
    return p.run(handle, algo, to, workspace, kWorkspace) == CUBLAS_STATUS_SUCCESS;
  });
}

// The fastest of the offers. A result that is also an input is measured into other memory.
int fastest(const Problem& p, const aj_gemm& g, cublasLtHandle_t handle, void* workspace,
            const cublasLtMatmulHeuristicResult_t* offers, int n) {
  void* to = g.c;
  if (p.adds_to_itself()) {
    size_t element = g.dtype.bits / 8u;
    int64_t last = (g.batch - 1) * g.stride_c + (g.m - 1) * g.ldc + g.n;
    if (runtime().Malloc(&to, size_t(last) * element) != kSuccess) return 0;
  }
  int best = 0;
  float least = -1;
  for (int i = 0; i < n; ++i) {
    float ms = time_of(p, handle, offers[i].algo, to, workspace, g.stream);
    if (ms >= 0 && (least < 0 || ms < least)) best = i, least = ms;
  }
  if (p.adds_to_itself()) (void)runtime().Free(to);
  return best;
}

// workspace: as large as kWorkspace where it is measured.
Choice choose(const Problem& p, const aj_gemm& g, cublasLtHandle_t handle, void* workspace,
              bool measure) {
  cublasLtMatmulHeuristicResult_t offers[kOffers];
  int n = p.offers(handle, offers, measure ? kOffers : 1);
  if (n == 0) kit::raise(AJ_UNIMPLEMENTED, "cuda: cuBLASLt has no algorithm for this product");
  auto& best = offers[measure ? fastest(p, g, handle, workspace, offers, n) : 0];
  return {best.algo, best.workspaceSize};
}

Choice choice_for(const Key& key, const Problem& p, const aj_gemm& g, cublasLtHandle_t handle,
                  bool measure) {
  {
    std::lock_guard held(lock);
    if (auto it = remembered().find(key); it != remembered().end()) return it->second;
  }
  Workspace most(g.device, measure ? kWorkspace : 0, g.stream);
  std::lock_guard held(lock);
  return remembered().emplace(key, choose(p, g, handle, most.data(), measure)).first->second;
}

}  // namespace

bool multiplies(DLDataType dtype) {
  Types t;
  return types_of(dtype, &t) && BlasLt::find();
}

bool adds_row(DLDataType dtype) { return dtype.code != kDLComplex; }

aj_status* multiply(const aj_gemm& g, const Addend& add) {
  if (aj_status* s = ready()) return s;
  int32_t device = g.device.device_id;
  double work = double(g.batch) * double(g.m) * double(g.n) * double(g.k);
  bool tf32 = switches.tf32_products, measure = switches.benchmark && !switches.deterministic &&
                                                !(g.flags & AJ_GEMM_DETERMINISTIC) &&
                                                work >= kWorthMeasuring &&
                                                !capturing(static_cast<Stream>(g.stream));
  On here(device);
  if (here.failed()) return status_of(here.result(), "gemm");
  return kit::guard("", [&] {
    const BlasLt* lt = BlasLt::find();
    Types types;
    if (!lt || !types_of(g.dtype, &types, tf32))
      kit::raise(AJ_UNIMPLEMENTED, "cuda: no library has a product of ", g.dtype, ": ",
                 blas_file().where());
    Key key = {device,
               g.dtype.code,
               g.dtype.bits,
               g.trans_a,
               g.trans_b,
               g.batch,
               g.m,
               g.n,
               g.k,
               g.lda,
               g.ldb,
               g.ldc,
               g.stride_a,
               g.stride_b,
               g.stride_c,
               alignment(g.a) * 1024 + alignment(g.b),
               alignment(g.c),
               add.matrix ? add.ld : 0,
               add.matrix ? add.stride : 0,
               add.matrix ? alignment(add.matrix) : 0,
               add.row ? alignment(add.row) : 0,
               g.beta != 0,
               tf32 * 2 + measure};
    Problem problem(*lt, g, add, types);
    cublasLtHandle_t handle;
    {
      std::lock_guard held(lock);
      handle = handle_of(*lt, device);
    }
    Choice choice = choice_for(key, problem, g, handle, measure);
    Workspace room(g.device, choice.workspace, g.stream);
    std::lock_guard held(lock);
    must(*lt, problem.run(handle, choice.algorithm, g.c, room.data(), choice.workspace),
         "a product");
  });
}

std::string product_library() { return BlasLt::find() ? blas_file().path() : std::string(); }

}  // namespace adjoin::vendor
