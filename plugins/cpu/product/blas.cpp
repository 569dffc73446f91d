// plugins/cpu/product/blas.cpp: BLAS libraries that the user has, each opened at the first product
// that is worth it. None is needed.
//
// One that nobody named is OpenBLAS, else BLIS. Others have a name (openblas, blis, mkl, blas) or a
// path, and any number of them serve side by side: libraries are opened RTLD_LOCAL and called
// through pointers of their own, so no other BLAS in the process is reached by mistake.
#include <dlfcn.h>

#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/library.hpp>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "gemm.hpp"
#include "vector/isa.hpp"

namespace adjoin::cpu {
namespace {

using namespace kit;

// An OpenBLAS that is older than the processor does not know it and takes it for one of 2004, with
// vectors of 16 bytes: its solvers need twice the time. It is told to use the code that the
// processor can run, unless the user said which. Only of a library that nobody else uses yet, as
// it has no code at all in between.
template <class Find>
void choose_core(Find find) {
  const char* const better = isa() >= Isa::avx512 ? "SKYLAKEX" : "HASWELL";
  constexpr const char* variable = "OPENBLAS_CORETYPE";
  auto core = reinterpret_cast<const char* (*)()>(find("openblas_get_corename"));
  auto quit = reinterpret_cast<void (*)()>(find("gotoblas_dynamic_quit")),
       init = reinterpret_cast<void (*)()>(find("gotoblas_dynamic_init"));
  const std::string table = std::string("gotoblas_") + better;
  if (!core || !quit || !init || !find(table.c_str()) || isa() < Isa::avx2 ||
      secure_getenv(variable))
    return;
  const std::string_view guess = core();
  if (guess != "Prescott" && guess != "Katmai") return;
  setenv(variable, better, 0);
  quit(), init();
  unsetenv(variable);
}

enum : int { kRowMajor = 101, kNoTrans = 111, kTrans = 112, kConjTrans = 113 };  // of CBLAS

class Library {
 public:
  // "": whichever is found. Never destroyed: threads may still multiply while the process exits.
  explicit Library(std::string wish) : wish_(std::move(wish)) {}
  bool usable() {
    if (state_.load(std::memory_order_acquire) == kUnknown) open();
    return state_.load(std::memory_order_acquire) == kReady;
  }
  aj_status* gemm(const aj_gemm& g) const {
    int code = g.dtype.code == kDLComplex ? 2 : 0;
    int which = code + (g.dtype.bits == (code ? 128 : 64));
    if (!routine_[which])
      return fail(AJ_UNIMPLEMENTED, "blas: ", name_, " has no product for ", g.dtype);
    wide_ ? call<int64_t>(which, g) : call<int32_t>(which, g);
    return nullptr;
  }
  bool has(const aj_gemm& g) const {
    int code = g.dtype.code == kDLComplex ? 2 : 0;
    return routine_[code + (g.dtype.bits == (code ? 128 : 64))] != nullptr;
  }
  bool wide() const { return wide_; }
  const std::string& path() const { return path_; }
  void* symbol(const std::string& routine) const {
    if (!handle_) return nullptr;
    for (const std::string& name :
         {routine + "_" + suffix_, routine + suffix_, routine + "_", routine})
      if (void* found = dlsym(handle_, name.c_str())) return found;
    return nullptr;
  }

 private:
  enum { kUnknown, kReady, kAbsent };

  void open() {
    std::lock_guard lock(mutex_);
    if (state_.load(std::memory_order_relaxed) != kUnknown) return;
    std::string tried;
    for (const std::string& file : candidates(wish_)) {
      std::string why = "it has no cblas_sgemm";
      void* others = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
      handle_ = open_library("cpu", file, &why);
      if (handle_ && bind(file, others == nullptr))
        return state_.store(kReady, std::memory_order_release);
      tried += (tried.empty() ? "" : "; ") + file + ": " + why;
      handle_ = nullptr;  // left open: unloading a BLAS that has started threads is not safe
    }
    tell_of_absence(tried);
    state_.store(kAbsent, std::memory_order_release);
  }

