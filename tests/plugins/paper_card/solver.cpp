// tests/plugins/paper_card/solver.cpp: of cuSOLVER and cuBLAS, and of hipSOLVER and hipBLAS, what
// factors matrices, over the loops that the reference backend has. It refuses what the vendors
// forbid: sizes below 1, leading dimensions that are too small, memory that is the host's, too
// short or not aligned, less work memory than was asked for, another device's stream; and it writes
// into the work memory that it is given.
#include <adjoin/kit/spectral.hpp>
#include <cstring>
#include <vector>

#include "card.hpp"

using namespace paper;

namespace {

namespace factor = adjoin::kit::factor;
using factor::Matrix;

// What a vendor calls things.
struct Cuda {
  enum { kUpper = 1, kLower = 0, kRight = 1, kLeft = 0, kPlain = 0, kUnit = 1, kVectors = 1 };
  enum { kInvalid = 3, kFailed = 6, kInvalidProduct = 7 };
};
struct Hip {
  enum {
    kUpper = 121,
    kLower = 122,
    kRight = 142,
    kLeft = 141,
    kPlain = 111,
    kUnit = 132,
    kVectors = 202
  };
  enum { kInvalid = 3, kFailed = 5, kInvalidProduct = 3 };
};
constexpr int kGood = 0;

struct Solver {
  uint64_t magic = 0x501e;
  Stream* stream = nullptr;
  void* room = nullptr;
  size_t bytes = 0;
};

bool good(const Solver* s) { return s && s->magic == 0x501e; }

template <class T>
using Real = adjoin::kit::Real<T>;

// `n` numbers of T of the card's, aligned to a number.
template <class T>
bool holds(const void* p, int64_t n) {
  return p && reinterpret_cast<uintptr_t>(p) % sizeof(T) == 0 && is_known(p) &&
         check_range(p, size_t(n) * sizeof(T)) == kSuccess;
}
template <class T>
bool holds_matrix(const void* p, int rows, int columns, int ld) {
  return rows > 0 && columns > 0 && ld >= rows && holds<T>(p, int64_t(ld) * (columns - 1) + rows);
}

int least_work(int64_t n) { return int(17 + 2 * n); }

// Queues what f(matrix of work) does; the work memory is the library's from then on.
template <class V, class T, class F>
int queue(Solver* s, void* work, int numbers, int wanted, F f) {
  if (numbers < wanted || !holds<T>(work, numbers)) return V::kInvalid;
  ++counts.solutions;
  int result = submit(s->stream, [=] {
    if (idle_now) return;
    std::memset(work, 0x5a, size_t(numbers) * sizeof(T));
    f();
  });
  return result ? int(V::kFailed) : kGood;
}

template <class V, class T>
struct Routines {
  using R = Real<T>;
  static bool side_known(int uplo) { return uplo == V::kUpper || uplo == V::kLower; }
  static Matrix<T> matrix(void* p, int rows, int columns, int ld) {
    return {static_cast<T*>(p), rows, columns, ld};
  }

