// plugins/ops_linalg/cpu/lapack.cpp: the offer of the BLAS provider's LAPACK, where it has one.
#include <atomic>
#include <mutex>

#include "offers.hpp"

namespace adjoin::cpu {
namespace {

using namespace kit;

constexpr int kRoutines = 9;  // AJ_LINALG_... and 0
// By aj_linalg_problem.routine: real, complex.
constexpr std::string_view kNames[kRoutines][2] = {
    {"", ""},           {"potrf", "potrf"}, {"getrf", "getrf"},
    {"trsm", "trsm"},   {"geqrf", "geqrf"}, {"orgqr", "ungqr"},
    {"syevd", "heevd"}, {"gesdd", "gesdd"}, {"geev", "geev"},
};

// A library's functions, looked up once for every revision of the services.
struct Library {
  uint64_t revision;
  void* routine[kRoutines][4] = {};

  explicit Library(uint64_t revision) : revision(revision) {
    constexpr aj_str slot = {"aj.blas/cpu", 11};
    for (uint32_t i = 0; i < services().count(slot); ++i) {
      aj_service_def def{};
      def.struct_size = sizeof def;
      if (aj_status* s = services().at(slot, i, &def)) {
        core().status_free(s);
        continue;
      }
      if (i && def.priority < 0) return;  // serves who chooses it by name
      auto* blas = static_cast<const aj_blas*>(def.table);
      if (AJ_HAS_FN(blas, aj_blas, lapack) && has_all(*blas)) return;
    }
  }
  bool has_all(const aj_blas& blas) {
    for (int r = 1; r < kRoutines; ++r)
      for (int letter = 0; letter < 4; ++letter) {
        const std::string name =
            std::string(1, "sdcz"[letter]) + std::string(kNames[r][letter / 2]);
        routine[r][letter] = blas.lapack(blas.self, str(name));
        if (!routine[r][letter]) return false;
      }
    return true;
  }
  static const Library& now() {
    static std::atomic<const Library*> kept{nullptr};
    const Library* found = kept.load(std::memory_order_acquire);
    const uint64_t revision = services_revision();
    if (found && found->revision == revision) return *found;
    static std::mutex mutex;
    std::lock_guard held(mutex);
    found = kept.load(std::memory_order_acquire);
    if (!found || found->revision != revision)
      kept.store(found = new Library(revision), std::memory_order_release);  // the old one stays
    return *found;
  }
};

int letter_of(DLDataType d) {
  return d.code == kDLComplex ? (d.bits == 64 ? 2 : 3) : d.bits == 32 ? 0 : 1;
}

// Below these sizes plain loops are as fast, and no library is opened for them. A product of all
// sizes, as work is.
int64_t least_work(int32_t routine) {
  switch (routine) {
    case AJ_LINALG_HEEVD:
      return 8 * 8 * 8;
    case AJ_LINALG_GESDD:
      return 12 * 12 * 12;
    case AJ_LINALG_GEEV:
      return 4 * 4 * 4;
    default:
      return 24 * 24 * 24;
  }
}

int32_t lapack_score(void*, const aj_linalg_problem* p) {
  if (p->routine <= 0 || p->routine >= kRoutines) return 0;
  const int64_t m = p->m ? p->m : 1, n = p->n, most = std::max(m, n);
  const bool left = !(p->flags & AJ_LINALG_RIGHT);
  const int64_t work =
      p->routine == AJ_LINALG_POTRF || p->routine == AJ_LINALG_HEEVD || p->routine == AJ_LINALG_GEEV
          ? n * n * n
      : p->routine == AJ_LINALG_TRSM ? m * n * (left ? m : n)
                                     : m * n * std::min(m, n);
  if (work < least_work(p->routine) || most > INT32_MAX / 8 || std::min(m, n) == 0) return 0;
  return Library::now().routine[p->routine][letter_of(p->dtype)] ? 100 : 0;
}

template <class... A>
void call(void* f, A... a) {
  reinterpret_cast<void (*)(A...)>(f)(a...);
}
constexpr size_t kOne = 1;  // the length of a letter

// One problem: T its numbers, R their real ones. With `ask` it only says what memory it wants.
template <class T>
class Problem {
 public:
  using R = Real<T>;
  static constexpr bool complex = is_complex<T>;
  explicit Problem(const aj_linalg_problem& p)
      : p_(p),
        f_(Library::now().routine[p.routine][letter_of(p.dtype)]),
        m_(int32_t(p.m)),
        n_(int32_t(p.n)),
        k_(int32_t(p.k)),
        least_(std::min(m_, n_)),
        lda_(int32_t(p.a.ld)),
        ldb_(int32_t(p.b.ld)),
        vectors_(p.flags & AJ_LINALG_VECTORS) {
    want_memory();
  }
  uint64_t bytes() const {
    return uint64_t(numbers_ + more_) * sizeof(T) + uint64_t(reals_) * sizeof(R) +
           uint64_t(wholes_) * sizeof(int32_t) + 64;
  }
  void run(void* memory) {
    work_ = static_cast<T*>(memory);
    rwork_ = reinterpret_cast<R*>(work_ + numbers_ + more_);
    iwork_ = reinterpret_cast<int32_t*>(rwork_ + reals_);
    for (int64_t i = 0; i < p_.batch; ++i) one(i);
  }

