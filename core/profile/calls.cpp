// core/profile/calls.cpp: what stands in the place of an op's run function, and of its kernels,
// while somebody listens.
#include "core/op/kinds.hpp"
#include "core/op/registry.hpp"
#include "core/op/trace.hpp"
#include "core/profile/profile.hpp"

namespace adjoin {
namespace {

// Ends with its block, whatever leaves it.
struct Scope : Open {
  using Open::Open;
  ~Scope() { end(); }
  aj_status* got(aj_status* s) {
    event.code = s ? s->code : AJ_OK;
    return s;
  }
};

DLDevice place_of(const aj_value* args, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (args[i].tag == AJ_TENSOR) return args[i].v.tensor->dl.device;
    if (args[i].tag == AJ_DEVICE) return args[i].v.device;
    if (args[i].tag == AJ_TENSORS && args[i].aux && args[i].v.tensors[0])
      return args[i].v.tensors[0]->dl.device;
  }
  return {kDLCPU, 0};
}

aj_status* run_told(aj_op* op, const Kernel* k, uint64_t keys, const aj_value* args, uint32_t nargs,
                    aj_value* rets, uint32_t nrets) {
  RunFn run = kind_run(op->kind);
  if (!told(AJ_EVENT_CALL)) return run(op, k, keys, args, nargs, rets, nrets);
  Scope call(AJ_EVENT_CALL, str(op->schema.name));
  call.event.provider = str(k->provider);
  call.event.device = place_of(args, nargs);
  call.tell_begin();
  return call.got(run(op, k, keys, args, nargs, rets, nrets));
}

struct Told {
  const Kernel* real;
  const aj_op* op;
  bool serves;  // at a key below the tape: its call is nobody else's
};

void say_who(aj_event* e, const Told* t, const aj_call* call) {
  e->provider = str(t->real->provider);
  e->device = call->device;
  e->stream = call->stream;
}

aj_status* run_kernel_told(const Told* t, aj_call* call) {
  // The call that it belongs to knows now who serves it.
  if (Open* o = tls.open;
      o && o->event.kind == AJ_EVENT_CALL && o->event.name.data == t->op->schema.name.data())
    say_who(&o->event, t, call);
  const Kernel* k = t->real;
  if (!told(AJ_EVENT_KERNEL) || k->flags & kKernelBody) return k->fn(k->self, call);
  Scope kernel(AJ_EVENT_KERNEL, str(t->op->schema.name));
  say_who(&kernel.event, t, call);
  kernel.tell_begin();
  aj_status* s = kernel.got(k->fn(k->self, call));
  kernel.event.bytes = int64_t(bytes_of_call(call));
  return s;
}

aj_status* tell_kernel(void* self, aj_call* call) {
  auto* t = static_cast<const Told*>(self);
  if (!t->serves || !told(AJ_EVENT_CALL)) return run_kernel_told(t, call);
  Scope whole(AJ_EVENT_CALL, str(t->op->schema.name));
  say_who(&whole.event, t, call);
  whole.tell_begin();
  return whole.got(run_kernel_told(t, call));
}

int32_t ask_kernel(void* self, const aj_call* call) {
  const Kernel* k = static_cast<const Told*>(self)->real;
  return k->can_run(k->self, call);
}

}  // namespace

static const Kernel* tell_kernels(const aj_op* op, int bit, const Kernel* chain) {
  if (bit > kAutogradBit) return chain;  // keys above the tape only pass calls on
  if (!chain || chain->told) return chain ? chain->told : nullptr;
  const Kernel** at = &chain->told;
  for (const Kernel* k = chain; k; k = k->next) {
    Kernel* link = copy_kernel(*k);
    link->fn = tell_kernel;
    link->self = new Told{k, op, bit >= 24};
    if (k->can_run) link->can_run = ask_kernel;
    *at = link;
    at = &link->next;
  }
  return chain->told;
}

void tell_calls(uint32_t kinds) {
  listening = {kinds & AJ_EVENT_CALL ? run_told : nullptr,
               kinds & (AJ_EVENT_CALL | AJ_EVENT_KERNEL) ? tell_kernels : nullptr};
  forget_resolved();
}

}  // namespace adjoin
