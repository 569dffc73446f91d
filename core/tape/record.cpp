// core/tape/record.cpp: a node for an op that has run: edges to its inputs, what its derivative
// keeps.
#include "core/tape/record.hpp"

#include <cstring>

#include "core/guest/object.hpp"
#include "core/tape/builder.hpp"
#include "core/tape/view.hpp"
#include "core/tensor/settle.hpp"

namespace adjoin {
namespace {

aj_status* give_up(aj_status* s, aj_value* rets, uint32_t nrets) {
  for (uint32_t i = 0; i < nrets; i++) {
    release_value(rets[i]);
    rets[i] = none();
  }
  return s;
}

bool carries_gradient(const aj_op* op, const aj_value* rets, uint32_t nrets) {
  for (uint32_t i = 0; i < nrets; i++) {
    if (!(op->grad_results >> i & 1)) continue;
    if (rets[i].tag == AJ_TENSOR && can_require_grad(priv(rets[i].v.tensor).dtype)) return true;
    if (rets[i].tag == AJ_LIST_OBJ) return true;
  }
  return false;
}

// A result that is one of the inputs, or has a history already, must not lose it: it is handed out
// as an alias.
aj_status* fresh_result(aj_value* ret) {
  aj_tensor* t = ret->v.tensor;
  aj_tensor* alias;
  AJ_TRY(settle_order(t));
  AJ_TRY(tensor_same(t, &alias));
  view_attach(alias, t, kViewNoGrad);
  release(t);
  ret->v.tensor = alias;
  return nullptr;
}

// Of a node that nobody else has seen: no locked instruction is needed.
void add_refs(Node* n, int32_t more) {
  n->refs.store(n->refs.load(std::memory_order_relaxed) + uint32_t(more),
                std::memory_order_relaxed);
}

aj_status* attach_result(aj_value* ret, Node* n, uint32_t nr) {
  if (ret->tag != AJ_TENSOR || !can_require_grad(priv(ret->v.tensor).dtype)) return nullptr;
  if (__builtin_expect(requires_grad(ret->v.tensor), 0)) AJ_TRY(fresh_result(ret));
  add_refs(n, 1);
  adopt_history(ret->v.tensor, n, nr);
  return nullptr;
}

aj_status* attach_results(const aj_op* op, Node* n, aj_value* rets, uint32_t nrets) {
  uint32_t nr = 0;
  for (uint32_t i = 0; i < nrets; i++) {
    bool grads = op->grad_results >> i & 1;
    if (rets[i].tag == AJ_LIST_OBJ) {
      uint32_t count;
      auto* items = const_cast<aj_value*>(list_get(rets[i].v.object, &count));
      for (uint32_t j = 0; j < count; j++, nr++)
        if (grads) AJ_TRY(attach_result(&items[j], n, nr));
      continue;
    }
    if (grads) AJ_TRY(attach_result(&rets[i], n, nr));
    nr++;
  }
  return nullptr;
}

}  // namespace

aj_status* record(const aj_op* op, const Vjp* vjp, const aj_value* args, uint32_t nargs,
                  aj_value* rets, uint32_t nrets) {
  if (vjp && (vjp->def.flags & AJ_VJP_NO_GRAD_RESULTS)) return nullptr;
  if (!carries_gradient(op, rets, nrets)) return nullptr;
  NodeBuilder b(op, vjp, args, nargs);
  Node* n = nullptr;
  if (aj_status* s = b.build(rets, nrets, &n)) return give_up(s, rets, nrets);
  if (!n) return nullptr;
  aj_status* s = attach_results(op, n, rets, nrets);
  if (n->refs.load(std::memory_order_relaxed) > 1) {
    add_refs(n, -1);
  } else {
    node_release(n);
  }
  return s ? give_up(s, rets, nrets) : nullptr;
}

}  // namespace adjoin
