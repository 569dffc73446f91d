/* adjoin/abi/base.h: the ground of the contract: strings, objects, the tensor's prefix, values, numbers.
 * A struct here or in a later header is
 *   FROZEN      its size and layout never change;
 *   EXTENSIBLE  it begins with struct_size, fields are appended, each side touches only what both know;
 *   OPAQUE      only its address is seen.
 * Names are identity (op, key, device, dtype, type, interface); numbers are resolved when a plugin is loaded.
 * Flags. Of every word of flags the low 16 bits must be understood: who gets one that he does not know
 * refuses. The high 16 bits are hints: unknown ones are ignored. Zero always means the old behaviour. In a
 * word that the core writes and a plugin reads (obj.flags, aj_call, aj_plan, aj_copy, aj_gemm) a low bit
 * newer than the reader is set only if the reader's struct_size, or a flag of his, shows that he knows it.
 * Reserved words are 0. In a definition anything else is refused; a later version may give them a name.
 * Ownership. "out" gives a reference, "steal_" takes one (on failure too), all else is borrowed for the call.
 * Texts with a length are aj_str; a `const char*` alone ends with NUL. */
#ifndef ADJOIN_ABI_BASE_H
#define ADJOIN_ABI_BASE_H
#include <stddef.h>
#include <stdint.h>

#include "dlpack.h"

#if UINTPTR_MAX != UINT64_MAX
#error "the contract is laid out for pointers of 64 bits"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define AJ_ABI_MAJOR 1
#define AJ_ABI_MINOR 0
/* "Runs on 1.N and later". It hides nothing: what is newer than N is tested by AJ_HAS_FIELD and AJ_HAS_FN. */
#ifndef ADJOIN_TARGET_MINOR
#define ADJOIN_TARGET_MINOR 0
#endif
#if ADJOIN_TARGET_MINOR > AJ_ABI_MINOR
#error "ADJOIN_TARGET_MINOR is newer than these headers"
#endif

#define AJ_END_OF(T, f) (offsetof(T, f) + sizeof(((T*)0)->f))
#define AJ_HAS_FIELD(p, T, f) ((p)->struct_size >= AJ_END_OF(T, f)) /* data: present, may be zero */
#define AJ_HAS_FN(p, T, f) (AJ_HAS_FIELD(p, T, f) && (p)->f != 0)   /* function: present and set */

typedef struct aj_str { /* FROZEN. UTF-8, not NUL-terminated */
  const char* data;
  uint64_t len;
} aj_str;
#ifdef __cplusplus
#define AJ_STR_LIT(s) (aj_str{(s), sizeof(s) - 1})
#else
#define AJ_STR_LIT(s) ((aj_str){(s), sizeof(s) - 1})
#endif

typedef struct aj_status aj_status; /* OPAQUE. NULL: success; who receives one frees it or passes it on */
typedef struct aj_op aj_op;         /* OPAQUE. lives as long as the process */

enum { /* status codes; the Python class of each stands in the documentation */
  AJ_OK = 0, AJ_CANCELLED = 1, AJ_UNKNOWN = 2, AJ_INVALID_ARGUMENT = 3,
  AJ_DEADLINE = 4, AJ_NOT_FOUND = 5, AJ_ALREADY_EXISTS = 6, AJ_PERMISSION = 7,
  AJ_OUT_OF_MEMORY = 8, AJ_PRECONDITION = 9, AJ_ABORTED = 10, AJ_OUT_OF_RANGE = 11,
  AJ_UNIMPLEMENTED = 12, AJ_INTERNAL = 13, AJ_UNAVAILABLE = 14, AJ_DATA_LOSS = 15,
  AJ_WRONG_TYPE = 16
};

typedef struct aj_object { /* FROZEN. core-private fields stand at negative offsets */
  uint64_t refs_private;   /* touched by the core alone: retain and release go through aj_core */
  int32_t type;            /* a tag from AJ_TENSOR on, or >= AJ_DYNAMIC_BEGIN: registered by name */
  uint32_t flags;
} aj_object;

/* Device, dtype, ndim and shape are always good. Without AJ_TENSOR_STRIDED the values lie elsewhere (sparse,
 * batched, not computed yet: `keys` tell): `data` and `byte_offset` are not to be read, and strides are NULL
 * or what the tensor shows. With it strides are true, and never NULL when ndim > 0. `byte_offset` is 0 unless
 * the device has AJ_DEV_OPAQUE_POINTERS: there `data` is the handle of an allocation (of an empty one, too)
 * and the first element stands so many bytes, a whole number of elements, behind its begin. */
typedef struct aj_tensor { /* FROZEN 72-byte prefix; only the core makes tensors */
  aj_object obj;
  DLTensor dl;   /* read-only */
  uint64_t keys; /* dispatch keys: what this tensor is, see op.h */
} aj_tensor;
enum {                            /* aj_tensor.obj.flags */
  AJ_TENSOR_STRIDED = 1u << 0,    /* dl describes the data */
  AJ_TENSOR_DENSE = 1u << 1,      /* C order without gaps */
  AJ_TENSOR_REQUIRES_GRAD = 1u << 2,
  AJ_TENSOR_LEAF = 1u << 3,       /* requires grad and no op made it */
  AJ_TENSOR_VIEW = 1u << 4,       /* shares the storage of a base tensor */
  AJ_TENSOR_INFERENCE = 1u << 5,  /* made in inference mode */
  AJ_TENSOR_READ_ONLY = 1u << 6,  /* memory of somebody else that must not be written */
  AJ_TENSOR_FREE_ORDER = 1u << 7, /* strides are true but not what people expect: see tensor_settle */
  AJ_TENSOR_RAGGED = 1u << 8      /* a size is -1: no one number. Never with AJ_TENSOR_STRIDED */
};

