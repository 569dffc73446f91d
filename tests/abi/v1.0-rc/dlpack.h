/* adjoin/abi/dlpack.h: declarations with DLPack 1.3's layout (https://dmlc.github.io/dlpack), so that the contract stands
 * alone. A file that includes the real <dlpack/dlpack.h> first keeps that one; tests/abi compares the two. */
#ifndef ADJOIN_ABI_DLPACK_H
#define ADJOIN_ABI_DLPACK_H
#include <stdint.h>

#ifndef DLPACK_DLPACK_H_
enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLROCM = 10, kDLROCMHost = 11, kDLExtDev = 12, kDLCUDAManaged = 13 };
enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 };

typedef struct DLDevice {
  int32_t device_type; /* a DLPack code, or a number this process gave to a device that has none */
  int32_t device_id;
} DLDevice;

typedef struct DLDataType {
  uint8_t code; /* kDLInt ..., or >= 128 for a dtype registered by a plugin */
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; never NULL in a tensor of ours when ndim > 0 */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLPackVersion {
  uint32_t major, minor;
} DLPackVersion;

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

typedef struct DLManagedTensor { /* before version 1 */
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
  DLPackVersion version; /* another major: only the deleter may be called */
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

typedef struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  struct DLPackExchangeAPIHeader* prev_api;
} DLPackExchangeAPIHeader;

/* The table behind a Python type's __dlpack_c_exchange_api__. Each returns 0, or -1 with a Python error set. */
typedef struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  int (*managed_tensor_allocator)(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                                  void (*set_error)(void* error_ctx, const char* kind, const char* message));
  int (*managed_tensor_from_py_object_no_sync)(void* py_object, DLManagedTensorVersioned** out);
  int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned* steal_tensor, void** out_py_object);
  int (*dltensor_from_py_object_no_sync)(void* py_object, DLTensor* out); /* borrowed from py_object */
  int (*current_work_stream)(int32_t device_type, int32_t device_id, void** out_stream);
} DLPackExchangeAPI;
#endif
#endif