  static int potrf(Solver* s, int uplo, int n, void* a, int ld, void* work, int numbers,
                   int* info) {
    if (!good(s) || !side_known(uplo) || !holds_matrix<T>(a, n, n, ld) || !holds<int>(info, 1))
      return V::kInvalid;
    return queue<V, T>(s, work, numbers, least_work(n),
                       [=] { *info = factor::cholesky(matrix(a, n, n, ld), uplo == V::kUpper); });
  }
  // The addresses are read when it runs.
  static int potrf_batch(Solver* s, int uplo, int n, void* const* a, int ld, int* info, int batch) {
    if (!good(s) || !side_known(uplo) || n < 1 || ld < n || batch < 1 || !holds<void*>(a, batch) ||
        !holds<int>(info, batch))
      return V::kInvalid;
    ++counts.solutions;
    int result = submit(s->stream, [=] {
      for (int i = 0; i < batch && !idle_now; ++i) {
        if (!holds_matrix<T>(a[i], n, n, ld)) return lose_device(kIllegalAddress, current_device);
        info[i] = factor::cholesky(matrix(a[i], n, n, ld), uplo == V::kUpper);
      }
    });
    return result ? int(V::kFailed) : kGood;
  }
  static int getrf(Solver* s, int m, int n, void* a, int ld, void* work, int* pivots, int* info) {
    if (!good(s) || !holds_matrix<T>(a, m, n, ld) || !holds<int>(info, 1) ||
        !holds<int>(pivots, std::min(m, n)))
      return V::kInvalid;
    const int wanted = least_work(n);
    return queue<V, T>(s, work, wanted, wanted,
                       [=] { *info = factor::lu(matrix(a, m, n, ld), pivots); });
  }
  static int getrf_batch(Solver* s, int n, void* const* a, int ld, int* pivots, int* info,
                         int batch) {
    if (!good(s) || n < 1 || ld < n || batch < 1 || !holds<void*>(a, batch) ||
        !holds<int>(pivots, int64_t(n) * batch) || !holds<int>(info, batch))
      return V::kInvalidProduct;
    ++counts.solutions;
    int result = submit(s->stream, [=] {
      for (int i = 0; i < batch && !idle_now; ++i) {
        if (!holds_matrix<T>(a[i], n, n, ld)) return lose_device(kIllegalAddress, current_device);
        info[i] = factor::lu(matrix(a[i], n, n, ld), pivots + int64_t(i) * n);
      }
    });
    return result ? int(V::kFailed) : kGood;
  }

  static bool triangle_known(int side, int uplo, int turn, int unit) {
    return (side == V::kLeft || side == V::kRight) && side_known(uplo) && turn >= V::kPlain &&
           turn <= V::kPlain + 2 && (unit == V::kUnit || unit == V::kUnit - 1);
  }
  static void solve_one(int side, int uplo, int turn, int unit, int m, int n, T alpha, void* a,
                        int lda, void* b, int ldb) {
    const int order = side == V::kLeft ? m : n;
    Matrix<T> x = matrix(b, m, n, ldb);
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) x(i, j) = alpha * x(i, j);
    factor::solve_triangular(
        matrix(a, order, order, lda), x,
        {side == V::kLeft, uplo == V::kUpper, unit == V::kUnit, turn - V::kPlain});
  }
  static T number(const void* alpha) {
    T x;
    std::memcpy(&x, alpha, sizeof x);
    return x;
  }
  static void soil(const Solver& s) {
    if (s.room) std::memset(s.room, 0x5a, s.bytes);
  }
  static int trsm(Solver* s, int side, int uplo, int turn, int unit, int m, int n,
                  const void* alpha, const void* a, int lda, void* b, int ldb) {
    const int order = side == V::kLeft ? m : n;
    if (!good(s) || !triangle_known(side, uplo, turn, unit) ||
        !holds_matrix<T>(a, order, order, lda) || !holds_matrix<T>(b, m, n, ldb))
      return V::kInvalidProduct;
    ++counts.solutions;
    const Solver now = *s;
    int result = submit(s->stream, [=, by = number(alpha)] {
      if (idle_now) return;
      soil(now);
      solve_one(side, uplo, turn, unit, m, n, by, const_cast<void*>(a), lda, b, ldb);
    });
    return result ? int(V::kFailed) : kGood;
  }
  static int trsm_batch(Solver* s, int side, int uplo, int turn, int unit, int m, int n,
                        const void* alpha, void* const* a, int lda, void* const* b, int ldb,
                        int batch) {
    const int order = side == V::kLeft ? m : n;
    if (!good(s) || !triangle_known(side, uplo, turn, unit) || m < 1 || n < 1 || lda < order ||
        ldb < m || batch < 1 || !holds<void*>(a, batch) || !holds<void*>(b, batch))
      return V::kInvalidProduct;
    ++counts.solutions;
    const Solver now = *s;
    int result = submit(s->stream, [=, by = number(alpha)] {
      if (idle_now) return;
      soil(now);
      for (int i = 0; i < batch; ++i) {
        if (!holds_matrix<T>(a[i], order, order, lda) || !holds_matrix<T>(b[i], m, n, ldb))
          return lose_device(kIllegalAddress, current_device);
        solve_one(side, uplo, turn, unit, m, n, by, a[i], lda, b[i], ldb);
      }
    });
    return result ? int(V::kFailed) : kGood;
  }

