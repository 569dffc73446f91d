/* adjoin/abi/custom.h: experimental. Functions with a derivative of their own, as autograd.Function is in
 * Python. They are no ops, nobody finds them by name: custom_apply of x.transform (transform.h) applies one.
 *
 * Where an argument requires grad one node is recorded, whose derivative is `vjp`. Inside of transforms the
 * function is lowered level by level: the tape of a level records its node, then the function, not its
 * forward alone, is applied to what its arguments stand for below. A batch: by `batch`; with
 * AJ_CUSTOM_MAP_PARTS forward, vjp and jvp see one sample each; else the samples are taken one by one, and
 * `loops` tells it. A tangent: by `jvp`, else by `vjp` twice.
 *
 * An argument is a tensor, or anything but a list of tensors; a result is a tensor. Where inputs are numbered
 * each argument counts as one: grad_in[i], tangents[i] and dims[i] are those of argument i; and `target` of
 * aj_batch_call and aj_jvp_call is NULL. `forward` runs unrecorded, by dispatched ops, so that it serves
 * every device and level; it writes to none of its arguments; op and plan of its call are NULL. What `vjp`
 * needs besides arguments is one more result: it keeps what its `save` names; its save_more and drop are
 * NULL. */
#ifndef ADJOIN_ABI_CUSTOM_H
#define ADJOIN_ABI_CUSTOM_H
#include "transform.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct aj_custom_def { /* EXTENSIBLE. lives as long as a tape may hold the function */
  uint32_t struct_size, flags; /* AJ_CUSTOM_... */
  aj_str name;
  aj_kernel_fn forward;
  void* self;                  /* of forward; vjp, jvp and batch have their own */
  const aj_vjp_def* vjp;       /* (optional) without it a gradient that is asked for raises */
  const aj_jvp_def* jvp;       /* (optional) */
  const aj_batch_def* batch;   /* (optional) it applies the function again, not forward */
} aj_custom_def;
enum { AJ_CUSTOM_MAP_PARTS = 1u << 0 }; /* without batch */

#ifdef __cplusplus
}
#endif
#endif
