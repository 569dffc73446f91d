/* adjoin/abi/wrap.h: experimental. Tensors without strides: batches, duals, sparse, ragged, deferred values,
 * subclasses. Reached by query("x.wrap", 1).
 *
 * Such a tensor (a wrapper) has a device, a dtype, a shape, a dispatch key and a payload: a counted object
 * that only the key's plugin understands. It has a place on the tape as any tensor has. AJ_TENSOR_STRIDED is
 * missing in its flags and dl.data is NULL; no flag says "deferred". Calls with it go to the kernels of its
 * key (def_kernel, def_fallback). Strided tensors do not reach your key: include it for the thread by
 * set_thread_keys, which lasts after the op that set it. Where neither serves an op, its body does; where it
 * has none, the wrapper is settled; where it cannot be, the call is refused, naming op, key and layout. A
 * recorded call of an op that has a body and no derivative runs the body, whatever kernels the key has:
 * def_vjp with `key` makes them serve. No kernel of a backend ever meets a wrapper, whatever keys a thread
 * excludes.
 * A kernel at the key may return a new tensor where an old one is to be written (call->rets[i] given): the
 * core moves its payload, or its values, into the old one.
 * For an op of kind "view" it returns a tensor made with view_of: a wrapper without is refused, for writes to
 * it would be lost. A body that makes its result by tensor_wrap has no history that the tape could see: while
 * a tensor that requires grad is recorded such a result is refused; the op needs a derivative (def_vjp).
 *
 * Who reads values dispatches an op, or asks tensor_settle (core.h) or tensor_strided (below): they settle or
 * refuse. Aliases (detach, a result kept for backward) share payload and version; the payload goes with the
 * last of them: the destroy function of its type is the news that nobody can ask for the value any more.
 *
 * Every function may be called from any thread. "out" is owned by who receives it, the rest is borrowed. */
#ifndef ADJOIN_ABI_WRAP_H
#define ADJOIN_ABI_WRAP_H
#include "base.h"
#include "core.h"
#ifdef __cplusplus
extern "C" {
#endif

struct aj_registrar;

typedef struct aj_wrap { /* EXTENSIBLE. what tensor_wrap makes a tensor of */
  uint32_t struct_size;
  uint32_t flags;        /* 0 */
  uint64_t key;          /* the mask of one key that has an aj_wrapper_def */
  DLTensor like;         /* device, dtype, ndim, shape; a size of -1 gives AJ_TENSOR_RAGGED.
                            strides: those that it will have, or NULL: then asking for them settles.
                            byte_offset: with strides, where the first element stands, in bytes from the
                            begin of the memory that it has, or will have: views are told apart by it.
                            data is not looked at */
  aj_object* payload;    /* retained; not NULL */
  aj_tensor* view_of;    /* (optional) the new tensor is its view: writes follow the rules of views */
  aj_tensor* version_of; /* (optional; else view_of) a write to either counts for both */
  int32_t level;         /* of nested transforms; the core only keeps it */
  int32_t layout;        /* AJ_LAYOUT_...: what people see */
} aj_wrap;

/* What a key does with its tensors: beside def_key in the same init, or for the keys "lazy", "transform" and
 * "capture".
 * Every function may be NULL. They run on any thread, several at once, without locks of the core's held, and
 * with recording off but for add_gradient. A status goes to whoever asked. */
typedef struct aj_wrapper_def { /* EXTENSIBLE */
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  aj_str key;
  void* self;

  /* The values as a strided tensor: `t` itself after tensor_fulfil, or a copy. A copy serves who reads; who
   * must have the memory of `t` itself, or writes it, is refused then. NULL: refused. */
  aj_status* (*settle)(void* self, aj_tensor* t, aj_tensor** strided);

  /* A string object: what is printed between the brackets of tensor(...), before device and dtype. NULL:
   * readers print the settled values, or the shape alone. */
  aj_status* (*describe)(void* self, aj_tensor* t, aj_object** text);

  /* A tensor of the same values that shares nothing, for deepcopy; no history. NULL: the settled values are
   * copied. */
  aj_status* (*copy)(void* self, aj_tensor* t, aj_tensor** out);

  /* A list object: the name of an op (a string object), then arguments with which it makes the tensor again:
   * for files, other processes, reports. Items are tensors, numbers, dtypes, None, and string and list
   * objects. NULL: the settled values are saved. */
  aj_status* (*parts)(void* self, aj_tensor* t, aj_object** list);

  /* a + b: two gradients of one tensor, at least one of this key; by dispatched ops, so that it can be
   * recorded. NULL: the op `add` is called. */
  aj_status* (*add_gradient)(void* self, aj_tensor* a, aj_tensor* b, aj_tensor** sum);

  aj_str hint; /* what a refusal tells people to do: "call to_dense() first". "": nothing */
} aj_wrapper_def;

typedef struct aj_wrappers { /* EXTENSIBLE. "x.wrap", 1 */
  uint32_t struct_size;
  uint32_t minor;

  /* During init. Refused: a key of another plugin's, a second definition (AJ_ALREADY_EXISTS). */
  aj_status* (*def_wrapper)(struct aj_registrar* r, const aj_wrapper_def* d);

  aj_status* (*tensor_wrap)(const aj_wrap* w, aj_tensor** out);

  /* Borrowed until it is replaced, or `t` fulfilled or released. NULL: `t` is not, or no more, of that
   * key. */
  aj_object* (*tensor_payload)(const aj_tensor* t, uint64_t key);

  /* `t` is written in place: it and its aliases get this payload, and the version moves. */
  aj_status* (*tensor_set_payload)(aj_tensor* t, aj_object* payload);

  /* `t` has its values now: it takes over the memory and strides of `source` (strided, of its device, dtype
   * and shape; who writes it from now on writes `t`, as a base and its views do) and loses key and payload.
   * Its aliases follow when they are read. A tensor that was fulfilled stays as it is: whoever came first
   * was right. */
  aj_status* (*tensor_fulfil)(aj_tensor* t, aj_tensor* source);

  /* For readers; of strided tensors, too. `who` stands at the begin of a refusal: "item". */
  aj_status* (*tensor_strided)(aj_tensor* t, aj_str who, aj_tensor** out); /* `t` itself, or its values */
  aj_status* (*tensor_describe)(aj_tensor* t, aj_object** out);            /* NULL in out: nothing to say */
  aj_status* (*tensor_copy)(aj_tensor* t, aj_tensor** out);                /* NULL in out: copy strided's */
  aj_status* (*tensor_parts)(aj_tensor* t, aj_object** out);               /* NULL in out: save strided's */
  int32_t (*tensor_layout)(const aj_tensor* t);                            /* AJ_LAYOUT_... */
  int32_t (*tensor_level)(const aj_tensor* t);                             /* as aj_wrap said; else 0 */

  /* The same as tensor_payload, owned: for who cannot rule out that another thread fulfils `t` meanwhile. */
  aj_status* (*tensor_payload_get)(const aj_tensor* t, uint64_t key, aj_object** out);
} aj_wrappers;

#ifdef __cplusplus
}
#endif
#endif
