// tests/plugins/paper_card/cublaslt.cpp: the names of cuBLASLt that plugins/cuda opens, over loops.
// It refuses what NVIDIA's does not promise: sizes of 0, layouts that do not fit, no alignment.
#include <cstring>

#include "products.hpp"

using namespace paper;

namespace {

enum { kGood = 0, kInvalid = 7, kInternal = 14, kUnsupported = 15 };
enum {
  kDescTransA = 3,
  kDescTransB = 4,
  kDescEpilogue = 7,
  kDescBias = 8,
  kLayoutBatch = 5,
  kLayoutStride = 6
};
constexpr int kComputeTf32 = 77;  // cublasComputeType_t
constexpr int kEpilogueBias = 4;  // cublasLtEpilogue_t
constexpr size_t kWorkspace = 1 << 20;

struct Offer {  // cublasLtMatmulHeuristicResult_t
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

// What is added is as large as the result, a bias a number for each of its rows, and not complex.
bool serves(const Product& p, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  size_t element = d.type == kF64 ? 8 : d.type == kF32 ? 4 : 2;
  if (p.bias && (d.type == kC32 || d.type == kC64 || check_range(p.bias, d.rows * element) ||
                 reinterpret_cast<uintptr_t>(p.bias) % element))
    return false;
  return fits(p, a, b, d) && c.rows == d.rows && c.columns == d.columns && c.type == d.type &&
         c.ld >= int64_t(c.rows) && c.batch == d.batch;
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusString(int status) {
  return status == kInvalid       ? "an invalid value"
         : status == kUnsupported ? "not supported"
         : status == kInternal    ? "an internal error"
                                  : "good";
}
int cublasLtCreate(void** out) {
  if (int wrong = ordered(__func__)) return wrong;
  return *out = new char, kGood;
}

int cublasLtMatmulDescCreate(Product** out, int compute, int) {
  *out = new Product;
  (*out)->tf32 = compute == kComputeTf32;
  return kGood;
}
int cublasLtMatmulDescDestroy(Product* p) { return delete p, kGood; }
int cublasLtMatmulDescSetAttribute(Product* p, int what, const void* value, size_t) {
  if (what == kDescBias) return std::memcpy(&p->bias, value, sizeof p->bias), kGood;
  if (what == kDescEpilogue) {
    int wanted;
    std::memcpy(&wanted, value, sizeof wanted);
    return wanted == 1 || wanted == kEpilogueBias ? kGood : kUnsupported;
  }
  if (what != kDescTransA && what != kDescTransB) return kUnsupported;
  std::memcpy(what == kDescTransA ? &p->turn_a : &p->turn_b, value, sizeof(int));
  return kGood;
}

int cublasLtMatrixLayoutCreate(Layout** out, int type, uint64_t rows, uint64_t columns,
                               int64_t ld) {
  return *out = new Layout{type, rows, columns, ld}, kGood;
}
int cublasLtMatrixLayoutDestroy(Layout* l) { return delete l, kGood; }
int cublasLtMatrixLayoutSetAttribute(Layout* l, int what, const void* value, size_t) {
  if (what == kLayoutBatch) return std::memcpy(&l->batch, value, sizeof l->batch), kGood;
  if (what == kLayoutStride) return std::memcpy(&l->stride, value, sizeof l->stride), kGood;
  return kUnsupported;
}

int cublasLtMatmulPreferenceCreate(void** out) { return *out = new char, kGood; }
int cublasLtMatmulPreferenceDestroy(void* p) { return delete static_cast<char*>(p), kGood; }
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return kGood; }

int cublasLtMatmulAlgoGetHeuristic(void*, const Product* p, const Layout* a, const Layout* b,
                                   const Layout* c, const Layout* d, void*, int wanted, Offer* out,
                                   int* found) {
  if (int wrong = ordered(__func__)) return *found = 0, wrong;
  if (!serves(*p, *a, *b, *c, *d)) return *found = 0, kInvalid;
  for (int i = 0; i < wanted; ++i) out[i] = {{uint64_t(i)}, kWorkspace, kGood, 1, {}};
  return *found = wanted, kGood;
}

int cublasLtMatmul(void*, const Product* p, const void* alpha, const void* a, const Layout* la,
                   const void* b, const Layout* lb, const void* beta, const void* c,
                   const Layout* lc, void* d, const Layout* ld, const void*, void* workspace,
                   size_t bytes, Stream* stream) {
  if (int wrong = ordered(__func__)) return wrong;
  if (!serves(*p, *la, *lb, *lc, *ld)) return kInvalid;
  if (bytes < kWorkspace || check_range(workspace, bytes)) return kUnsupported;
  auto mine = [=] { std::memset(workspace, 0x5a, kWorkspace); };  // the library's while it works
  int queued = queue_product(stream, *p, alpha, a, *la, b, *lb, beta, c, *lc, d, *ld, mine);
  return queued < 0 ? kUnsupported : queued ? kInternal : kGood;
}
}
