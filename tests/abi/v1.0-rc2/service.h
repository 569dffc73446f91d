/* adjoin/abi/service.h: swappable tables under a name. A plugin offers one with
 * env->def_service("aj.blas/cpu", table); who needs one asks aj_services, the highest priority first. Reached
 * by query("aj.service", 1). Functions of a table are called from any thread, several at once, with its own
 * `self`. A table that was handed out stays mapped until its plugin is unloaded, and a plugin whose table was
 * handed out is unloaded only when it is asked for by force: who keeps a table looks at `revision` before
 * each use, and asks again when it has moved. */
#ifndef ADJOIN_ABI_SERVICE_H
#define ADJOIN_ABI_SERVICE_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct aj_service_def { /* EXTENSIBLE */
  uint32_t struct_size;
  int32_t priority;
  aj_str slot;       /* "aj.blas/cpu" */
  aj_str name;       /* "openblas" */
  const void* table; /* begins with struct_size; lives as long as the plugin */
} aj_service_def;

typedef struct aj_services { /* EXTENSIBLE */
  uint32_t struct_size, minor;
  uint32_t (*count)(aj_str slot);
  aj_status* (*at)(aj_str slot, uint32_t i, aj_service_def* io); /* 0 is the chosen one */
  aj_status* (*choose)(aj_str slot, aj_str name);                /* "" is by priority again */
  aj_str (*chosen)(aj_str slot); /* what choose() was told last; "" by priority */
  uint64_t (*revision)(void);    /* moves when a service comes, goes or is chosen; takes no lock */
} aj_services;

/* C = alpha op(A) op(B) + beta C, row-major, a batch of them; strides in elements. With beta 0 C is not read:
 * it may hold NaN. With k 0 the product is 0. */
typedef struct aj_gemm { /* EXTENSIBLE */
  uint32_t struct_size, flags;
  DLDataType dtype;
  DLDevice device;
  int32_t trans_a, trans_b; /* 0 as it is, 1 transposed, 2 conjugated and transposed */
  int32_t reserved;
  int64_t batch, m, n, k;
  int64_t lda, ldb, ldc;
  int64_t stride_a, stride_b, stride_c;
  const void *a, *b;
  void* c;
  uint64_t offset_a, offset_b, offset_c; /* bytes behind them; 0 but of handles (AJ_DEV_OPAQUE_POINTERS) */
  double alpha, beta;
  void* stream;
} aj_gemm;
enum { AJ_GEMM_DETERMINISTIC = 1u << 16 }; /* the bits depend on the problem alone */

typedef struct aj_blas { /* EXTENSIBLE. slot "aj.blas/DEVICE" */
  uint32_t struct_size, minor;
  aj_str name; /* "openblas 0.3.21" */
  void* self;
  int32_t (*score)(void* self, const aj_gemm* g);   /* 0: cannot; larger is better; pointers are not read */
  aj_status* (*gemm)(void* self, const aj_gemm* g); /* on the calling thread alone, or queued on g->stream */
  aj_str (*path)(void* self);                       /* the library's file */
  /* (optional) A routine of Fortran's LAPACK by its name in lower case, without underscores ("sgesdd"); NULL
   * if it is absent. Its convention: every argument by address; integers are int32_t (LP64), logicals
   * int32_t; matrices column by column; the lengths of character arguments follow behind the last argument,
   * one size_t each. */
  void* (*lapack)(void* self, aj_str routine);
} aj_blas;

#ifdef __cplusplus
}
#endif
#endif
