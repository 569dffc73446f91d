// extensions/transform/serve.cpp: the kernel at the key: which level a call belongs to.
#include "batch.hpp"
#include "origin.hpp"

namespace adjoin::transform {

[[noreturn, gnu::cold]] void ended(const Level& l) {
  raise(AJ_PRECONDITION, "a tensor of a transform that has ended (",
        l.kind == AJ_LEVEL_BATCH ? "vmap" : "jvp", ", level ", l.id,
        ") is used; it has no value outside: return it from the function that was transformed");
}

namespace {

// The innermost level among the arguments, one that has ended before all others; NULL: none is of
// one.
Level* level_of(const aj_call* call) {
  Level* found = nullptr;
  auto look = [&](const aj_tensor* t) {
    if (!is_wrapped(t)) return;
    Level* l = payload_of(t)->level;
    const bool open = l->open.load(std::memory_order_relaxed);
    if (!open && !l->kept) ended(*l);
    if (!found || !open || (found->open && l->id > found->id)) found = l;
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

// The value of a tensor whose level has ended.
aj_tensor* left_of(aj_tensor* t) {
  while (is_wrapped(t) && !payload_of(t)->level->open) t = payload_of(t)->value;
  return t;
}

// The call of the values. Where a result is the value of an argument, which was written in place,
// it is that argument.
void call_left(aj_call* call) {
  std::vector<aj_value> args(call->args, call->args + call->nargs);
  std::vector<aj_value> rets(call->rets, call->rets + call->nrets);
  std::vector<std::vector<aj_tensor*>> lists;
  auto take = [&](aj_value& v) {
    if (v.tag == AJ_TENSOR) v.v.tensor = left_of(v.v.tensor);
    if (v.tag != AJ_TENSORS) return;
    auto& list = lists.emplace_back(v.v.tensors, v.v.tensors + v.aux);
    for (aj_tensor*& t : list) t = left_of(t);
    v.v.tensors = list.data();
  };
  for (aj_value& v : args) take(v);
  for (aj_value& v : rets) take(v);
  const uint32_t before = lower_table->recording_below(autograd().grad_mode() != 0);
  aj_status* failed;
  {
    WithKey here;
    failed = dispatch().call(call->op, args.data(), call->nargs, rets.data(), call->nrets);
  }
  lower_table->restore(before);
  check(failed);
  for (uint32_t i = 0; i < call->nrets; i++) {
    if (call->rets[i].tag != AJ_NONE) continue;  // it stays in its slot
    call->rets[i] = rets[i];
    for (uint32_t j = 0; rets[i].tag == AJ_TENSOR && j < call->nargs; j++) {
      if (args[j].tag != AJ_TENSOR || args[j].v.tensor != rets[i].v.tensor ||
          call->args[j].v.tensor == args[j].v.tensor)
        continue;
      core().retain(call->args[j].v.tensor);
      core().release(rets[i].v.tensor);
      call->rets[i].v.tensor = call->args[j].v.tensor;
      break;
    }
  }
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
    if (!l->open)
      call_left(call);
    else
      l->kind == AJ_LEVEL_BATCH ? call_batch(*l, call) : call_dual(*l, call);
    return nullptr;
  } catch (...) {
    return status_of_exception(op_name(call->op));
  }
}

}  // namespace adjoin::transform
