// core/tape/modes.cpp: modes of the thread; requires_grad, .grad, detach and .data of a tensor.
#include "core/tape/modes.hpp"

#include <algorithm>

#include "core/guest/frontend.hpp"
#include "core/tape/hooks.hpp"
#include "core/tape/view.hpp"
#include "core/tape/wrap.hpp"

namespace adjoin {
namespace {

constexpr uint8_t kOffByUser = 1, kOffByInference = 2;

void forget_history(aj_tensor* t) {
  TensorPriv& p = priv(t);
  if (p.meta && p.meta->retained_in) {
    forget_retain(p.meta);
    node_release(p.meta->retained_in);
    p.meta->retained_in = nullptr;
  }
  Node* n = p.node;
  p.node = nullptr;
  p.out_nr = 0;
  p.flags &= uint16_t(~kRetainsGrad);
  t->obj.flags &= ~uint32_t(AJ_TENSOR_REQUIRES_GRAD | AJ_TENSOR_LEAF);
  t->keys &= ~kAutogradKey;
  node_release(n);
}

aj_status* alias(aj_tensor* t, aj_tensor** out) {
  AJ_TRY(settle_order(t));
  AJ_TRY(tensor_same(t, out));
  (*out)->obj.flags |= t->obj.flags & (AJ_TENSOR_READ_ONLY | AJ_TENSOR_INFERENCE);
  priv(*out).flags |= priv(t).flags & kUncounted;
  return nullptr;
}

}  // namespace

int32_t grad_mode() { return !tls.grad_off; }

int32_t set_grad_mode(int32_t on) {
  int32_t before = !(tls.grad_off & kOffByUser);
  tls.grad_off = uint8_t(on ? tls.grad_off & ~kOffByUser : tls.grad_off | kOffByUser);
  return before;
}

int32_t inference_mode() { return tls.inference; }

int32_t set_inference_mode(int32_t on) {
  int32_t before = tls.inference;
  tls.inference = on != 0;
  tls.grad_off = uint8_t(on ? tls.grad_off | kOffByInference : tls.grad_off & ~kOffByInference);
  return before;
}

aj_status* set_requires_grad(aj_tensor* t, int32_t on) {
  if (view_is_stale(t)) AJ_TRY(view_refresh(t));
  if (!on) {
    if (priv(t).node)
      return fail(AJ_PRECONDITION,
                  "requires_grad_: only a leaf can stop requiring grad, this tensor was made by ",
                  node_name_of(priv(t).node), "; use detach()");
    t->obj.flags &= ~uint32_t(AJ_TENSOR_REQUIRES_GRAD | AJ_TENSOR_LEAF);
    t->keys &= ~kAutogradKey;
    return nullptr;
  }
  if (requires_grad(t)) return nullptr;
  if (!can_require_grad(priv(t).dtype))
    return fail(AJ_PRECONDITION,
                "requires_grad_: only Tensors of floating point and complex dtype can require "
                "gradients, this one is ",
                t->dl.dtype, "; cast it first, as with .to(float32)");
  if ((t->obj.flags & AJ_TENSOR_INFERENCE) && !tls.inference)
    return fail(AJ_PRECONDITION,
                "requires_grad_: a tensor made in inference mode cannot require grad outside of "
                "it; clone it first");
  AJ_TRY(settle_order(t));  // .grad gets the strides of its leaf
  meta_of(t);
  t->obj.flags |= AJ_TENSOR_REQUIRES_GRAD | AJ_TENSOR_LEAF;
  t->keys |= kAutogradKey;
  return nullptr;
}

aj_status* get_grad(aj_tensor* t, aj_tensor** out) {
  *out = nullptr;
  Meta* m = priv(t).meta;
  if (!m) return nullptr;
  SpinGuard guard(m->spin);
  retain(m->grad);
  *out = m->grad;
  return nullptr;
}

aj_status* set_grad(aj_tensor* t, aj_tensor* grad) {
  if (!grad && !priv(t).meta) return nullptr;
  if (grad == t) return fail(AJ_INVALID_ARGUMENT, "grad: a tensor cannot be its own gradient");
  if (grad) {
    if (!std::ranges::equal(shape(grad), shape(t)))
      return fail(AJ_INVALID_ARGUMENT, "grad: the gradient has shape ", shape(grad),
                  ", the tensor has ", shape(t));
    if (priv(grad).dtype != priv(t).dtype)
      return fail(AJ_WRONG_TYPE, "grad: the gradient is ", grad->dl.dtype, ", the tensor is ",
                  t->dl.dtype);
    if (!same_device(grad->dl.device, t->dl.device))
      return fail(AJ_INVALID_ARGUMENT, "grad: the gradient is on ", grad->dl.device,
                  ", the tensor is on ", t->dl.device);
  }
  Meta* m = meta_of(t);
  retain(grad);
  {
    SpinGuard guard(m->spin);
    std::swap(m->grad, grad);
  }
  release(grad);
  return nullptr;
}

aj_status* detach(aj_tensor* t, aj_tensor** out) { return alias(t, out); }

aj_status* detach_in_place(aj_tensor* t) {
  if (t->obj.flags & AJ_TENSOR_VIEW)
    return fail(AJ_PRECONDITION,
                "detach_: a view shares its history with its base and cannot leave it in place; "
                "use detach()");
  forget_history(t);
  return nullptr;
}

aj_status* data_of(aj_tensor* t, aj_tensor** out) {
  AJ_TRY(alias(t, out));
  priv(*out).flags |= kUncounted;
  return nullptr;
}

// t keeps its identity, its .grad and its place on the tape; shape, dtype, device and memory become
// the source's.
aj_status* set_data(aj_tensor* t, aj_tensor* source) {
  if (t == source) return nullptr;
  if (requires_grad(t) && !can_require_grad(priv(source).dtype))
    return fail(AJ_WRONG_TYPE, "data: the tensor requires grad and cannot become ",
                source->dl.dtype);
  AJ_TRY(settle_memory(t, "data"));
  AJ_TRY(settle_memory(source, "data"));
  TensorPriv& p = priv(t);
  aj_tensor* base = p.base;
  p.base = nullptr;
  p.view_kind = kNotView;
  t->obj.flags &= ~uint32_t(AJ_TENSOR_VIEW);
  bool other_dtype = p.dtype != priv(source).dtype;
  p.dtype = priv(source).dtype;
  t->dl.dtype = source->dl.dtype;
  if (other_dtype) frontend_dtype_changed(t);
  aj_status* s = tensor_set_dims(t, shape(source), strides(source));
  if (!s) tensor_set_storage(t, priv(source).storage, place(source));
  release(base);
  return s;
}

aj_status* base_of(aj_tensor* t, aj_tensor** out) {
  *out = priv(t).base;
  retain(*out);
  return nullptr;
}

}  // namespace adjoin
