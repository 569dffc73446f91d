// core/tape/builder.cpp: how arguments become edges and saved values.
#include "core/tape/builder.hpp"

#include <algorithm>
#include <cstring>

#include "core/guest/caught.hpp"
#include "core/guest/object.hpp"
#include "core/op/tables.hpp"
#include "core/tape/ops.hpp"
#include "core/tape/view.hpp"

aj_saver::~aj_saver() {
  for (aj_value& v : values) {
    if (v.tag >= AJ_TENSOR) adjoin::release(v.v.object);
    if (v.tag == AJ_TENSORS)
      for (uint32_t i = 0; i < v.aux; i++) adjoin::release(v.v.tensors[i]);
  }
}

namespace adjoin {
namespace {

constexpr uint64_t round8(uint64_t n) { return (n + 7) & ~uint64_t(7); }
constexpr uint64_t shape_bytes(int32_t ndim) { return 8 * (1 + uint64_t(ndim)); }
constexpr uint64_t form_bytes(int32_t ndim) { return 8 * (3 + uint64_t(ndim)); }

template <class F>
void each_result(const aj_value* rets, uint32_t nrets, F&& f) {
  uint32_t nr = 0;
  for (uint32_t i = 0; i < nrets; i++) {
    uint32_t count = 0;
    const aj_value* items =
        rets[i].tag == AJ_LIST_OBJ ? list_get(rets[i].v.object, &count) : nullptr;
    if (!items) {
      f(nr++, rets[i].tag == AJ_TENSOR ? rets[i].v.tensor : nullptr, i);
      continue;
    }
    for (uint32_t j = 0; j < count; j++)
      f(nr++, items[j].tag == AJ_TENSOR ? items[j].v.tensor : nullptr, i);
  }
}

aj_status* save_more(const aj_vjp_def& d, const aj_call* done, aj_saver* saver) {
  auto code = reinterpret_cast<const void*>(d.save_more);
  aj_status* s;
  try {
    s = d.save_more(d.self, done, saver);
  } catch (...) {
    return thrown_by(code, "save_more");
  }
  if (__builtin_expect(!s, 1)) return nullptr;
  look_at_returned(s, code);
  return name_plugin(s, code, "save_more");
}

}  // namespace

uint64_t bytes_behind(const aj_value& v) {
  switch (v.tag) {
    case AJ_COMPLEX:
      return 16;
    case AJ_STRING:
      return round8(v.aux + 1);
    case AJ_BOOLS:
      return round8(v.aux);
    case AJ_INTS:
    case AJ_FLOATS:
      return 8 * uint64_t(v.aux);
    default:
      return 0;
  }
}

void copy_behind(aj_value* to, const aj_value& from, char* memory) {
  *to = from;
  uint64_t n = from.tag == AJ_STRING || from.tag == AJ_BOOLS ? from.aux : bytes_behind(from);
  if (n) std::memcpy(memory, from.v.ptr, n);
  if (from.tag == AJ_STRING) memory[n] = 0;
  to->v.ptr = memory;
}

aj_status* NodeBuilder::measure_edges() {
  for (uint64_t m = op_->tensor_params; m; m &= m - 1) {
    uint32_t i = uint32_t(__builtin_ctzll(m));
    const aj_value* v = i < nargs_ ? &args_[i] : nullptr;
    if (v && v->tag == AJ_TENSORS) {
      nedges_ += v->aux;
      for (uint32_t j = 0; j < v->aux; j++)
        if (aj_tensor* t = v->v.tensors[j]; t && (requires_grad(t) || view_is_stale(t))) {
          needs_ |= 1ull << i;
          bytes_ += shape_bytes(t->dl.ndim);
        }
      continue;
    }
    if (op_->schema.params[i].list) continue;
    nedges_++;
    if (!v || v->tag != AJ_TENSOR) continue;
    if (!requires_grad(v->v.tensor) && !view_is_stale(v->v.tensor)) continue;
    needs_ |= 1ull << i;
    bytes_ += shape_bytes(v->v.tensor->dl.ndim);
  }
  return nullptr;
}

bool NodeBuilder::wanted(const aj_save& s) const {
  return s.only_for == 0 || (needs_ & s.only_for);
}

// The value that a save entry speaks of; NULL: none.
const aj_value* NodeBuilder::source(const aj_save& s, const aj_value* rets) const {
  int what = s.what;
  if (what == AJ_SAVE_RESULT || what == AJ_SAVE_RESULT_SHAPE)
    return rets ? &rets[s.index] : nullptr;
  return uint32_t(s.index) < nargs_ ? &args_[s.index] : nullptr;
}

uint64_t NodeBuilder::measure_saves(const aj_value* rets) const {
  uint64_t bytes = 0;
  for (const aj_save& s : vjp_->save) {
    int what = s.what;
    const aj_value* v = source(s, rets);
    if (what == AJ_SAVE_SHAPE || what == AJ_SAVE_RESULT_SHAPE) {
      const aj_value* of = what == AJ_SAVE_RESULT_SHAPE && !rets ? &args_[0] : v;
      if (of && of->tag == AJ_TENSOR) bytes += 8 * uint64_t(of->v.tensor->dl.ndim);
    } else if (what == AJ_SAVE_RESULT && !rets) {
      bytes += sizeof(Saved);
    } else if (v && what != AJ_SAVE_DTYPE) {
      bytes += v->tag == AJ_TENSOR    ? sizeof(Saved)
               : v->tag == AJ_TENSORS ? v->aux * sizeof(Saved)
                                      : bytes_behind(*v);
    }
  }
  if (more_)
    for (const aj_value& v : more_->values)
      bytes += v.tag == AJ_TENSOR    ? sizeof(Saved)
               : v.tag == AJ_TENSORS ? v.aux * sizeof(Saved)
                                     : bytes_behind(v);
  return bytes;
}

// Only where zeros may have to be made for a result without a gradient.
uint64_t NodeBuilder::measure_forms(const aj_value* rets, uint32_t nrets) {
  if (!rets || !vjp_ || !(vjp_->def.flags & AJ_VJP_MATERIALIZE)) return 0;
  forms_ = true;
  uint64_t bytes = 0;
  each_result(rets, nrets,
              [&](uint32_t, aj_tensor* t, uint32_t) { bytes += form_bytes(t ? t->dl.ndim : 0); });
  return bytes;
}

aj_status* NodeBuilder::measure(const aj_value* rets, uint32_t nrets) {
  if (rets && (nrets != 1 || rets[0].tag != AJ_TENSOR)) {
    nresults_ = 0;
    each_result(rets, nrets, [&](uint32_t, aj_tensor*, uint32_t) { nresults_++; });
  }
  if (!vjp_) return nullptr;
  if (vjp_->def.save_more) {
    more_ = std::make_unique<aj_saver>();
    aj_call done{};
    done.struct_size = sizeof done;
    done.core = &core_table;
    done.op = op_;
    done.args = args_;
    done.rets = const_cast<aj_value*>(rets);
    done.nargs = nargs_;
    done.nrets = rets ? nrets : 0;
    AJ_TRY(save_more(vjp_->def, &done, more_.get()));
  }
  bytes_ += measure_saves(rets) + measure_forms(rets, nrets);
  return nullptr;
}

aj_status* NodeBuilder::fill_edge(Node* n, Edge* e, aj_tensor* t) {
  AJ_TRY(edge_to(t, e));
  if (!e->target) return nullptr;
  e->dtype = priv(t).dtype;
  uint64_t words = 1 + uint64_t(t->dl.ndim);
  if (!last_shape_ || uint64_t(last_shape_[0]) + 1 != words ||
      std::memcmp(last_shape_ + 1, t->dl.shape, 8 * (words - 1)) != 0) {
    last_shape_ = reinterpret_cast<int64_t*>(at_);
    last_shape_[0] = t->dl.ndim;
    for (uint64_t i = 1; i < words; i++) last_shape_[i] = t->dl.shape[i - 1];
    at_ += 8 * words;
  }
  int64_t place = last_shape_ - n->words();
  e->shape = place <= UINT16_MAX ? uint16_t(place) : 0;
  return nullptr;
}

aj_status* NodeBuilder::fill_edges(Node* n) {
  Edge* e = n->edges();
  for (uint64_t m = op_->tensor_params; m; m &= m - 1) {
    uint32_t i = uint32_t(__builtin_ctzll(m));
    const aj_value* v = i < nargs_ ? &args_[i] : nullptr;
    if (v && v->tag == AJ_TENSORS) {
      for (uint32_t j = 0; j < v->aux; j++, e++)
        if (v->v.tensors[j]) AJ_TRY(fill_edge(n, e, v->v.tensors[j]));
      continue;
    }
    if (op_->schema.params[i].list) continue;
    if (v && v->tag == AJ_TENSOR) AJ_TRY(fill_edge(n, e, v->v.tensor));
    e++;
  }
  return nullptr;
}

void NodeBuilder::fill_forms(Node* n, const aj_value* rets, uint32_t nrets) {
  n->flags |= kNodeForms;
  each_result(rets, nrets, [&](uint32_t, aj_tensor* t, uint32_t i) {
    auto* w = reinterpret_cast<int64_t*>(at_);
    bool grads = t && (op_->grad_results >> i & 1) && can_require_grad(priv(t).dtype);
    w[0] = grads ? reinterpret_cast<int64_t>(device(t)) : 0;
    w[1] = t ? priv(t).dtype : 0;
    w[2] = t ? t->dl.ndim : 0;
    if (t) std::copy_n(t->dl.shape, t->dl.ndim, w + 3);
    at_ += form_bytes(int32_t(w[2]));
  });
}

// The values before they are overwritten, with the history that they had.
aj_status* NodeBuilder::copy_of_first(aj_tensor** out) {
  aj_tensor* t = args_[0].v.tensor;
  Ref copy;
  {
    NoGrad off;
    if (t->keys & kTransformKey) tls.grad_off = kOffByTape;  // tapes of the levels around see it
    AJ_TRY(tape::clone(t, copy.out()));
  }
  if (priv(t).node) set_history(copy.get(), priv(t).node, priv(t).out_nr);
  *out = copy.take();
  return nullptr;
}

aj_status* NodeBuilder::fill_tensor(Node* n, aj_value* to, aj_tensor* t, bool is_result,
                                    uint32_t nr) {
  auto* s = reinterpret_cast<Saved*>(at_);
  at_ += sizeof(Saved);
  AJ_TRY(save_tensor(n, t, is_result, nr, s));
  to->tag = AJ_TENSOR;
  to->aux = 0;
  to->v.u = uint64_t(reinterpret_cast<char*>(s) - reinterpret_cast<char*>(n));
  return nullptr;
}

aj_status* NodeBuilder::fill_value(Node* n, aj_value* to, const aj_value& from, bool is_result,
                                   uint32_t nr) {
  if (from.tag == AJ_TENSOR) return fill_tensor(n, to, from.v.tensor, is_result, nr);
  if (from.tag == AJ_TENSORS) {
    auto* s = reinterpret_cast<Saved*>(at_);
    at_ += from.aux * sizeof(Saved);
    std::memset(static_cast<void*>(s), 0, from.aux * sizeof(Saved));
    *to = {AJ_TENSORS, from.aux, {0}};
    to->v.u = uint64_t(reinterpret_cast<char*>(s) - reinterpret_cast<char*>(n));
    for (uint32_t j = 0; j < from.aux; j++)
      if (from.v.tensors[j]) AJ_TRY(save_tensor(n, from.v.tensors[j], is_result, nr + j, &s[j]));
    return nullptr;
  }
  uint64_t bytes = bytes_behind(from);
  if (bytes || from.tag == AJ_STRING || (from.tag >= AJ_INTS && from.tag <= AJ_BOOLS)) {
    copy_behind(to, from, at_);
    at_ += bytes;
    return nullptr;
  }
  if (from.tag > AJ_TENSOR) retain(from.v.object);
  *to = from;
  return nullptr;
}

aj_status* NodeBuilder::fill_saves(Node* n, const aj_value* rets) {
  aj_value* to = n->values();
  for (const aj_save& s : vjp_->save) {
    int what = s.what;
    const aj_value* v = source(s, rets);
    if (what == AJ_SAVE_RESULT_SHAPE && !rets) v = &args_[0];
    if (what == AJ_SAVE_SHAPE || what == AJ_SAVE_RESULT_SHAPE) {
      bool number = v && v->tag != AJ_NONE && v->tag != AJ_TENSOR;
      if (number) *to = value(std::span<const int64_t>{});
      if (v && v->tag == AJ_TENSOR) AJ_TRY(fill_value(n, to, value(shape(v->v.tensor)), false, 0));
    } else if (what == AJ_SAVE_DTYPE) {
      if (v && v->tag == AJ_TENSOR) *to = value(dt(priv(v->v.tensor).dtype));
    } else if (what == AJ_SAVE_RESULT && !rets) {
      if (s.index == 0 && wanted(s))
        to->aux = uint32_t(at_ - reinterpret_cast<char*>(n));  // filled by save_written
      at_ += sizeof(Saved);
    } else if (v && wanted(s)) {
      bool copy = what == AJ_SAVE_ARG && s.index == 0 && overwrites_first_ && v->tag == AJ_TENSOR;
      Ref held;
      if (copy) AJ_TRY(copy_of_first(held.out()));
      AJ_TRY(fill_value(n, to, copy ? value(held.get()) : *v, what == AJ_SAVE_RESULT,
                        uint32_t(s.index)));
    }
    to++;
  }
  if (more_)
    for (const aj_value& v : more_->values) AJ_TRY(fill_value(n, to++, v, false, 0));
  return nullptr;
}

aj_status* NodeBuilder::build(const aj_value* rets, uint32_t nrets, Node** out) {
  *out = nullptr;
  AJ_TRY(measure_edges());
  if (!needs_) return nullptr;
  AJ_TRY(measure(rets, nrets));
  uint64_t nvalues = vjp_ ? vjp_->save.size() + (more_ ? more_->values.size() : 0) : 0;
  if (nvalues > 255)
    return fail(AJ_OUT_OF_RANGE, op_->schema.ident, ": its derivative saves ", nvalues,
                " values; at most 255");
  Node* n = node_alloc(nedges_, uint32_t(nvalues), bytes_);
  if (!n) return no_node_memory();
  n->nresults = nresults_;
  if (vjp_) {
    n->vjp = vjp_;
  } else {
    n->op = op_;
    n->flags |= kNodeMissing;
  }
  at_ = reinterpret_cast<char*>(n->forms());
  if (forms_) fill_forms(n, rets, nrets);
  aj_status* s = fill_edges(n);
  if (!s && vjp_) s = fill_saves(n, rets);
  if (s) return node_release(n), s;
  *out = n;
  return nullptr;
}

aj_status* save_written(Node* n, aj_tensor* written) {
  if (n->flags & kNodeMissing) return nullptr;
  aj_value* to = n->values();
  for (uint32_t i = 0; i < n->nvalues(); i++, to++) {
    if (to->tag != AJ_NONE || !to->aux) continue;
    uint64_t place = to->aux;
    auto* s = reinterpret_cast<Saved*>(reinterpret_cast<char*>(n) + place);
    AJ_TRY(save_tensor(n, written, true, 0, s));
    *to = {AJ_TENSOR, 0, {0}};
    to->v.u = place;
  }
  return nullptr;
}

}  // namespace adjoin
