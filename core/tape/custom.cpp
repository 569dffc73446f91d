// core/tape/custom.cpp: a node whose derivative, payload and saved values come from outside,
// one by one.
#include "core/tape/custom.hpp"

#include <algorithm>
#include <cstring>

#include "core/tape/builder.hpp"
#include "core/tape/view.hpp"
#include "core/tape/write.hpp"

namespace adjoin {
namespace {

aj_status* custom_of(aj_node* n, const char* who, Custom** out) {
  if (!n || !(node_of(n)->flags & kNodeCustom))
    return fail(AJ_INVALID_ARGUMENT, who, ": the node was not made by node_new");
  *out = node_of(n)->extra->custom.get();
  return nullptr;
}

bool leads_somewhere(Node* n) {
  return std::any_of(n->edges(), n->edges() + n->nedges,
                     [](const Edge& e) { return e.target || (e.flags & kEdgeWanted); });
}

aj_status* fill_edges(Node* n, aj_tensor* const* inputs) {
  int64_t* w = n->forms();
  for (uint32_t i = 0; i < n->nedges; i++) {
    aj_tensor* t = inputs[i];
    Edge& e = n->edges()[i];
    if (!t) continue;
    AJ_TRY(edge_to(t, &e));
    if (!e.target) continue;
    e.dtype = priv(t).dtype;
    int64_t place = w - n->words();
    e.shape = place <= UINT16_MAX ? uint16_t(place) : 0;
    w[0] = t->dl.ndim;
    std::copy_n(t->dl.shape, t->dl.ndim, w + 1);
    w += 1 + t->dl.ndim;
  }
  return nullptr;
}

aj_status* save_one(Node* n, Custom* c, aj_tensor* t, bool is_result) {
  bool attached = is_result && priv(t).node == n;
  Saved s{};
  if (t) AJ_TRY(save_tensor(n, t, is_result, attached ? priv(t).out_nr : 0, &s));
  c->saved.push_back(s);
  c->unattached.push_back(is_result && !attached ? t : nullptr);
  return nullptr;
}

void keep_form(Custom* c, uint32_t i, aj_tensor* t) {
  if (c->forms.size() <= i) c->forms.resize(i + 1);
  c->forms[i] = {device(t), priv(t).dtype, {shape(t).begin(), shape(t).end()}};
}

aj_status* attach_dirty(Node* n, Custom* c, uint32_t i, aj_tensor* t) {
  auto at = std::find(c->inputs.begin(), c->inputs.end(), t);
  if (at == c->inputs.end())
    return fail(AJ_INVALID_ARGUMENT, node_name_of(n), ": result ", i,
                " is marked as written in place, but it is no input");
  AJ_TRY(check_in_place(node_name_of(n), t));
  if ((t->obj.flags & AJ_TENSOR_VIEW) && n->nresults > 1)
    return fail(AJ_UNIMPLEMENTED, node_name_of(n), ": it writes a view in place and has ",
                n->nresults, " results; such a function may have only one");
  node_retain(n);
  return attach_written(t, n, uint32_t(at - c->inputs.begin()), i);
}

}  // namespace

aj_status* node_new(const aj_vjp_def* def, void* payload, aj_tensor* const* inputs, uint32_t count,
                    aj_node** out) {
  if (!def || def->struct_size < AJ_END_OF(aj_vjp_def, self))
    return fail(AJ_INVALID_ARGUMENT, "node_new: aj_vjp_def: struct_size is ",
                def ? def->struct_size : 0, ", at least ", uint64_t(AJ_END_OF(aj_vjp_def, self)),
                " is needed");
  AJ_TRY(check_words("node_new", view(def->op), def->flags, 0x7, def->reserved));
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; i++)
    if (inputs[i]) bytes += 8 * (1 + uint64_t(inputs[i]->dl.ndim));
  Node* n = node_alloc(count, 0, bytes);
  if (!n) return no_node_memory();
  n->flags |= kNodeCustom;
  n->extra = new Extra;
  n->extra->custom = std::make_unique<Custom>();
  Custom& c = *n->extra->custom;
  std::memcpy(&c.vjp.def, def, std::min<size_t>(def->struct_size, sizeof c.vjp.def));
  c.vjp.name = view(def->op);
  c.vjp.def.op = str(c.vjp.name);
  c.vjp.def.save = nullptr;
  c.vjp.def.nsave = 0;
  c.inputs.assign(inputs, inputs + count);
  c.pins[0] = Pin(Holder::node, c.vjp.def.vjp), c.pins[1] = Pin(Holder::node, c.vjp.def.drop);
  n->vjp = &c.vjp;
  if (aj_status* s = tls.grad_off ? nullptr : fill_edges(n, inputs)) {
    c.vjp.def.drop = nullptr;  // the payload stays the caller's
    node_release(n);
    return s;
  }
  c.payload = payload;
  *out = n->abi();
  return nullptr;
}