  static int geqrf(Solver* s, int m, int n, void* a, int ld, void* tau, void* work, int numbers,
                   int* info) {
    if (!good(s) || !holds_matrix<T>(a, m, n, ld) || !holds<T>(tau, std::min(m, n)) ||
        !holds<int>(info, 1))
      return V::kInvalid;
    return queue<V, T>(s, work, numbers, least_work(n), [=] {
      factor::qr(matrix(a, m, n, ld), static_cast<T*>(tau));
      *info = 0;
    });
  }
  static int orgqr(Solver* s, int m, int n, int k, void* a, int ld, const void* tau, void* work,
                   int numbers, int* info) {
    if (!good(s) || m < n || n < k || k < 1 || !holds_matrix<T>(a, m, n, ld) || !holds<T>(tau, k) ||
        !holds<int>(info, 1))
      return V::kInvalid;
    return queue<V, T>(s, work, numbers, least_work(n), [=] {
      factor::form_q(matrix(a, m, n, ld), static_cast<const T*>(tau), k);
      *info = 0;
    });
  }

  static bool mode_known(int mode) { return mode == V::kVectors || mode == V::kVectors - 1; }
  static void eigen(int mode, int uplo, int n, T* a, int ld, R* values, int* info) {
    std::vector<T> kept(a, a + int64_t(ld) * (n - 1) + n);
    factor::eigh(matrix(a, n, n, ld), uplo == V::kUpper, values);
    if (mode != V::kVectors) std::memset(a, 0x5a, sizeof(T));  // used up
    *info = 0;
  }
  static int syevd(Solver* s, int mode, int uplo, int n, void* a, int ld, void* values, void* work,
                   int numbers, int* info) {
    if (!good(s) || !mode_known(mode) || !side_known(uplo) || !holds_matrix<T>(a, n, n, ld) ||
        !holds<R>(values, n) || !holds<int>(info, 1))
      return V::kInvalid;
    return queue<V, T>(s, work, numbers, least_work(n), [=] {
      eigen(mode, uplo, n, static_cast<T*>(a), ld, static_cast<R*>(values), info);
    });
  }
  static int syevj(Solver* s, int mode, int uplo, int n, void* a, int ld, void* values, void* work,
                   int numbers, int* info, void* parameters, int batch) {
    if (!good(s) || !parameters || !mode_known(mode) || !side_known(uplo) || batch < 1 ||
        !holds_matrix<T>(a, n, n, ld) || !holds<T>(a, int64_t(ld) * n * batch) ||
        !holds<R>(values, int64_t(n) * batch) || !holds<int>(info, batch))
      return V::kInvalid;
    return queue<V, T>(s, work, numbers, least_work(int64_t(n) * batch), [=] {
      for (int i = 0; i < batch; ++i)
        eigen(mode, uplo, n, static_cast<T*>(a) + int64_t(ld) * n * i, ld,
              static_cast<R*>(values) + int64_t(n) * i, info + i);
    });
  }

