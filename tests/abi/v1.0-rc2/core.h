/* adjoin/abi/core.h: what libadjoin does for everyone who joins it. Reached by query("aj.core", 1).
 * Every function may be called from any thread, and from a kernel; texts are copied. Pointers are not NULL
 * unless it says so. A status means: nothing was done, nothing is in `out`. An aj_str that comes back lives
 * as long as what it was asked of. In an "io" struct the caller sets struct_size, the core writes so much at
 * most. Default dtype, limits and seeds are the process's; streams, lines and modes the thread's. */
#ifndef ADJOIN_ABI_CORE_H
#define ADJOIN_ABI_CORE_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct aj_dtype_info { /* EXTENSIBLE */
  uint32_t struct_size;
  uint32_t index;      /* AJ_DT_... or a registered number */
  DLDataType dtype;
  uint32_t bytes;
  int32_t dtype_class; /* AJ_CLASS_... */
  int32_t promotes;    /* 0 of a registered dtype: it never takes part in promotion */
  aj_str name;
} aj_dtype_info;

typedef struct aj_memory_stats { /* EXTENSIBLE. of one device, in bytes */
  uint32_t struct_size, reserved;
  uint64_t in_use, peak_in_use, cached;
  uint64_t limit;              /* 0: none */
  uint64_t allocations;        /* how often memory was asked of the cache */
  uint64_t system_allocations; /* and by the cache of the plugin */
} aj_memory_stats;

/* What a frontend (a language) does for the core. One may mark tensors with a word: an object of its own. */
typedef struct aj_frontend { /* EXTENSIBLE. all optional but the name */
  uint32_t struct_size, flags; /* flags: 0 */
  aj_str name;
  void* (*park)(void);         /* around long kernels: releases the language's lock; NULL: did not hold it */
  void (*unpark)(void* parked);
  void (*drop)(void* word);    /* a tensor that owned its word has died; on any thread */
  aj_status* (*describe_line)(uint32_t line, aj_object** out); /* a string object: "train.py:41 in step" */
  void (*collect)(void);       /* memory is short: run the garbage collector */
  int32_t (*interrupted)(void);      /* has the user asked to stop? */
  void (*dtype_changed)(void* word); /* the tensor with this word took another dtype */
} aj_frontend;

/* *ret is NONE at first; what is put there is given. */
typedef aj_status* (*aj_function_fn)(void* self, const aj_value* args, uint32_t nargs, aj_value* ret);

enum { AJ_DLPACK_NO_SYNC = 1u << 0 }; /* tensor_to_dlpack: the taker orders its work by itself */

