/* adjoin/abi/op.h: ops, the call frame, iteration plans, kernels, keys. Reached by query("aj.op", 1).
 * Schema grammar: name "(" params ")" "->" result: "acme::scale(Tensor input, *, float by=1.0) -> Tensor".
 *   type = base ["<" words ">"] ["(" alias ["!"] ")"] ["?"] ["[" [n] "]"] ["?"]
 *   base = Tensor | Operand (tensor or number) | Scalar | int | dim | size | float | bool | str | dtype |
 *          device | layout | memory_format | Generator | Stream | Function | Object ("Object<acme::plan>")
 * "(a)" shares memory with the input of that letter, "(a!)" is written. "aux" results carry no gradient and
 * are hidden from frontends. An optional argument that is not given is AJ_NONE; a missing trailing one takes
 * its default. The documentation has the whole grammar with an example of each production.
 * Forms of a call: a ret whose tag is AJ_NONE is allocated by the core; a ret that is a tensor is written
 * into (out=); ret 0 the same tensor as argument 0 is the in-place form. Every ret comes back owned. A list
 * of tensors comes back as a list object. After an error nothing is in the rets: the core releases what a
 * kernel left there. At a functionality key a kernel finds in its rets what the caller gave: AJ_NONE, or a
 * tensor with AJ_VALUE_LENT. It writes that one and leaves it there, or passes it to redispatch, or replaces
 * it by an owned tensor, which the core copies. Above the tape a kernel works by calls: what it computes or
 * writes by hand has no history.
 * A kernel that declines (by dtypes, by can_run, or before it wrote anything by AJ_UNIMPLEMENTED) leaves the
 * call to the next candidate; at a functionality key then to the fallback of the key, and to the keys below.
 * A fallback passes on by redispatch: its AJ_UNIMPLEMENTED is the caller's error. While a kernel at a key
 * runs, its thread excludes that key; ops that one below the tape calls are not recorded.
 * Threads: every function may be called from any thread. Kernels run on any thread, several at once, without
 * locks of the core's held, and may call any function of the tables; on a device with streams they queue
 * their work on call->stream and return. Keys and autocast are the thread's; fallback policy, providers and
 * the deterministic mode the process's. def_ functions work during init alone, copy texts and structs, and
 * refuse what is there already (AJ_ALREADY_EXISTS); `self` stays valid. find_op and key_mask may load a
 * plugin, whose init then runs. */
#ifndef ADJOIN_ABI_OP_H
#define ADJOIN_ABI_OP_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

struct aj_core;
struct aj_registrar; /* OPAQUE. one transaction of a plugin's init: all of it or nothing */

typedef struct aj_operand { /* FROZEN 32 bytes: it stands in arrays */
  void* data;             /* first element, or a handle, to which the kernel adds tensor->dl.byte_offset; a
                             number in the compute dtype; NULL: None */
  const int64_t* strides; /* bytes, one per plan dimension, innermost first; 0 repeats, as a number does */
  aj_tensor* tensor;      /* NULL for a number */
  DLDataType dtype;
  uint32_t flags;         /* AJ_OPERAND_... */
} aj_operand;
enum {
  AJ_OPERAND_WRITE = 1u << 0,    /* the kernel writes it; else it only reads */
  AJ_OPERAND_NUMBER = 1u << 1,   /* data points to the value, in host memory */
  AJ_OPERAND_ALIGNED64 = 1u << 2 /* data is a multiple of 64 */
};

