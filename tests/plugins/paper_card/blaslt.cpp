// tests/plugins/paper_card/blaslt.cpp: the names of cuBLASLt and hipBLASLt that the plugins call,
// over loops. They refuse what the vendors do not promise: sizes of 0, layouts that do not fit,
// types that are not served, no work memory, no alignment.
#include <cstring>

#include "products.hpp"

using namespace paper;

namespace {

constexpr int kGood = 0;
constexpr size_t kWorkspace = 1 << 20;
enum { kNoEpilogue = 1, kEpilogueBias = 4 };

// What a vendor numbers in its own way.
struct Cuda {
  enum { kInvalid = 7, kUnsupported = 15, kFailed = 14 };
  enum { kTransA = 3, kTransB = 4, kEpilogue = 7, kBias = 8, kBiasType = -1 };
  enum { kBatch = 5, kStride = 6, kPlain = 0, kTf32 = 77, kSingle = 68 };
  struct Offer {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
  };
  static bool serves(int) { return true; }
};
// Doubles and complex numbers are rocBLAS's alone.
struct Hip {
  enum { kInvalid = 3, kUnsupported = 7, kFailed = 5 };
  enum { kTransA = 0, kTransB = 1, kEpilogue = 2, kBias = 3, kBiasType = 4 };
  enum { kBatch = 0, kStride = 1, kPlain = 111, kTf32 = 6, kSingle = 2 };
  struct Offer {
    uint8_t algorithm[16];
    size_t most;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
  };
  static bool serves(int type) { return type == kF32 || type == kF16 || type == kBF16; }
};
static_assert(sizeof(Cuda::Offer) == 96 && sizeof(Hip::Offer) == 56);

struct Described {
  Product product;
  int epilogue = kNoEpilogue, bias_type = -1;
};

template <class V>
struct Lt {
  // What is added is as large as the result, a bias a number for each of its rows, and not complex.
  static int fits_all(const Described& p, const Layout& a, const Layout& b, const Layout& c,
                      const Layout& d) {
    if (!V::serves(d.type)) return V::kUnsupported;
    const size_t element = d.type == kF64 ? 8 : d.type == kF32 ? 4 : 2;
    const void* bias = p.product.bias;
    if ((bias != nullptr) != (p.epilogue == kEpilogueBias)) return V::kInvalid;
    if (bias && (d.type == kC32 || d.type == kC64 || check_range(bias, d.rows * element) ||
                 reinterpret_cast<uintptr_t>(bias) % element ||
                 (V::kBiasType >= 0 && p.bias_type != d.type)))
      return V::kInvalid;
    const bool fit = fits(p.product, a, b, d) && c.rows == d.rows && c.columns == d.columns &&
                     c.type == d.type && c.ld >= int64_t(c.rows) && c.batch == d.batch;
    return fit ? kGood : int(V::kInvalid);
  }

