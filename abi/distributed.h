/* adjoin/abi/distributed.h: experimental. Groups of processes for frontends: query("x.distributed", 1) is an
 * extension's, libaj_distributed.so, which the question loads. Engines are services (comm.h); here is what is
 * the same for all of them: the control server, by which processes meet and hear of each other's end; groups,
 * whose collectives fail with the cause when a process is lost or another one does something else; `adjoin
 * launch`. Functions that wait have a deadline in milliseconds and look at core->interrupted. */
#ifndef ADJOIN_ABI_DISTRIBUTED_H
#define ADJOIN_ABI_DISTRIBUTED_H
#include "comm.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct aj_group_def { /* EXTENSIBLE */
  uint32_t struct_size, flags; /* flags: 0 */
  aj_str name;                 /* the same in all its processes, and new in the world */
  aj_str label;                /* in messages; "" is the name */
  aj_str engine;               /* a service's name; "": the first one */
  aj_str device;               /* "cpu" */
  const int32_t* ranks;        /* of the world, in the group's order */
  int32_t size, rank;          /* rank: of this process in the group */
  int64_t timeout_ms;          /* of each collective */
  int32_t device_index, reserved; /* which of the devices: every process its own */
} aj_group_def;

/* Gradients of leaves, averaged while backward passes go on. views[i] is a part of flats[bucket_of[i]], where
 * the gradient of params[i] lies from the first pass on; buckets are reduced in their order. Parameters are
 * lent for the reducer's life. */
typedef struct aj_reducer_def { /* EXTENSIBLE */
  uint32_t struct_size, flags; /* flags: 0 */
  void* group;                 /* NULL: one process */
  aj_tensor *const *params, *const *views, *const *flats;
  const uint32_t* bucket_of;
  const aj_str* names;         /* of parameters, for messages */
  uint32_t nparams, nbuckets;
  double factor;               /* gradients are multiplied by it, before they are summed */
  /* On the thread of the pass: bucket -1: all are on their way. Another number: this one is full, and is the
   * frontend's to reduce: a hook is on, or its memory is not the cpu's. */
  aj_status* (*full)(void* self, int32_t bucket);
  void* self;
} aj_reducer_def;

typedef struct aj_distributed { /* EXTENSIBLE. "x.distributed", 1 */
  uint32_t struct_size, minor;
  /* A control server on a thread of its own. port 0: a free one, told in out_port. */
  aj_status* (*serve)(aj_str host, int32_t port, void** out_server, int32_t* out_port);
  /* Ends it, after so long at most, when nobody is connected any more. */
  void (*end_server)(void* server, int64_t timeout_ms);
  /* A connection to a server; tries again until the deadline. */
  aj_status* (*connect)(aj_str host, int32_t port, int64_t timeout_ms, void** out_link);
  const aj_store* (*store)(void* link);     /* as long as the link */
  void (*disconnect)(void* link);
  /* Joins the world of that name: from now on the process answers, and hears of the others. */
  aj_status* (*join)(void* link, aj_str world, int32_t rank, int32_t size);
  aj_status* (*tell)(void* link, aj_str what); /* why this process is about to end: the others hear it */
  void (*leave)(void* link);                   /* it ends in order */

  aj_status* (*group_open)(void* link, const aj_group_def* def, void** out_group);
  /* c->seq and c->fingerprint are filled in. Tensors in `keep` live until the work is done. */
  aj_status* (*group_start)(void* group, const aj_coll* c, int32_t tag, aj_tensor* const* keep,
                            uint32_t nkeep, void** out_work);
  aj_status* (*group_engine)(void* group, aj_comm_caps* io);
  /* The last works, one a line, the newest one last: "all_reduce #3 float32[4] done train.py:41". */
  aj_status* (*group_history)(void* group, aj_object** out);
  void (*group_close)(void* group);
  aj_status* (*work_test)(void* work, int32_t* done);
  /* timeout_ms -1: the group's. An error names the process that caused it. */
  aj_status* (*work_wait)(void* work, int64_t timeout_ms);
  void (*work_drop)(void* work);

  /* `adjoin launch`, with the words behind it; *code is the exit code. */
  aj_status* (*launch)(const aj_str* words, uint32_t n, int32_t* code);
  /* `adjoin explain-hang`, alike: where each process of a job stands, and for whom it waits. */
  aj_status* (*explain_hang)(const aj_str* words, uint32_t n, int32_t* code);

  aj_status* (*reducer_new)(const aj_reducer_def* def, void** out);
  /* The next backward pass is reduced. reached (or NULL: all parameters are): parameters that a pass from the
   * roots does not reach count as zeros; 1 for each of the others. Where none is reached no pass will come:
   * reducer_go starts everything. */
  aj_status* (*reducer_arm)(void* reducer, aj_tensor* const* roots, uint32_t n, uint8_t* reached);
  aj_status* (*reducer_go)(void* reducer);
  aj_status* (*reducer_wait)(void* reducer); /* for what `full` was not asked for */
  /* *waits: a pass has begun and has not ended; missing: a 1 for each parameter that got no gradient. */
  void (*reducer_missing)(void* reducer, uint8_t* missing, int32_t* waits);
  void (*reducer_hook)(void* reducer, int32_t on); /* on: `full` reduces every bucket, nothing is scaled */
  void (*reducer_drop)(void* reducer);
  /* Can the engine ("": the first one) serve the device here? io->engine and path say what it is. */
  aj_status* (*engine_caps)(aj_str engine, aj_str device, aj_comm_caps* io);
} aj_distributed;

#ifdef __cplusplus
}
#endif
#endif
