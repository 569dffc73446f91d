/* tests/abi/zoo.h: what the program in lifetime.c and the plugin in zoo.c agree on. */
#include <adjoin/abi/capi.h>

enum { ZOO_OBJECT, ZOO_FUNCTION, ZOO_HOOK, ZOO_NODE, ZOO_MEMORY, ZOO_SAVED, ZOO_DLPACK, ZOO_KINDS };

struct zoo {
  aj_status* (*make)(int kind, aj_tensor* x, void** out);
  int device, service, frontend, bad_init, bad_drain; /* what init and drain shall do */
  int destroyed, dropped;
  int32_t type, frontend_id;
  DLDataType dtype;
};
