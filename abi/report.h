/* adjoin/abi/report.h: experimental. What a plugin tells of itself, for people: a service of its own under
 * "aj.report/PLUGIN". */
#ifndef ADJOIN_ABI_REPORT_H
#define ADJOIN_ABI_REPORT_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct aj_report { /* EXTENSIBLE */
  uint32_t struct_size, reserved;
  void* self;
  aj_status* (*lines)(void* self, aj_object** out); /* a string: libraries found or not, why no device */
} aj_report;

#ifdef __cplusplus
}
#endif
#endif
