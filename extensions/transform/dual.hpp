// extensions/transform/dual.hpp: tensors with a tangent: made, opened, viewed, written.
#pragma once
#include "jvp.hpp"
#include "level.hpp"

namespace adjoin::transform {

// The tangent of a dual's payload as it is now, or undefined: of a view that of its base is looked
// at.
Tensor tangent_of(Payload& p);

// What a result may have as its tangent, or not.
inline bool can_move(DLDataType d) {
  return d.code == kDLFloat || d.code == kDLBfloat || d.code == kDLComplex;
}
bool may_share(const Tensor& a, const Tensor& b);  // memory

// The call, if it is elementwise with one new result and its duals are no views, as most calls are:
// nothing is allocated but results. False: it is another one.
bool call_plain_dual(const jvp::Rule& rule, Level& l, aj_call* call);

// A call whose innermost level is `l`, a dual one.
void call_dual(Level& l, aj_call* call);

aj_status* dual(aj_tensor* primal, aj_tensor* tangent, int32_t level, aj_tensor** out);
aj_status* undual(aj_tensor* t, int32_t level, aj_tensor** primal, aj_tensor** tangent);

}  // namespace adjoin::transform
