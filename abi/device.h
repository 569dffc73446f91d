/* adjoin/abi/device.h: what a device plugin fills in. A NULL after `count` is a capability absent: the core does without or
 * raises. The core caches memory, keeps streams and events, and counts; the plugin supplies the raw means. */
#ifndef ADJOIN_ABI_DEVICE_H
#define ADJOIN_ABI_DEVICE_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { AJ_MEM_DEVICE = 0, AJ_MEM_PINNED = 1, AJ_MEM_MANAGED = 2 };
enum { /* aj_device_vtbl.flags */
  AJ_DEV_HOST_MEMORY = 1u << 0,   /* pointers are valid on the host */
  AJ_DEV_HOST_THREADS = 1u << 1,  /* kernels run on the calling thread: the core cuts plans for the pool */
  AJ_DEV_SYNCHRONOUS = 1u << 2,   /* everything has finished when a call returns */
  AJ_DEV_OPAQUE_POINTERS = 1u << 3, AJ_DEV_PEER_COPY = 1u << 4,
  AJ_DEV_HOST_FALLBACK = 1u << 16 /* may serve others' missing ops; the one of highest priority is taken */
};

typedef struct aj_device_props { /* EXTENSIBLE */
  uint32_t struct_size, flags;
  uint64_t total_memory;
  uint32_t min_alignment, multiprocessors;
  char name[64], arch[32], bus_id[32];
} aj_device_props;

typedef struct aj_copy { /* EXTENSIBLE. one descriptor for every direction; height 1 is linear; bytes */
  uint32_t struct_size, flags;
  void* dst;
  const void* src;
  DLDevice dst_device, src_device;
  uint64_t width, height, dst_pitch, src_pitch;
  void* stream; /* NULL: has finished when the call returns */
} aj_copy;

typedef struct aj_device_vtbl { /* EXTENSIBLE */
  uint32_t struct_size, flags;
  aj_str name;          /* lower case: "acme" becomes device("acme:0") */
  int32_t dlpack_type;  /* a kDL... code if DLPack has one, else 0 */
  int32_t priority;     /* of several providers of one name the highest is active; others are reached as name@plugin */
  void* self;
  aj_status* (*count)(void* self, int32_t* out); /* must not open a context: a fork may follow */
  aj_status* (*props)(void* self, int32_t dev, aj_device_props* io);
  aj_status* (*mem_alloc)(void* self, int32_t dev, uint64_t bytes, uint32_t kind, void** out); /* raw; the core caches */
  aj_status* (*mem_free)(void* self, int32_t dev, void* p, uint64_t bytes, uint32_t kind);
  aj_status* (*mem_info)(void* self, int32_t dev, uint64_t* free_bytes, uint64_t* total_bytes);
  aj_status* (*mem_idle)(void* self, int32_t dev, void* p, uint64_t bytes); /* contents may go, the range stays */
  aj_status* (*stream_new)(void* self, int32_t dev, int32_t priority, void** out);
  aj_status* (*stream_free)(void* self, int32_t dev, void* stream);
  aj_status* (*stream_sync)(void* self, int32_t dev, void* stream); /* NULL stream: the whole device */
  aj_status* (*stream_query)(void* self, int32_t dev, void* stream, int32_t* done);
  aj_status* (*stream_wait)(void* self, int32_t dev, void* stream, void* event);
  aj_status* (*stream_host_fn)(void* self, int32_t dev, void* stream, void (*fn)(void* arg), void* arg);
  aj_status* (*event_new)(void* self, int32_t dev, uint32_t flags, void** out);
  aj_status* (*event_free)(void* self, int32_t dev, void* event);
  aj_status* (*event_record)(void* self, int32_t dev, void* event, void* stream);
  aj_status* (*event_query)(void* self, int32_t dev, void* event, int32_t* done); /* returns a failed kernel's status */
  aj_status* (*event_sync)(void* self, int32_t dev, void* event);
  aj_status* (*event_elapsed)(void* self, void* start, void* stop, double* out_ms);
  aj_status* (*copy)(void* self, const aj_copy* c); /* to, from and within this device */
  aj_status* (*fill)(void* self, int32_t dev, void* p, const void* pattern, uint64_t pattern_bytes, uint64_t bytes,
                     void* stream);
  aj_status* (*ipc_export)(void* self, int32_t dev, void* p, uint8_t out_handle[128]);
  aj_status* (*ipc_open)(void* self, int32_t dev, const uint8_t handle[128], void** out);
  aj_status* (*ipc_close)(void* self, int32_t dev, void* p);
  aj_status* (*fork_prepare)(void* self);
  void (*fork_parent)(void* self);
  void (*fork_child)(void* self); /* reset, or poison: every later call says "use spawn" */
  aj_status* (*capture_begin)(void* self, int32_t dev, void* stream);
  aj_status* (*capture_end)(void* self, int32_t dev, void* stream, void** out_graph);
  aj_status* (*graph_launch)(void* self, void* graph, void* stream);
  aj_status* (*graph_free)(void* self, void* graph);
  aj_str autocast; /* (optional) "dtype bfloat16; low mm nn::linear; float32 exp; widest cat": lists replace the rows' tags */
} aj_device_vtbl;

#ifdef __cplusplus
}
#endif
#endif