aj_status* node_results(aj_node* n, uint32_t n_results) {
  Custom* c = nullptr;
  AJ_TRY(custom_of(n, "node_results", &c));
  if (n_results == 0)
    return fail(AJ_INVALID_ARGUMENT, "node_results: ", node_name_of(node_of(n)),
                " must have at least one result");
  node_of(n)->nresults = n_results;
  return nullptr;
}

aj_status* node_save(aj_node* abi, const aj_value* v, int32_t is_result) {
  Custom* c = nullptr;
  AJ_TRY(custom_of(abi, "node_save", &c));
  Node* n = node_of(abi);
  aj_value to = *v;
  if (v->tag == AJ_TENSOR || v->tag == AJ_TENSORS) {
    uint64_t first = c->saved.size();
    uint32_t count = v->tag == AJ_TENSOR ? 1 : v->aux;
    for (uint32_t i = 0; i < count; i++)
      AJ_TRY(save_one(n, c, v->tag == AJ_TENSOR ? v->v.tensor : v->v.tensors[i], is_result));
    to.v.u = first;
  } else if (uint64_t bytes = bytes_behind(*v)) {
    c->memory.emplace_back(new char[bytes]);
    copy_behind(&to, *v, c->memory.back().get());
  } else if (v->tag > AJ_TENSOR) {
    retain(v->v.object);
  }
  c->values.push_back(to);
  return nullptr;
}

aj_status* node_attach(aj_node* abi, uint32_t i, aj_tensor* t, int32_t dirty) {
  Custom* c = nullptr;
  AJ_TRY(custom_of(abi, "node_attach", &c));
  Node* n = node_of(abi);
  if (i >= n->nresults) n->nresults = i + 1;
  for (size_t k = 0; k < c->saved.size(); k++)
    if (c->unattached[k] == t && !(c->saved[k].flags & kSavedPacked))
      c->saved[k].nr = i, c->unattached[k] = nullptr;
  keep_form(c, i, t);
  if (!leads_somewhere(n) || !can_require_grad(priv(t).dtype)) return nullptr;
  if (dirty) return attach_dirty(n, c, i, t);
  if (priv(t).node == n) {  // returned before: its gradient comes for the last place
    priv(t).out_nr = i;
    return nullptr;
  }
  if (requires_grad(t) || std::find(c->inputs.begin(), c->inputs.end(), t) != c->inputs.end())
    return fail(AJ_PRECONDITION, node_name_of(n), ": result ", i,
                " is an input, or has a history of its own; return an alias of it");
  set_history(t, n, i);
  return nullptr;
}

void* node_payload(aj_node* abi, const aj_vjp_def** def) {
  if (!abi || !(node_of(abi)->flags & kNodeCustom)) return nullptr;
  Custom& c = *node_of(abi)->extra->custom;
  if (def) *def = &c.vjp.def;
  return c.payload;
}

}  // namespace adjoin
