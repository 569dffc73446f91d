// extensions/transform/dual.cpp: calls of duals: not there yet.
#include "batch.hpp"

namespace adjoin::transform {

void call_dual(Level&, aj_call*) {
  raise(AJ_UNIMPLEMENTED, "levels of kind dual serve no ops yet");
}

}  // namespace adjoin::transform
