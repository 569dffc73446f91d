/* adjoin/abi/linalg.h: experimental. Who factors matrices: services under "aj.linalg/DEVICE". An op asks each
 * offer what it thinks of a problem and gives it to the best. It stands here, not in a plugin, because a
 * vendor's plugin offers what an op pack asks for.
 *
 * A problem is a batch of matrices of one size. They lie column by column, each column dense, as LAPACK has
 * them: element (i, j) of matrix k is at i + j * ld + k * stride, in elements. A matrix by rows is the
 * transposed one. Nothing is read but what the routine names. */
#ifndef ADJOIN_ABI_LINALG_H
#define ADJOIN_ABI_LINALG_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { /* aj_linalg_problem.routine; of LAPACK's names without the letter of the dtype */
  AJ_LINALG_POTRF = 1, /* a (n, n): its triangle `upper` becomes Cholesky's factor; info */
  AJ_LINALG_GETRF = 2, /* a (m, n) becomes L and U, pivots (min(m, n)), from 1; info */
  AJ_LINALG_TRSM = 3,  /* b (m, n) becomes X: op(a) X = b, or X op(a) = b where right; upper, trans, unit */
  AJ_LINALG_GEQRF = 4, /* a (m, n) becomes R and Householder's vectors, b: tau (min(m, n), 1) */
  AJ_LINALG_ORGQR = 5, /* a (m, n) holds k vectors, b: tau (k, 1); a becomes the first n columns of Q */
  AJ_LINALG_HEEVD = 6, /* a (n, n), its triangle `upper`; b: eigenvalues, ascending, real (n, 1). vectors: a
                          becomes the eigenvectors; else it is used up; info */
  AJ_LINALG_GESDD = 7, /* a (m, n) is used up; b: singular values, descending, real (min(m, n), 1). vectors:
                          c: U (m, k), d: V^H (k, n), k = min(m, n); full: U (m, m), V^H (n, n); info */
  AJ_LINALG_GEEV = 8   /* a (n, n) is used up; b: eigenvalues, complex (n, 1). vectors: c: right eigenvectors,
                          complex (n, n), of length 1; info */
};
enum { /* aj_linalg_problem.flags */
  AJ_LINALG_UPPER = 1u << 16,
  AJ_LINALG_RIGHT = 1u << 17,
  AJ_LINALG_UNIT = 1u << 18, /* a triangle's diagonal is 1 and not read */
  AJ_LINALG_VECTORS = 1u << 19,
  AJ_LINALG_FULL = 1u << 20
};

typedef struct aj_linalg_matrix {
  void* data;
  uint64_t offset; /* bytes behind data; 0 but of handles (AJ_DEV_OPAQUE_POINTERS) */
  int64_t ld, stride;
} aj_linalg_matrix;

typedef struct aj_linalg_problem { /* EXTENSIBLE */
  uint32_t struct_size, flags;
  int32_t routine, trans; /* trans: 0 as it is, 1 transposed, 2 conjugated and transposed */
  DLDataType dtype;       /* float32, float64, complex64, complex128 */
  DLDevice device;
  int64_t batch, m, n, k;
  aj_linalg_matrix a, b, c, d;
  int32_t *info, *pivots; /* info: one for each matrix: 0, or LAPACK's positive number; pivots: dense */
  void* stream;
} aj_linalg_problem;

typedef struct aj_linalg { /* EXTENSIBLE. slot "aj.linalg/DEVICE" */
  uint32_t struct_size, minor;
  aj_str name;
  void* self;
  int32_t (*score)(void* self, const aj_linalg_problem* p); /* 0: cannot; larger is better; pointers unread */
  uint64_t (*workspace)(void* self, const aj_linalg_problem* p); /* bytes that run wants, for any batch */
  /* On the calling thread alone, or queued on p->stream. work: aligned to 64 bytes. */
  aj_status* (*run)(void* self, const aj_linalg_problem* p, void* work);
} aj_linalg;

#ifdef __cplusplus
}
#endif
#endif
