/* adjoin/abi/switches.h: experimental. How a device's libraries compute, where there is a choice: a service
 * under "aj.switches/DEVICE". Each switch holds for the process and is off at first. */
#ifndef ADJOIN_ABI_SWITCHES_H
#define ADJOIN_ABI_SWITCHES_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct aj_switches { /* EXTENSIBLE */
  uint32_t struct_size, minor;
  void* self;
  /* AJ_NOT_FOUND: the device has no switch of that name. previous may be NULL. Names in use:
   *   tf32_products, tf32_convolutions: float32 is read with 10 bits behind the point
   *   benchmark: what serves is found by measuring, so bits may differ from process to process
   *   deterministic: what serves depends on the problem alone, whatever benchmark says */
  aj_status* (*set)(void* self, aj_str name, int32_t on, int32_t* previous);
} aj_switches;

#ifdef __cplusplus
}
#endif
#endif
