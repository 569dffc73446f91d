// core/tensor/resize.cpp: another shape for a tensor, in memory that grows if needed.
#include <algorithm>

#include "core/tensor/settle.hpp"

namespace adjoin {

aj_status* resize(aj_tensor* t, std::span<const int64_t> shape) {
  int64_t strides[kMaxDims];
  if (shape.size() > size_t(kMaxDims))
    return fail(AJ_INVALID_ARGUMENT, "resize_: ", uint64_t(shape.size()), " dimensions; at most ",
                kMaxDims);
  c_strides(shape, strides);
  AJ_TRY(settle_memory(t, "resize_"));
  Storage& s = storage(t);
  if (requires_grad(t) && !tls.grad_off)
    return fail(AJ_INVALID_ARGUMENT,
                "resize_: the tensor requires grad; its shape is part of the tape, use reshape");
  if (std::ranges::equal(shape, adjoin::shape(t)))
    return nullptr;  // strides stay, whatever they are
  int64_t numel = 1;
  for (int64_t n : shape)
    if (n < 0 || __builtin_mul_overflow(numel, n, &numel))
      return fail(AJ_INVALID_ARGUMENT, "resize_: impossible shape ", shape);
  uint64_t bytes = uint64_t(numel) * dt(priv(t).dtype).bytes;
  uint64_t offset = s.data ? uint64_t(place(t) - static_cast<char*>(s.data)) : 0;
  if (offset + bytes > s.bytes + s.spare) {
    if (s.flags & (kStorageForeign | kStorageReadOnly))
      return fail(
          AJ_INVALID_ARGUMENT,
          "resize_: the memory belongs to somebody else (NumPy, DLPack); clone the tensor first");
    aj_tensor* made;
    AJ_TRY(tensor_new(s.device, dt(priv(t).dtype), shape, &made));
    Ref held(made);
    if (priv(t).numel && s.device->id.device_type != kMetaType)
      AJ_TRY(device_copy(bytes_of(made), bytes_of(t), std::min(bytes, s.bytes - offset)));
    const uint32_t version = s.version;  // what was saved before stays another version
    tensor_set_storage(t, priv(made).storage, place(made));
    storage(t).version = version;
  } else if (offset + bytes > s.bytes) {
    s.spare -= uint32_t(offset + bytes - s.bytes);
    s.bytes = offset + bytes;
  }
  bump_version(t);
  return tensor_set_dims(t, shape, {strides, shape.size()});
}

}  // namespace adjoin