 private:
  void want_memory() {
    T size(0);
    R real_size(0);
    int32_t whole_size = 0, ask = -1;
    const int64_t most = std::max(m_, n_), least = least_;
    rwork_ = &real_size, iwork_ = &whole_size;  // written where a routine only tells sizes, too
    switch (p_.routine) {
      case AJ_LINALG_GEQRF:
      case AJ_LINALG_ORGQR:
        householder(nullptr, nullptr, &size, &ask);
        break;
      case AJ_LINALG_HEEVD:
        eigh(nullptr, nullptr, &size, &ask, &real_size, &ask, &whole_size, &ask);
        reals_ = complex ? int32_t(real_size) : 0, wholes_ = whole_size;
        break;
      case AJ_LINALG_GESDD:
        reals_ = !complex   ? 0
                 : vectors_ ? int32_t(least * std::max(5 * least + 7, 2 * most + 2 * least + 1))
                            : int32_t(7 * least);
        wholes_ = int32_t(8 * least);
        svd(nullptr, nullptr, nullptr, nullptr, &size, &ask);
        break;
      case AJ_LINALG_GEEV:
        reals_ = 2 * n_, more_ = complex ? 0 : int64_t(n_) * n_;
        eig(nullptr, nullptr, nullptr, &size, &ask);
        break;
      default:
        return;
    }
    numbers_ = int32_t(factor::real(size)) + 8;
  }

  void one(int64_t i) {
    T* a = matrix_at<T>(p_.a, i, m_, n_).at;
    T* b = matrix_at<T>(p_.b, i, m_, n_).at;
    R* values = matrix_at<R>(p_.b, i, m_, 1).at;
    const bool upper = p_.flags & AJ_LINALG_UPPER;
    const char *triangle = upper ? "U" : "L", *unit = p_.flags & AJ_LINALG_UNIT ? "U" : "N",
               *side = p_.flags & AJ_LINALG_RIGHT ? "R" : "L",
               *trans = p_.trans == 0   ? "N"
                        : p_.trans == 1 ? "T"
                                        : "C";
    switch (p_.routine) {
      case AJ_LINALG_POTRF:
        return call(f_, triangle, &n_, a, &lda_, p_.info + i, kOne);
      case AJ_LINALG_GETRF:
        return call(f_, &m_, &n_, a, &lda_, p_.pivots + i * least_, p_.info + i);
      case AJ_LINALG_TRSM: {
        const T alpha(1);
        return call(f_, side, triangle, trans, unit, &m_, &n_, &alpha, a, &lda_, b, &ldb_, kOne,
                    kOne, kOne, kOne);
      }
      case AJ_LINALG_GEQRF:
      case AJ_LINALG_ORGQR:
        return householder(a, b, work_, &numbers_);
      case AJ_LINALG_HEEVD:
        info_ = 0;
        if (finite_triangle(a, upper)) {
          eigh(a, values, work_, &numbers_, rwork_, &reals_, iwork_, &wholes_);
        } else {
          constexpr R nan = std::numeric_limits<R>::quiet_NaN();
          std::fill_n(values, n_, nan);
          factor::fill(factor::Matrix<T>{a, n_, n_, lda_}, T(nan));
        }
        break;
      case AJ_LINALG_GESDD: {
        T* u = vectors_ ? matrix_at<T>(p_.c, i, m_, m_).at : nullptr;
        T* vh = vectors_ ? matrix_at<T>(p_.d, i, n_, n_).at : nullptr;
        svd(a, values, u, vh, work_, &numbers_);
        break;
      }
      default: {
        using C = factor::ComplexOf<T>;
        C* v = vectors_ ? matrix_at<C>(p_.c, i, n_, n_).at : nullptr;
        eig(a, matrix_at<C>(p_.b, i, n_, 1).at, v, work_, &numbers_);
      }
    }
    p_.info[i] = info_;
  }

