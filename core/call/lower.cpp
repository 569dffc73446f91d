// core/call/lower.cpp: what transforms of functions need of a call: a body alone, the tape of the
// level around.
#include "core/call/lower.hpp"

#include "core/base/guarded.hpp"
#include "core/call/slow.hpp"
#include "core/guest/frontend.hpp"
#include "core/op/call.hpp"
#include "core/op/kinds.hpp"
#include "core/tape/formula.hpp"

namespace adjoin {
namespace {

aj_status* call_body(const aj_op* const_op, const aj_value* args, uint32_t nargs, aj_value* rets,
                     uint32_t nrets) {
  auto* op = const_cast<aj_op*>(const_op);
  Settled settled;
  AJ_TRY(settle_arguments(op, &args, &nargs, nrets, &settled));
  if (!op->has_body) return fail(AJ_NOT_FOUND, op->schema.ident, ": it has no body");
  return run_generic(op, &op->body_kernel, 0, args, nargs, rets, nrets);
}

uint32_t recording_below(int32_t on) {
  const uint8_t before = tls.grad_off;
  tls.grad_off = uint8_t((before & ~kOffByTape) | (on ? 0 : 1));
  return before;
}

void restore(uint32_t before) { tls.grad_off = uint8_t(before); }

}  // namespace

const aj_lower lower_table = {
    .struct_size = sizeof(aj_lower),
    .minor = 0,
    .call_body = guarded<call_body>,
    .recording_below = recording_below,
    .restore = restore,
    .apply_vjp = guarded<apply_vjp>,
    .park = frontend_park,
    .unpark = frontend_unpark,
};

}  // namespace adjoin
