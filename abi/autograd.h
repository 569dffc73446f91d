/* adjoin/abi/autograd.h: derivatives, the tape, hooks, custom nodes. Reached by query("aj.autograd", 1).
 * A derivative written with dispatched ops can be differentiated again. An op without one raises when a
 * gradient is asked of it: never a silent zero. Complex gradients: g = dL/dRe z + i dL/dIm z.
 * Threads: every function may be called from any thread. A tensor's history is written by one thread at a
 * time; backward passes run beside each other. Derivatives and hooks run on the thread that called backward,
 * drop functions on any. Grad mode, inference mode and saved hooks are the thread's; the anomaly mode is the
 * process's. What a callback that fails has filled in is released by the core. Callbacks may call any
 * function; find_op may load a plugin. */
#ifndef ADJOIN_ABI_AUTOGRAD_H
#define ADJOIN_ABI_AUTOGRAD_H
#include "base.h"
#include "op.h"
#ifdef __cplusplus
extern "C" {
#endif

struct aj_saver; /* OPAQUE */

typedef struct aj_save { /* FROZEN. what a node keeps, in the order in which vjp finds it in saved[] */
  int32_t what;          /* AJ_SAVE_... */
  int32_t index;         /* argument or result number */
  uint64_t only_for;     /* 0: always. Else a tensor is kept only if an argument i whose bit i is set needs a
                            gradient; otherwise saved[] has None there */
} aj_save;
enum {
  AJ_SAVE_ARG = 0,      /* argument: a tensor with its version, tensors as AJ_TENSORS, else a copy */
  AJ_SAVE_RESULT = 1,   /* result tensor */
  AJ_SAVE_SHAPE = 2,    /* argument's shape, as AJ_INTS (numbers: empty); None if the argument is */
  AJ_SAVE_DTYPE = 3,    /* argument's dtype, as AJ_DTYPE */
  AJ_SAVE_RESULT_SHAPE = 4
};

typedef struct aj_grad_call { /* EXTENSIBLE */
  uint32_t struct_size, flags;
  const struct aj_core* core;
  const aj_dispatch* op;
  const struct aj_autograd* autograd;
  const aj_value* saved;      /* unpacked, versions checked; borrowed */
  aj_tensor* const* grad_out; /* one per result (a list result: one per element); NULL = zero: without
                                 AJ_VJP_MATERIALIZE look before you pass it on */
  aj_tensor** grad_in;        /* one per input, flattened; to be filled with owned tensors, NULL = zero */
  const uint8_t* needs;       /* needs[i]: grad_in[i] is wanted of this pass; `only_for` was decided when the
                                 call was recorded */
  void* payload;              /* of a custom node, else NULL */
  uint32_t nsaved, ngrad_out, ngrad_in, reserved;
} aj_grad_call;

/* Inputs are flattened: every Tensor, Operand and tensor-list element among the arguments, in order; a number
 * or None keeps its place, with needs 0. The core sums a gradient to its input's shape, and casts it. */
typedef struct aj_vjp_def { /* EXTENSIBLE */
  uint32_t struct_size, flags;
  aj_str op;           /* for a custom node: the name to show */
  const aj_save* save; /* (optional) kept by the core */
  uint32_t nsave, reserved;
  aj_status* (*save_more)(void* self, const aj_call* done, struct aj_saver* s); /* (optional) */
  aj_status* (*vjp)(void* self, aj_grad_call* g);
  void* self;
  void (*drop)(void* payload); /* (optional) custom nodes: frees the payload */
  aj_str key;                  /* (optional) the derivative when an argument carries this key */
} aj_vjp_def;
enum {
  AJ_VJP_ONCE = 1u << 0,           /* raw arithmetic: a second derivative raises */
  AJ_VJP_MATERIALIZE = 1u << 1,    /* undefined gradients arrive as zeros */
  AJ_VJP_NO_GRAD_RESULTS = 1u << 2 /* rightly without a derivative: results never require grad */
};

typedef struct aj_node { /* OPAQUE in size: a view of a node; retained like an object */
  aj_object obj;
} aj_node;

/* *inout_grad is lent; what replaces it is given. */
typedef aj_status* (*aj_tensor_hook)(void* self, aj_tensor** inout_grad);
/* Before the node: inout_grads are those of its results, other is NULL. After it: inout_grads are those of
 * its inputs, other those of its results. */
typedef aj_status* (*aj_node_hook)(void* self, aj_tensor** inout_grads, uint32_t n, aj_tensor* const* other,
                                   uint32_t nother);
typedef aj_status* (*aj_pack_hook)(void* self, aj_tensor* t, aj_object** out); /* retained */
typedef aj_status* (*aj_unpack_hook)(void* self, aj_object* packed, aj_tensor** out);
enum { AJ_HOOK_NODE_PRE = 0, AJ_HOOK_NODE_POST = 1, AJ_HOOK_TENSOR = 2, AJ_HOOK_POST_ACCUMULATE = 3 };

typedef struct aj_backward { /* EXTENSIBLE. one run of the engine */
  uint32_t struct_size, flags;
  aj_tensor* const* roots;
  aj_tensor* const* grads;  /* NULL, or an entry NULL: ones for a root of one element */
  aj_tensor* const* inputs; /* only these; their gradients go to `out`, or into .grad when out is NULL */
  aj_tensor** out;          /* owned; NULL where the input is not reached (AJ_BACKWARD_ALLOW_UNUSED) */
  uint32_t nroots, ninputs;
} aj_backward;
enum {
  AJ_BACKWARD_RETAIN_GRAPH = 1u << 0,
  AJ_BACKWARD_CREATE_GRAPH = 1u << 1,
  AJ_BACKWARD_ALLOW_UNUSED = 1u << 2,
  AJ_BACKWARD_ZERO_UNUSED = 1u << 3
};

typedef struct aj_autograd { /* EXTENSIBLE */
  uint32_t struct_size, minor;
  aj_status* (*def_vjp)(struct aj_registrar* r, const aj_vjp_def* d);
  aj_status* (*save)(struct aj_saver* s, const aj_value* v); /* from save_more */

  int32_t (*grad_mode)(void);
  int32_t (*set_grad_mode)(int32_t on); /* returns the previous */
  int32_t (*inference_mode)(void);
  int32_t (*set_inference_mode)(int32_t on);
  int32_t (*set_anomaly_mode)(int32_t flags); /* bit 0 on, bit 1 check for NaN; returns the previous */

  aj_status* (*set_requires_grad)(aj_tensor* t, int32_t on);
  aj_status* (*grad)(aj_tensor* t, aj_tensor** out);     /* .grad, owned; NULL if none */
  aj_status* (*set_grad)(aj_tensor* t, aj_tensor* grad); /* NULL clears; shape, dtype, device must agree */
  aj_status* (*retain_grad)(aj_tensor* t);
  int32_t (*retains_grad)(const aj_tensor* t);
  aj_status* (*detach)(aj_tensor* t, aj_tensor** out);   /* shares memory and version, no history */
  aj_status* (*detach_in_place)(aj_tensor* t);
  aj_status* (*data)(aj_tensor* t, aj_tensor** out);     /* shares memory; its writes are not counted */
  aj_status* (*set_data)(aj_tensor* t, aj_tensor* source);
  aj_status* (*base)(aj_tensor* t, aj_tensor** out);     /* of a view, owned; NULL otherwise */
  aj_status* (*backward)(const aj_backward* b);

  /* Hooks. drop(self) (or NULL) is called once when the hook dies. id (or NULL) is unique in the process. */
  aj_status* (*hook_tensor)(aj_tensor* t, int32_t kind, aj_tensor_hook fn, void* self, void (*drop)(void*),
                            uint64_t* id);
  aj_status* (*hook_node)(aj_node* n, int32_t kind, aj_node_hook fn, void* self, void (*drop)(void*),
                          uint64_t* id);
  aj_status* (*hook_remove)(uint64_t id); /* it is called no more; drop may wait for its tensor or node */
  /* Pairs of hooks for what is saved, a stack. */
  aj_status* (*push_saved_hooks)(aj_pack_hook pack, aj_unpack_hook unpack, void* self, void (*drop)(void*));
  aj_status* (*pop_saved_hooks)(void);

  /* Nodes, for those who look at a graph. All out pointers are owned. */
  aj_status* (*tensor_node)(aj_tensor* t, aj_node** out, uint32_t* result); /* grad_fn; NULL for a leaf */
  aj_status* (*accumulator)(aj_tensor* leaf, aj_node** out);
  aj_str (*node_name)(aj_node* n);
  uint64_t (*node_sequence)(aj_node* n);
  uint32_t (*node_edges)(aj_node* n);
  aj_status* (*node_edge)(aj_node* n, uint32_t i, aj_node** out, uint32_t* result); /* NULL: no gradient */
  aj_status* (*node_saved)(aj_node* n, uint32_t i, aj_value* out); /* AJ_NOT_FOUND: the end */
  uint32_t (*node_line)(aj_node* n);
  aj_tensor* (*node_variable)(aj_node* n); /* an accumulator's leaf, borrowed */

  /* Custom functions. The core copies *def. inputs are flattened as above; node_new takes their edges now. */
  aj_status* (*node_new)(const aj_vjp_def* def, void* payload, aj_tensor* const* inputs, uint32_t n,
                         aj_node** out);
  aj_status* (*node_save)(aj_node* n, const aj_value* v, int32_t is_result);
  /* t becomes result i of the node: by the rules of writes if an input (dirty), of views if a view. */
  aj_status* (*node_attach)(aj_node* n, uint32_t i, aj_tensor* t, int32_t dirty);
  void* (*node_payload)(aj_node* n, const aj_vjp_def** def); /* NULL unless custom */
  aj_status* (*node_results)(aj_node* n, uint32_t n_results);
} aj_autograd;

#ifdef __cplusplus
}
#endif
#endif
