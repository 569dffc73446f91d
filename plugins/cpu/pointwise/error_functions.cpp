// plugins/cpu/pointwise/error_functions.cpp: special functions, and activations made of them or of
// comparisons.
#include "vector/pointwise.hpp"
#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/error_functions.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/math-inl.hpp"
#include "vector/math_inverse-inl.hpp"
#include "vector/plain-inl.hpp"
#include "vector/pointwise-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
AJ_ERRORS(AJ_UNARY)
AJ_UNARY(erfinv, math::erfinv(d, x))
AJ_LOOPS_OF(leaky_relu, LeakyRelu, 1)
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
aj_status* gelu_kernel(void*, aj_call* call) {
  return guard(call, [&] {
    GeluChooser::choose<float>(call, [&]<class F>(F f) {
      LoopPair pair = std::is_same_v<F, scalar::Gelu> ? AJ_PAIR(gelu)() : AJ_PAIR(gelu_tanh)();
      if (const Loops* loops = pair.of(call->plan->compute))
        run_rows(*call->plan, *loops, &f);
      else
        refuse<floating>(call->plan->compute);
    });
  });
}

AJ_KERNELS(special_kernels) = {
    {"erf", vectors<AJ_PAIR(erf), &pointwise_kernel<scalar::Erf, floating, 1>, floating>},
    {"erfc", vectors<AJ_PAIR(erfc), &pointwise_kernel<scalar::Erfc, floating, 1>, floating>},
    {"erfinv", vectors<AJ_PAIR(erfinv), nullptr, floating>},
    {"nn::gelu", {&gelu_kernel, floating::mask, kInner}},
    {"nn::leaky_relu", chosen_vectors<AJ_PAIR(leaky_relu), LeakyReluChooser, floating>},
    {"nn::hardtanh", unary<HardtanhChooser, reals>},
    {nullptr, {}},
};

}  // namespace
}  // namespace adjoin::cpu
#endif
