/* adjoin/abi/service.h: swappable tables under a name. A plugin offers one with env->def_service("aj.blas/cpu", table); who
 * needs one asks aj_services, the highest priority first. Reached by query("aj.service", 1). Functions of a table are called from
 * any thread, several at once, with its own `self`. */
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
  aj_str (*chosen)(aj_str slot);                                 /* what choose() was told last; "" by priority */
  uint64_t (*revision)(void); /* moves when a service comes, goes or is chosen: who keeps answers compares it, without a lock */
} aj_services;

typedef struct aj_gemm { /* EXTENSIBLE. C = alpha op(A) op(B) + beta C, row-major, batch of them; strides in elements */
  uint32_t struct_size, flags;
  DLDataType dtype;
  int32_t trans_a, trans_b, reserved; /* 0 as it is, 1 transposed, 2 conjugated and transposed */
  int64_t batch, m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c;
  const void *a, *b;
  void* c;
  double alpha, beta;
  void* stream;
} aj_gemm;

typedef struct aj_blas { /* EXTENSIBLE. slot "aj.blas/DEVICE" */
  uint32_t struct_size, minor;
  aj_str name;                                     /* "openblas 0.3.21" */
  void* self;
  int32_t (*score)(void* self, const aj_gemm* g);  /* 0 = cannot; larger is better for this problem; pointers are not read */
  aj_status* (*gemm)(void* self, const aj_gemm* g); /* on the calling thread alone */
  aj_str (*path)(void* self);                      /* the library's file */
  void* (*lapack)(void* self, aj_str routine);     /* (optional) a Fortran routine, e.g. "sgesdd"; NULL if absent */
} aj_blas;

/* Which provider of "aj.blas/DEVICE" serves which product, found by measuring. Texts are lines of words. */
typedef struct aj_tuner { /* EXTENSIBLE. slot "aj.tuner/DEVICE" */
  uint32_t struct_size, minor;
  void* self;
  /* Times every provider on a problem (its pointers are not read) for so long each, with the threads set now, and remembers
   * the fastest. out: a string, "NAME SECONDS" a line, the one that will serve first. */
  aj_status* (*measure)(void* self, const aj_gemm* g, double seconds, aj_object** out);
  aj_status* (*serving)(void* self, const aj_gemm* g, aj_object** out); /* a string: the provider's name */
  aj_status* (*load)(void* self, aj_str path);       /* a file takes the place of what was known; "": forgets it */
  aj_status* (*save)(void* self, aj_str path);       /* in one step: readers see the old file or the new one */
  aj_str (*place)(void* self);                       /* the file that is read when the first product is computed; "" none */
  aj_status* (*show)(void* self, int32_t all, aj_object** out); /* a string, "what: it is" a line; all: every class too */
} aj_tuner;

#ifdef __cplusplus
}
#endif
#endif
