/* adjoin/abi/comm.h: experimental. Engines that move tensors between processes, as services: slot
 * "aj.comm/DEVICE" holds an aj_comm; and aj_store, by which processes meet.
 *
 * A communicator joins `size` processes. A collective is one struct, started by one function: what an engine
 * can do is a bit that is known before, never an error when it is called. No function waits but wait() and
 * close(), which have a deadline. Every process starts the same collectives of a communicator in the same
 * order; send and recv stand beside that order. Memory of a collective stays until its work is done. */
#ifndef ADJOIN_ABI_COMM_H
#define ADJOIN_ABI_COMM_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct aj_store { /* EXTENSIBLE. keys and values that all processes see; called from any thread */
  uint32_t struct_size, minor;
  void* self;
  aj_status* (*set)(void* self, aj_str key, aj_str value);
  /* Waits until the key is there; AJ_DEADLINE names it. */
  aj_status* (*get)(void* self, aj_str key, int64_t timeout_ms, aj_object** out);
  aj_status* (*add)(void* self, aj_str key, int64_t by, int64_t* out);
  /* desired, if the value is `expected` (or there is none and expected is ""); out: the value now */
  aj_status* (*swap)(void* self, aj_str key, aj_str expected, aj_str desired, aj_object** out);
  aj_status* (*erase)(void* self, aj_str key, int64_t* erased);
  aj_status* (*count)(void* self, aj_str prefix, int64_t* out); /* keys that begin so */
} aj_store;

enum { /* aj_coll.kind; of AJ_COLL_..._V parts may differ in size */
  AJ_COLL_BARRIER = 0, AJ_COLL_BROADCAST = 1, AJ_COLL_ALL_REDUCE = 2, AJ_COLL_REDUCE = 3,
  AJ_COLL_ALL_GATHER = 4, AJ_COLL_GATHER = 5, AJ_COLL_REDUCE_SCATTER = 6, AJ_COLL_SCATTER = 7,
  AJ_COLL_ALL_TO_ALL = 8, AJ_COLL_SEND = 9, AJ_COLL_RECV = 10, AJ_COLL_ALL_GATHER_V = 11,
  AJ_COLL_ALL_TO_ALL_V = 12
};
enum { /* aj_coll.op; those of bits are for integers and bool */
  AJ_RED_SUM = 0, AJ_RED_AVG = 1, AJ_RED_PROD = 2, AJ_RED_MIN = 3, AJ_RED_MAX = 4, AJ_RED_BAND = 5,
  AJ_RED_BOR = 6, AJ_RED_BXOR = 7, AJ_RED_PREMUL = 8 /* the sum of what `scale` has multiplied */
};

/* Tensors are dense. `in` and `out` may be equal. count is of one process's part: of gathers the input, of
 * scatters the output, of all_to_all a part of either. */
typedef struct aj_coll { /* EXTENSIBLE */
  uint32_t struct_size, flags; /* flags: 0 */
  int32_t kind, op, peer;      /* peer: the root, or the other side */
  uint32_t fingerprint;        /* of what all processes must agree on, and of seq: the engine's tag */
  uint64_t seq, count;
  DLDataType dtype;
  uint32_t reserved;
  const void* in;              /* NULL where the process gives nothing */
  void* out;                   /* NULL where it gets nothing */
  const uint64_t *in_counts, *out_counts; /* _V kinds: elements for and from each process, in its order */
  double scale;                /* AJ_RED_PREMUL */
  DLDevice device;
  void* stream;                /* the caller's; NULL: the device's default one */
} aj_coll;

typedef struct aj_comm_config { /* EXTENSIBLE */
  uint32_t struct_size, flags; /* flags: 0 */
  DLDevice device;
  int32_t rank, size;
  aj_str name;                 /* the same on all processes, and new in the store */
  aj_str options;              /* of the engine; "" */
  aj_str host;                 /* the address of this machine that reaches the store */
  const aj_store* store;       /* lent until the communicator is closed */
  int64_t timeout_ms;          /* to meet */
} aj_comm_config;

typedef struct aj_comm_caps { /* EXTENSIBLE */
  uint32_t struct_size, flags; /* AJ_COMM_... */
  uint64_t kinds;              /* a bit per AJ_COLL_ */
  uint64_t dtypes[16];         /* AJ_DT_ masks, one per AJ_RED_; what only moves takes every dtype */
  aj_str engine, path;         /* "gloo 0.5.0", its library */
} aj_comm_caps;
enum {
  AJ_COMM_STREAMS = 1u << 16,       /* works are queued on streams: join() orders, nobody waits */
  AJ_COMM_TAGGED = 1u << 17,        /* other fingerprints never meet: both sides wait */
  AJ_COMM_DETERMINISTIC = 1u << 18, /* the bits depend on sizes and ranks alone */
  AJ_COMM_ONE_HOST = 1u << 19
};

typedef struct aj_comm { /* EXTENSIBLE. slot "aj.comm/DEVICE" */
  uint32_t struct_size, minor;
  aj_str name;                 /* "gloo" */
  void* self;
  aj_status* (*caps)(void* self, DLDevice device, aj_comm_caps* io);
  aj_status* (*open)(void* self, const aj_comm_config* c, void** out_comm); /* returns at once */
  aj_status* (*ready)(void* comm, int32_t* done);                           /* never waits */
  /* What fails later is told by test and wait. n > 1: they may run at once. */
  aj_status* (*start)(void* comm, const aj_coll* c, uint32_t n, void** out_work);
  aj_status* (*test)(void* work, int32_t* done);      /* never waits */
  aj_status* (*wait)(void* work, int64_t timeout_ms); /* AJ_DEADLINE leaves it running */
  void (*drop)(void* work);
  /* Any thread, asks no other process. Works end within a second, with `why`; memory of one that ran may
   * still be written to: the caller keeps it. */
  aj_status* (*abort)(void* comm, aj_str why);
  aj_status* (*close)(void* comm, int64_t timeout_ms); /* the last call, after abort too */
  /* (optional) What is queued on the stream later waits for the work. */
  aj_status* (*join)(void* work, DLDevice device, void* stream);
} aj_comm;

#ifdef __cplusplus
}
#endif
#endif
