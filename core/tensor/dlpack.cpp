// core/tensor/dlpack.cpp: tensors in and out as DLPack's managed tensors, without copies.
#include "core/tensor/dlpack.hpp"

#include <new>

#include "core/base/guarded.hpp"
#include "core/tensor/prepared.hpp"
#include "core/tensor/settle.hpp"

namespace adjoin {
namespace {

constexpr uint8_t kPrivateCodes = 128;  // and up: of dtypes that plugins registered

struct Exported {
  DLManagedTensorVersioned managed;
  aj_tensor* tensor;
};

void export_done(DLManagedTensorVersioned* m) {
  auto* e = reinterpret_cast<Exported*>(m);
  release(e->tensor);
  delete e;
}

void import_done(void* ctx) {
  auto* m = static_cast<DLManagedTensorVersioned*>(ctx);
  if (m->deleter) m->deleter(m);
}

// DLPack's code of a device of ours: its own where it has one; host memory passes as the CPU's.
DLDeviceType outer_type(const Device* d) {
  if (d->vtbl.dlpack_type) return DLDeviceType(d->vtbl.dlpack_type);
  return d->host() ? kDLCPU : kDLExtDev;
}

// Where `data` is a handle to everybody who takes the type; behind another one an address would be
// read.
bool has_handles(int32_t dlpack_type) {
  return dlpack_type == kDLOpenCL || dlpack_type == kDLVulkan || dlpack_type == kDLMetal ||
         dlpack_type == kDLWebGPU;
}

aj_status* inner_device(DLDevice given, Device** out) {
  if (given.device_type == kDLCPU) return default_host(out);
  if (Device* d = device_at(given)) {
    *out = d;
    return nullptr;
  }
  return device_open(given, out);
}

}  // namespace

aj_status* tensor_to_dlpack(aj_tensor* t, void* stream, uint64_t flags,
                            DLManagedTensorVersioned** out) {
  AJ_TRY(check_words("to_dlpack", "", flags, AJ_DLPACK_NO_SYNC));
  Ref values;
  AJ_TRY(strided_of(t, "to_dlpack", values.out()));
  t = values.get();
  if (storage(t).flags & kStorageMeta)
    return fail(AJ_INVALID_ARGUMENT, "to_dlpack: a meta tensor has no data");
  if (const Device* d = device(t);
      d->flags & AJ_DEV_OPAQUE_POINTERS && !has_handles(d->vtbl.dlpack_type))
    return fail_kind(AJ_UNIMPLEMENTED, "BufferError", "to_dlpack: tensors of ", d->id,
                     " have handles where others read an address; "
                     "hand out a copy on the host: .cpu()");
  if (t->dl.dtype.code >= kPrivateCodes)
    return fail(AJ_WRONG_TYPE, "to_dlpack: DLPack has no code for ", t->dl.dtype,
                ", a dtype of a plugin; view it as integers of its size");
  if (!(flags & AJ_DLPACK_NO_SYNC)) AJ_TRY(stream_follows(device(t), stream));
  // Another shape, other strides and other memory that the tensor is given later are not the
  // consumer's: it has a tensor of its own on the memory of now.
  Ref own;
  AJ_TRY(tensor_alias(t, dt(priv(t).dtype), shape(t), strides(t), place(t), own.out()));
  auto* e = new (std::nothrow) Exported;
  if (!e) return fail(AJ_OUT_OF_MEMORY, "to_dlpack: out of memory");
  tensor_escape(t);
  t = e->tensor = own.take();
  e->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  e->managed.manager_ctx = nullptr;
  e->managed.deleter = export_done;
  e->managed.flags = t->obj.flags & AJ_TENSOR_READ_ONLY ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  e->managed.dl_tensor = t->dl;
  e->managed.dl_tensor.device.device_type = outer_type(device(t));
  *out = &e->managed;
  return nullptr;
}

aj_status* tensor_from_dlpack(DLManagedTensorVersioned* m, aj_tensor** out) try {
  if (m->version.major != DLPACK_MAJOR_VERSION) {
    uint32_t major = m->version.major;
    if (m->deleter) m->deleter(m);  // all that another major allows
    return fail(AJ_INVALID_ARGUMENT, "from_dlpack: DLPack ", major,
                " tensors cannot be read; version 1 is supported");
  }
  const DLTensor& dl = m->dl_tensor;
  const DType* dtype = find_dtype(dl.dtype);
  aj_status* s = nullptr;
  Device* d = nullptr;
  if (!dtype) s = fail(AJ_WRONG_TYPE, "from_dlpack: no dtype for ", dl.dtype);
  if (!s && dl.ndim > kMaxDims)
    s = fail(AJ_INVALID_ARGUMENT, "from_dlpack: ", dl.ndim, " dimensions; at most ", kMaxDims);
  for (int i = 0; !s && dl.strides && i < dl.ndim; i++)
    if (dl.strides[i] < 0)
      s = fail(AJ_INVALID_ARGUMENT, "from_dlpack: negative stride ", dl.strides[i],
               "; copy the array first");
  if (!s) s = inner_device(dl.device, &d);
  uint64_t flags = m->flags & DLPACK_FLAG_BITMASK_READ_ONLY ? uint64_t(AJ_TENSOR_READ_ONLY) : 0;
  if (!s) {
    int64_t last = 0;
    for (int i = 0; dl.strides && i < dl.ndim; i++)
      last += (dl.shape[i] ? dl.shape[i] - 1 : 0) * dl.strides[i];
    int64_t numel = 1;
    for (int i = 0; i < dl.ndim; i++) numel *= dl.shape[i];
    uint64_t bytes = uint64_t(dl.strides ? (numel ? last + 1 : 0) : numel) * dtype->bytes;
    s = tensor_foreign(d, &dl, bytes + dl.byte_offset, flags, m, import_done, out);
  }
  if (!s)
    static_cast<ForeignStorage&>(storage(*out)).pin = Pin(Holder::memory, m->deleter);
  else if (m->deleter)
    m->deleter(m);
  return s;
} catch (const std::exception&) {
  return status_of_exception();
}

}  // namespace adjoin
