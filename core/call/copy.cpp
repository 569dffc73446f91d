// core/call/copy.cpp: copy_ between devices: cast and pack on the source, move bytes, unpack on the target.
#include "core/op/call.hpp"
#include "core/op/kinds.hpp"
#include "core/memory/memory.hpp"

namespace adjoin {

// The contents are in use on the device's stream when the program goes on.
static void in_flight(aj_tensor* t) {
  void* stream = nullptr;
  if (device(t)->host() || stream_for(device(t), &stream)) return;
  memory_use(device(t), storage(t).data, stream);
}

static aj_status* copy_across(aj_tensor* to, aj_tensor* from, bool queued) {
  if (device(from)->id.device_type == kMetaType)
    return fail(AJ_INVALID_ARGUMENT, "copy_: the source is a meta tensor, which has no data; make the tensor anew where it is wanted, as with empty_like(x, device=...)");
  if (device(to)->id.device_type == kMetaType) return nullptr;
  if (from->dl.ndim > to->dl.ndim) return fail(AJ_INVALID_ARGUMENT, "copy_: shape ", shape(from), " does not fit into ", shape(to));
  for (int d = 1; d <= from->dl.ndim; d++) {
    int64_t n = from->dl.shape[from->dl.ndim - d];
    if (n != 1 && n != to->dl.shape[to->dl.ndim - d])
      return fail(AJ_INVALID_ARGUMENT, "copy_: shape ", shape(from), " does not fit into ", shape(to));
  }
  Ref packed, landing;
  const DType& type = dt(priv(to).dtype);
  bool packs = !is_dense(from) || priv(from).dtype != type.index, lands = !is_dense(to) || priv(to).numel != priv(from).numel;
  if ((packs && !arranges_copies(device(from))) || (lands && !arranges_copies(device(to)))) return copy_by_host(to, from);
  if (packs) AJ_TRY(cast_to(from, type, packed.out()));
  else packed = Ref::borrow(from);
  if (lands) AJ_TRY(tensor_new(device(to), type, shape(from), landing.out()));
  else landing = Ref::borrow(to);
  uint64_t bytes = uint64_t(priv(from).numel) * type.bytes;
  if (bytes) AJ_TRY(device_copy(bytes_of(landing.get()), bytes_of(packed.get()), bytes, queued));
  if (streams_in_use.load(std::memory_order_relaxed)) in_flight(landing.get()), in_flight(packed.get());
  return lands ? copy_into(to, landing.get()) : nullptr;
}

aj_status* run_copy_across(const aj_value* args, uint32_t nargs, aj_value* rets) {
  bool queued = nargs > 2 && args[2].tag == AJ_BOOL && args[2].v.i;  // copy_(input, src, non_blocking)
  AJ_TRY(copy_across(args[0].v.tensor, args[1].v.tensor, queued));
  retain(args[0].v.tensor);
  rets[0] = value(args[0].v.tensor);
  return nullptr;
}

}  // namespace adjoin