  bool finite_triangle(const T* a, bool upper) const {
    for (int64_t j = 0; j < n_; ++j)
      for (int64_t i = upper ? 0 : j; i < (upper ? j + 1 : n_); ++i)
        if (!factor::finite(a[i + j * lda_])) return false;
    return true;
  }

  void householder(T* a, T* tau, T* work, const int32_t* lwork) {
    int32_t info = 0;
    if (p_.routine == AJ_LINALG_GEQRF)
      call(f_, &m_, &n_, a, &lda_, tau, work, lwork, &info);
    else
      call(f_, &m_, &n_, &k_, a, &lda_, tau, work, lwork, &info);
  }
  void eigh(T* a, R* values, T* work, const int32_t* lwork, R* rwork, const int32_t* lrwork,
            int32_t* iwork, const int32_t* liwork) {
    const char *job = vectors_ ? "V" : "N", *triangle = p_.flags & AJ_LINALG_UPPER ? "U" : "L";
    if constexpr (complex)
      call(f_, job, triangle, &n_, a, &lda_, values, work, lwork, rwork, lrwork, iwork, liwork,
           &info_, kOne, kOne);
    else
      call(f_, job, triangle, &n_, a, &lda_, values, work, lwork, iwork, liwork, &info_, kOne,
           kOne);
  }
  void svd(T* a, R* values, T* u, T* vh, T* work, const int32_t* lwork) {
    const char* job = !vectors_ ? "N" : p_.flags & AJ_LINALG_FULL ? "A" : "S";
    const int32_t ldu = std::max<int32_t>(1, int32_t(p_.c.ld)),
                  ldv = std::max<int32_t>(1, int32_t(p_.d.ld));
    if constexpr (complex)
      call(f_, job, &m_, &n_, a, &lda_, values, u, &ldu, vh, &ldv, work, lwork, rwork_, iwork_,
           &info_, kOne);
    else
      call(f_, job, &m_, &n_, a, &lda_, values, u, &ldu, vh, &ldv, work, lwork, iwork_, &info_,
           kOne);
  }
  void eig(T* a, factor::ComplexOf<T>* values, factor::ComplexOf<T>* v, T* work,
           const int32_t* lwork) {
    const char *none = "N", *job = vectors_ ? "V" : "N";
    const int32_t one = 1, ldv = std::max<int32_t>(1, n_);
    T* const nothing = nullptr;
    if constexpr (complex) {
      call(f_, none, job, &n_, a, &lda_, values, nothing, &one, v, &ldv, work, lwork, rwork_,
           &info_, kOne, kOne);
    } else {
      R *re = rwork_, *im = rwork_ + n_;
      T* packed = work + numbers_;  // pairs of columns hold a vector's parts
      call(f_, none, job, &n_, a, &lda_, re, im, nothing, &one, packed, &ldv, work, lwork, &info_,
           kOne, kOne);
      if (!values) return;
      for (int64_t j = 0; j < n_; ++j) {
        values[j] = {re[j], im[j]};
        if (!v) continue;
        const bool first = im[j] > 0, second = im[j] < 0;
        const T *x = packed + (second ? j - 1 : j) * ldv, *y = x + ldv;
        for (int64_t i = 0; i < n_; ++i)
          v[i + j * ldv] = {x[i], first ? y[i] : second ? -y[i] : R(0)};
      }
    }
  }

  const aj_linalg_problem& p_;
  void* f_;
  int32_t m_, n_, k_, least_, lda_, ldb_;
  bool vectors_;
  int32_t numbers_ = 0, reals_ = 0, wholes_ = 0, info_ = 0;
  int64_t more_ = 0;
  T* work_ = nullptr;
  R* rwork_ = nullptr;
  int32_t* iwork_ = nullptr;
};

uint64_t lapack_workspace(void*, const aj_linalg_problem* p) {
  uint64_t bytes = 0;
  visit<floating_complex>(p->dtype, [&]<class T>() { bytes = Problem<T>(*p).bytes(); });
  return bytes;
}
aj_status* lapack_run(void*, const aj_linalg_problem* p, void* work) {
  return guard("linalg", [&] {
    visit<floating_complex>(p->dtype, [&]<class T>() { Problem<T>(*p).run(work); });
  });
}

}  // namespace

const aj_linalg lapack_linalg = {.struct_size = sizeof(aj_linalg),
                                 .minor = AJ_ABI_MINOR,
                                 .name = AJ_STR_LIT("lapack"),
                                 .self = nullptr,
                                 .score = lapack_score,
                                 .workspace = lapack_workspace,
                                 .run = lapack_run};

}  // namespace adjoin::cpu