/* aj_value.tag; never reused. For all tags there will ever be: below 64 a value owns nothing, from 64 on it
 * is a counted object. A result, an `out` value and an item of a list never are AJ_COMPLEX or AJ_STRING ..
 * AJ_TENSORS, which point to memory of somebody: there they are complex, string and list objects. */
enum {
  AJ_NONE = 0,
  AJ_BOOL = 1,
  AJ_INT = 2,
  AJ_FLOAT = 3,
  AJ_COMPLEX = 4,
  AJ_DTYPE = 5,
  AJ_DEVICE = 6,
  AJ_STRING = 7,
  AJ_INTS = 8,
  AJ_FLOATS = 9,
  AJ_BOOLS = 10,
  AJ_TENSORS = 11,
  AJ_LAYOUT = 12,
  AJ_MEMORY_FORMAT = 13,
  AJ_TENSOR = 64,
  AJ_STRING_OBJ = 65,
  AJ_LIST_OBJ = 66,
  AJ_COMPLEX_OBJ = 67,
  AJ_GENERATOR = 68,
  AJ_STREAM = 69,
  AJ_FUNCTION = 70,
  AJ_OBJECT = 71,        /* an object of a registered type: v.object->type says which */
  AJ_DYNAMIC_BEGIN = 256 /* the first number of a registered type */
};
enum {
  AJ_LAYOUT_STRIDED = 0, AJ_LAYOUT_SPARSE_COO = 1, AJ_LAYOUT_SPARSE_CSR = 2,
  AJ_LAYOUT_OPAQUE = 3, AJ_LAYOUT_SPARSE_CSC = 4, AJ_LAYOUT_SPARSE_BSR = 5,
  AJ_LAYOUT_SPARSE_BSC = 6, AJ_LAYOUT_JAGGED = 7
};
enum {
  AJ_FORMAT_CONTIGUOUS = 0, AJ_FORMAT_PRESERVE = 1, AJ_FORMAT_CHANNELS_LAST = 2,
  AJ_FORMAT_CHANNELS_LAST_3D = 3
};

typedef struct aj_value { /* FROZEN. arguments are borrowed, results owned */
  int32_t tag;
  uint32_t aux;                /* element count of AJ_STRING .. AJ_TENSORS, else 0, but: AJ_VALUE_LENT */
  union {
    int64_t i;                 /* AJ_BOOL (0, 1), AJ_INT, AJ_LAYOUT, AJ_MEMORY_FORMAT */
    uint64_t u;
    double f;
    const double* c128;        /* AJ_COMPLEX: real, imaginary */
    const char* str;
    const int64_t* ints;
    const double* floats;
    const uint8_t* bools;
    aj_tensor* const* tensors; /* an entry may be NULL where the schema says Tensor?[] */
    DLDataType dtype;
    DLDevice device;
    aj_tensor* tensor;
    aj_object* object;         /* tags of 65 and more */
    const void* ptr;
  } v;
} aj_value;
/* aux of a tensor in call->rets: it is to be written, and not counted there. See op.h. */
enum { AJ_VALUE_LENT = 1 };

/* Bits of the built-in dtypes in an aj_kernel_def's mask, also the index that dtype_info returns. */
enum {
  AJ_DT_BOOL = 0, AJ_DT_UINT8 = 1, AJ_DT_INT8 = 2, AJ_DT_INT16 = 3, AJ_DT_INT32 = 4, AJ_DT_INT64 = 5,
  AJ_DT_FLOAT16 = 6, AJ_DT_BFLOAT16 = 7, AJ_DT_FLOAT32 = 8, AJ_DT_FLOAT64 = 9,
  AJ_DT_COMPLEX64 = 10, AJ_DT_COMPLEX128 = 11,
  AJ_DT_UINT16 = 12, AJ_DT_UINT32 = 13, AJ_DT_UINT64 = 14,
  AJ_DT_FLOAT8_E4M3FN = 15, AJ_DT_FLOAT8_E5M2 = 16, AJ_DT_FLOAT8_E4M3FNUZ = 17, AJ_DT_FLOAT8_E5M2FNUZ = 18,
  AJ_DT_FLOAT8_E8M0FNU = 19, AJ_DT_COMPLEX32 = 20, /* 15 to 20: only stored, computed wider */
  AJ_DT_REGISTERED = 32 /* and up: by plugins */
};
enum {
  AJ_CLASS_BOOL = 0, AJ_CLASS_INTEGER = 1, AJ_CLASS_FLOAT = 2, AJ_CLASS_COMPLEX = 3, AJ_CLASS_OPAQUE = 4
};

#ifdef __cplusplus
}
#endif
#endif
