// tests/plugins/paper_card/cublaslt.cpp: the names of cuBLASLt that plugins/cuda opens, over loops.
// It refuses what NVIDIA's does not promise: sizes of 0, layouts that do not fit, no alignment.
#include <complex>
#include <cstring>

#include "card.hpp"
#include "numbers.hpp"

using namespace paper;

namespace {

enum { kGood = 0, kInvalid = 7, kUnsupported = 15 };
enum { kF32 = 0, kF64 = 1, kF16 = 2, kC32 = 4, kC64 = 5, kBF16 = 14 };  // cudaDataType_t
enum { kDescTransA = 3, kDescTransB = 4, kLayoutBatch = 5, kLayoutStride = 6 };
constexpr int kComputeTf32 = 77;  // cublasComputeType_t
constexpr size_t kWorkspace = 1 << 20;

struct Product {
  int turn_a = 0, turn_b = 0;  // cublasOperation_t: as it is, transposed, conjugated too
  bool tf32 = false;
};
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Offer {  // cublasLtMatmulHeuristicResult_t
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

double turned(double x, int) { return x; }
template <class T>
std::complex<T> turned(std::complex<T> x, int turn) {
  return turn == 2 ? std::conj(x) : x;
}

// Columns first, as the library counts.
template <class T, class Sum, class Scale>
void multiply(const Product& p, Scale alpha, Scale beta, const Layout& la, const T* a,
              const Layout& lb, const T* b, const Layout& lc, const T* c, const Layout& ld, T* d) {
  uint64_t inner = p.turn_a ? la.rows : la.columns;
  for (int64_t s = 0; s < ld.batch; ++s)
    for (uint64_t j = 0; j < ld.columns; ++j)
      for (uint64_t i = 0; i < ld.rows; ++i) {
        Sum sum = 0;
        for (uint64_t k = 0; k < inner; ++k) {
          Sum x = a[s * la.stride + int64_t(p.turn_a ? i : k) * la.ld + int64_t(p.turn_a ? k : i)];
          Sum y = b[s * lb.stride + int64_t(p.turn_b ? k : j) * lb.ld + int64_t(p.turn_b ? j : k)];
          if constexpr (std::is_same_v<T, float>)
            if (p.tf32) x = as_tf32(float(x)), y = as_tf32(float(y));
          sum += Sum(turned(x, p.turn_a)) * Sum(turned(y, p.turn_b));
        }
        Sum result = Sum(alpha) * sum;
        if (beta != Scale(0))
          result += Sum(beta) * Sum(c[s * lc.stride + int64_t(j) * lc.ld + int64_t(i)]);
        d[s * ld.stride + int64_t(j) * ld.ld + int64_t(i)] = T(result);
      }
}

bool fits(const Product& p, const Layout& a, const Layout& b, const Layout& d) {
  for (const Layout* l : {&a, &b, &d})
    if (l->rows == 0 || l->columns == 0 || l->ld < int64_t(l->rows) || l->batch != d.batch ||
        l->type != d.type)
      return false;
  return (p.turn_a ? a.columns : a.rows) == d.rows &&
         (p.turn_b ? b.rows : b.columns) == d.columns &&
         (p.turn_a ? a.rows : a.columns) == (p.turn_b ? b.columns : b.rows);
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusString(int status) {
  return status == kInvalid       ? "an invalid value"
         : status == kUnsupported ? "not supported"
                                  : "good";
}
int cublasLtCreate(void** out) { return *out = new char, kGood; }

int cublasLtMatmulDescCreate(Product** out, int compute, int) {
  *out = new Product;
  (*out)->tf32 = compute == kComputeTf32;
  return kGood;
}
int cublasLtMatmulDescDestroy(Product* p) { return delete p, kGood; }
int cublasLtMatmulDescSetAttribute(Product* p, int what, const void* value, size_t) {
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
                                   const Layout*, const Layout* d, void*, int wanted, Offer* out,
                                   int* found) {
  if (!fits(*p, *a, *b, *d)) return *found = 0, kInvalid;
  for (int i = 0; i < wanted; ++i) out[i] = {{uint64_t(i)}, kWorkspace, kGood, 1, {}};
  return *found = wanted, kGood;
}

int cublasLtMatmul(void*, const Product* p, const void* alpha, const void* a, const Layout* la,
                   const void* b, const Layout* lb, const void* beta, const void* c,
                   const Layout* lc, void* d, const Layout* ld, const void*, void* workspace,
                   size_t bytes, Stream* stream) {
  if (!fits(*p, *la, *lb, *ld)) return kInvalid;
  if (bytes < kWorkspace || check_range(workspace, bytes)) return kUnsupported;
  auto queue = [&]<class T, class Sum, class Scale>() {
    Scale by, plus;
    std::memcpy(&by, alpha, sizeof by);
    std::memcpy(&plus, beta, sizeof plus);
    return submit(stream, [=, p = *p, la = *la, lb = *lb, lc = *lc, ld = *ld] {
      if (orders.idle) return;
      std::memset(workspace, 0x5a, kWorkspace);  // it is the library's while it works
      multiply<T, Sum, Scale>(p, by, plus, la, static_cast<const T*>(a), lb,
                              static_cast<const T*>(b), lc, static_cast<const T*>(c), ld,
                              static_cast<T*>(d));
    });
  };
  ++counts.products;
  switch (ld->type) {
    case kF32:
      return queue.template operator()<float, double, float>() ? 14 : 0;
    case kF64:
      return queue.template operator()<double, double, double>() ? 14 : 0;
    case kF16:
      return queue.template operator()<_Float16, double, float>() ? 14 : 0;
    case kBF16:
      return queue.template operator()<BFloat16, double, float>() ? 14 : 0;
    case kC32:
      return queue.template
                 operator()<std::complex<float>, std::complex<double>, std::complex<float>>()
                 ? 14
                 : 0;
    case kC64:
      return queue.template
                 operator()<std::complex<double>, std::complex<double>, std::complex<double>>()
                 ? 14
                 : 0;
    default:
      return kUnsupported;
  }
}
}
