// extensions/transform/origin.cpp: views of tensors that all samples share, made again when those
// get a place for each sample.
#include "origin.hpp"

#include <adjoin/kit/ops.hpp>

#include "batch.hpp"

namespace adjoin::transform {

void drop_origin(Origin* o) { delete o; }

void set_origin(const Tensor& view, const aj_call* call, int32_t item) {
  auto* o = new Origin{Tensor::borrow(call->args[0].v.tensor), call->op, item, {}, {}};
  for (uint32_t i = 0; i < call->nargs; i++) {
    aj_value v = call->args[i];
    if (v.tag == AJ_INTS) v.v.ints = o->ints.emplace_back(v.v.ints, v.v.ints + v.aux).data();
    o->args.push_back(v);
  }
  payload_of(view.get())->origin = o;
}

Tensor current_value(const aj_tensor* t, bool* batched) {
  const Payload* p = payload_of(t);
  *batched = p->batched;
  if (p->batched || !p->origin) return Tensor::borrow(p->value);
  const Origin& o = *p->origin;
  bool base_batched = false;
  current_value(o.of.get(), &base_batched);
  if (!base_batched) return Tensor::borrow(p->value);
  WithKey key;
  aj_value rets[1] = {};
  check(dispatch().call(o.op, o.args.data(), uint32_t(o.args.size()), rets, 1));
  Tensor made;
  if (o.item < 0)
    made = take<Tensor>(rets[0]);
  else
    made = take<std::vector<Tensor>>(rets[0])[size_t(o.item)];
  *batched = true;
  return Tensor::borrow(payload_of(made.get())->value);
}

void promote(aj_tensor* t, Level& l) {
  bool batched = false;
  Tensor value = current_value(t, &batched);
  const Payload* p = payload_of(t);
  if (!batched && p->origin) {
    promote(p->origin->of.get(), l);
    value = current_value(t, &batched);
  }
  if (!batched) {
    Below below(l);
    value = clone(spread(value, false, l.size));
  }
  set_payload(t, l, value, {}, true);
}

}  // namespace adjoin::transform
