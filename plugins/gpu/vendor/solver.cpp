// plugins/gpu/vendor/solver.cpp: the service aj.linalg/DEVICE: which routine of a vendor's
// libraries serves a problem, one matrix after the other or all at once, and what memory it works
// with.
#include "solver.hpp"

#include <adjoin/kit/make.hpp>
#include <climits>
#include <map>
#include <mutex>

#include "on_stream.hpp"
#include "solver_library.hpp"
#include "workspace.hpp"

namespace adjoin::vendor {
namespace {

constexpr size_t kProducts = 4 << 20;  // what a triangle's products work with
constexpr size_t kCode = 256;          // room for a code that nobody asks for, before the rest
constexpr int64_t kSmall = 32;         // Jacobi's method serves all matrices at once up to here
constexpr int64_t kMedium = 512;       // and factors of a stack are found at once

int letter_of(DLDataType d) {
  return d.code == kDLComplex ? (d.bits == 64 ? 2 : 3) : d.bits == 32 ? 0 : 1;
}
bool is_served(DLDataType d) {
  return d.lanes == 1 &&
         (d.code == kDLFloat ? d.bits == 32 || d.bits == 64 : d.code == kDLComplex && d.bits >= 64);
}

// Of square matrices the number of rows need not be said.
int64_t rows_of(const aj_linalg_problem& p) {
  const bool square =
      p.routine == AJ_LINALG_POTRF || p.routine == AJ_LINALG_HEEVD || p.routine == AJ_LINALG_GEEV;
  return square ? p.n : p.m;
}

[[noreturn]] void refuse(int status, const char* routine, bool solver) {
  const char* says = solver ? solver_says(status) : triangle_says(status);
  const SharedLibrary& file = solver ? solver_file() : triangle_file();
  kit::raise(lacks_memory(status, solver) ? AJ_OUT_OF_MEMORY : AJ_INTERNAL, kDevice, ": ",
             file.name(), ": ", routine, ": ", says ? says : "an unknown error", " (", status,
             "), found as ", file.where());
}
void must(int status, const char* routine, bool solver = true) {
  if (status) refuse(status, routine, solver);
}

// Of a device; a handle serves one call at a time.
struct Handles {
  Handle solver = nullptr, blas = nullptr;
  void *syevj = nullptr, *gesvdj = nullptr;
};
std::mutex lock;
const Handles& handles_of(const SolverLibrary& library, int32_t device) {
  static auto* all = new std::map<int32_t, Handles>;
  Handles& h = (*all)[device];
  if (!h.solver) must(library.create(&h.solver), "its handle");
  if (!h.blas) must(library.create_blas(&h.blas), "its handle", false);
  if (!h.syevj) must(library.new_syevj(&h.syevj), "parameters");
  if (!h.gesvdj) must(library.new_gesvdj(&h.gesvdj), "parameters");
  return h;
}

class Job {
 public:
  Job(const SolverLibrary& library, const aj_linalg_problem& p)
      : to_(library),
        p_(p),
        l_(letter_of(p.dtype)),
        element_(p.dtype.bits / 8),
        m_(int(rows_of(p))),
        n_(int(p.n)),
        k_(int(p.k)),
        lda_(int(p.a.ld)),
        ldb_(int(p.b.ld)),
        vectors_(p.flags & AJ_LINALG_VECTORS),
        triangle_(p.flags & AJ_LINALG_UPPER ? solver_words.upper : solver_words.lower) {}

  // Bytes, for any batch of the problem.
  uint64_t work() {
    std::lock_guard held(lock);
    h_ = handles_of(to_, p_.device.device_id);
    if (p_.routine == AJ_LINALG_GEEV) return eigen_workspace(p_, h_.solver);
    uint64_t numbers = uint64_t(std::max(0, numbers_of_one()));
    if (by_jacobi() && p_.routine == AJ_LINALG_GESDD) numbers += bases();
    return kCode + numbers * element_;
  }

