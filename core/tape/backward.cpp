// core/tape/backward.cpp: what a caller of backward may ask for, checked; the first gradients;
// unused inputs.
#include <algorithm>

#include "core/tape/engine.hpp"
#include "core/tape/ops.hpp"

namespace adjoin {
namespace {

aj_status* implicit_grad(aj_tensor* root, uint32_t i, aj_tensor** out) {
  if (priv(root).numel != 1)
    return fail(AJ_INVALID_ARGUMENT,
                "backward: grad can be implicitly created only for scalar outputs: root ", i,
                " has shape ", shape(root),
                "; pass a gradient of that shape, or take .sum() or .mean() first");
  if (dt(priv(root).dtype).cls == AJ_CLASS_COMPLEX)
    return fail(AJ_INVALID_ARGUMENT,
                "backward: grad can be implicitly created only for real scalar outputs: root ", i,
                " is complex; pass a gradient");
  Device* d = device(root);
  if (!d->host() || (priv(root).dtype != AJ_DT_FLOAT32 && priv(root).dtype != AJ_DT_FLOAT64))
    return tape::filled(d, priv(root).dtype, shape(root), 1, out);
  AJ_TRY(tensor_new(d, dt(priv(root).dtype), shape(root), out));
  if (priv(root).dtype == AJ_DT_FLOAT32) {
    *static_cast<float*>((*out)->dl.data) = 1;
  } else {
    *static_cast<double*>((*out)->dl.data) = 1;
  }
  return nullptr;
}

aj_status* first_gradient(aj_tensor* root, aj_tensor* given, uint32_t i, bool create,
                          aj_tensor** out) {
  if (!given) return implicit_grad(root, i, out);
  if (!std::ranges::equal(shape(given), shape(root)))
    return fail(AJ_INVALID_ARGUMENT, "backward: gradient ", i, " has shape ", shape(given),
                ", its root has ", shape(root));
  if (!same_device(given->dl.device, root->dl.device))
    return fail(AJ_INVALID_ARGUMENT, "backward: gradient ", i, " is on ", given->dl.device,
                ", its root is on ", root->dl.device);
  if (priv(given).dtype == priv(root).dtype) {
    retain(given);
    *out = given;
    return nullptr;
  }
  bool complex_to_real =
      dt(priv(given).dtype).cls == AJ_CLASS_COMPLEX && dt(priv(root).dtype).cls != AJ_CLASS_COMPLEX;
  if (complex_to_real)
    return fail(AJ_WRONG_TYPE, "backward: gradient ", i, " is ", given->dl.dtype, ", its root is ",
                root->dl.dtype);
  if (create) return tape::cast(given, priv(root).dtype, out);
  NoGrad off;
  return tape::cast(given, priv(root).dtype, out);
}

aj_status* add_roots(Run* run, const aj_backward& b) {
  bool create = b.flags & AJ_BACKWARD_CREATE_GRAPH;
  for (uint32_t i = 0; i < b.nroots; i++) {
    aj_tensor* root = b.roots[i];
    if (!root) return fail(AJ_INVALID_ARGUMENT, "backward: root ", i, " is no tensor");
    aj_tensor* grad = nullptr;
    Edge e{};
    AJ_TRY(edge_to(root, &e));
    bool recorded = e.target;
    edge_release(e);
    if (!recorded)
      return fail(AJ_PRECONDITION, "backward: element ", i,
                  " of tensors does not require grad and does not have a grad_fn: it was not "
                  "computed by recorded ops from a tensor that requires grad; give what it is "
                  "computed from requires_grad=True, and use neither no_grad nor detach between");
    AJ_TRY(first_gradient(root, b.grads ? b.grads[i] : nullptr, i, create, &grad));
    AJ_TRY(run->add_root(root, grad));
  }
  return nullptr;
}

aj_status* fill_unused(const aj_backward& b) {
  for (uint32_t i = 0; i < b.ninputs; i++) {
    if (b.out[i]) continue;
    if (b.flags & AJ_BACKWARD_ZERO_UNUSED) {
      aj_tensor* t = b.inputs[i];
      AJ_TRY(tape::filled(device(t), priv(t).dtype, shape(t), 0, &b.out[i]));
    } else if (!(b.flags & AJ_BACKWARD_ALLOW_UNUSED)) {
      return fail(
          AJ_INVALID_ARGUMENT, "backward: input ", i,
          " appears to not have been used in the graph of the roots; pass allow_unused=True "
          "to get None for it");
    }
  }
  return nullptr;
}

}  // namespace

aj_status* backward(const aj_backward* given) {
  if (!given || given->struct_size < AJ_END_OF(aj_backward, ninputs))
    return fail(AJ_INVALID_ARGUMENT, "backward: aj_backward: struct_size is ",
                given ? given->struct_size : 0, ", at least ",
                uint64_t(AJ_END_OF(aj_backward, ninputs)), " is needed");
  const aj_backward& b = *given;
  AJ_TRY(check_words("backward", "", b.flags, 0xf));
  bool create = b.flags & AJ_BACKWARD_CREATE_GRAPH;
  aj_tensor** out = b.ninputs ? b.out : nullptr;
  if (out) std::fill_n(out, b.ninputs, nullptr);
  aj_status* s;
  {
    Run run((b.flags & AJ_BACKWARD_RETAIN_GRAPH) || create, create);
    s = add_roots(&run, b);
    if (!s && b.ninputs) s = run.restrict_to({b.inputs, b.ninputs}, out);
    if (!s) s = run.go();
  }
  if (!s && out) s = fill_unused(b);
  if (s && out)
    for (uint32_t i = 0; i < b.ninputs; i++) {
      release(out[i]);
      out[i] = nullptr;
    }
  return s;
}

}  // namespace adjoin