  // U with `columns`, V^H with all its rows that there are.
  static int gesvd(Solver* s, signed char job_u, signed char job_v, int m, int n, void* a, int lda,
                   void* values, void* u, int ldu, void* vh, int ldv, void* work, int numbers,
                   void*, int* info) {
    const bool vectors = job_u != 'N';
    const int columns = job_u == 'A' ? m : n;
    if (!good(s) || m < n || job_u != job_v || (job_u != 'A' && job_u != 'S' && vectors) ||
        !holds_matrix<T>(a, m, n, lda) || !holds<R>(values, n) || !holds<int>(info, 1) ||
        (vectors && (!holds_matrix<T>(u, m, columns, ldu) || !holds_matrix<T>(vh, n, n, ldv))))
      return V::kInvalid;
    return queue<V, T>(s, work, numbers, least_work(m + n), [=] {
      Matrix<T> left = {nullptr, 0, 0, 0}, right = left;
      if (vectors) left = matrix(u, m, columns, ldu), right = matrix(vh, n, n, ldv);
      *info = !factor::svd(matrix(a, m, n, lda), left, right, static_cast<R*>(values));
      std::memset(a, 0x5a, sizeof(T));
    });
  }
  static int gesvdj(Solver* s, int mode, int m, int n, void* a, int lda, void* values, void* u,
                    int ldu, void* v, int ldv, void* work, int numbers, int* info, void* parameters,
                    int batch) {
    constexpr int most = 32;
    if (!good(s) || !parameters || !mode_known(mode) || m > most || n > most || batch < 1 ||
        !holds_matrix<T>(a, m, n, lda) || !holds<T>(a, int64_t(lda) * n * batch) ||
        !holds<R>(values, int64_t(std::min(m, n)) * batch) || ldu < m || ldv < n ||
        !holds<T>(u, int64_t(ldu) * m * batch) || !holds<T>(v, int64_t(ldv) * n * batch) ||
        !holds<int>(info, batch))
      return V::kInvalid;
    return queue<V, T>(s, work, numbers, least_work(int64_t(m + n) * batch), [=] {
      for (int i = 0; i < batch; ++i) {
        std::vector<T> vh(size_t(n) * n);
        Matrix<T> left = {nullptr, 0, 0, 0}, right = left;
        T* to = static_cast<T*>(v) + int64_t(ldv) * n * i;
        if (mode == V::kVectors) {
          left = matrix(static_cast<T*>(u) + int64_t(ldu) * m * i, m, m, ldu);
          right = matrix(vh.data(), n, n, n);
        }
        info[i] = !factor::svd(matrix(static_cast<T*>(a) + int64_t(lda) * n * i, m, n, lda), left,
                               right, static_cast<R*>(values) + int64_t(std::min(m, n)) * i);
        for (int j = 0; j < n && right.at; ++j)
          for (int k = 0; k < n; ++k) to[k + j * ldv] = factor::conj(right(j, k));
      }
    });
  }
};

template <class V, class T>
int matrix_size(Solver* s, int m, int n, int ld, int64_t order, int* out) {
  if (!good(s) || m < 1 || n < 1 || ld < m) return V::kInvalid;
  return *out = least_work(order), kGood;
}

}  // namespace

