// plugins/cpu/pointwise/exponentials.cpp: exponentials and the activations that are made of them.
#include "vector/pointwise.hpp"
#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/exponentials.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/math-inl.hpp"
#include "vector/pointwise-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
AJ_EXPONENTIALS(AJ_UNARY)

// x + 3 between 0 and 6; a NaN stays.
template <class D>
HWY_INLINE hn::Vec<D> six_steps(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  auto zero = hn::Zero(d), six = hn::Set(d, T(6)), y = x + hn::Set(d, T(3));
  return hn::IfThenElse(hn::Lt(y, zero), zero, hn::IfThenElse(hn::Gt(y, six), six, y));
}
AJ_UNARY(hardsigmoid, six_steps(d, x) / hn::Set(d, hn::TFromD<D>(6)))
AJ_UNARY(hardswish, x* six_steps(d, x) / hn::Set(d, hn::TFromD<D>(6)))

AJ_LOOPS_OF(elu, Elu, 1)
AJ_LOOPS_OF(softplus, Softplus, 1)
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
template <class F>
constexpr aj_kernel_fn complex_loops = &pointwise_kernel<F, complexes, 1>;

AJ_KERNELS(exp_kernels) = {
    {"exp", vectors<AJ_PAIR(exp), complex_loops<scalar::Exp>, floating_complex>},
    {"exp2", vectors<AJ_PAIR(exp2), complex_loops<scalar::Exp2>, floating_complex>},
    {"expm1", vectors<AJ_PAIR(expm1), complex_loops<scalar::Expm1>, floating_complex>},
    {"tanh", vectors<AJ_PAIR(tanh), complex_loops<scalar::Tanh>, floating_complex>},
    {"sigmoid", vectors<AJ_PAIR(sigmoid), complex_loops<scalar::Sigmoid>, floating_complex>},
    {"nn::silu", vectors<AJ_PAIR(silu), complex_loops<scalar::Silu>, floating_complex>},
    {"nn::hardsigmoid", vectors<AJ_PAIR(hardsigmoid), nullptr, floating>},
    {"nn::hardswish", vectors<AJ_PAIR(hardswish), nullptr, floating>},
    {"nn::elu", chosen_vectors<AJ_PAIR(elu), EluChooser, floating>},
    {"nn::softplus", chosen_vectors<AJ_PAIR(softplus), SoftplusChooser, floating>},
    {nullptr, {}},
};

}  // namespace
}  // namespace adjoin::cpu
#endif
