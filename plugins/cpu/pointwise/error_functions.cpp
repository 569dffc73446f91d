// plugins/cpu/pointwise/error_functions.cpp: special functions, and activations made of them or of
// comparisons.
#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/error_functions.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/math-inl.hpp"
#include "vector/math_inverse-inl.hpp"
#include "vector/plain-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
AJ_UNARY(erf, math::erf(d, x))
AJ_UNARY(erfc, math::erfc(d, x))
AJ_UNARY(erfinv, math::erfinv(d, x))
AJ_UNARY(gelu, math::gelu(d, x))
AJ_UNARY(gelu_tanh, math::gelu_tanh(d, x))

template <class T>
struct LeakyRelu {
  T slope;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, x * hn::Set(d, slope));
  }
};
constexpr Loops leaky_relu_single = loops_of<LeakyRelu<float>, float, 1>(),
                leaky_relu_twice = loops_of<LeakyRelu<double>, double, 1>();
static LoopPair leaky_relu_loops() { return {&leaky_relu_single, &leaky_relu_twice}; }
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
AJ_CHOSEN(erf)
AJ_CHOSEN(erfc)
AJ_CHOSEN(erfinv)
AJ_CHOSEN(gelu)
AJ_CHOSEN(gelu_tanh)
AJ_CHOSEN(leaky_relu)

aj_status* gelu_kernel(void*, aj_call* call) {
  return guard(call, [&] {
    GeluChooser::choose<float>(call, [&]<class F>(F f) {
      LoopPair pair = std::is_same_v<F, scalar::Gelu> ? gelu_pair() : gelu_tanh_pair();
      if (const Loops* loops = pair.of(call->plan->compute))
        run_rows(*call->plan, *loops, &f);
      else
        refuse<floating>(call->plan->compute);
    });
  });
}
}  // namespace

AJ_KERNELS(special_kernels) = {
    {"erf", vectors<erf_pair, &pointwise_kernel<scalar::Erf, floating, 1>, floating>},
    {"erfc", vectors<erfc_pair, &pointwise_kernel<scalar::Erfc, floating, 1>, floating>},
    {"erfinv", vectors<erfinv_pair, nullptr, floating>},
    {"nn::gelu", {&gelu_kernel, floating::mask, kInner}},
    {"nn::leaky_relu", chosen_vectors<leaky_relu_pair, LeakyReluChooser, floating>},
    {"nn::hardtanh", unary<HardtanhChooser, reals>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
