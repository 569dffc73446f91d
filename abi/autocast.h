/* adjoin/abi/autocast.h: experimental. What autocast does on a device: a service under "aj.autocast/DEVICE",
 * defined by the plugin of the device. Without one the tags of the ops count; beside one they count for
 * other plugins' ops that it does not name. */
#ifndef ADJOIN_ABI_AUTOCAST_H
#define ADJOIN_ABI_AUTOCAST_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct aj_autocast_lists { /* EXTENSIBLE */
  uint32_t struct_size, reserved;
  aj_str lists; /* "dtype bfloat16; low mm nn::linear; float32 exp; widest cat"; read when it is defined */
} aj_autocast_lists;

#ifdef __cplusplus
}
#endif
#endif