  static int describe(Described** out, int compute) {
    *out = new Described;
    (*out)->product.tf32 = compute == V::kTf32;
    return kGood;
  }
  static int set(Described* p, int what, const void* value, size_t) {
    int number = 0;
    if (what != V::kBias) std::memcpy(&number, value, sizeof number);
    if (what == V::kBias)
      std::memcpy(&p->product.bias, value, sizeof p->product.bias);
    else if (what == V::kEpilogue)
      p->epilogue = number;
    else if (what == V::kBiasType)
      p->bias_type = number;
    else if (what == V::kTransA)
      p->product.turn_a = number - V::kPlain;
    else if (what == V::kTransB)
      p->product.turn_b = number - V::kPlain;
    else
      return V::kUnsupported;
    const bool known = p->epilogue == kNoEpilogue || p->epilogue == kEpilogueBias;
    return known ? kGood : int(V::kUnsupported);
  }
  static int set(Layout* l, int what, const void* value) {
    if (what == V::kBatch) return std::memcpy(&l->batch, value, sizeof l->batch), kGood;
    if (what == V::kStride) return std::memcpy(&l->stride, value, sizeof l->stride), kGood;
    return V::kUnsupported;
  }
  static int offer(const Described* p, const Layout* a, const Layout* b, const Layout* c,
                   const Layout* d, int wanted, typename V::Offer* out, int* found) {
    *found = 0;
    if (int wrong = fits_all(*p, *a, *b, *c, *d)) return wrong;
    for (int i = 0; i < wanted; ++i) {
      out[i] = {};
      out[i].algorithm[0] = decltype(+out[i].algorithm[0])(i);
      out[i].workspace = kWorkspace;
    }
    return *found = wanted, kGood;
  }
  static int multiply(const Described* p, const void* alpha, const void* a, const Layout* la,
                      const void* b, const Layout* lb, const void* beta, const void* c,
                      const Layout* lc, void* d, const Layout* ld, void* workspace, size_t bytes,
                      Stream* stream) {
    if (int wrong = fits_all(*p, *la, *lb, *lc, *ld)) return wrong;
    if (bytes < kWorkspace || !is_known(workspace) || check_range(workspace, bytes))
      return V::kUnsupported;
    auto mine = [=] { std::memset(workspace, 0x5a, kWorkspace); };  // the library's while it works
    int queued =
        queue_product(stream, p->product, alpha, a, *la, b, *lb, beta, c, *lc, d, *ld, mine);
    return queued < 0 ? int(V::kUnsupported) : queued ? int(V::kFailed) : kGood;
  }
};

}  // namespace

#define LT_(V, P)                                                                                  \
  int P##Create(void** out) {                                                                      \
    if (int wrong = ordered(__func__)) return wrong;                                               \
    return *out = new char, kGood;                                                                 \
  }                                                                                                \
  int P##MatmulDescCreate(Described** out, int compute, int) {                                     \
    return Lt<V>::describe(out, compute);                                                          \
  }                                                                                                \
  int P##MatmulDescDestroy(Described* p) { return delete p, kGood; }                               \
  int P##MatmulDescSetAttribute(Described* p, int what, const void* value, size_t n) {             \
    return Lt<V>::set(p, what, value, n);                                                          \
  }                                                                                                \
  int P##MatrixLayoutCreate(Layout** out, int type, uint64_t rows, uint64_t columns, int64_t ld) { \
    return *out = new Layout{type, rows, columns, ld}, kGood;                                      \
  }                                                                                                \
  int P##MatrixLayoutDestroy(Layout* l) { return delete l, kGood; }                                \
  int P##MatrixLayoutSetAttribute(Layout* l, int what, const void* value, size_t) {                \
    return Lt<V>::set(l, what, value);                                                             \
  }                                                                                                \
  int P##MatmulPreferenceCreate(void** out) { return *out = new char, kGood; }                     \
  int P##MatmulPreferenceDestroy(void* p) { return delete static_cast<char*>(p), kGood; }          \
  int P##MatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return kGood; }           \
  int P##MatmulAlgoGetHeuristic(void*, const Described* p, const Layout* a, const Layout* b,       \
                                const Layout* c, const Layout* d, void*, int wanted,               \
                                V::Offer* out, int* found) {                                       \
    if (int wrong = ordered(__func__)) return *found = 0, wrong;                                   \
    return Lt<V>::offer(p, a, b, c, d, wanted, out, found);                                        \
  }                                                                                                \
  int P##Matmul(void*, const Described* p, const void* alpha, const void* a, const Layout* la,     \
                const void* b, const Layout* lb, const void* beta, const void* c,                  \
                const Layout* lc, void* d, const Layout* ld, const void*, void* workspace,         \
                size_t bytes, Stream* stream) {                                                    \
    if (int wrong = ordered(__func__)) return wrong;                                               \
    return Lt<V>::multiply(p, alpha, a, la, b, lb, beta, c, lc, d, ld, workspace, bytes, stream);  \
  }

extern "C" {
size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusString(int status) {
  return status == Cuda::kInvalid       ? "an invalid value"
         : status == Cuda::kUnsupported ? "not supported"
         : status == Cuda::kFailed      ? "an internal error"
                                        : "good";
}
LT_(Cuda, cublasLt)
LT_(Hip, hipblasLt)
}