  void run(void* work) {
    const OnStream there(p_.device, p_.stream);
    code_ = static_cast<int*>(work);
    work_ = static_cast<char*>(work) + kCode;
    if (all_at_once()) pointers_a_ = pointers(p_.a);
    if (all_at_once() && p_.routine == AJ_LINALG_TRSM) pointers_b_ = pointers(p_.b);
    const bool products =
        p_.routine == AJ_LINALG_TRSM || (p_.routine == AJ_LINALG_GETRF && all_at_once());
    Workspace room(p_.device, products && to_.set_blas_workspace ? kProducts : 0, p_.stream);
    {
      std::lock_guard held(lock);
      h_ = handles_of(to_, p_.device.device_id);
      if (products) {
        must(to_.set_blas_stream(h_.blas, p_.stream), "its stream", false);
        // After the stream, which has set it back.
        if (room.data())
          must(to_.set_blas_workspace(h_.blas, room.data(), kProducts), "its memory", false);
      } else {
        must(to_.set_stream(h_.solver, p_.stream), "its stream");
      }
      queue(work);
    }
    if (by_jacobi() && p_.routine == AJ_LINALG_GESDD && vectors_) deliver_bases();
  }

 private:
  bool by_jacobi() const {
    const bool dense = p_.a.ld == m_ && p_.a.stride == int64_t(m_) * n_;
    const bool values = p_.b.stride == std::min(m_, n_);
    return p_.batch > 1 && std::max(m_, n_) <= kSmall && dense && values &&
           (p_.routine == AJ_LINALG_HEEVD || p_.routine == AJ_LINALG_GESDD);
  }
  // By a list of addresses.
  bool all_at_once() const {
    switch (p_.routine) {
      case AJ_LINALG_POTRF:
        return p_.batch > 1 && p_.n <= kMedium;
      case AJ_LINALG_GETRF:
        return p_.batch > 1 && p_.m == p_.n && p_.n <= kMedium;
      case AJ_LINALG_TRSM: {
        constexpr int64_t few = 8, large = 64;  // here one after the other is faster
        return p_.batch > few || (p_.batch > 1 && side() < large);
      }
      default:
        return false;
    }
  }
  int64_t side() const { return p_.flags & AJ_LINALG_RIGHT ? p_.n : p_.m; }

  Tensor pointers(const aj_linalg_matrix& m) const {
    auto first = int64_t(reinterpret_cast<uintptr_t>(m.data) + m.offset);
    const int64_t step = m.stride * int64_t(element_);
    if (step == 0) return full({p_.batch}, first, int64, p_.device);
    return arange(first, first + step * p_.batch, step, int64, p_.device);
  }
  static Pointers list(const Tensor& t) {
    return reinterpret_cast<Pointers>(kit::MutView(t.get()).bytes());
  }

  void* a(int64_t i) const { return at(p_.a, i, element_); }
  void* b(int64_t i) const { return at(p_.b, i, element_); }
  void* values(int64_t i) const {
    return at(p_.b, i, p_.dtype.code == kDLComplex ? element_ / 2 : element_);
  }
  static void* at(const aj_linalg_matrix& m, int64_t i, uint64_t element) {
    return static_cast<char*>(m.data) + m.offset + uint64_t(i * m.stride) * element;
  }

  int mode() const { return vectors_ ? solver_words.vectors : solver_words.no_vectors; }

  int numbers_of_one() {
    int n = 0;
    void* at = a(0);
    switch (p_.routine) {
      case AJ_LINALG_POTRF:
        if (!all_at_once())
          must(to_.potrf_size[l_](h_.solver, triangle_, n_, at, lda_, &n), "potrf");
        return n;
      case AJ_LINALG_GETRF:
        if (!all_at_once()) must(to_.getrf_size[l_](h_.solver, m_, n_, at, lda_, &n), "getrf");
        return n;
      case AJ_LINALG_GEQRF:
        return must(to_.geqrf_size[l_](h_.solver, m_, n_, at, lda_, &n), "geqrf"), n;
      case AJ_LINALG_ORGQR:
        must(to_.orgqr_size[l_](h_.solver, m_, n_, k_, at, lda_, b(0), &n), "orgqr");
        return n;
      case AJ_LINALG_HEEVD:
        if (by_jacobi())
          must(to_.syevj_size[l_](h_.solver, mode(), triangle_, n_, at, lda_, values(0), &n,
                                  h_.syevj, int(p_.batch)),
               "syevj");
        else
          must(to_.syevd_size[l_](h_.solver, mode(), triangle_, n_, at, lda_, values(0), &n),
               "syevd");
        return n;
      case AJ_LINALG_GESDD:
        if (by_jacobi())
          must(to_.gesvdj_size[l_](h_.solver, mode(), m_, n_, at, lda_, values(0), at, m_, at, n_,
                                   &n, h_.gesvdj, int(p_.batch)),
               "gesvdj");
        else
          must(to_.gesvd_size[l_](h_.solver, m_, n_, &n), "gesvd");
        return n;
      default:
        return 0;
    }
  }

