// core/tape/view.cpp: nodes of views: replay of the op on zeros, or as_strided from the base.
#include "core/tape/view.hpp"

#include <algorithm>

#include "core/base/keys.hpp"
#include "core/guest/object.hpp"
#include "core/tape/builder.hpp"
#include "core/tape/ops.hpp"
#include "core/tape/wrap.hpp"

namespace adjoin {

struct ViewStep {
  const aj_op* op = nullptr;  // replayed; NULL: the geometry below
  std::vector<aj_value> args;
  std::vector<std::unique_ptr<char[]>> memory;
  Geometry base, view;
  int64_t offset = 0;  // bytes from the base's first element to the view's
};

namespace {

using Span = std::span<const int64_t>;

tape::Op op_as_real("view_as_real"), op_as_complex("view_as_complex");

bool overlapping(const Geometry& g) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t i = 0; i < g.shape.size(); i++) {
    if (g.shape[i] == 0) return false;
    if (g.shape[i] > 1) dims.emplace_back(std::abs(g.strides[i]), g.shape[i]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

// Lowest and highest place, in elements from the first one.
std::pair<int64_t, int64_t> extent(const Geometry& g) {
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < g.shape.size(); i++) {
    if (g.shape[i] == 0) return {0, 0};
    (g.strides[i] < 0 ? low : high) += g.strides[i] * (g.shape[i] - 1);
  }
  return {low, high};
}

}  // namespace

aj_status* look(aj_tensor* like, const Geometry& view, int64_t offset, aj_tensor** out) {
  const DType& from = dt(priv(like).dtype);
  if (from.index == view.dtype)
    return tape::strided(like, view.shape, view.strides, offset / from.bytes, out);
  Ref step;
  if (from.cls == AJ_CLASS_COMPLEX && complex_of(view.dtype) == from.index) {
    AJ_TRY(op_as_real.run({value(like)}, step.out()));
    return tape::strided(step.get(), view.shape, view.strides, offset / dt(view.dtype).bytes, out);
  }
  if (dt(view.dtype).cls != AJ_CLASS_COMPLEX || complex_of(from.index) != view.dtype)
    return fail(AJ_UNIMPLEMENTED, "autograd: a view that reads ", from.dl, " as ",
                dt(view.dtype).dl, " cannot be written in place while recording; clone it");
  std::vector<int64_t> pairs = view.shape, steps = view.strides;
  for (int64_t& s : steps) s *= 2;
  pairs.push_back(2);
  steps.push_back(1);
  AJ_TRY(tape::strided(like, pairs, steps, offset / from.bytes, step.out()));
  return op_as_complex.run({value(step.get())}, out);
}

namespace {

// to[view] += g, where the view may show an element several times.
aj_status* add_to_view(aj_tensor* to, Geometry view, int64_t offset, aj_tensor* g, bool first) {
  std::vector<int64_t> repeated;
  for (size_t i = 0; i < view.shape.size(); i++)
    if (view.strides[i] == 0 && view.shape[i] > 1) {
      repeated.push_back(int64_t(i));
      view.shape[i] = 1;
    }
  Ref summed = Ref::borrow(g);
  if (!repeated.empty()) AJ_TRY(tape::sum(g, repeated, true, summed.out()));
  if (!overlapping(view)) {
    Ref place;
    AJ_TRY(look(to, view, offset, place.out()));
    return first ? tape::copy_into(place.get(), summed.get())
                 : tape::add_into(place.get(), summed.get());
  }
  size_t cut = 0;  // sliding windows: one slice per place in the window
  for (size_t i = 0; i < view.shape.size(); i++)
    if (view.shape[i] > 1 && (view.shape[cut] <= 1 || view.shape[i] < view.shape[cut])) cut = i;
  Geometry part = view, g_part = geometry(summed.get());
  int64_t n = view.shape[cut], g_step = g_part.strides[cut] * dt(g_part.dtype).bytes;
  part.shape[cut] = g_part.shape[cut] = 1;
  for (int64_t i = 0; i < n; i++) {
    Ref slice;
    AJ_TRY(look(summed.get(), g_part, i * g_step, slice.out()));
    AJ_TRY(add_to_view(to, part, offset + i * view.strides[cut] * dt(view.dtype).bytes, slice.get(),
                       false));
  }
  return nullptr;
}

// The derivative of looking at `base` as `view`: zeros with the gradient in its place.
aj_status* apply_strided(const ViewStep& v, aj_tensor* g, aj_tensor** out) {
  Ref whole;
  if (v.base.dtype == v.view.dtype && dense_strides(v.base.shape, v.base.strides)) {
    auto [low, high] = extent(v.view);
    int64_t begin = v.offset / dt(v.base.dtype).bytes, n = 1;
    for (int64_t s : v.base.shape) n *= s;
    if (begin + low >= 0 && begin + high < n) {
      AJ_TRY(tape::zeros_for(g, v.base.dtype, v.base.shape, whole.out()));
      AJ_TRY(add_to_view(whole.get(), v.view, v.offset, g, true));
      *out = whole.take();
      return nullptr;
    }
  }
  if (overlapping(v.base))
    return fail(AJ_UNIMPLEMENTED,
                "as_strided: its derivative needs an input whose elements do not share memory; "
                "clone it first");
  int64_t size = dt(v.base.dtype).bytes, view_size = dt(v.view.dtype).bytes;
  auto [low, high] = extent(v.base);
  auto [view_low, view_high] = extent(v.view);
  int64_t begin = std::min(low * size, v.offset + view_low * view_size);
  int64_t end = std::max((high + 1) * size, v.offset + (view_high + 1) * view_size);
  begin = -((-begin + size - 1) / size * size);
  int64_t n = (end - begin + size - 1) / size;
  AJ_TRY(tape::zeros_for(g, v.base.dtype, std::span<const int64_t>(&n, 1), whole.out()));
  AJ_TRY(add_to_view(whole.get(), v.view, v.offset - begin, g, true));
  return look(whole.get(), v.base, -begin, out);
}

aj_status* apply_replay(Node* n, aj_tensor* const* grad_out, aj_tensor** out) {
  const ViewStep& v = *n->view;
  aj_tensor* any = nullptr;
  for (uint32_t i = 0; i < n->nresults && !any; i++) any = grad_out[i];
  Ref whole;
  AJ_TRY(tape::zeros_for(any, v.base.dtype, v.base.shape, whole.out()));
  std::vector<aj_value> args = v.args;
  args[0] = value(whole.get());
  aj_value ret = none();
  AJ_TRY(call(v.op, args.data(), uint32_t(args.size()), &ret, 1));
  uint32_t count = 1;
  const aj_value* items = ret.tag == AJ_LIST_OBJ ? list_get(ret.v.object, &count) : &ret;
  aj_status* s = nullptr;
  bool first = true;
  for (uint32_t i = 0; i < count && !s; i++) {
    if (!grad_out[i]) continue;
    aj_tensor* view = items[i].v.tensor;
    s = add_to_view(whole.get(), geometry(view), bytes_between(whole.get(), view), grad_out[i],
                    first);
    first = false;
  }
  release_value(ret);
  if (s) return s;
  *out = whole.take();
  return nullptr;
}

aj_status* view_node(aj_tensor* of, ViewStep* step, uint32_t flags, Node** out) {
  Node* n = node_alloc(1, 0, 8 * (1 + uint64_t(of->dl.ndim)));
  if (!n) return delete step, no_node_memory();
  n->flags |= flags;
  n->view = step;
  step->base = geometry(of);
  Edge& e = n->edges()[0];
  if (aj_status* s = edge_to(of, &e)) return node_release(n), s;
  int64_t* w = n->forms();
  w[0] = of->dl.ndim;
  std::copy_n(of->dl.shape, of->dl.ndim, w + 1);
  e.dtype = priv(of).dtype;
  e.shape = uint16_t(w - n->words());
  *out = n;
  return nullptr;
}

aj_status* strided_node(aj_tensor* of, const aj_tensor* t, Node** out) {
  auto* step = new ViewStep;
  step->view = geometry(t);
  step->offset = bytes_between(of, t);
  return view_node(of, step, kNodeStrided, out);
}

aj_status* replay_node(const aj_op* op, const aj_value* args, uint32_t nargs, Node** out) {
  auto* step = new ViewStep;
  step->op = op;
  step->args.resize(nargs);
  for (uint32_t i = 1; i < nargs; i++) {
    if (args[i].tag >= AJ_TENSOR || args[i].tag == AJ_TENSORS) {
      delete step;
      return fail(AJ_UNIMPLEMENTED, op->schema.ident,
                  ": a view op with several tensors needs a derivative of its own");
    }
    step->args[i] = args[i];
    uint64_t bytes = bytes_behind(args[i]);
    if (!bytes) continue;
    step->memory.emplace_back(new char[bytes]);
    copy_behind(&step->args[i], args[i], step->memory.back().get());
  }
  return view_node(args[0].v.tensor, step, kNodeOpView, out);
}

}  // namespace

void settle_both(const aj_tensor* a, const aj_tensor* b) {
  for (const aj_tensor* t : {a, b}) free_status(settle_memory(const_cast<aj_tensor*>(t), "view"));
}

aj_status* odd_view(const aj_tensor* t, bool direct) {
  const char* what =
      direct ? "is being written in place" : "has a base that was written in place since";
  switch (priv(t).view_kind) {
    case kViewMulti:
      return fail(
          AJ_PRECONDITION,
          "autograd: This view is the output of a function that returns multiple views. It is one "
          "of several (split, unbind, chunk) and ",
          what, "; write the base, or clone it");
    case kViewNoGrad:
      return fail(AJ_PRECONDITION, "autograd: a view made with recording off ", what,
                  " with recording on; do both inside no_grad, or both outside");
    case kViewInference:
      return fail(AJ_PRECONDITION, "autograd: a view made in inference mode ", what,
                  " outside of it; do both inside inference_mode, or both outside");
    default:
      if (t->dl.strides && priv(t).base->dl.strides) return nullptr;
      return fail(AJ_UNIMPLEMENTED, "autograd: a view without strides ", what,
                  " with recording on; write the base, or clone it");
  }
}

aj_status* strided_result(Node* made_base, const Geometry& base, const aj_tensor* t,
                          int64_t offset) {
  Node* n = node_alloc(1, 0, 0);
  if (!n) return no_node_memory();
  n->flags |= kNodeStrided;
  n->view = new ViewStep;
  n->view->base = base;
  n->view->view = geometry(t);
  n->view->offset = offset;
  node_retain(made_base);
  n->edges()[0] = {made_base, 0, base.dtype, 0, 0};
  set_history(const_cast<aj_tensor*>(t), n, 0);
  node_release(n);
  return nullptr;
}

aj_status* view_refresh(aj_tensor* t) {
  TensorPriv& p = priv(t);
  aj_tensor* base = p.base;
  AJ_TRY(odd_view(t, false));
  if (!requires_grad(base) || !can_require_grad(p.dtype)) {
    p.rebase = priv(base).rebase;
    return nullptr;
  }
  if (p.dtype == priv(base).dtype) {
    Node* n;
    AJ_TRY(strided_node(base, t, &n));
    set_history(t, n, 0);
    node_release(n);
  } else {
    uint8_t before = tls.grad_off;
    tls.grad_off = 0;
    Ref again;
    aj_status* s = look(base, geometry(t), bytes_between(base, t), again.out());
    tls.grad_off = before;
    if (s) return s;
    if (priv(again.get()).node) set_history(t, priv(again.get()).node, priv(again.get()).out_nr);
  }
  p.rebase = priv(base).rebase;
  return nullptr;
}

void outlive_base(aj_tensor* t) {
  TensorPriv& p = priv(t);
  aj_tensor* base = p.base;
  // A result that is an argument is the caller's, and stays what it is.
  if (refs(&t->obj).load(std::memory_order_acquire) != 1) return;
  if (refs(&base->obj).load(std::memory_order_acquire) != 1 || view_is_stale(t) ||
      p.view_kind == kViewMulti)
    return;
  if (p.storage->refs.load(std::memory_order_acquire) != 2)
    return;  // an alias that is no view: detach()
  p.base = nullptr;
  p.view_kind = kNotView;
  p.rebase = 0;
  t->obj.flags &= ~uint32_t(AJ_TENSOR_VIEW);
  release(base);
}

aj_status* refresh_views(const aj_value* args, uint32_t nargs, uint64_t* keys) {
  for (uint32_t i = 0; i < nargs; i++) {
    uint32_t n = args[i].tag == AJ_TENSOR ? 1 : args[i].tag == AJ_TENSORS ? args[i].aux : 0;
    for (uint32_t j = 0; j < n; j++) {
      aj_tensor* t = args[i].tag == AJ_TENSOR ? args[i].v.tensor : args[i].v.tensors[j];
      if (!t || !view_is_stale(t)) continue;
      AJ_TRY(view_refresh(t));
      *keys |= t->keys;
    }
  }
  return nullptr;
}

aj_status* record_view(const aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets,
                       uint32_t nrets) {
  aj_tensor* of = args[0].v.tensor;
  bool strides_given = op->schema.name == "as_strided";
  const Vjp* vjp = op->vjp.load(std::memory_order_acquire);
  // A lazy scope's tensors know the strides that they will have.
  const bool strided = is_strided(of) || (of->keys & 1ull << kLazyBit && of->dl.strides);
  if (vjp || (strides_given && !strided)) return record(op, vjp, args, nargs, rets, nrets);
  if (view_is_stale(of))
    if (aj_status* s = view_refresh(of)) return release_value(rets[0]), rets[0] = none(), s;
  if (!requires_grad(of)) return nullptr;
  uint32_t count = 1;
  const aj_value* items =
      rets[0].tag == AJ_LIST_OBJ ? list_get(rets[0].v.object, &count) : &rets[0];
  if (count == 0 || !can_require_grad(priv(items[0].v.tensor).dtype)) return nullptr;
  Node* n;
  aj_status* s =
      strides_given ? strided_node(of, items[0].v.tensor, &n) : replay_node(op, args, nargs, &n);
  if (s) return release_value(rets[0]), rets[0] = none(), s;
  n->nresults = count;
  for (uint32_t i = 0; i < count; i++) set_history(items[i].v.tensor, n, i);
  node_release(n);
  return nullptr;
}

aj_status* view_apply(Node* n, aj_tensor* const* grad_out, aj_tensor** grad_in) {
  if (n->flags & kNodeStrided) return apply_strided(*n->view, grad_out[0], grad_in);
  return apply_replay(n, grad_out, grad_in);
}

void view_step_free(ViewStep* v) { delete v; }
std::string_view view_step_name(const ViewStep* v) {
  return v->op ? std::string_view(v->op->schema.ident) : "as_strided";
}

}  // namespace adjoin
