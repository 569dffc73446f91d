/* adjoin/abi/base.h: the frozen ground of the contract: strings, objects, the tensor's prefix, values, codes.
 *
 * A struct here or in a later header is FROZEN (size and layout asserted forever), EXTENSIBLE (begins with struct_size,
 * fields are appended; readers and writers touch only what both sides know) or OPAQUE. Names are identity (op, key, device,
 * dtype, interface); numbers are resolved at load. Unknown flag bits: the low 16 must be understood (refuse), the high 16
 * are hints (ignore); zero always means the old behaviour. */
#ifndef ADJOIN_ABI_BASE_H
#define ADJOIN_ABI_BASE_H
#include <stddef.h>
#include <stdint.h>

#include "dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AJ_ABI_MAJOR 1
#define AJ_ABI_MINOR 0
#ifndef ADJOIN_TARGET_MINOR /* "runs on 1.N and later"; the oldest minor unless the author asks for a newer one */
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

typedef struct aj_status aj_status; /* OPAQUE. NULL is success; else who received it frees it or passes it on */
typedef struct aj_op aj_op;         /* OPAQUE. lives as long as the process */

enum { /* status codes */
  AJ_OK = 0, AJ_CANCELLED = 1, AJ_UNKNOWN = 2, AJ_INVALID_ARGUMENT = 3, AJ_DEADLINE = 4, AJ_NOT_FOUND = 5,
  AJ_ALREADY_EXISTS = 6, AJ_PERMISSION = 7, AJ_OUT_OF_MEMORY = 8, AJ_PRECONDITION = 9, AJ_ABORTED = 10,
  AJ_OUT_OF_RANGE = 11, AJ_UNIMPLEMENTED = 12, AJ_INTERNAL = 13, AJ_UNAVAILABLE = 14, AJ_DATA_LOSS = 15,
  AJ_WRONG_TYPE = 16
};

typedef struct aj_object { /* FROZEN. core-private fields stand at negative offsets */
  uint64_t refs_private;   /* touched by the core alone: retain and release go through aj_core */
  int32_t type;            /* an object tag below, or >= 256: registered by name at run time */
  uint32_t flags;
} aj_object;

typedef struct aj_tensor { /* FROZEN 72-byte prefix; only the core makes tensors */
  aj_object obj;
  DLTensor dl;   /* read-only; strides never NULL when ndim > 0; not to be read unless AJ_TENSOR_STRIDED is in obj.flags */
  uint64_t keys; /* dispatch keys: what this tensor is, see op.h */
} aj_tensor;
enum {                           /* aj_tensor.obj.flags */
  AJ_TENSOR_STRIDED = 1u << 0,   /* dl describes the data */
  AJ_TENSOR_DENSE = 1u << 1,     /* C order without gaps */
  AJ_TENSOR_REQUIRES_GRAD = 1u << 2,
  AJ_TENSOR_LEAF = 1u << 3,      /* requires grad and no op made it */
  AJ_TENSOR_VIEW = 1u << 4,      /* shares the storage of a base tensor */
  AJ_TENSOR_INFERENCE = 1u << 5, /* made in inference mode */
  AJ_TENSOR_READ_ONLY = 1u << 6, /* memory of somebody else that must not be written */
  AJ_TENSOR_FREE_ORDER = 1u << 7 /* not in C order for speed alone; whoever shows strides or memory asks tensor_settle first */
};

enum { /* aj_value.tag; never reused. AJ_SYMINT, AJ_DICT_OBJ and AJ_STREAM are kept for later: nothing makes or takes them yet */
  AJ_NONE = 0, AJ_BOOL = 1, AJ_INT = 2, AJ_FLOAT = 3, AJ_COMPLEX = 4, AJ_DTYPE = 5, AJ_DEVICE = 6, AJ_STRING = 7,
  AJ_INTS = 8, AJ_FLOATS = 9, AJ_BOOLS = 10, AJ_TENSORS = 11, AJ_LAYOUT = 12, AJ_MEMORY_FORMAT = 13, AJ_SYMINT = 14,
  AJ_TENSOR = 64, AJ_STRING_OBJ = 65, AJ_LIST_OBJ = 66, AJ_DICT_OBJ = 67, AJ_GENERATOR = 68, AJ_STREAM = 69,
  AJ_FUNCTION = 70, AJ_DYNAMIC_BEGIN = 256
};
enum { AJ_LAYOUT_STRIDED = 0, AJ_LAYOUT_SPARSE_COO = 1, AJ_LAYOUT_SPARSE_CSR = 2, AJ_LAYOUT_OPAQUE = 3 };
enum { AJ_FORMAT_CONTIGUOUS = 0, AJ_FORMAT_PRESERVE = 1, AJ_FORMAT_CHANNELS_LAST = 2, AJ_FORMAT_CHANNELS_LAST_3D = 3 };

typedef struct aj_value { /* FROZEN. arguments are borrowed, results owned */
  int32_t tag;
  uint32_t aux;           /* element count of AJ_STRING .. AJ_TENSORS, else 0 */
  union {
    int64_t i;            /* AJ_BOOL (0, 1), AJ_INT, AJ_LAYOUT, AJ_MEMORY_FORMAT */
    uint64_t u;
    double f;
    const double* c128;   /* AJ_COMPLEX: real, imaginary */
    const char* str;
    const int64_t* ints;
    const double* floats;
    const uint8_t* bools;
    aj_tensor* const* tensors; /* an entry may be NULL where the schema says Tensor?[] */
    DLDataType dtype;
    DLDevice device;
    aj_tensor* tensor;
    aj_object* object;    /* tags >= 65 */
    const void* ptr;
  } v;
} aj_value;

enum { /* bits of the built-in dtypes in an aj_kernel_def's mask, also the index that dtype_info returns */
  AJ_DT_BOOL = 0, AJ_DT_UINT8 = 1, AJ_DT_INT8 = 2, AJ_DT_INT16 = 3, AJ_DT_INT32 = 4, AJ_DT_INT64 = 5, AJ_DT_FLOAT16 = 6,
  AJ_DT_BFLOAT16 = 7, AJ_DT_FLOAT32 = 8, AJ_DT_FLOAT64 = 9, AJ_DT_COMPLEX64 = 10, AJ_DT_COMPLEX128 = 11,
  AJ_DT_UINT16 = 12, AJ_DT_UINT32 = 13, AJ_DT_UINT64 = 14, AJ_DT_REGISTERED = 32 /* and up: by plugins */
};
enum { AJ_CLASS_BOOL = 0, AJ_CLASS_INTEGER = 1, AJ_CLASS_FLOAT = 2, AJ_CLASS_COMPLEX = 3, AJ_CLASS_OPAQUE = 4 };

#ifdef __cplusplus
}
#endif
#endif