  void queue(void* work) {
    const int numbers = numbers_of_one();
    if (p_.routine == AJ_LINALG_GEEV) return run_eigen(p_, h_.solver, work);
    if (all_at_once()) return queue_stack();
    if (by_jacobi()) return queue_jacobi(numbers);
    for (int64_t i = 0; i < p_.batch; ++i) queue_one(i, numbers);
  }

  void queue_stack() {
    switch (p_.routine) {
      case AJ_LINALG_POTRF:
        return must(to_.potrf_batch[l_](h_.solver, triangle_, n_, list(pointers_a_), lda_, p_.info,
                                        int(p_.batch)),
                    "potrfBatched");
      case AJ_LINALG_GETRF:
        return must(to_.getrf_batch[l_](h_.blas, n_, list(pointers_a_), lda_, p_.pivots, p_.info,
                                        int(p_.batch)),
                    "getrfBatched", false);
      default:
        return must(
            to_.trsm_batch[l_](h_.blas, side_word(), triangle_, turn(), diagonal(), m_, n_, one(),
                               list(pointers_a_), lda_, list(pointers_b_), ldb_, int(p_.batch)),
            "trsmBatched", false);
    }
  }

  void queue_jacobi(int numbers) {
    if (p_.routine == AJ_LINALG_HEEVD)
      return must(to_.syevj[l_](h_.solver, mode(), triangle_, n_, a(0), lda_, values(0), work_,
                                numbers, p_.info, h_.syevj, int(p_.batch)),
                  "syevjBatched");
    left_ = work_ + uint64_t(numbers) * element_;
    right_ = left_ + uint64_t(p_.batch * p_.m * p_.m) * element_;
    must(to_.gesvdj[l_](h_.solver, mode(), m_, n_, a(0), lda_, values(0), left_, m_, right_, n_,
                        work_, numbers, p_.info, h_.gesvdj, int(p_.batch)),
         "gesvdjBatched");
  }

  void queue_one(int64_t i, int numbers) {
    int* info = p_.info ? p_.info + i : code_;
    switch (p_.routine) {
      case AJ_LINALG_POTRF:
        return must(to_.potrf[l_](h_.solver, triangle_, n_, a(i), lda_, work_, numbers, info),
                    "potrf");
      case AJ_LINALG_GETRF:
        return must(to_.getrf[l_](h_.solver, m_, n_, a(i), lda_, work_,
                                  p_.pivots + i * std::min(p_.m, p_.n), info),
                    "getrf");
      case AJ_LINALG_TRSM:
        return must(to_.trsm[l_](h_.blas, side_word(), triangle_, turn(), diagonal(), m_, n_, one(),
                                 a(i), lda_, b(i), ldb_),
                    "trsm", false);
      case AJ_LINALG_GEQRF:
        return must(to_.geqrf[l_](h_.solver, m_, n_, a(i), lda_, b(i), work_, numbers, info),
                    "geqrf");
      case AJ_LINALG_ORGQR:
        return must(to_.orgqr[l_](h_.solver, m_, n_, k_, a(i), lda_, b(i), work_, numbers, info),
                    "orgqr");
      case AJ_LINALG_HEEVD:
        return must(to_.syevd[l_](h_.solver, mode(), triangle_, n_, a(i), lda_, values(i), work_,
                                  numbers, info),
                    "syevd");
      default: {
        const signed char job = !vectors_ ? 'N' : p_.flags & AJ_LINALG_FULL ? 'A' : 'S';
        void *u = vectors_ ? at(p_.c, i, element_) : nullptr,
             *vh = vectors_ ? at(p_.d, i, element_) : nullptr;
        return must(to_.gesvd[l_](h_.solver, job, job, m_, n_, a(i), lda_, values(i), u,
                                  vectors_ ? int(p_.c.ld) : m_, vh, vectors_ ? int(p_.d.ld) : n_,
                                  work_, numbers, nullptr, info),
                    "gesvd");
      }
    }
  }

