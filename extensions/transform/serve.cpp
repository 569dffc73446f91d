// extensions/transform/serve.cpp: the kernel at the key: which level a call belongs to.
#include "batch.hpp"

namespace adjoin::transform {
namespace {

[[noreturn, gnu::cold]] void ended(const Level& l) {
  raise(AJ_PRECONDITION, "a tensor of a transform that has ended (",
        l.kind == AJ_LEVEL_BATCH ? "vmap" : "jvp", ", level ", l.id,
        ") is used; it has no value outside: return it from the function that was transformed");
}

// The innermost level among the arguments; NULL: none is of one.
Level* level_of(const aj_call* call) {
  Level* found = nullptr;
  auto look = [&](const aj_tensor* t) {
    if (!is_wrapped(t)) return;
    Level* l = payload_of(t)->level;
    if (!l->open.load(std::memory_order_relaxed)) ended(*l);
    if (!found || l->id > found->id) found = l;
  };
  auto each = [&](const aj_value& v) {
    if (v.tag == AJ_TENSOR) look(v.v.tensor);
    if (v.tag == AJ_TENSORS)
      for (uint32_t j = 0; j < v.aux; j++) look(v.v.tensors[j]);
  };
  for (uint32_t i = 0; i < call->nargs; i++) each(call->args[i]);
  for (uint32_t i = 0; i < call->nrets; i++) each(call->rets[i]);
  return found;
}

}  // namespace

aj_status* serve(void*, aj_call* call) {
  try {
    Level* l = level_of(call);
    if (!l) {
      if (Level* open = innermost()) {
        call_plain(*open, call);
        return nullptr;
      }
      return dispatch().redispatch(call->op, call->keys, call->args, call->nargs, call->rets,
                                   call->nrets);
    }
    l->kind == AJ_LEVEL_BATCH ? call_batch(*l, call) : call_dual(*l, call);
    return nullptr;
  } catch (...) {
    return status_of_exception(op_name(call->op));
  }
}

}  // namespace adjoin::transform
