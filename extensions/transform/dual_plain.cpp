// extensions/transform/dual_plain.cpp: elementwise calls of duals, which most calls are.
#include "dual.hpp"

namespace adjoin::transform {

using namespace jvp;

namespace {

constexpr uint32_t kMost = 6;  // arguments

// The duals of a call, opened.
struct Plain {
  aj_value args[kMost];
  Tensor values[kMost];    // of the level's tensors; a view of one may be replaced meanwhile
  Tensor tangents[kMost];  // one per flattened input
  Payload* payloads[kMost] = {};
  uint32_t ninputs = 0;
  bool moves = false;

  bool open(const Rule& rule, Level& l, const aj_call* call) {
    for (uint32_t i = 0; i < call->nargs; i++) {
      aj_value& v = args[i] = call->args[i];
      if (v.tag == AJ_TENSORS) return false;
      if (rule.kind[i] == kNoTensor) continue;
      if (rule.kind[i] == kSeveral) return false;
      const uint32_t at = ninputs++;
      Payload* p = v.tag == AJ_TENSOR ? at_level(v.v.tensor, l) : nullptr;
      if (!p) continue;
      if (p->view) return false;
      payloads[i] = p;
      values[i] = Tensor::borrow(v.v.tensor = p->value);
      tangents[at] = Tensor::borrow(p->tangent);
      moves |= tangents[at].defined();
    }
    for (uint32_t i = call->nargs; i < rule.nparams; i++) ninputs += rule.kind[i] == kOne;
    return ninputs <= kMost;
  }
  // A result's tangent may be that of an argument, which is then no more its own.
  void keep_apart(const Tensor& made, uint32_t nargs) {
    for (uint32_t i = 0; i < nargs; i++) {
      Payload* p = payloads[i];
      if (p && p->owned && may_share(made, Tensor::view(p->tangent))) p->owned = false;
    }
  }
};

}  // namespace

bool call_plain_dual(const Rule& rule, Level& l, aj_call* call) {
  if (rule.how != How::elementwise || rule.writes_first || call->nrets != 1 ||
      call->rets[0].tag != AJ_NONE || call->nargs > kMost || call->nargs > rule.nparams)
    return false;
  Plain in;
  if (!in.open(rule, l, call)) return false;
  Below below(l);
  aj_value ret{};
  check(dispatch().call(call->op, in.args, call->nargs, &ret, 1));
  Tensor made = take<Tensor>(ret), tangent;
  for (uint32_t i = 0; i < call->nargs; i++) {
    if (!in.payloads[i] || in.values[i].get() != made.get()) continue;
    core().retain(call->args[i].v.tensor);  // the argument itself
    call->rets[0] = call->args[i];
    return true;
  }
  if (in.moves) {
    const aj_value result = value(made);
    differentiate(rule, {call->op, in.args, &result, call->nargs, 1,
                         std::span(in.tangents, in.ninputs), std::span(&tangent, 1)});
    if (tangent.defined()) in.keep_apart(tangent, call->nargs);
  }
  Tensor out = can_move(made.dtype()) ? make_wrapper(l, made, tangent, false) : made;
  call->rets[0] = value(out);
  out.take();
  return true;
}

}  // namespace adjoin::transform