typedef struct aj_core { /* EXTENSIBLE */
  uint32_t struct_size, minor;

  /* Errors. kind names a Python class ("ValueError"; "": from the code). file may be NULL. Never
   * fails. */
  aj_status* (*status_new)(int32_t code, aj_str kind, aj_str message, const char* file, uint64_t line);
  aj_status* (*status_with_cause)(aj_status* steal_outer, aj_status* steal_cause); /* one NULL: the other */
  int32_t (*status_code)(const aj_status* s);
  aj_str (*status_kind)(const aj_status* s);
  aj_str (*status_message)(const aj_status* s);
  aj_str (*status_where)(const aj_status* s); /* "file:line" of who made it, may be empty */
  const aj_status* (*status_cause)(const aj_status* s);
  void (*status_free)(aj_status* s);

  /* Objects: counted. retain and release take tensors too, and NULL. */
  void (*retain)(void* object);
  void (*release)(void* object);
  /* A type belongs to the plugin whose init registers it. The name (letters, digits, _ . - and ::, as in
   * Object<acme::plan>) is new in the process, or was the same plugin's before it was disabled: then the
   * number is the same, and destroy serves what is alive. destroy (or NULL) runs on the thread that releases
   * the last reference. A live object keeps its plugin mapped. */
  aj_status* (*type_register)(aj_str name, uint64_t payload_size, void (*destroy)(void* payload),
                              int32_t* out_type);
  aj_status* (*type_find)(aj_str name, int32_t* out_type);
  aj_str (*type_name)(int32_t type); /* "" if there is none */
  aj_status* (*object_new)(int32_t type, aj_object** out, void** out_payload); /* the payload is zeros */
  void* (*object_payload)(aj_object* o);
  aj_status* (*string_new)(aj_str text, aj_object** out);
  aj_str (*string_get)(const aj_object* o); /* "" if it is no string */
  aj_status* (*list_new)(const aj_value* items, uint32_t n, aj_object** out); /* retains what is counted */
  const aj_value* (*list_get)(const aj_object* o, uint32_t* n);               /* as long as the list */
  aj_status* (*complex_new)(double real, double imag, aj_object** out);
  aj_status* (*complex_get)(const aj_object* o, double* real, double* imag);
  aj_status* (*function_new)(aj_function_fn fn, void* self, void (*drop)(void* self), aj_object** out);
  aj_status* (*function_call)(aj_object* f, const aj_value* args, uint32_t nargs, aj_value* ret);
  /* A stream as an argument: `native`, the plugin's handle or NULL (the default one), outlives its use. */
  aj_status* (*stream_new)(DLDevice device, void* native, aj_object** out);
  aj_status* (*stream_get)(const aj_object* o, DLDevice* device, void** native);

  /* Dtypes. Promotion is PyTorch's: category first, then width; numbers and 0-dim tensors are weak. Who
   * registers a dtype that is there with the same bits and class gets its number. */
  aj_status* (*dtype_register)(aj_str name, uint32_t bits, int32_t dtype_class, DLDataType* out);
  aj_status* (*dtype_info)(DLDataType dtype, aj_dtype_info* io);
  aj_status* (*dtype_find)(aj_str name, DLDataType* out);
  aj_status* (*dtype_promote)(DLDataType a, DLDataType b, DLDataType* out);
  int32_t (*dtype_can_cast)(DLDataType from, DLDataType to);
  DLDataType (*default_dtype)(void);
  aj_status* (*set_default_dtype)(DLDataType dtype);

  /* Tensors. `like` gives device, dtype, ndim, shape and strides (NULL: C order); its data is ignored. */
  aj_status* (*tensor_empty)(const DLTensor* like, uint64_t flags, aj_tensor** out); /* flags 0 */
  /* offset in elements from the base's first; checked to lie in its memory; no history. */
  aj_status* (*tensor_view)(aj_tensor* base, const DLTensor* like, int64_t offset, aj_tensor** out);
  /* Memory of somebody else at like->data, `bytes` long, which like's shape must fit; drop(ctx), on any
   * thread, when the last user is gone. flags: AJ_TENSOR_READ_ONLY. */
  aj_status* (*tensor_from_memory)(const DLTensor* like, uint64_t bytes, uint64_t flags, void* ctx,
                                   void (*drop)(void* ctx), aj_tensor** out);
  aj_status* (*tensor_from_dlpack)(DLManagedTensorVersioned* steal, aj_tensor** out);
  /* What is queued later on `stream` of the tensor's device (NULL: its default) sees the contents. A dtype
   * that DLPack does not have is refused. flags: AJ_DLPACK_... */
  aj_status* (*tensor_to_dlpack)(aj_tensor* t, void* stream, uint64_t flags, DLManagedTensorVersioned** out);
  uint64_t (*tensor_version)(const aj_tensor* t);
  void (*tensor_bump_version)(aj_tensor* t);
  /* The memory under a tensor: id is equal for tensors that share it; offset in bytes from its begin. */
  aj_status* (*tensor_storage)(const aj_tensor* t, void** data, uint64_t* bytes, uint64_t* offset,
                               uint64_t* id);
  aj_status* (*tensor_resize)(aj_tensor* t, int32_t ndim, const int64_t* shape); /* grows the memory */
  aj_status* (*tensor_set)(aj_tensor* t, aj_tensor* source, int64_t offset, int32_t ndim,
                           const int64_t* shape, const int64_t* strides); /* shares source's memory */
  aj_status* (*tensor_copy_bytes)(aj_tensor* t, void* host, uint64_t bytes, int32_t to_host); /* waits */
  int64_t (*tensor_numel)(const aj_tensor* t);
  int32_t (*tensor_unique)(const aj_tensor* t); /* 1: there is one reference */

  /* A frontend's word on a tensor. owned: drop(word) when the tensor dies; else it is borrowed. The same name
   * again, after its plugin was disabled, has the same id. */
  aj_status* (*frontend_register)(const aj_frontend* f, int32_t* out_id);
  void* (*frontend_word)(const aj_tensor* t, int32_t id);
  void (*set_frontend_word)(aj_tensor* t, int32_t id, void* word, int32_t owned);
  /* The user's line of this thread's next recorded call: a number of the frontend's. site, if not 0, is told
   * instead: where the user called the layer that makes the call. */
  void (*set_line)(uint32_t line, uint32_t site);
  void (*get_line)(uint32_t* line, uint32_t* site);

  /* Threads. Chunks are [i * grain, (i + 1) * grain) of n > 0, whatever the number of threads. The caller
   * takes part; inside of a body it runs inline. The earliest failing chunk's status comes back. */
  aj_status* (*parallel_for)(int64_t n, int64_t grain, aj_status* (*body)(void* self, int64_t lo, int64_t hi),
                             void* self);
  int32_t (*num_threads)(void);
  aj_status* (*set_num_threads)(int32_t n);
  int32_t (*thread_index)(void); /* 0 is the caller; scratch space is indexed by it */
  int32_t (*interrupted)(void);  /* kernels that take seconds ask now and then, and return AJ_CANCELLED */
  void (*log)(int32_t level, aj_str who, aj_str message); /* 0 error, 1 warning, 2 info, 3 trace */

  /* Devices by name; the number is DLDevice.device_type in this process. Loads the plugin with that name. */
  aj_status* (*device_find)(aj_str name, int32_t* out_type); /* "cuda", not "cuda:0" */
  aj_str (*device_name)(int32_t device_type); /* "" if there is none; "acme@plugin" of one not active */
  aj_status* (*device_count)(int32_t device_type, int32_t* out);
  aj_status* (*device_synchronize)(DLDevice device);
  aj_status* (*stream_current)(DLDevice device, void** out_native); /* this thread's; NULL: the default one */
  aj_status* (*stream_set)(DLDevice device, void* native); /* memory remembers who used it where */
  aj_status* (*memory_stats)(DLDevice device, aj_memory_stats* io);
  aj_status* (*memory_release)(DLDevice device); /* cached memory goes back to the system */
  aj_status* (*memory_limit)(DLDevice device, uint64_t bytes); /* above it allocating raises; 0: none */
  aj_status* (*memory_reset_peak)(DLDevice device);

  /* Random numbers: Philox 4x32-10. Element i takes word i mod 4 of block offset + i / 4. */
  aj_status* (*generator_new)(DLDevice device, aj_object** out);
  aj_status* (*generator_default)(DLDevice device, aj_object** out);
  aj_status* (*generator_get)(aj_object* g, uint64_t* seed, uint64_t* offset);
  aj_status* (*generator_set)(aj_object* g, uint64_t seed, uint64_t offset);
  /* Takes so many blocks of four words (float64: two elements a block). g NULL: the cpu's default. */
  aj_status* (*generator_draw)(aj_object* g, uint64_t blocks, uint64_t* seed, uint64_t* offset);
  aj_status* (*manual_seed)(uint64_t seed); /* every default generator */

  /* Forms of a tensor's contents made for faster use (a packed weight), kept until the contents may have
   * changed. find: the one kept under the key, or NULL and a ticket for keep; 0: not worth keeping. Who
   * writes outside of an op says so by bump_version; who lends memory to one who may not, by escape. */
  uint64_t (*prepared_find)(aj_tensor* t, const void* key, uint64_t key_bytes, aj_tensor** out);
  void (*prepared_keep)(aj_tensor* t, uint64_t ticket, const void* key, uint64_t key_bytes, aj_tensor* form);
  void (*tensor_escape)(aj_tensor* t);
  /* AJ_TENSOR_FREE_ORDER goes: C order, in memory of its own. For who shows strides or hands out `data`: a
   * binding, a file, a copy by hand. Kernels and functions of these tables need not. */
  aj_status* (*tensor_settle)(aj_tensor* t);

  /* The text of what get_line gave; a string object. Not under a lock: it may wait for the language's. */
  aj_status* (*line_text)(uint32_t line, aj_object** out);
  /* A copy of a host tensor in memory that devices of the kind copy from and to while the program goes on. */
  aj_status* (*tensor_pin)(aj_tensor* t, int32_t device_type, aj_tensor** out);
  int32_t (*tensor_pinned)(const aj_tensor* t); /* does it lie in such memory? */

  /* Device graphs. Between begin and end what is queued on the stream `native` (not NULL) is kept, not run;
   * memory taken there comes from a pool that lives as long as the graph. share (or NULL): a graph whose pool
   * serves this one, too; the two never run at once. */
  aj_status* (*capture_begin)(DLDevice device, void* native, aj_object* share);
  aj_status* (*capture_end)(DLDevice device, void* native, aj_object** out_graph);
  aj_status* (*graph_launch)(aj_object* graph, void* native);
} aj_core;

#ifdef __cplusplus
}
#endif
#endif