typedef struct aj_plan { /* EXTENSIBLE. a walk over outputs, then arguments in order less one written */
  uint32_t struct_size, flags;
  uint32_t ndim;        /* 1 or more: at most 64 */
  uint32_t nout, nops;
  uint32_t nreduced;    /* reductions: the innermost dimensions, where an output's stride is 0; scans: 1 */
  DLDataType compute;   /* what a kernel computes in */
  DLDataType reserved;
  int64_t numel;        /* product of sizes; 0 only in reductions: else no kernel is called */
  int64_t first_index;  /* C-order index of the first element: for random numbers, for parts of a plan */
  const int64_t* sizes; /* innermost first */
  const aj_operand* ops;
} aj_plan;
enum {
  AJ_PLAN_FLAT = 1u << 0,        /* ndim 1 and every operand is dense or a number */
  AJ_PLAN_LAST_NUMBER = 1u << 1, /* the last operand is a number */
  AJ_PLAN_SAME_DTYPE = 1u << 2,  /* every tensor operand has the compute dtype */
  AJ_PLAN_ORDERED = 1u << 3      /* dimensions are in logical order (random numbers, scans) */
};

typedef struct aj_call { /* EXTENSIBLE. never copied; read-only except *rets; dies with the call */
  uint32_t struct_size, flags;
  const struct aj_core* core;
  const aj_op* op;
  const aj_value* args; /* as in built_schema; a dim is >= 0; 0-dim tensors may be the host's, in lists too */
  aj_value* rets;       /* tensors to fill, unless the op's shapes depend on data (AJ_OP_ALLOCATES). A result
                           that is argument 0 ("Tensor(a!) x) -> Tensor(a!)") stands here already. Bodies
                           and ops with AJ_OP_ALLOCATES find AJ_NONE, other kernels of a backend tensors */
  uint32_t nargs, nrets;
  uint64_t keys;        /* keys below this kernel, for redispatch */
  void* stream;         /* the current stream of `device`; NULL: its default one, or it has none */
  DLDevice device;
  const aj_plan* plan;  /* pointwise, reduce and scan kinds; else NULL. Queued work copies what it needs */
} aj_call;
enum {
  AJ_CALL_META = 1u << 0,          /* shapes only: tensors have no data */
  AJ_CALL_DETERMINISTIC = 1u << 1, /* the same bits each time are asked for */
  AJ_CALL_CAPTURING = 1u << 2,     /* work on `stream` is kept for a graph: nothing may wait for it */
  AJ_CALL_IN_PLACE = 1u << 3       /* ret 0 is argument 0 */
};

typedef aj_status* (*aj_kernel_fn)(void* self, aj_call* call);

typedef struct aj_kernel_def { /* EXTENSIBLE */
  uint32_t struct_size, flags;
  aj_str op;           /* "add", "acme::squash"; a row's overload as "max.dim" */
  aj_str key;          /* a device's name, or a functionality key: "autocast", one from def_key */
  aj_str built_schema; /* (optional) what the author compiled against: the op may have grown since */
  uint64_t dtypes;     /* AJ_DT_ bits of the compute dtype, or the first tensor's; 0: the kernel checks */
  int32_t priority;    /* the highest that can_run agrees to serves; of equal ones the first defined */
  uint32_t reserved;
  aj_kernel_fn fn;
  void* self;
  int32_t (*can_run)(void* self, const aj_call* call); /* (optional) by dtypes, shapes, layouts */
} aj_kernel_def;
enum {
  AJ_KERNEL_INNER = 1u << 0,            /* may be called for parts of the plan, from several threads */
  AJ_KERNEL_CASTS = 1u << 1,            /* operands come in their own dtypes; halves compute in float32 */
  AJ_KERNEL_BLOCKS_HOST = 1u << 2,      /* waits for the device (never captured), or takes long: frontends
                                           park their lock */
  AJ_KERNEL_NONDETERMINISTIC = 1u << 4, /* refused in the deterministic mode */
  AJ_KERNEL_CALL_DEPENDENT = 1u << 5,   /* can_run looks at more than the signature: ask at each call */
  AJ_KERNEL_CHANNELS_LAST = 1u << 6     /* wants result 0 channels-last where C order was declared */
};

