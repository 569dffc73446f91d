// core/op/settings.cpp: process-wide settings; copies, casts, resizing that the call path needs.
#include "core/op/settings.hpp"

#include <cstdlib>
#include <mutex>
#include <string_view>

#include "core/op/call.hpp"
#include "core/op/kinds.hpp"
#include "core/tape/wrap.hpp"

namespace adjoin {

bool free_order_wanted() {
  const char* text = secure_getenv("ADJOIN_FREE_ORDER");
  return !text || std::string_view(text) != "0";
}

Settings settings;

aj_status* default_host(Device** out) {
  if (Device* d = device_at({kDLCPU, 0})) {
    *out = d;
    return nullptr;
  }
  int32_t type;
  AJ_TRY(device_kind_find("cpu", &type));
  return device_open({DLDeviceType(type), 0}, out);
}

aj_status* default_device(Device** out) {
  if (Device* d = settings.default_device.load(std::memory_order_acquire)) {
    *out = d;
    return nullptr;
  }
  AJ_TRY(default_host(out));
  settings.default_device.store(*out, std::memory_order_release);
  return nullptr;
}

aj_status* resize(aj_tensor* t, std::span<const int64_t> shape) {
  int64_t strides[kMaxDims];
  if (shape.size() > size_t(kMaxDims)) return fail(AJ_INVALID_ARGUMENT, "resize_: ", uint64_t(shape.size()), " dimensions; at most ", kMaxDims);
  c_strides(shape, strides);
  AJ_TRY(settle_memory(t, "resize_"));
  Storage& s = storage(t);
  if (requires_grad(t) && !tls.grad_off)
    return fail(AJ_INVALID_ARGUMENT, "resize_: the tensor requires grad; its shape is part of the tape, use reshape");
  if (std::ranges::equal(shape, adjoin::shape(t))) return nullptr;  // strides stay, whatever they are
  int64_t numel = 1;
  for (int64_t n : shape)
    if (n < 0 || __builtin_mul_overflow(numel, n, &numel)) return fail(AJ_INVALID_ARGUMENT, "resize_: impossible shape ", shape);
  uint64_t bytes = uint64_t(numel) * dt(priv(t).dtype).bytes;
  uint64_t offset = s.data ? uint64_t(place(t) - static_cast<char*>(s.data)) : 0;
  if (offset + bytes > s.bytes) {
    if (s.flags & (kStorageForeign | kStorageReadOnly))
      return fail(AJ_INVALID_ARGUMENT, "resize_: the memory belongs to somebody else (NumPy, DLPack); clone the tensor first");
    aj_tensor* made;
    AJ_TRY(tensor_new(s.device, dt(priv(t).dtype), shape, &made));
    Ref held(made);
    if (priv(t).numel && s.device->id.device_type != kMetaType)
      AJ_TRY(device_copy(bytes_of(made), bytes_of(t), std::min(bytes, s.bytes - offset)));
    tensor_set_storage(t, priv(made).storage, place(made));
  }
  return tensor_set_dims(t, shape, {strides, shape.size()});
}

aj_status* copy_into(aj_tensor* to, aj_tensor* from) {
  static const aj_op* copy = find_op("copy_");
  NoGrad off;
  aj_value args[2] = {value(to), value(from)}, ret = none();
  AJ_TRY(call(copy, args, 2, &ret, 1));
  release_value(ret);
  return nullptr;
}

aj_status* cast_to(aj_tensor* t, const DType& dtype, aj_tensor** out) {
  aj_tensor* made;
  AJ_TRY(tensor_new(device(t), dtype, shape(t), &made));
  Ref held(made);
  AJ_TRY(copy_into(made, t));
  *out = held.take();
  return nullptr;
}

void release_value(aj_value& v) {
  if (v.tag >= AJ_TENSOR) release(v.v.object);
  v = none();
}

}  // namespace adjoin
