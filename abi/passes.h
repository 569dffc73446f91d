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

typedef struct aj_passes { /* EXTENSIBLE. "x.passes", 1 */
  uint32_t struct_size, minor;
  /* The passes in this order: freeze, dropout, norms, constants, common, dead. The program stays as
   * it is. */
  aj_status* (*apply)(const aj_object* program, uint32_t passes, aj_object** out);
} aj_passes;

#ifdef __cplusplus
}
#endif
#endif
