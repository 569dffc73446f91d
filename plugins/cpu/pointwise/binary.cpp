// plugins/cpu/pointwise/binary.cpp: arithmetic of two elements.
#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/binary.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/math-inl.hpp"
#include "vector/math_inverse-inl.hpp"
#include "vector/plain-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
AJ_BINARY(add, a + b)
AJ_BINARY(sub, a - b)
AJ_BINARY(mul, a* b)
AJ_BINARY(div, a / b)
AJ_BINARY(maximum, hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b))
AJ_BINARY(minimum, hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b))
AJ_BINARY(relu_backward, hn::IfThenElseZero(hn::Gt(b, hn::Zero(d)), a))
AJ_BINARY(power, math::pow(d, a, b))
AJ_BINARY(atan2, math::atan2(d, a, b))
AJ_BINARY(hypot, math::hypot(d, a, b))
AJ_BINARY(logaddexp, math::logaddexp(d, a, b))
AJ_BINARY(first_squared, a* a)
AJ_BINARY(first_cubed, a* a* a)
AJ_BINARY(first_inverse, hn::Set(d, hn::TFromD<D>(1)) / a)
AJ_BINARY(first_root, math::root_as_power(d, a))

template <class T>
struct AddScaled {
  T alpha;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    return a + hn::Set(d, alpha) * b;
  }
};
constexpr Loops add_scaled_single = loops_of<AddScaled<float>, float, 2>(),
                add_scaled_twice = loops_of<AddScaled<double>, double, 2>();
static LoopPair add_scaled_loops() { return {&add_scaled_single, &add_scaled_twice}; }
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
AJ_CHOSEN(add)
AJ_CHOSEN(sub)
AJ_CHOSEN(mul)
AJ_CHOSEN(div)
AJ_CHOSEN(maximum)
AJ_CHOSEN(minimum)
AJ_CHOSEN(relu_backward)
AJ_CHOSEN(power)
AJ_CHOSEN(atan2)
AJ_CHOSEN(hypot)
AJ_CHOSEN(logaddexp)
AJ_CHOSEN(first_squared)
AJ_CHOSEN(first_cubed)
AJ_CHOSEN(first_inverse)
AJ_CHOSEN(first_root)
AJ_CHOSEN(add_scaled)

// Asked for once: the processor stays.
template <LoopPair (*Pair)()>
const LoopPair& kept() {
  static const LoopPair pair = Pair();
  return pair;
}

// The loops of what a chooser makes; a functor without any is the kit's.
template <class F>
LoopPair pair_of(const F&) {
  if constexpr (std::is_same_v<F, scalar::Add>) return kept<add_pair>();
  if constexpr (std::is_same_v<F, scalar::Sub>) return kept<sub_pair>();
  if constexpr (std::is_same_v<F, scalar::Div>) return kept<div_pair>();
  if constexpr (std::is_same_v<F, scalar::AddScaled<float>> ||
                std::is_same_v<F, scalar::AddScaled<double>>)
    return kept<add_scaled_pair>();
  if constexpr (std::is_same_v<F, scalar::FloorDivide>) return kept<floor_divide_pair>();
  return {};
}

template <class Chooser, class Set>
aj_status* chosen_binary(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    visit<Set>(p.compute, [&]<class T>() {
      Chooser::template choose<T>(call, [&](auto f) {
        const LoopPair pair = pair_of(f);
        const Loops* loops = std::is_same_v<T, float>    ? pair.single
                             : std::is_same_v<T, double> ? pair.twice
                                                         : nullptr;
        loops ? run_rows(p, *loops, &f) : plain_map<T, T>(p, f);
      });
    });
  });
}

// Loops of their own for exponents that programs use.
template <class T>
LoopPair loops_of_exponent(const T* e) {
  if (!e) return power_pair();
  if (*e == T(2)) return first_squared_pair();
  if (*e == T(3)) return first_cubed_pair();
  if (*e == T(-1)) return first_inverse_pair();
  if (*e == T(0.5)) return first_root_pair();
  return power_pair();
}
aj_status* pow_kernel(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    visit<numeric>(p.compute, [&]<class T>() {
      if constexpr (std::is_floating_point_v<T>) {
        const LoopPair pair = loops_of_exponent(number_operand<T>(call, 2));
        const char stateless = 0;
        run_rows(p, *pair.of(p.compute), &stateless);
      } else {
        PowChooser::choose<T>(call, [&](auto f) { plain_map<T, T>(p, f); });
      }
    });
  });
}

template <class Chooser, class Set>
constexpr Spec chosen_spec = {&chosen_binary<Chooser, Set>, Set::mask, kInner};
using without_floats = Join<Join<integral, complexes>, bool_only>;
template <LoopPair (*Pair)(), class F, class Set, class Rest>
constexpr Spec spec = vectors<Pair, &plain_kernel<F, Rest, 2>, Set>;
}  // namespace

AJ_KERNELS(binary_kernels) = {
    {"add", chosen_spec<AddChooser, all_types>},
    {"sub", chosen_spec<SubChooser, numeric>},
    {"mul", spec<mul_pair, scalar::Mul, all_types, without_floats>},
    {"div", chosen_spec<DivChooser, numeric>},
    {"maximum", spec<maximum_pair, scalar::Maximum, reals_bool, integral_bool>},
    {"minimum", spec<minimum_pair, scalar::Minimum, reals_bool, integral_bool>},
    {"pow", {&pow_kernel, numeric::mask, kInner}},
    {"atan2", vectors<atan2_pair, nullptr, floating>},
    {"hypot", vectors<hypot_pair, nullptr, floating>},
    {"logaddexp", vectors<logaddexp_pair, nullptr, floating>},
    {"relu_backward", spec<relu_backward_pair, scalar::ReluBackward, reals, integral>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
