/* adjoin/abi/transform.h: experimental. Transforms of functions: batches (vmap), forward mode. Two tables:
 * query("x.transform", 1) is an extension's, libaj_transform.so, which the question loads;
 * query("x.lower", 1) is the core's and holds what such an extension needs of a call.
 *
 * A transform is a level: enter opens it on the calling thread, leave ends it. A tensor of a level is a
 * wrapper of the key "transform" (wrap.h) with the shape that the user's function sees; its payload has the
 * values of all samples, or a tangent beside the value. A call takes the innermost level L among its
 * arguments: the tape records where an argument of level L requires grad, then the rule of L's kind makes
 * calls of the payloads, which meet the levels around L, and their tapes, in the same way. After leave every
 * use of a tensor of the level raises; of AJ_LEVEL_DUAL_KEPT it is its value from then on.
 *
 * Rules are services: env->def_service(slot "aj.batch", name of the op, the struct), as aj_def_batch does; so
 * nobody has to load the extension to have one. Without a rule of its own an op has that of its kind, its
 * tags ("elementwise", "batch:dims", "batch:fold", "batch:lead"), else its body is taken, else samples are
 * taken one by one, and `loops` tells it. "out" is owned by who receives it, the rest is borrowed. */
#ifndef ADJOIN_ABI_TRANSFORM_H
#define ADJOIN_ABI_TRANSFORM_H
#include "autograd.h"
#include "base.h"
#include "core.h"
#include "op.h"
#include "plugin.h"
#ifdef __cplusplus
extern "C" {
#endif
enum { AJ_LEVEL_BATCH = 0, AJ_LEVEL_DUAL = 1, AJ_LEVEL_DUAL_KEPT = 2 }; /* the last for enter alone */
enum { /* what an op that draws random numbers does in a batch */
  AJ_RANDOM_ERROR = 0,
  AJ_RANDOM_SAME = 1,     /* one draw for all samples */
  AJ_RANDOM_DIFFERENT = 2 /* those that a loop over the samples would draw */
};

typedef struct aj_batch_call { /* EXTENSIBLE */
  uint32_t struct_size, flags; /* AJ_CALL_IN_PLACE: ret 0 is argument 0 */
  const aj_core* core;
  const aj_dispatch* op;
  const aj_op* target;
  const aj_value* args;        /* payloads in the places of wrappers */
  const int32_t* dims;         /* one per tensor, flattened: 0, its batch dimension, or -1: it has none */
  aj_value* rets;              /* to be filled, owned; in place: given, and borrowed */
  int32_t* out_dims;           /* one per result; it is 0 at first; -1: the same for all samples */
  int64_t size;                /* how many samples */
  uint32_t nargs, ndims, nrets;
  int32_t randomness;          /* AJ_RANDOM_... */
} aj_batch_call;
typedef struct aj_batch_def { /* EXTENSIBLE */
  uint32_t struct_size, flags; /* flags: 0 */
  aj_str op;
  aj_str reason;               /* without batch: why the op is refused */
  aj_status* (*batch)(void* self, aj_batch_call* c); /* by dispatched ops, so that it nests */
  void* self;
} aj_batch_def;

typedef struct aj_jvp_call { /* EXTENSIBLE */
  uint32_t struct_size, flags;
  const aj_core* core;
  const aj_dispatch* op;
  const aj_autograd* autograd;
  const aj_op* target;
  const aj_value *args, *rets; /* primals, results */
  aj_tensor* const* tangents;  /* one per tensor argument, flattened; NULL: zero */
  aj_tensor** out;             /* one per result tensor, flattened, owned; NULL: zero */
  uint32_t nargs, nrets, ntangents, nout;
} aj_jvp_call;
typedef struct aj_jvp_def { /* EXTENSIBLE. none for an op: from its kind, else by its derivative twice */
  uint32_t struct_size, flags; /* AJ_JVP_... */
  aj_str op;
  uint64_t linear;             /* bit i: linear in argument i; then jvp may be NULL */
  aj_status* (*jvp)(void* self, aj_jvp_call* c); /* by dispatched ops, so that it nests */
  void* self;
} aj_jvp_def;
enum { AJ_JVP_ELEMENTWISE = 1u << 0, AJ_JVP_HOLOMORPHIC = 1u << 1, AJ_JVP_ZERO = 1u << 2 };

/* In a plugin's init; `def` lives as long as the plugin. */
static inline aj_status* aj_def_rule_(const aj_plugin_env* env, aj_str slot, aj_str op, const void* def) {
  aj_service_def d = {sizeof(aj_service_def), 0, {0, 0}, {0, 0}, 0};
  d.slot = slot;
  d.name = op;
  d.table = def;
  return env->def_service(env->registrar, &d);
}
static inline aj_status* aj_def_batch(const aj_plugin_env* env, const aj_batch_def* def) {
  return aj_def_rule_(env, AJ_STR_LIT("aj.batch"), def->op, def);
}
static inline aj_status* aj_def_jvp(const aj_plugin_env* env, const aj_jvp_def* def) {
  return aj_def_rule_(env, AJ_STR_LIT("aj.jvp"), def->op, def);
}

struct aj_custom_def;
typedef struct aj_loop { /* EXTENSIBLE. a line of the ledger: an op whose samples were taken one by one */
  uint32_t struct_size, reserved;
  aj_str op, reason;           /* live as long as the process */
  uint64_t calls, samples, nanoseconds;
} aj_loop;

typedef struct aj_transforms { /* EXTENSIBLE. "x.transform", 1 */
  uint32_t struct_size, minor;
  /* size, randomness: of a batch. Levels end in the order in which they were entered, the last one first. */
  aj_status* (*enter)(int32_t kind, int64_t size, int32_t randomness, int32_t* level);
  aj_status* (*leave)(int32_t level);
  /* t, seen without its dimension dim, as a batch of the level. */
  aj_status* (*batched)(aj_tensor* t, int32_t dim, int32_t level, aj_tensor** out);
  /* What t stands for outside of the level, the samples in dimension dim; the same for all: expanded. */
  aj_status* (*unbatched)(aj_tensor* t, int32_t dim, int32_t level, aj_tensor** out);
  /* What all samples share, outside of the level; NULL: they differ. */
  aj_status* (*shared)(aj_tensor* t, int32_t level, aj_tensor** out);
  aj_status* (*dual)(aj_tensor* primal, aj_tensor* tangent, int32_t level, aj_tensor** out);
  /* tangent: NULL for zero. A tensor that is none of the level is its own primal. */
  aj_status* (*undual)(aj_tensor* t, int32_t level, aj_tensor** primal, aj_tensor** tangent);
  /* t as a tensor of the level that all samples share, or without a tangent; t itself if it is one. level 0:
   * the innermost one; none is open: t itself. */
  aj_status* (*lift)(aj_tensor* t, int32_t level, aj_tensor** out);
  int32_t (*innermost)(void);           /* of this thread; 0: none is open */
  aj_status* (*batch_of)(int32_t level, int64_t* size, int32_t* randomness);
  /* AJ_RANDOM_DIFFERENT: how many blocks of random numbers one sample takes in all; 0 at first. */
  aj_status* (*random_stride)(int32_t level, int64_t blocks);
  uint32_t (*loop_count)(void);
  aj_status* (*loop_at)(uint32_t i, aj_loop* io);
  void (*loops_forbid)(int32_t on);     /* what would loop raises instead; the process's */
  int32_t (*kind)(int32_t level);       /* AJ_LEVEL_...; -1: it is not open on this thread */
  /* Until `above` the thread works for the level, below it: as if it and those inside of it were not open. */
  aj_status* (*below)(int32_t level);
  void (*above)(void);
  aj_status* (*custom_apply)(const struct aj_custom_def* f, const aj_value* args, uint32_t nargs,
                             aj_value* rets, uint32_t nrets); /* custom.h */
} aj_transforms;

typedef struct aj_lower { /* EXTENSIBLE. "x.lower", 1 */
  uint32_t struct_size, minor;
  /* The op's body, never a kernel; recorded as its own calls are. AJ_NOT_FOUND: it has none. */
  aj_status* (*call_body)(const aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets,
                          uint32_t nrets);
  /* In a kernel at the key "transform": recording is on for what it calls if it was on where the user made
   * the call, and if `on`, what it was where the level was entered. Gives what restore takes. */
  uint32_t (*recording_below)(int32_t on);
  void (*restore)(uint32_t before);
  /* The derivative of a call without a tape; NULL in grad_in where needs is 0. NULL: not there. */
  aj_status* (*apply_vjp)(const aj_op* op, const aj_value* args, uint32_t nargs, const aj_value* rets,
                          uint32_t nrets, aj_tensor* const* grad_out, const uint8_t* needs,
                          aj_tensor** grad_in);
  /* Around a wait for another thread, which may need the language's lock: this one gives it up meanwhile.
   * NULL: it did not hold it. */
  void* (*park)(void);
  void (*unpark)(void* parked);
} aj_lower;

#ifdef __cplusplus
}
#endif
#endif
