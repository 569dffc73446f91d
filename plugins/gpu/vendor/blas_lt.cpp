// plugins/gpu/vendor/blas_lt.cpp: matrix products by cuBLASLt or hipBLASLt. The algorithm is the
// first that its heuristics offer for a problem, or, where measuring is switched on, the fastest;
// it is remembered.
#include "blas_lt.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include "timing.hpp"
#include "workspace.hpp"

namespace adjoin::vendor {
namespace {

constexpr size_t kWorkspace = 32 << 20;  // what NVIDIA recommends for sm_90
constexpr int kOffers = 8;               // algorithms that are measured
constexpr int32_t kAddBias = 4;          // of an epilogue; both vendors' number

struct Opened {
  LtLibrary table = {};
  bool usable = false;

  Opened() {
    SharedLibrary& file = lt_file_to_open();
    if (!file.open()) return;
    const std::string prefix = lt_words.prefix;
#define AJ_BIND_(name, parameters)                         \
  if (!file.bind((prefix + #name).c_str(), &table.name)) { \
    file.close_for("it has no " + prefix + #name);         \
    return;                                                \
  }
    AJ_LT_FUNCTIONS_(AJ_BIND_)
#undef AJ_BIND_
    usable = true;
  }
};

void must(int status, const char* doing) {
  if (status == 0) return;
  raise_if_lost(doing);
  const char* says = lt_words.says(status);
  const int32_t code = status == lt_words.no_memory       ? AJ_OUT_OF_MEMORY
                       : status == lt_words.not_supported ? AJ_UNIMPLEMENTED
                                                          : AJ_INTERNAL;
  kit::raise(code, kDevice, ": ", lt_file().name(), ": ", doing, ": ",
             says ? says : "an unknown error", " (", status, "), found as ", lt_file().where());
}

// A descriptor that ends with its scope.
class Owned {
 public:
  Owned(void* what, int (*destroy)(void*)) : what_(what), destroy_(destroy) {}
  ~Owned() { destroy_(what_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  operator void*() const { return what_; }

 private:
  void* what_;
  int (*destroy_)(void*);
};

// alpha or beta in the type that the library reads it in.
struct Number {
  double room[2] = {0, 0};
  Number(double x, bool wide) {
    auto narrow = float(x);
    if (wide)
      std::memcpy(room, &x, sizeof x);
    else
      std::memcpy(room, &narrow, sizeof narrow);
  }
};

uint32_t alignment(const void* p) {
  auto at = reinterpret_cast<uintptr_t>(p);
  return uint32_t(at ? std::min<uintptr_t>(256, at & (~at + 1)) : 256);
}

constexpr size_t kMostAlgorithm = 64, kMostOffer = 96;
struct Choice {
  bool some = false;
  alignas(8) char algorithm[kMostAlgorithm] = {};
  uint64_t workspace = 0;
};
struct Offers {
  alignas(8) char bytes[kMostOffer * kOffers] = {};
  int n = 0;
  Choice at(int i) const {
    Choice c = {true, {}, 0};
    const char* offer = bytes + size_t(i) * lt_words.offer_bytes;
    std::memcpy(c.algorithm, offer, lt_words.algorithm_bytes);
    std::memcpy(&c.workspace, offer + lt_words.algorithm_bytes, sizeof c.workspace);
    return c;
  }
};
using Key = std::array<int64_t, 23>;

std::mutex lock;
void* handle_of(const LtLibrary& lt, int32_t device) {
  static auto* all = new std::map<int32_t, void*>;
  void*& handle = (*all)[device];
  if (!handle) must(lt.Create(&handle), "its handle");
  return handle;
}
std::map<Key, Choice>& remembered() {
  static auto* all = new std::map<Key, Choice>;
  return *all;
}

// The problem as the library sees it: it counts columns first, so C' = B' A'.
class Problem {
 public:
  Problem(const LtLibrary& lt, const aj_gemm& g, const Addend& add, const LtTypes& t)
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
        alpha_(g.alpha, t.wide),
        beta_(g.beta, t.wide) {}

  Offers offers(void* handle, int wanted) const {
    void* made = nullptr;
    must(lt_.MatmulPreferenceCreate(&made), "a preference");
    const Owned preference(made, lt_.MatmulPreferenceDestroy);
    set(preference, lt_words.workspace, uint64_t(kWorkspace));
    if (lt_words.alignment >= 0) {
      int attribute = lt_words.alignment;
      for (const void* p : {g_.b, g_.a, from_, static_cast<const void*>(g_.c)})
        set(preference, attribute++, alignment(p));
    }
    Offers found;
    const int status = lt_.MatmulAlgoGetHeuristic(handle, desc_, b_, a_, added_, c_, preference,
                                                  wanted, found.bytes, &found.n);
    if (status == lt_words.not_supported)
      found.n = 0;
    else
      must(status, "choosing an algorithm");
    return found;
  }
  int run(void* handle, const Choice& choice, void* to, void* workspace) const {
    return lt_.Matmul(handle, desc_, alpha_.room, g_.b, b_, g_.a, a_, beta_.room, from_, added_, to,
                      c_, choice.algorithm, workspace, choice.workspace,
                      static_cast<Stream>(g_.stream));
  }
  bool adds_to_itself() const { return g_.beta != 0 && from_ == g_.c; }

 private:
  template <class T>
  void set(void* preference, int what, T value) const {
    must(lt_.MatmulPreferenceSetAttribute(preference, what, &value, sizeof value), "a preference");
  }
  static void* make_desc(const LtLibrary& lt, const aj_gemm& g, const Addend& add,
                         const LtTypes& t) {
    void* made = nullptr;
    must(lt.MatmulDescCreate(&made, t.compute, t.scale), "a product's description");
    int32_t first = lt_words.plain + g.trans_b, second = lt_words.plain + g.trans_a;
    auto set = lt.MatmulDescSetAttribute;
    must(set(made, lt_words.trans_a, &first, sizeof first), "a transposition");
    must(set(made, lt_words.trans_b, &second, sizeof second), "a transposition");
    if (!add.row) return made;
    const int32_t epilogue = kAddBias, type = t.data;
    must(set(made, lt_words.epilogue, &epilogue, sizeof epilogue), "a bias");
    must(set(made, lt_words.bias, &add.row, sizeof add.row), "a bias");
    if (lt_words.bias_type >= 0)
      must(set(made, lt_words.bias_type, &type, sizeof type), "a bias's type");
    return made;
  }
  static void* make_layout(const LtLibrary& lt, const LtTypes& t, int64_t rows, int64_t columns,
                           int64_t ld, int64_t stride, const aj_gemm& g) {
    void* made = nullptr;
    must(lt.MatrixLayoutCreate(&made, t.data, uint64_t(rows), uint64_t(columns), ld), "a matrix");
    if (g.batch <= 1) return made;
    auto batch = int32_t(g.batch);
    auto set = lt.MatrixLayoutSetAttribute;
    must(set(made, lt_words.batch, &batch, sizeof batch), "a batch");
    must(set(made, lt_words.stride, &stride, sizeof stride), "a batch");
    return made;
  }

  const LtLibrary& lt_;
  const aj_gemm& g_;
  const void* from_;  // what beta multiplies
  Owned desc_, b_, a_, c_, added_;
  Number alpha_, beta_;
};

// The fastest of the offers. A result that is also an input is measured into other memory.
int fastest(const Problem& p, const aj_gemm& g, void* handle, void* workspace,
            const Offers& offers) {
  void* to = g.c;
  if (p.adds_to_itself()) {
    size_t element = g.dtype.bits / 8u;
    int64_t last = (g.batch - 1) * g.stride_c + (g.m - 1) * g.ldc + g.n;
    if (runtime().Malloc(&to, size_t(last) * element) != kSuccess) return 0;
  }
  int best = 0;
  float least = -1;
  for (int i = 0; i < offers.n; ++i) {
    Choice one = offers.at(i);
    one.workspace = kWorkspace;
    float ms = milliseconds(static_cast<Stream>(g.stream), 3,
                            [&] { return p.run(handle, one, to, workspace) == 0; });
    if (ms >= 0 && (least < 0 || ms < least)) best = i, least = ms;
  }
  if (p.adds_to_itself()) (void)runtime().Free(to);
  return best;
}

Choice choice_for(const Key& key, const Problem& p, const aj_gemm& g, void* handle, bool measure) {
  {
    std::lock_guard held(lock);
    if (auto it = remembered().find(key); it != remembered().end()) return it->second;
  }
  Workspace most(g.device, measure ? kWorkspace : 0, static_cast<Stream>(g.stream));
  std::lock_guard held(lock);
  const Offers offers = p.offers(handle, measure ? kOffers : 1);
  Choice choice;
  if (offers.n) choice = offers.at(measure ? fastest(p, g, handle, most.data(), offers) : 0);
  return remembered().emplace(key, choice).first->second;
}

}  // namespace

const LtLibrary* LtLibrary::find() {
  static auto* one = new Opened;  // never destroyed: threads may still multiply at exit
  return one->usable ? &one->table : nullptr;
}
const SharedLibrary& lt_file() {
  (void)LtLibrary::find();
  return lt_file_to_open();
}

bool lt_multiplies(DLDataType dtype) {
  return dtype.lanes == 1 && lt_words.types(dtype, false).data >= 0 && LtLibrary::find();
}

bool lt_multiply(const aj_gemm& g, const Addend& add, const LtHow& how) {
  const LtLibrary* lt = LtLibrary::find();
  if (!lt || !lt_multiplies(g.dtype)) return false;
  const int32_t device = g.device.device_id;
  const Key key = {device,
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
                   how.tf32 * 2 + how.measure};
  const Problem problem(*lt, g, add, lt_words.types(g.dtype, how.tf32));
  void* handle = nullptr;
  {
    std::lock_guard held(lock);
    handle = handle_of(*lt, device);
  }
  const Choice choice = choice_for(key, problem, g, handle, how.measure);
  if (!choice.some) return false;
  Workspace room(g.device, choice.workspace, static_cast<Stream>(g.stream));
  std::lock_guard held(lock);
  must(problem.run(handle, choice, g.c, room.data()), "a product");
  return true;
}

}  // namespace adjoin::vendor
