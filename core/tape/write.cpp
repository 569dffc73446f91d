// core/tape/write.cpp: in-place writes. Through a view, the node becomes a part of a node of
// the base (a slice step).
#include "core/tape/write.hpp"

#include <algorithm>

#include "core/base/keys.hpp"
#include "core/guest/line.hpp"
#include "core/op/registry.hpp"
#include "core/tape/builder.hpp"
#include "core/tape/ops.hpp"
#include "core/tape/view.hpp"
#include "core/tensor/settle.hpp"

namespace adjoin {

// The write as N saw it. The outer node's edges: the base's old node, then N's other edges in
// order; N's are marked wanted.
struct SliceStep {
  Node* inner;    // N
  uint32_t self;  // N's edge to what the view was
  Geometry base, view;
  int64_t offset;  // bytes from the base's first element to the view's
};

namespace {

std::string written_name(const aj_op* op) {
  return op->schema.ident.ends_with('_') ? op->schema.ident : op->schema.ident + "_";
}

aj_status* make_slices(aj_tensor* t, Node* inner, uint32_t self, Node** out) {
  aj_tensor* base = priv(t).base;
  Node* n = node_alloc(inner->nedges, 0, 8 * (1 + uint64_t(base->dl.ndim)));
  if (!n) return no_node_memory();
  n->line = inner->line;
  n->flags |= kNodeSlices;
  node_retain(inner);
  n->slices = new SliceStep{inner, self, geometry(base), geometry(t), bytes_between(base, t)};
  Edge* e = n->edges();
  int64_t* w = n->forms();
  if (aj_status* s = edge_to(base, e)) return node_release(n), s;
  w[0] = base->dl.ndim;
  std::copy_n(base->dl.shape, base->dl.ndim, w + 1);
  e->dtype = priv(base).dtype;
  e->shape = uint16_t(w - n->words());
  edge_release(inner->edges()[self]);
  for (uint32_t i = 0, at = 1; i < inner->nedges; i++) {
    if (i == self) continue;
    Edge& from = inner->edges()[i];
    e[at] = from;
    e[at++].shape = 0;  // checked as N's
    if (from.target) from.flags = uint8_t((from.flags & ~kEdgeLeaf) | kEdgeWanted);
    from.target = nullptr;
  }
  *out = n;
  return nullptr;
}

// A write that leaves nothing of what was there, and has no derivative in its other arguments:
// random fills.
Node* zero_node(aj_tensor* target) {
  Node* n = node_alloc(1, 0, 0);
  if (!n) return nullptr;
  n->flags |= kNodeZero;
  if (aj_status* s = edge_to(target, n->edges())) return free_status(s), node_release(n), nullptr;
  return n;
}

bool any_requires(const aj_value* args, uint32_t nargs) {
  for (uint32_t i = 0; i < nargs; i++) {
    if (args[i].tag == AJ_TENSOR &&
        (requires_grad(args[i].v.tensor) || view_is_stale(args[i].v.tensor)))
      return true;
    if (args[i].tag == AJ_TENSORS)
      for (uint32_t j = 0; j < args[i].aux; j++)
        if (aj_tensor* t = args[i].v.tensors[j]; t && (requires_grad(t) || view_is_stale(t)))
          return true;
  }
  return false;
}

}  // namespace

aj_status* check_in_place(std::string_view who, aj_tensor* t) {
  if (t->obj.flags & AJ_TENSOR_VIEW) {
    if (aj_status* s = odd_view(t, true)) return s;
    aj_tensor* base = priv(t).base;
    // Where the base requires none, the gradient is that of a view between, which was told to
    // require it.
    bool base_requires = requires_grad(base), of_leaf = base_requires && !priv(base).node,
         of_view = !base_requires && requires_grad(t) && priv(t).node;
    if (of_leaf || of_view)
      return fail(
          AJ_PRECONDITION, who,
          ": a view of a leaf that requires grad is being written in place; do it inside no_grad, ",
          "or on a clone");
  }
  if (requires_grad(t) && !priv(t).node)
    return fail(AJ_PRECONDITION, who,
                ": a leaf that requires grad is being written in place; do it inside no_grad, or "
                "on a clone");
  return nullptr;
}

aj_status* check_write(const aj_op* op, aj_tensor* target) {
  Storage& s = storage(target);
  if (__builtin_expect((target->obj.flags & AJ_TENSOR_READ_ONLY) || (s.flags & kStorageReadOnly),
                       0))
    return fail(AJ_PERMISSION, written_name(op),
                ": the tensor's memory is read-only; clone it first");
  if (__builtin_expect((target->obj.flags & AJ_TENSOR_INFERENCE) && !tls.inference, 0))
    return fail(AJ_PRECONDITION, written_name(op),
                ": a tensor made in inference mode is being written outside of it; clone it first");
  s.writer_op = uint16_t(op->index + 1);
  s.writer_line = tls.grad_off ? 0 : current_line();
  return nullptr;
}

aj_status* record_write_begin(const aj_op* op, const aj_value* args, uint32_t nargs,
                              aj_tensor* target, PendingWrite* p) {
  p->target = target;
  bool through_view = target->obj.flags & AJ_TENSOR_VIEW;
  if (!any_requires(args, nargs) && !(through_view && requires_grad(priv(target).base)))
    return nullptr;
  AJ_TRY(check_in_place(written_name(op), target));
  if (!can_require_grad(priv(target).dtype)) return nullptr;
  if (view_is_stale(target)) AJ_TRY(view_refresh(target));
  if (through_view && !requires_grad(target) && requires_grad(priv(target).base) &&
      any_requires(args, nargs))
    return fail(AJ_UNIMPLEMENTED, written_name(op),
                ": a view without a history, as view(dtype) is, of a tensor that has one is being "
                "written with what requires grad; clone it");
  const Vjp* vjp = vjp_for(op, args, nargs);
  if (vjp && (vjp->def.flags & AJ_VJP_NO_GRAD_RESULTS)) {
    if (!requires_grad(target)) return nullptr;
    p->node = zero_node(target);
    return p->node ? nullptr : no_node_memory();
  }
  NodeBuilder b(op, vjp, args, nargs);
  b.overwrites_first();
  return b.build(nullptr, 0, &p->node);
}

aj_status* attach_written(aj_tensor* t, Node* n, uint32_t self, uint32_t nr) {
  if (!(t->obj.flags & AJ_TENSOR_VIEW)) {
    set_history(t, n, nr);
    priv(t).rebase++;
    untangle(n, t);
    node_release(n);
    return nullptr;
  }
  Node* outer = nullptr;
  aj_status* s = make_slices(t, n, self, &outer);
  node_release(n);
  if (s) return s;
  aj_tensor* base = priv(t).base;
  set_history(base, outer, 0);
  priv(base).rebase++;
  untangle(outer, t);
  node_release(outer);
  return view_refresh(t);
}

aj_status* record_write_end(const aj_op*, const aj_value*, uint32_t, aj_value* rets, uint32_t nrets,
                            PendingWrite* p) {
  if (!p->node) return nullptr;
  Node* n = p->node;
  p->node = nullptr;
  aj_status* s = n->flags & kNodeZero ? nullptr : save_written(n, p->target);
  if (s) {
    node_release(n);
  } else {
    s = attach_written(p->target, n, 0, 0);
  }
  for (uint32_t i = 0; s && i < nrets; i++) {
    release_value(rets[i]);
    rets[i] = none();
  }
  return s;
}

void record_write_cancel(PendingWrite* p) {
  node_release(p->node);
  p->node = nullptr;
}

aj_status* slice_apply(Node* n, aj_tensor* const* grad_out, aj_tensor** grad_in,
                       const uint8_t* needs, bool create, bool keep) {
  SliceStep& step = *n->slices;
  aj_tensor* g = grad_out[0];
  bool same_strides = step.base.strides == geometry(g).strides;
  Ref whole, part;
  if (!is_strided(g)) {
    AJ_TRY(tape::clone(g, whole.out()));
    // In a lazy scope it gets strides of its own, by which the view would be another.
    const int64_t* own = whole.get()->dl.strides;
    if (whole.get()->keys & 1ull << kLazyBit &&
        !(own && std::ranges::equal(std::span(own, step.base.strides.size()), step.base.strides)))
      whole = Ref();
  } else if (!needs[0] && same_strides) {
    whole = Ref::borrow(g);
  }
  if (!whole) {
    AJ_TRY(tensor_new_strided(device(g), dt(step.base.dtype), step.base.shape, step.base.strides,
                              whole.out()));
    AJ_TRY(tape::copy_into(whole.get(), g));
  }
  AJ_TRY(look(whole.get(), step.view, step.offset, part.out()));
  Ref own = Ref::borrow(part.get());
  if (needs[0])
    AJ_TRY(tape::clone(part.get(),
                       own.out()));  // N may hand the gradient on, and part is written below
  uint32_t count = step.inner->nedges;
  std::vector<aj_tensor*> inner(count, nullptr);
  std::vector<uint8_t> wanted(count, 0);
  for (uint32_t i = 0, at = 1; i < count; i++) wanted[i] = i == step.self ? needs[0] : needs[at++];
  aj_tensor* inner_out = own.get();
  aj_status* s = node_apply(step.inner, &inner_out, inner.data(), wanted.data(), create, keep, n);
  if (!s && needs[0]) {
    if (inner[step.self]) s = fit_gradient(step.inner, step.self, &inner[step.self]);
    aj_tensor* r = inner[step.self];
    // Where elements share memory, one number was written to all: no gradient goes behind that.
    bool copies = r && !overlaps_itself(part.get());
    if (!s) s = copies ? tape::copy_into(part.get(), r) : tape::zero(part.get());
    release(r);
    inner[step.self] = nullptr;
    if (!s) grad_in[0] = whole.take();
  }
  for (uint32_t i = 0, at = 1; i < count; i++) {
    if (i == step.self) continue;
    if (!s && inner[i]) s = fit_gradient(step.inner, i, &inner[i]);
    if (s) {
      release(inner[i]);
    } else {
      grad_in[at] = inner[i];
    }
    at++;
  }
  return s;
}

void slice_free_saved(SliceStep* s) { node_free_saved(s->inner); }

Node* slice_inner(Node* n) { return n->slices->inner; }

void slice_step_free(SliceStep* s) {
  node_release(s->inner);
  delete s;
}

aj_status* slice_result(Node* outer, aj_tensor* alias, aj_tensor** out) {
  SliceStep& step = *outer->slices;
  AJ_TRY(tensor_same(alias, out));
  return strided_result(outer, step.base, *out, step.offset);
}

}  // namespace adjoin