  bool is_named_in(std::string_view list) const {  // "blis,dgemm=mkl"
    for (size_t end; !list.empty(); list.remove_prefix(std::min(list.size(), end + 1))) {
      end = std::min(list.find_first_of(",="), list.size());
      if (list.substr(0, end) == wish_) return true;
    }
    return false;
  }
  // Who lists libraries asks each whether it is there: a warning is due to who asked for this one.
  // A word that names nobody has been told of already.
  void tell_of_absence(const std::string& tried) const {
    const char* set = secure_getenv("ADJOIN_BLAS");
    bool known =
        std::find(std::begin(kLibraries), std::end(kLibraries), wish_) != std::end(kLibraries);
    bool asked = known ? set && is_named_in(set)
                       : wish_.find('/') != wish_.npos || wish_.find(".so") != wish_.npos;
    std::string message = "no BLAS library";
    if (known) message += " '" + wish_ + "'";
    if (asked || wish_.empty()) message += ", our own products serve";
    message += " (" + tried + ")";
    core().log(asked ? 1 : 2, AJ_STR_LIT("cpu"), str(message));
  }

  static std::vector<std::string> candidates(const std::string& wish) {
    std::vector<std::string> openblas = {"libopenblas.so.0", "libopenblas.so",
                                         "libopenblas64_.so.0"},
                             blis = {"libblis.so.4", "libblis.so.3", "libblis.so"};
    if (wish.empty()) {
      openblas.insert(openblas.end(), blis.begin(), blis.end());
      return openblas;
    }
    if (wish == "openblas") return openblas;
    if (wish == "blis") return blis;
    if (wish == "mkl") return {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"};
    if (wish == "blas") return {"libblas.so.3"};  // the one that the system's administrator chose
    return {wish};
  }

  bool bind(const std::string& file, bool ours_alone) {
    static const char* const prefixes[] = {"", "scipy_"};
    static const char* const suffixes[] = {"", "64_", "_64"};
    for (const char* prefix : prefixes)
      for (const char* suffix : suffixes) {
        auto find = [&](const char* routine) {
          return dlsym(handle_, (std::string(prefix) + routine + suffix).c_str());
        };
        if (!find("cblas_sgemm")) continue;
        const char* names[] = {"cblas_sgemm", "cblas_dgemm", "cblas_cgemm", "cblas_zgemm"};
        for (int i = 0; i < 4; ++i) routine_[i] = find(names[i]);
        suffix_ = suffix;
        wide_ = *suffix != 0 || configured_wide(find("openblas_get_config"));
        if (ours_alone) choose_core(find);
        single_thread(find);
        Dl_info where;
        path_ = dladdr(routine_[0], &where) && where.dli_fname ? where.dli_fname : file;
        name_ = file;
        return true;
      }
    return false;
  }
  static bool configured_wide(void* get_config) {
    if (!get_config) return false;
    const char* text = reinterpret_cast<const char* (*)()>(get_config)();
    return text && std::string(text).find("USE64BITINT") != std::string::npos;
  }
  // The pool is ours: on each of its threads the library computes alone.
  template <class Find>
  static void single_thread(Find find) {
    for (const char* name :
         {"openblas_set_num_threads", "MKL_Set_Num_Threads", "omp_set_num_threads"})
      if (void* set = find(name)) reinterpret_cast<void (*)(int)>(set)(1);
    if (void* set = find("bli_thread_set_num_threads")) reinterpret_cast<void (*)(long)>(set)(1);
  }

  template <class Int>
  void call(int which, const aj_gemm& g) const {
    auto op = [](int32_t t) {
      return t == 0 ? int(kNoTrans) : t == 1 ? int(kTrans) : int(kConjTrans);
    };
    int ta = op(g.trans_a), tb = op(g.trans_b);
    Int m = Int(g.m), n = Int(g.n), k = Int(g.k), lda = Int(g.lda), ldb = Int(g.ldb),
        ldc = Int(g.ldc);
    auto run = [&]<class Number, class Scalar>(Number, Scalar alpha, Scalar beta) {
      using F = void (*)(int, int, int, Int, Int, Int, Scalar, const void*, Int, const void*, Int,
                         Scalar, void*, Int);
      int64_t size = bytes_of(g.dtype);
      for (int64_t i = 0; i < g.batch; ++i)
        reinterpret_cast<F>(routine_[which])(
            kRowMajor, ta, tb, m, n, k, alpha,
            static_cast<const char*>(g.a) + i * g.stride_a * size, lda,
            static_cast<const char*>(g.b) + i * g.stride_b * size, ldb, beta,
            static_cast<char*>(g.c) + i * g.stride_c * size, ldc);
    };
    Complex64 ca{float(g.alpha)}, cb{float(g.beta)};
    Complex128 za{g.alpha}, zb{g.beta};
    switch (which) {
      case 0:
        return run(float(), float(g.alpha), float(g.beta));
      case 1:
        return run(double(), g.alpha, g.beta);
      case 2:
        return run(ca, static_cast<const void*>(&ca), static_cast<const void*>(&cb));
      default:
        return run(za, static_cast<const void*>(&za), static_cast<const void*>(&zb));
    }
  }

  const std::string wish_;
  std::mutex mutex_;
  std::atomic<int> state_{kUnknown};
  void* handle_ = nullptr;
  void* routine_[4] = {};
  bool wide_ = false;
  std::string suffix_, name_, path_;
};

bool product_dtype(DLDataType d) {
  return d.lanes == 1 && ((d.code == kDLFloat && d.bits >= 32) || d.code == kDLComplex);
}

Library& of(void* self) { return *static_cast<Library*>(self); }

int32_t library_score(void* self, const aj_gemm* g) {
  if (!product_dtype(g->dtype) || g->m * g->n * g->k < 16 * 16 * 16)
    return 0;  // a call costs more than our own loops
  Library& library = of(self);
  if (!library.usable() || !library.has(*g)) return 0;
  int64_t largest = std::max({g->m, g->n, g->k, g->lda, g->ldb, g->ldc});
  return library.wide() || largest <= INT32_MAX ? 100 : 0;
}
aj_status* library_gemm(void* self, const aj_gemm* g) { return of(self).gemm(*g); }
aj_str library_path(void* self) {
  Library& library = of(self);
  return library.usable() ? str(library.path()) : aj_str{"", 0};
}
void* library_lapack(void* self, aj_str routine) {
  Library& library = of(self);
  bool named = library.usable() && !library.wide();  // service.h promises integers of 32 bits
  return named ? library.symbol(std::string(view_of(routine))) : nullptr;
}

int32_t own_score(void*, const aj_gemm* g) {
  bool known = product_dtype(g->dtype) || has_vectors(g->dtype);
  return known && g->trans_a < 2 && g->trans_b < 2 ? 10 : 0;
}
aj_status* own_call(void*, const aj_gemm* g) {
  return guard("blas", [&] {
    visit<Join<floating_complex, halves>>(g->dtype, [&]<class T>() {
      Gemm<T> one = {g->m, g->n, g->k};
      one.ldc = g->ldc, one.alpha = cast<Math<T>>(g->alpha), one.beta = cast<Math<T>>(g->beta);
      for (int64_t i = 0; i < g->batch; ++i) {
        one.a = {static_cast<const T*>(g->a) + i * g->stride_a, g->lda, g->trans_a != 0};
        one.b = {static_cast<const T*>(g->b) + i * g->stride_b, g->ldb, g->trans_b != 0};
        one.c = static_cast<T*>(g->c) + i * g->stride_c;
        own_product(one);
      }
    });
  });
}
aj_str own_path(void*) { return str(plugin_path); }

}  // namespace

const aj_blas own_blas = {.struct_size = sizeof(aj_blas),
                          .minor = AJ_ABI_MINOR,
                          .name = AJ_STR_LIT("own"),
                          .self = nullptr,
                          .score = own_score,
                          .gemm = own_call,
                          .path = own_path,
                          .lapack = nullptr};

const aj_blas* library_blas(const std::string& wish) {
  struct Entry {
    std::string name;
    Library library;
    aj_blas table;
    explicit Entry(const std::string& wish)
        : name(wish.empty() ? "library" : wish), library(wish), table{} {
      table = {.struct_size = sizeof(aj_blas),
               .minor = AJ_ABI_MINOR,
               .name = str(name),
               .self = &library,
               .score = library_score,
               .gemm = library_gemm,
               .path = library_path,
               .lapack = library_lapack};
    }
  };
  static auto* lock = new std::mutex;
  static auto* entries = new std::map<std::string, std::unique_ptr<Entry>>;
  std::lock_guard held(*lock);
  auto& entry = (*entries)[wish];
  if (!entry) entry = std::make_unique<Entry>(wish);
  return &entry->table;
}

}  // namespace adjoin::cpu