typedef struct aj_op_def { /* EXTENSIBLE */
  uint32_t struct_size, flags;
  aj_str schema;
  aj_str doc;
  aj_str kind; /* unary unary_float unary_bool binary binary_float compare pointwise reduce reduce_float
                  reduce_bool reduce_index scan view linear custom; "" is custom */
  aj_str tags; /* words: function-only ordered autocast:low|float32|widest|refused slot:nb_add cost:N ... */
  aj_str test; /* (optional) sample inputs as JSON, for the conformance tests */
  aj_status* (*infer)(void* self, aj_call* call); /* declares outputs, unless the kind does */
  aj_kernel_fn body; /* (optional) the op by other ops: serves any device that has no kernel */
  void* self;
} aj_op_def;
enum {
  AJ_OP_ALLOCATES = 1u << 0,   /* shapes depend on data: kernels make their results with tensor_empty */
  AJ_OP_NO_IN_PLACE = 1u << 1, /* no derived in-place form */
  AJ_OP_BODY_RECORDS = 1u << 2 /* body but no derivative of its own: run the body when recording */
};

typedef struct aj_param { /* EXTENSIBLE. one parameter or result of a schema, for binders */
  uint32_t struct_size, flags;
  aj_str name;
  int32_t base;    /* a binder that does not know it takes None and the default, and refuses all else */
  int32_t list;    /* 0 no, -1 any length, n > 0: n, and a single value stands for n equal ones */
  uint64_t dtypes; /* mask of AJ_DT_ bits, 0 = any */
  aj_value value;  /* default; lives as long as the op */
  aj_str type;     /* AJ_PARAM_OBJECT: the registered type's name, "" any */
} aj_param;
enum { /* aj_param.base */
  AJ_PARAM_TENSOR = 0, AJ_PARAM_OPERAND = 1, AJ_PARAM_SCALAR = 2, AJ_PARAM_INT = 3,
  AJ_PARAM_DIM = 4, AJ_PARAM_SIZE = 5, AJ_PARAM_FLOAT = 6, AJ_PARAM_BOOL = 7,
  AJ_PARAM_STR = 8, AJ_PARAM_DTYPE = 9, AJ_PARAM_DEVICE = 10, AJ_PARAM_LAYOUT = 11,
  AJ_PARAM_MEMORY_FORMAT = 12, AJ_PARAM_GENERATOR = 13, AJ_PARAM_STREAM = 14, AJ_PARAM_FUNCTION = 15,
  AJ_PARAM_OBJECT = 16
};
enum { /* aj_param.flags */
  AJ_PARAM_OPTIONAL = 1u << 0, /* "?" after the whole type: AJ_NONE is allowed */
  AJ_PARAM_HAS_DEFAULT = 1u << 1,
  AJ_PARAM_KEYWORD_ONLY = 1u << 2,
  AJ_PARAM_ALIASED = 1u << 3,
  AJ_PARAM_WRITTEN = 1u << 4,
  AJ_PARAM_AUX = 1u << 5,           /* results only */
  AJ_PARAM_OPTIONAL_ITEMS = 1u << 6 /* "Tensor?[]" */
};

typedef struct aj_op_info { /* EXTENSIBLE. strings live as long as the process */
  uint32_t struct_size, flags; /* the definition's flags, and AJ_INFO_... in the high half */
  aj_str name;                 /* with space and overload: "linalg::qr", "max.dim" */
  aj_str schema, doc, kind, tags, test;
  aj_str provider;             /* plugin that defined it; "" is the core */
  uint32_t nparams, nresults;
} aj_op_info;
enum {
  AJ_INFO_IN_PLACE = 1u << 16,       /* has the derived form name_ */
  AJ_INFO_OUT = 1u << 17,            /* has out= */
  AJ_INFO_DIFFERENTIABLE = 1u << 18,
  AJ_INFO_COMPOSITE = 1u << 19,      /* has a body */
  AJ_INFO_OWN_VJP = 1u << 20         /* a derivative of its own, not one that its body gives */
};

typedef struct aj_fallback_entry { /* EXTENSIBLE. a line of the ledger: an op that ran on the host */
  uint32_t struct_size, reserved;
  aj_str op, device, reason;
  uint64_t calls, bytes_in, bytes_out, nanoseconds;
} aj_fallback_entry;

