/* adjoin/abi/passes.h: experimental. Programs (program.h) made better: another program that gives
 * the same. Reached by query("x.passes", 1), which loads libaj_graph.so. */
#ifndef ADJOIN_ABI_PASSES_H
#define ADJOIN_ABI_PASSES_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {
  AJ_PASS_DEAD = 1u << 0,   /* calls whose results nobody uses go */
  AJ_PASS_COMMON = 1u << 1, /* of equal calls one stays */
  AJ_PASS_FREEZE = 1u << 2, /* parameters become constants, copies of today's values; a program that
                               writes one is refused */
  AJ_PASS_CONSTANTS =
      1u << 3,              /* what is made of constants alone is computed now, up to 1 MB each */
  AJ_PASS_NORMS = 1u << 4,  /* batch norms by constants go into the convolution or linear layer
                               before them;  the bits are others, within rounding */
  AJ_PASS_DROPOUT = 1u << 5 /* dropout that is off goes */
};

enum {
  AJ_CALL_EFFECT = 1u << 0, /* it writes or draws, or it is no call of an op */
  AJ_CALL_CHEAP = 1u << 1,  /* an element of its result is made of elements at the same place */
  AJ_CALL_VIEW = 1u << 2    /* its result shows what it takes, or copies it */
};
/* A call that takes and gives values, by their numbers. bytes: of what it gives, 0 where a size is
 * known only when the program runs. The arrays are good until the function returns. */
typedef void (*aj_each_call)(void* self, uint32_t flags, const uint32_t* takes, uint32_t ntakes,
                             const uint32_t* gives, const uint64_t* bytes, uint32_t ngives);

typedef struct aj_passes { /* EXTENSIBLE. "x.passes", 1 */
  uint32_t struct_size, minor;
  /* The passes in this order: freeze, dropout, norms, constants, common, dead. The program stays as
   * it is. */
  aj_status* (*apply)(const aj_object* program, uint32_t passes, aj_object** out);
  /* From here on: minor 1. Every call of the program, in order. */
  aj_status* (*calls)(const aj_object* program, aj_each_call each, void* self);
  /* A program of some of the calls, in the order in which they are named here, from and to values
   * of the program. It has no blocks and no parameters; a value that is used before it is made is
   * refused. */
  aj_status* (*cut)(const aj_object* program, const uint32_t* calls, uint32_t ncalls,
                    const uint32_t* inputs, uint32_t ninputs, const uint32_t* results,
                    uint32_t nresults, aj_object** out);
} aj_passes;

#ifdef __cplusplus
}
#endif
#endif
