// extensions/transform/dual.hpp: tensors with a tangent: made, opened, viewed, written.
#pragma once
#include "level.hpp"

namespace adjoin::transform {

// The tangent of a dual's payload as it is now, or undefined: of a view that of its base is looked
// at.
Tensor tangent_of(Payload& p);

// A call whose innermost level is `l`, a dual one.
void call_dual(Level& l, aj_call* call);

aj_status* dual(aj_tensor* primal, aj_tensor* tangent, int32_t level, aj_tensor** out);
aj_status* undual(aj_tensor* t, int32_t level, aj_tensor** primal, aj_tensor** tangent);

}  // namespace adjoin::transform