typedef struct aj_autocast { /* EXTENSIBLE. the calling thread's casts of arguments, for one kind of device */
  uint32_t struct_size;
  int32_t enabled;
  int32_t keep, depth; /* of all kinds: casts of leaves are kept until depth (open scopes) is 0 */
  DLDataType dtype;    /* what ops of "autocast:low" compute in */
  DLDataType reserved;
} aj_autocast;

/* Where a plugin's key stands: beside the backends, inside or outside of the tape. Keys have names; key_mask
 * gives the bit that this process gave to one. Outside in: profiler, modes, capture, autocast, plugins' above
 * the tape, autograd, transform, lazy, plugins' below it, backends. */
enum {
  AJ_KEY_BACKEND = 0, AJ_KEY_BELOW_AUTOGRAD = 1, AJ_KEY_ABOVE_AUTOGRAD = 2
};

typedef struct aj_dispatch { /* EXTENSIBLE */
  uint32_t struct_size, minor;
  aj_status* (*def_op)(struct aj_registrar* r, const aj_op_def* d);
  aj_status* (*def_kernel)(struct aj_registrar* r, const aj_kernel_def* d);
  /* fn serves every op at that key: changes a copy of args and calls redispatch(op, call->keys, ...). */
  aj_status* (*def_fallback)(struct aj_registrar* r, aj_str key, aj_kernel_fn fn, void* self);
  aj_status* (*def_key)(struct aj_registrar* r, aj_str name, int32_t place, uint64_t* out_mask);

  uint64_t (*key_mask)(aj_str name);    /* 0 if unknown */
  const aj_op* (*find_op)(aj_str name); /* NULL if unknown */
  /* Missing trailing args take their defaults; nrets: all results of the schema, aux ones, too. */
  aj_status* (*call)(const aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets, uint32_t nrets);
  aj_status* (*redispatch)(const aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs,
                           aj_value* rets, uint32_t nrets);

  /* For infer: the i-th output. strides (elements) NULL: C order. Allocates, or checks out=; meta, too. */
  aj_status* (*declare)(aj_call* call, uint32_t i, DLDataType dtype, int32_t ndim, const int64_t* shape,
                        const int64_t* strides);
  /* For infer of kind "view": output i (of a list result: element i of count) shares argument arg's memory.
   * offset in elements of `dtype` from the argument's first. */
  aj_status* (*declare_view)(aj_call* call, uint32_t i, uint32_t count, uint32_t arg, DLDataType dtype,
                             int32_t ndim, const int64_t* shape, const int64_t* strides, int64_t offset);

  uint32_t (*op_count)(void);
  const aj_op* (*op_at)(uint32_t i);
  aj_status* (*op_info)(const aj_op* op, aj_op_info* io);
  aj_status* (*op_param)(const aj_op* op, uint32_t i, aj_param* io);  /* i < nparams */
  aj_status* (*op_result)(const aj_op* op, uint32_t i, aj_param* io); /* i < nresults */
  /* Who would serve op at the device and why, one line per candidate; a string object. */
  aj_status* (*op_explain)(const aj_op* op, aj_str device, aj_object** out);

  /* Keys added to and removed from every call of this thread; a guard reads, changes, restores. */
  void (*thread_keys)(uint64_t* include, uint64_t* exclude);
  void (*set_thread_keys)(uint64_t include, uint64_t exclude);
  /* What happens when a device lacks an op: "error", "warn", "host", "host:100MB"; op or device "": all. */
  aj_status* (*set_fallback)(aj_str op, aj_str device, aj_str policy);
  uint32_t (*fallback_count)(void);
  aj_status* (*fallback_at)(uint32_t i, aj_fallback_entry* io);
  aj_status* (*set_deterministic)(int32_t on, int32_t* previous); /* previous may be NULL */
  /* Chooses between several providers of one device: policy "" is by priority. */
  aj_status* (*set_provider)(aj_str device, aj_str plugin);
  aj_status* (*autocast)(int32_t device_type, aj_autocast* before, const aj_autocast* next); /* or NULL */
} aj_dispatch;

#ifdef __cplusplus
}
#endif
#endif
