/* adjoin/abi/device.h: what a device plugin fills in (env->def_device). The core caches memory, the plugin
 * supplies the raw means. Only `count` is needed; a NULL after it is a capability absent: the core does
 * without, or raises. What has memory of its own needs mem_alloc, mem_free and copy; a device without
 * AJ_DEV_SYNCHRONOUS also needs stream_sync.
 * Calls come from any thread, several at once; `self` is the table's, `dev` counts from 0. A failure is a
 * status (`out` is then not read) and leaves things as they were. Under a lock of the core's run the mem_
 * and fork_ functions and what stream_host_fn runs: they make statuses, use no other function of the tables.
 * Order: what is queued on one stream runs in that order; between streams only events order. A handle of a
 * stream or an event is never NULL and is used with the `dev` it was made for; as an argument NULL is the
 * device's default stream, which always exists. An error that shows late, in queued work, is returned once,
 * by whoever waits for that stream next (stream_sync, stream_query, event_sync, event_query, a copy that
 * waits), with the work's name. Where the device survives it, memory stays valid. */
#ifndef ADJOIN_ABI_DEVICE_H
#define ADJOIN_ABI_DEVICE_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { /* kinds of memory */
  AJ_MEM_DEVICE = 0,  /* what the core asks for */
  AJ_MEM_PINNED = 1,  /* of the host, fast to copy: an address, where device memory has handles, too. Asked
                         for by pin_memory, of a device without AJ_DEV_HOST_MEMORY that has mem_alloc,
                         mem_free, event_query and event_free */
  AJ_MEM_MANAGED = 2  /* both */
};
enum { /* aj_device_vtbl.flags */
  AJ_DEV_HOST_MEMORY = 1u << 0,     /* pointers are valid on the host */
  AJ_DEV_HOST_THREADS = 1u << 1,    /* kernels run on the calling thread: the core cuts plans for the pool */
  AJ_DEV_SYNCHRONOUS = 1u << 2,     /* all has finished when a call returns: no streams or events needed */
  AJ_DEV_OPAQUE_POINTERS = 1u << 3, /* `data` is a handle: nobody computes with it; elements begin at
                                       dl.byte_offset; plans and allocations are never cut */
  AJ_DEV_PEER_COPY = 1u << 4,       /* `copy` takes two devices of this kind */
  AJ_DEV_HOST_FALLBACK = 1u << 16   /* may serve others' missing ops; the one of highest priority is taken */
};

typedef struct aj_device_props { /* EXTENSIBLE. for people; the plugin writes struct_size bytes at most */
  uint32_t struct_size, flags; /* flags: 0 */
  uint64_t total_memory;       /* bytes; 0: not known */
  uint32_t min_alignment;      /* bytes, a power of 2, what mem_alloc keeps to */
  uint32_t multiprocessors;    /* units that run blocks */
  char name[64], arch[32], bus_id[32]; /* NUL-terminated; "" if there is none */
} aj_device_props;

typedef struct aj_copy { /* EXTENSIBLE. rows of `width` bytes, `pitch` bytes apart; nothing overlaps */
  uint32_t struct_size, flags;
  void* dst;                       /* an address, or the handle of a device with AJ_DEV_OPAQUE_POINTERS */
  const void* src;
  uint64_t dst_offset, src_offset; /* bytes behind them; 0 but of handles */
  DLDevice dst_device, src_device; /* one is this device, or both are of this kind; else the host */
  uint64_t width, height;          /* height 1: linear; either 0: nothing is done */
  uint64_t dst_pitch, src_pitch;
  void* stream; /* queued there; the host's side stays until it has passed. NULL: finished on return; it waits
                   for nothing: the caller has waited for what it reads and overwrites */
} aj_copy;
enum { AJ_COPY_QUEUED = 1u << 16 }; /* may be queued on the NULL stream, too: memory of the host is pinned */