  // Jacobi's method gives all of U, and V where V^H is wanted.
  uint64_t bases() const { return uint64_t(p_.batch * (p_.m * p_.m + p_.n * p_.n)); }
  void deliver_bases() const {
    const int64_t columns = p_.flags & AJ_LINALG_FULL ? p_.m : p_.n;
    const Sizes whole = {p_.batch, p_.m, columns}, square = {p_.batch, p_.n, p_.n};
    copy_(over(at(p_.c, 0, element_), p_.device, p_.dtype, whole, {p_.c.stride, 1, p_.c.ld}),
          over(left_, p_.device, p_.dtype, whole, {p_.m * p_.m, 1, p_.m}));
    copy_(over(at(p_.d, 0, element_), p_.device, p_.dtype, square, {p_.d.stride, 1, p_.d.ld}),
          ops::conjugate(over(right_, p_.device, p_.dtype, square, {p_.n * p_.n, p_.n, 1})));
  }

  int side_word() const {
    return p_.flags & AJ_LINALG_RIGHT ? solver_words.right : solver_words.left;
  }
  int turn() const { return solver_words.plain + p_.trans; }
  int diagonal() const {
    return p_.flags & AJ_LINALG_UNIT ? solver_words.unit : solver_words.not_unit;
  }
  const void* one() const {
    static constexpr float narrow[] = {1, 0};
    static constexpr double wide[] = {1, 0};
    const void* const each[] = {narrow, wide, narrow, wide};
    return each[l_];
  }

  const SolverLibrary& to_;
  const aj_linalg_problem& p_;
  Handles h_;
  int l_;
  uint64_t element_;
  int m_, n_, k_, lda_, ldb_;
  bool vectors_;
  int triangle_;
  int* code_ = nullptr;
  char *work_ = nullptr, *left_ = nullptr, *right_ = nullptr;
  Tensor pointers_a_, pointers_b_;
};

int32_t score(void*, const aj_linalg_problem* p) {
  if (!is_served(p->dtype) || p->batch > INT_MAX) return 0;
  for (int64_t n : {p->m, p->n, p->k, p->a.ld, p->b.ld, p->c.ld, p->d.ld})
    if (n > INT_MAX) return 0;
  if (std::min(rows_of(*p), p->n) <= 0 || !SolverLibrary::find()) return 0;
  switch (p->routine) {
    case AJ_LINALG_POTRF:
    case AJ_LINALG_GETRF:
    case AJ_LINALG_TRSM:
    case AJ_LINALG_GEQRF:
    case AJ_LINALG_ORGQR:
    case AJ_LINALG_HEEVD:
      return 100;
    case AJ_LINALG_GESDD:
      return p->m >= p->n ? 100 : 0;  // the libraries count no fewer rows than columns
    case AJ_LINALG_GEEV:
      return scores_eigen(*p);
    default:
      return 0;
  }
}

template <class F>
aj_status* served(const aj_linalg_problem* p, F&& f) {
  if (aj_status* s = ready()) return s;
  On here(p->device.device_id);
  if (here.failed()) return status_of(here.result(), "linalg");
  return kit::guard("", [&] {
    const SolverLibrary* library = SolverLibrary::find();
    if (!library)
      kit::raise(AJ_UNAVAILABLE, kDevice, ": ", solver_file().where(), "; ",
                 triangle_file().where(), "; ", solver_words.remedy);
    f(Job(*library, *p));
  });
}

uint64_t workspace(void*, const aj_linalg_problem* p) {
  uint64_t bytes = kCode;
  // What is wrong is told by run.
  if (aj_status* s = served(p, [&](Job job) { bytes = job.work(); })) kit::core().status_free(s);
  return bytes;
}
aj_status* run(void*, const aj_linalg_problem* p, void* work) {
  if (p->batch == 0) return nullptr;
  return served(p, [&](Job job) { job.run(work); });
}

}  // namespace

aj_linalg linalg_offer() {
  return {.struct_size = sizeof(aj_linalg),
          .minor = 0,
          .name = kit::str(solver_words.name),
          .self = nullptr,
          .score = score,
          .workspace = workspace,
          .run = run};
}

}  // namespace adjoin::vendor
