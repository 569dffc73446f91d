// core/tape/apply.cpp: one node's derivative: what it is given, what may come back from it.
#include <algorithm>

#include "core/guest/caught.hpp"
#include "core/op/tables.hpp"
#include "core/tape/ops.hpp"
#include "core/tape/saved.hpp"
#include "core/tape/table.hpp"
#include "core/tape/view.hpp"
#include "core/tape/write.hpp"

namespace adjoin {
namespace {

constexpr uint32_t kBuiltIn = kNodeOpView | kNodeStrided | kNodeSlices | kNodeMissing | kNodeOnce |
                              kNodeIdentity | kNodeZero | kNodeAccumulator;

[[gnu::cold]] aj_status* missing(Node* n) {
  return fail(AJ_UNIMPLEMENTED, n->op->schema.name,
              " has no gradient; register a vjp or mark it not differentiable",
              n->op->provider.empty() ? "" : text("; plugin '", n->op->provider, "' has the op"));
}

[[gnu::cold]] aj_status* once_only(Node* n) {
  return fail(AJ_UNIMPLEMENTED, node_name_of(n),
              ": its derivative is raw arithmetic and cannot be differentiated again; write it "
              "with dispatched ops");
}

[[gnu::noinline]] aj_status* apply_built_in(Node* n, aj_tensor* const* grad_out,
                                            aj_tensor** grad_in, const uint8_t* needs, bool create,
                                            bool keep) {
  if (n->flags & kNodeSlices) return slice_apply(n, grad_out, grad_in, needs, create, keep);
  if (n->flags & kNodeMissing) return missing(n);
  if (n->flags & kNodeOnce) return once_only(n);
  if (n->flags & kNodeZero) return nullptr;
  if (n->flags & kNodeIdentity) {
    retain(grad_out[0]);
    grad_in[0] = grad_out[0];
    return nullptr;
  }
  return view_apply(n, grad_out, grad_in);
}

// Zeros for results without a gradient, of derivatives that ask for them.
class Materialized {
 public:
  ~Materialized() {
    for (aj_tensor* t : made_) release(t);
  }
  aj_status* fill(Node* n, aj_tensor* const** io) {
    aj_tensor* const* given = *io;
    if (std::all_of(given, given + n->nresults, [](aj_tensor* t) { return t; })) return nullptr;
    all_.assign(given, given + n->nresults);
    *io = all_.data();
    if (n->flags & kNodeForms) return from_words(n);
    if (!(n->flags & kNodeCustom)) return nullptr;
    std::vector<Form>& forms = n->extra->custom->forms;
    for (size_t i = 0; i < all_.size() && i < forms.size(); i++)
      if (!all_[i] && forms[i].device)
        AJ_TRY(zeros(i, forms[i].device, forms[i].dtype, forms[i].shape));
    return nullptr;
  }

