// plugins/fuser/steps_double.cpp: the steps of double.
#include <adjoin/kit/scalar_math.hpp>

#include "steps.hpp"
#include "vector/pointwise.hpp"
#include "vector/rows.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fuser/steps_double.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "steps-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
static const fuser::Steps& double_steps() { return steps_here<double>(); }
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
const fuser::Steps& chosen() {
  static const fuser::Steps& steps = AJ_SIMD(double_steps)();
  return steps;
}
}  // namespace
}  // namespace adjoin::cpu

const adjoin::fuser::Steps& adjoin::fuser::double_steps() { return cpu::chosen(); }
#endif