#define SOLVER_(V, P, L, O, H, T)                                                                  \
  int P##L##potrf_bufferSize(Solver* s, int, int n, void*, int ld, int* out) {                     \
    return matrix_size<V, T>(s, n, n, ld, n, out);                                                 \
  }                                                                                                \
  int P##L##potrf(Solver* s, int u, int n, void* a, int ld, void* w, int c, int* i) {              \
    return Routines<V, T>::potrf(s, u, n, a, ld, w, c, i);                                         \
  }                                                                                                \
  int P##L##potrfBatched(Solver* s, int u, int n, void* const* a, int ld, int* i, int b) {         \
    return Routines<V, T>::potrf_batch(s, u, n, a, ld, i, b);                                      \
  }                                                                                                \
  int P##L##getrf_bufferSize(Solver* s, int m, int n, void*, int ld, int* out) {                   \
    return matrix_size<V, T>(s, m, n, ld, n, out);                                                 \
  }                                                                                                \
  int P##L##getrf(Solver* s, int m, int n, void* a, int ld, void* w, int* p, int* i) {             \
    return Routines<V, T>::getrf(s, m, n, a, ld, w, p, i);                                         \
  }                                                                                                \
  int P##L##geqrf_bufferSize(Solver* s, int m, int n, void*, int ld, int* out) {                   \
    return matrix_size<V, T>(s, m, n, ld, n, out);                                                 \
  }                                                                                                \
  int P##L##geqrf(Solver* s, int m, int n, void* a, int ld, void* t, void* w, int c, int* i) {     \
    return Routines<V, T>::geqrf(s, m, n, a, ld, t, w, c, i);                                      \
  }                                                                                                \
  int P##L##O##gqr_bufferSize(Solver* s, int m, int n, int, const void*, int ld, const void*,      \
                              int* out) {                                                          \
    return matrix_size<V, T>(s, m, n, ld, n, out);                                                 \
  }                                                                                                \
  int P##L##O##gqr(Solver* s, int m, int n, int k, void* a, int ld, const void* t, void* w, int c, \
                   int* i) {                                                                       \
    return Routines<V, T>::orgqr(s, m, n, k, a, ld, t, w, c, i);                                   \
  }                                                                                                \
  int P##L##H##evd_bufferSize(Solver* s, int, int, int n, const void*, int ld, const void*,        \
                              int* out) {                                                          \
    return matrix_size<V, T>(s, n, n, ld, n, out);                                                 \
  }                                                                                                \
  int P##L##H##evd(Solver* s, int j, int u, int n, void* a, int ld, void* v, void* w, int c,       \
                   int* i) {                                                                       \
    return Routines<V, T>::syevd(s, j, u, n, a, ld, v, w, c, i);                                   \
  }                                                                                                \
  int P##L##H##evjBatched_bufferSize(Solver* s, int, int, int n, const void*, int ld, const void*, \
                                     int* out, void*, int b) {                                     \
    return matrix_size<V, T>(s, n, n, ld, int64_t(n) * b, out);                                    \
  }                                                                                                \
  int P##L##H##evjBatched(Solver* s, int j, int u, int n, void* a, int ld, void* v, void* w,       \
                          int c, int* i, void* p, int b) {                                         \
    return Routines<V, T>::syevj(s, j, u, n, a, ld, v, w, c, i, p, b);                             \
  }                                                                                                \
  int P##L##gesvd_bufferSize(Solver* s, int m, int n, int* out) {                                  \
    return m < n ? int(V::kInvalid) : matrix_size<V, T>(s, m, n, m, m + n, out);                   \
  }                                                                                                \
  int P##L##gesvd(Solver* s, signed char ju, signed char jv, int m, int n, void* a, int lda,       \
                  void* v, void* u, int ldu, void* vh, int ldv, void* w, int c, void* r, int* i) { \
    return Routines<V, T>::gesvd(s, ju, jv, m, n, a, lda, v, u, ldu, vh, ldv, w, c, r, i);         \
  }                                                                                                \
  int P##L##gesvdjBatched_bufferSize(Solver* s, int, int m, int n, const void*, int ld,            \
                                     const void*, const void*, int, const void*, int, int* out,    \
                                     void*, int b) {                                               \
    return matrix_size<V, T>(s, m, n, ld, int64_t(m + n) * b, out);                                \
  }                                                                                                \
  int P##L##gesvdjBatched(Solver* s, int j, int m, int n, void* a, int lda, void* v, void* u,      \
                          int ldu, void* vh, int ldv, void* w, int c, int* i, void* p, int b) {    \
    return Routines<V, T>::gesvdj(s, j, m, n, a, lda, v, u, ldu, vh, ldv, w, c, i, p, b);          \
  }

#define TRIANGLES_(V, P, E, L, T)                                                           \
  int P##L##trsm##E(Solver* s, int d, int u, int t, int i, int m, int n, const void* x,     \
                    const void* a, int lda, void* b, int ldb) {                             \
    return Routines<V, T>::trsm(s, d, u, t, i, m, n, x, a, lda, b, ldb);                    \
  }                                                                                         \
  int P##L##trsmBatched(Solver* s, int d, int u, int t, int i, int m, int n, const void* x, \
                        void* const* a, int lda, void* const* b, int ldb, int c) {          \
    return Routines<V, T>::trsm_batch(s, d, u, t, i, m, n, x, a, lda, b, ldb, c);           \
  }                                                                                         \
  int P##L##getrfBatched(Solver* s, int n, void* const* a, int ld, int* p, int* i, int c) { \
    return Routines<V, T>::getrf_batch(s, n, a, ld, p, i, c);                               \
  }

#define HANDLES_(P, Q, E)                                                                        \
  int P##Create(Solver** out) { return *out = new Solver, kGood; }                               \
  int P##SetStream(Solver* s, Stream* stream) { return s->stream = stream, kGood; }              \
  int P##CreateSyevjInfo(void** out) { return *out = new char, kGood; }                          \
  int P##CreateGesvdjInfo(void** out) { return *out = new char, kGood; }                         \
  int Q##Create##E(Solver** out) { return *out = new Solver, kGood; }                            \
  int Q##SetStream##E(Solver* s, Stream* stream) {                                               \
    return s->stream = stream, s->room = nullptr, kGood;                                         \
  }                                                                                              \
  int Q##SetWorkspace##E(Solver* s, void* room, size_t bytes) {                                  \
    if (!holds<char>(room, int64_t(bytes)) || reinterpret_cast<uintptr_t>(room) % 256) return 7; \
    return s->room = room, s->bytes = bytes, kGood;                                              \
  }

