// core/call/copy.cpp: copy_ between devices: cast and pack on the source, move bytes, unpack on the
// target; copies that are not recorded.
#include "core/call/copy.hpp"

#include "core/memory/memory.hpp"
#include "core/memory/pinned.hpp"
#include "core/op/call.hpp"
#include "core/tensor/settle.hpp"

namespace adjoin {

// The contents are in use on the device's stream when the program goes on.
static void in_flight(aj_tensor* t) {
  void* stream = nullptr;
  if (device(t)->host() || stream_for(device(t), &stream)) return;
  memory_use(device(t), storage(t).data, stream);
}

static aj_status* copy_across(aj_tensor* to, aj_tensor* from, bool queued) {
  if (device(from)->id.device_type == kMetaType)
    return fail(AJ_UNIMPLEMENTED,
                "copy_: Cannot copy out of meta tensor; no data! Make the tensor anew where it is "
                "wanted, as with empty_like(x, device=...)");
  if (device(to)->id.device_type == kMetaType) return nullptr;
  if (from->dl.ndim > to->dl.ndim)
    return fail(AJ_INVALID_ARGUMENT, "copy_: shape ", shape(from), " does not fit into ",
                shape(to));
  for (int d = 1; d <= from->dl.ndim; d++) {
    int64_t n = from->dl.shape[from->dl.ndim - d];
    if (n != 1 && n != to->dl.shape[to->dl.ndim - d])
      return fail(AJ_INVALID_ARGUMENT, "copy_: shape ", shape(from), " does not fit into ",
                  shape(to));
  }
  Ref packed, landing;
  const DType& type = dt(priv(to).dtype);
  bool packs = !is_dense(from) || priv(from).dtype != type.index,
       lands = !is_dense(to) || priv(to).numel != priv(from).numel;
  if ((packs && !arranges_copies(device(from))) || (lands && !arranges_copies(device(to))))
    return copy_by_host(to, from);
  if (packs)
    AJ_TRY(cast_to(from, type, packed.out()));
  else
    packed = Ref::borrow(from);
  if (lands)
    AJ_TRY(tensor_new(device(to), type, shape(from), landing.out()));
  else
    landing = Ref::borrow(to);
  uint64_t bytes = uint64_t(priv(from).numel) * type.bytes;
  if (bytes) AJ_TRY(device_copy(bytes_of(landing.get()), bytes_of(packed.get()), bytes, queued));
  if (streams_in_use.load(std::memory_order_relaxed))
    in_flight(landing.get()), in_flight(packed.get());
  return lands ? copy_into(to, landing.get()) : nullptr;
}

aj_status* run_copy_across(const aj_value* args, uint32_t nargs, aj_value* rets) {
  bool queued =
      nargs > 2 && args[2].tag == AJ_BOOL && args[2].v.i;  // copy_(input, src, non_blocking)
  AJ_TRY(copy_across(args[0].v.tensor, args[1].v.tensor, queued));
  retain(args[0].v.tensor);
  rets[0] = value(args[0].v.tensor);
  return nullptr;
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

aj_status* tensor_pin(aj_tensor* t, int32_t device_type, aj_tensor** out) {
  Device *owner, *host = device(t);
  if (!host->host())
    return fail(AJ_INVALID_ARGUMENT,
                "pin_memory: only memory of the host can be pinned; the tensor is on ", host->id);
  Ref values;
  AJ_TRY(strided_of(t, "pin_memory", values.out()));
  t = values.get();
  if (tensor_pinned(t)) {
    retain(*out = t);
    return nullptr;
  }
  // Any device of the kind reads it: one in use already, for opening another may cost much memory.
  owner = device_open_already(device_type);
  if (!owner) AJ_TRY(device_open({DLDeviceType(device_type), 0}, &owner));
  const aj_device_vtbl& v = owner->vtbl;
  if (owner->host() || !v.mem_alloc || !v.mem_free || !v.event_query || !v.event_free)
    return fail(AJ_UNIMPLEMENTED, "pin_memory: device ", owner->id,
                " copies without pinned memory");
  const DType& type = dt(priv(t).dtype);
  PinnedBlock b;
  AJ_TRY(pinned_take(owner, uint64_t(priv(t).numel) * type.bytes, &b));
  DLTensor like{b.p, host->id, t->dl.ndim, type.dl, t->dl.shape, nullptr, 0};
  Ref made;
  if (aj_status* s = tensor_foreign(host, &like, b.bytes, 0, b.block, pinned_give, made.out()))
    return pinned_give(b.block), s;
  AJ_TRY(copy_into(made.get(), t));
  *out = made.take();
  return nullptr;
}

int32_t tensor_pinned(const aj_tensor* t) {
  return device(t)->host() && pinned_find(storage(t).data);
}

}  // namespace adjoin
