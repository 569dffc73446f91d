/* adjoin/abi/tuner.h: experimental. Which provider of "aj.blas/DEVICE" serves which product, found by
 * measuring: a service under "aj.tuner/DEVICE". Texts are for people: lines of words. */
#ifndef ADJOIN_ABI_TUNER_H
#define ADJOIN_ABI_TUNER_H
#include "service.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct aj_tuner { /* EXTENSIBLE */
  uint32_t struct_size, minor;
  void* self;
  /* Times every provider on a problem (its pointers are not read) for so long each, with the threads set now,
   * and remembers the fastest. out: a string, "NAME SECONDS" a line, the one that will serve first. */
  aj_status* (*measure)(void* self, const aj_gemm* g, double seconds, aj_object** out);
  aj_status* (*serving)(void* self, const aj_gemm* g, aj_object** out); /* a string: the provider's name */
  aj_status* (*load)(void* self, aj_str path); /* a file takes the place of what was known; "": forgets it */
  aj_status* (*save)(void* self, aj_str path); /* in one step: readers see the old file or the new one */
  aj_str (*place)(void* self); /* the file that is read when the first product is computed; "" none */
  aj_status* (*show)(void* self, int32_t all, aj_object** out); /* a string; all: every class too */
} aj_tuner;

#ifdef __cplusplus
}
#endif
#endif