using Complex32 = factor::ComplexOf<float>;
using Complex64 = factor::ComplexOf<double>;

namespace {

// Complex numbers alone; it waits, and works on the host as well.
template <class T>
int eigenvalues(Solver* s, int mode, int64_t n, void* a, int64_t lda, void* values, void* v,
                int64_t ldv, void* work, size_t bytes, void* host, size_t host_bytes, int* info) {
  const bool vectors = mode == Cuda::kVectors;
  if (!good(s) || !holds_matrix<T>(a, int(n), int(n), int(lda)) || !holds<T>(values, n) ||
      (vectors && !holds_matrix<T>(v, int(n), int(n), int(ldv))) || !holds<int>(info, 1) ||
      bytes < size_t(64 * n) || !holds<char>(work, int64_t(bytes)) || !host || host_bytes < 32)
    return Cuda::kInvalid;
  ++counts.solutions;
  int result = submit(s->stream, [=] {
    if (idle_now) return;
    std::memset(work, 0x5a, bytes), std::memset(host, 0x5a, host_bytes);
    Matrix<T> to = {nullptr, 0, 0, 0};
    if (vectors) to = {static_cast<T*>(v), n, n, ldv};
    *info = !factor::eig(Matrix<T>{static_cast<T*>(a), n, n, lda}, to, static_cast<T*>(values));
  });
  return result ? int(Cuda::kFailed) : kGood;
}
constexpr int kC32 = 4, kC64 = 5;  // cudaDataType_t

}  // namespace

extern "C" {
HANDLES_(cusolverDn, cublas, _v2)
SOLVER_(Cuda, cusolverDn, S, or, sy, float)
SOLVER_(Cuda, cusolverDn, D, or, sy, double)
SOLVER_(Cuda, cusolverDn, C, un, he, Complex32)
SOLVER_(Cuda, cusolverDn, Z, un, he, Complex64)
TRIANGLES_(Cuda, cublas, _v2, S, float)
TRIANGLES_(Cuda, cublas, _v2, D, double)
TRIANGLES_(Cuda, cublas, _v2, C, Complex32)
TRIANGLES_(Cuda, cublas, _v2, Z, Complex64)
HANDLES_(hipsolverDn, hipblas, )
SOLVER_(Hip, hipsolverDn, S, or, sy, float)
SOLVER_(Hip, hipsolverDn, D, or, sy, double)
SOLVER_(Hip, hipsolverDn, C, un, he, Complex32)
SOLVER_(Hip, hipsolverDn, Z, un, he, Complex64)
TRIANGLES_(Hip, hipblas, , S, float)
TRIANGLES_(Hip, hipblas, , D, double)
TRIANGLES_(Hip, hipblas, , C, Complex32)
TRIANGLES_(Hip, hipblas, , Z, Complex64)

int cusolverDnCreateParams(void** out) { return *out = new char, kGood; }
int cusolverDnXgeev_bufferSize(Solver* s, void* parameters, int left, int, int64_t n, int type,
                               const void*, int64_t, int of_values, const void*, int, const void*,
                               int64_t, int of_vectors, const void*, int64_t, int, size_t* there,
                               size_t* here) {
  if (!good(s) || !parameters || left || n < 1 || of_values != type || of_vectors != type ||
      (type != kC32 && type != kC64))
    return Cuda::kInvalid;
  return *there = size_t(64 * n), *here = 32, kGood;
}
int cusolverDnXgeev(Solver* s, void*, int left, int right, int64_t n, int type, void* a,
                    int64_t lda, int, void* values, int, void*, int64_t, int, void* v, int64_t ldv,
                    int, void* work, size_t bytes, void* host, size_t host_bytes, int* info) {
  if (left) return Cuda::kInvalid;
  return (type == kC32 ? eigenvalues<Complex32>
                       : eigenvalues<Complex64>)(s, right, n, a, lda, values, v, ldv, work, bytes,
                                                 host, host_bytes, info);
}
}
