// core/tape/record.hpp: what the call path asks of the tape. The rules are those of the tape's
// README.
#pragma once
#include "core/op/op.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

// After an op that made new results: gives them a node (or does nothing if no result can carry a
// gradient). vjp: the derivative that these arguments have, or NULL.
aj_status* record(const aj_op* op, const Vjp* vjp, const aj_value* args, uint32_t nargs,
                  aj_value* rets, uint32_t nrets);

// After a view op: results share memory with args[0]; each is given a node, replayable. rets[0] may
// be a list object.
aj_status* record_view(const aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets,
                       uint32_t nrets);

// Around an op that writes `target` (argument 0 of an in-place form, or of a row with "(a!)").
// begin checks what is refused, takes the edges and saves inputs before the kernel writes; end
// attaches the node to target (through its base if it is a view); cancel drops everything after a
// failed kernel.
struct PendingWrite {
  Node* node = nullptr;
  aj_tensor* target = nullptr;
  bool rebase = false;
};
aj_status* record_write_begin(const aj_op* op, const aj_value* args, uint32_t nargs,
                              aj_tensor* target, PendingWrite* p);
aj_status* record_write_end(const aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets,
                            uint32_t nrets, PendingWrite* p);
void record_write_cancel(PendingWrite* p);

// Refusals that hold with recording off too: writing to an inference tensor outside, read-only
// memory.
aj_status* check_write(const aj_op* op, aj_tensor* target);

// A view whose base was written since: its place on the tape is made anew before anybody asks for
// it.
aj_status* refresh_views(const aj_value* args, uint32_t nargs, uint64_t* keys);
// Writing through a view concerns a base that requires grad, even when the view was made with
// recording off.
inline bool write_concerns_base(const aj_tensor* target) {
  return (target->obj.flags & AJ_TENSOR_VIEW) && requires_grad(priv(target).base);
}

// A view that nobody else shares memory with, of a base that only it holds, becomes a tensor of its
// own.
void outlive_base(aj_tensor* view);

}  // namespace adjoin
