/* adjoin/abi/device_times.h: experimental. When a device has worked, as the device itself says, and for whose
 * call: a service under "aj.device_times/DEVICE". */
#ifndef ADJOIN_ABI_DEVICE_TIMES_H
#define ADJOIN_ABI_DEVICE_TIMES_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { AJ_WORK_KERNEL = 0, AJ_WORK_COPY = 1, AJ_WORK_FILL = 2 }; /* aj_device_work.kind */

typedef struct aj_device_work { /* EXTENSIBLE. it and its name live until the function returns */
  uint32_t struct_size;
  uint32_t kind;               /* AJ_WORK_... */
  uint64_t event;              /* aj_event.id (profile.h) of the innermost call that queued it; 0: of none */
  aj_str name;                 /* a kernel's, as a person reads it; "" of others */
  uint64_t begin_ns, end_ns;   /* of CLOCK_MONOTONIC, as events have */
  uint64_t bytes;              /* of copies and fills */
  uint64_t stream;             /* the tool's number of it */
  int32_t device;
  uint32_t reserved;           /* 0 */
} aj_device_work;

typedef struct aj_device_times { /* EXTENSIBLE */
  uint32_t struct_size, minor;
  void* self;
  /* AJ_UNAVAILABLE: the vendor's tool is not here, or says no; the message says what brings it.
   * AJ_PRECONDITION: somebody has begun already, for the tool serves a process once. */
  aj_status* (*start)(void* self);
  /* Calls each(arg, work) on this thread for all that has ended since start, in the order in which it began:
   * who wants what is queued too waits for the device first. Without a start there is nothing to tell. */
  aj_status* (*stop)(void* self, void (*each)(void* arg, const aj_device_work* work), void* arg);
} aj_device_times;

#ifdef __cplusplus
}
#endif
#endif
