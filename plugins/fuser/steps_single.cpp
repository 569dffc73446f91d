// plugins/fuser/steps_single.cpp: the steps of float.
#include <adjoin/kit/scalar_math.hpp>

#include "steps.hpp"
#include "vector/pointwise.hpp"
#include "vector/rows.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fuser/steps_single.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "steps-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
static const fuser::Steps& single_steps() { return steps_here<float>(); }
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
const fuser::Steps& chosen() {
  static const fuser::Steps& steps = AJ_SIMD(single_steps)();
  return steps;
}
}  // namespace
}  // namespace adjoin::cpu

const adjoin::fuser::Steps& adjoin::fuser::single_steps() { return cpu::chosen(); }
#endif