 private:
  aj_status* from_words(Node* n) {
    const int64_t* w = n->forms();
    for (size_t i = 0; i < all_.size(); i++, w += 3 + w[2])
      if (!all_[i] && w[0])
        AJ_TRY(zeros(i, reinterpret_cast<Device*>(w[0]), uint8_t(w[1]), {w + 3, size_t(w[2])}));
    return nullptr;
  }
  aj_status* zeros(size_t i, Device* d, uint8_t dtype, std::span<const int64_t> shape) {
    AJ_TRY(tape::filled(d, dtype, shape, 0, &all_[i]));
    made_.push_back(all_[i]);
    return nullptr;
  }
  std::vector<aj_tensor*> all_, made_;
};

aj_status* guarded_vjp(Node* n, const aj_vjp_def& d, aj_grad_call* call) {
  aj_status* s = caught(d.vjp, "derivative", [&] { return d.vjp(d.self, call); });
  return s && s->message.starts_with("plugin ") ? prefix(s, text(node_name_of(n), ": ")) : s;
}

// Results of a derivative that cannot be differentiated again lead to a node that says so.
[[gnu::cold]] aj_status* mark_once(Node* n, const aj_grad_call& call) {
  std::vector<aj_tensor*> from;
  auto add = [&](aj_tensor* t) {
    if (t && requires_grad(t)) from.push_back(t);
  };
  for (uint32_t i = 0; i < call.ngrad_out; i++) add(call.grad_out[i]);
  for (uint32_t i = 0; i < call.nsaved; i++) {
    if (call.saved[i].tag == AJ_TENSOR) add(call.saved[i].v.tensor);
    if (call.saved[i].tag == AJ_TENSORS)
      for (uint32_t j = 0; j < call.saved[i].aux; j++) add(call.saved[i].v.tensors[j]);
  }
  if (from.empty()) return nullptr;
  Node* once = node_alloc(uint32_t(from.size()), 0, 0);
  if (!once) return no_node_memory();
  once->flags |= kNodeOnce;
  static const Vjp& custom = *new Vjp{{}, "custom function", {}};
  once->vjp = n->flags & kNodeCustom ? &custom : n->vjp;
  once->nresults = std::max(call.ngrad_in, 1u);
  aj_status* s = nullptr;
  for (uint32_t i = 0; i < from.size() && !s; i++) s = edge_to(from[i], &once->edges()[i]);
  for (uint32_t i = 0; i < call.ngrad_in && !s; i++)
    if (call.grad_in[i] && !requires_grad(call.grad_in[i])) set_history(call.grad_in[i], once, i);
  node_release(once);
  return s;
}

}  // namespace

aj_status* node_apply(Node* n, aj_tensor* const* grad_out, aj_tensor** grad_in,
                      const uint8_t* needs, bool create, bool keep, Node* outer) {
  if (__builtin_expect(n->flags & kBuiltIn, 0))
    return apply_built_in(n, grad_out, grad_in, needs, create, keep);
  const aj_vjp_def& d = n->vjp->def;
  if (__builtin_expect(!d.vjp, 0))
    return fail(AJ_UNIMPLEMENTED, d.op, " has no gradient; its definition has no vjp");
  Unpacked saved;
  AJ_TRY(saved.take(n, keep, create, outer));
  Materialized zeros;
  if (d.flags & AJ_VJP_MATERIALIZE) AJ_TRY(zeros.fill(n, &grad_out));
  aj_grad_call call;
  call.struct_size = sizeof call;
  call.flags = 0;
  call.core = &core_table;
  call.op = &dispatch_table;
  call.autograd = &autograd_table;
  call.saved = saved.values();
  call.grad_out = grad_out;
  call.grad_in = grad_in;
  call.needs = needs;
  call.payload = n->flags & kNodeCustom ? n->extra->custom->payload : nullptr;
  call.nsaved = saved.count();
  call.ngrad_out = n->nresults;
  call.ngrad_in = n->nedges;
  call.reserved = 0;
  if (__builtin_expect(!(d.flags & AJ_VJP_ONCE) || !create, 1)) return guarded_vjp(n, d, &call);
  {
    NoGrad off;
    AJ_TRY(guarded_vjp(n, d, &call));
  }
  return mark_once(n, call);
}

namespace {

[[gnu::noinline]] aj_status* refit(Node* n, uint32_t input, const Edge& e,
                                   std::span<const int64_t> want, aj_tensor** io) {
  Ref g(*io);
  *io = nullptr;
  if (e.shape && !std::ranges::equal(shape(g.get()), want)) {
    if (!tape::expands_to(want, shape(g.get())))
      return fail(AJ_INVALID_ARGUMENT, node_name_of(n),
                  ": its derivative returned a gradient of shape ", shape(g.get()), " for input ",
                  input, " of shape ", want,
                  of_plugin(reinterpret_cast<const void*>(n->vjp->def.vjp)));
    Ref summed;
    AJ_TRY(tape::sum_to(g.get(), want, summed.out()));
    g = std::move(summed);
  }
  int dtype = priv(g.get()).dtype;
  if (dtype != e.dtype) {
    if (!can_require_grad(dtype))
      return fail(AJ_WRONG_TYPE, node_name_of(n), ": its derivative returned a gradient of ",
                  dt(dtype).dl, " for input ", input, " of ", dt(e.dtype).dl,
                  of_plugin(reinterpret_cast<const void*>(n->vjp->def.vjp)));
    Ref next;
    if (dt(dtype).cls == AJ_CLASS_COMPLEX && dt(e.dtype).cls != AJ_CLASS_COMPLEX) {
      AJ_TRY(tape::real(g.get(), next.out()));
      g = std::move(next);
    }
    if (priv(g.get()).dtype != e.dtype) {
      Ref cast;
      AJ_TRY(tape::cast(g.get(), e.dtype, cast.out()));
      g = std::move(cast);
    }
  }
  *io = g.take();
  return nullptr;
}

}  // namespace

aj_status* fit_gradient(Node* n, uint32_t input, aj_tensor** io) {
  const Edge& e = n->edges()[input];
  const aj_tensor* g = *io;
  if (!e.shape) return priv(g).dtype == e.dtype ? nullptr : refit(n, input, e, {}, io);
  const int64_t* w = n->words() + e.shape;
  bool same = g->dl.ndim == w[0] && priv(g).dtype == e.dtype;
  for (int64_t i = 0; same && i < w[0]; i++) same = g->dl.shape[i] == w[1 + i];
  if (__builtin_expect(same, 1)) return nullptr;
  return refit(n, input, e, {w + 1, size_t(w[0])}, io);
}

}  // namespace adjoin
