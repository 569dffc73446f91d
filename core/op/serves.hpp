// core/op/serves.hpp: who would serve an op on a device, and why, in words.
#pragma once
#include <adjoin/abi/op.h>

namespace adjoin {

aj_status* op_explain(const aj_op* op, aj_str device, aj_object** out);

}  // namespace adjoin