typedef struct aj_device_vtbl { /* EXTENSIBLE */
  uint32_t struct_size, flags;
  aj_str name;         /* [a-z][a-z0-9_]*, at most 32: "acme" becomes device("acme:0"); copied */
  int32_t dlpack_type; /* a kDL... code, or 0; a wish: device_find says which number it is */
  int32_t priority;    /* of several providers of one name the highest is active; others: name@plugin */
  void* self;
  /* How many there are. Opens nothing: a fork may follow. None: AJ_UNAVAILABLE, why, and what to do. */
  aj_status* (*count)(void* self, int32_t* out);
  aj_status* (*props)(void* self, int32_t dev, aj_device_props* io);
  /* Raw memory, aligned to 64 bytes or more, contents arbitrary; bytes > 0, large: the core caches, and
   * cuts at multiples of 512. Too much is AJ_OUT_OF_MEMORY: the core empties its cache and asks again. */
  aj_status* (*mem_alloc)(void* self, int32_t dev, uint64_t bytes, uint32_t kind, void** out);
  /* bytes and kind as they were asked for. Queued work may use p still: waits until it has passed. */
  aj_status* (*mem_free)(void* self, int32_t dev, void* p, uint64_t bytes, uint32_t kind);
  aj_status* (*mem_info)(void* self, int32_t dev, uint64_t* free_bytes, uint64_t* total_bytes);
  aj_status* (*mem_idle)(void* self, int32_t dev, void* p, uint64_t bytes); /* host: contents may go */
  aj_status* (*stream_new)(void* self, int32_t dev, int32_t priority, void** out); /* lower: more urgent */
  aj_status* (*stream_free)(void* self, int32_t dev, void* stream); /* what is queued still runs */
  aj_status* (*stream_sync)(void* self, int32_t dev, void* stream); /* waits; NULL: for the whole device */
  aj_status* (*stream_query)(void* self, int32_t dev, void* stream, int32_t* done); /* 1: all has passed */
  aj_status* (*stream_wait)(void* self, int32_t dev, void* stream, void* event); /* later work waits */
  /* fn(arg) when what is queued has passed, on a thread of the device's: never inside of this call. */
  aj_status* (*stream_host_fn)(void* self, int32_t dev, void* stream, void (*fn)(void* arg), void* arg);
  aj_status* (*event_new)(void* self, int32_t dev, uint32_t flags, void** out); /* flags 0. New: has passed */
  aj_status* (*event_free)(void* self, int32_t dev, void* event); /* even while it is recorded */
  aj_status* (*event_record)(void* self, int32_t dev, void* event, void* stream); /* the last counts */
  aj_status* (*event_query)(void* self, int32_t dev, void* event, int32_t* done);
  aj_status* (*event_sync)(void* self, int32_t dev, void* event);
  aj_status* (*event_elapsed)(void* self, int32_t dev, void* start, void* stop, double* out_ms);
  aj_status* (*copy)(void* self, const aj_copy* c); /* to, from and within this device */
  /* Queued: the pattern (host memory, 1 to 16 bytes) again and again from p + offset on, the last cut off. */
  aj_status* (*fill)(void* self, int32_t dev, void* p, uint64_t offset, const void* pattern,
                     uint64_t pattern_bytes, uint64_t bytes, void* stream);
  /* p, any address in an allocation, in another process here; the exporter keeps it until all close. */
  aj_status* (*ipc_export)(void* self, int32_t dev, void* p, uint8_t out_handle[128]);
  aj_status* (*ipc_open)(void* self, int32_t dev, const uint8_t handle[128], void** out);
  aj_status* (*ipc_close)(void* self, int32_t dev, void* p);
  aj_status* (*fork_prepare)(void* self); /* before fork(), in the thread that forks; its status is dropped */
  void (*fork_parent)(void* self);
  void (*fork_child)(void* self); /* reset, or poison: every later call says "use spawn" */
  /* Between the two, what is queued on the stream (not NULL) is kept, not run; the graph runs it. */
  aj_status* (*capture_begin)(void* self, int32_t dev, void* stream);
  aj_status* (*capture_end)(void* self, int32_t dev, void* stream, void** out_graph);
  aj_status* (*graph_launch)(void* self, int32_t dev, void* graph, void* stream);
  aj_status* (*graph_free)(void* self, int32_t dev, void* graph);
} aj_device_vtbl;

#ifdef __cplusplus
}
#endif
#endif
