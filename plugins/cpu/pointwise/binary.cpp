// plugins/cpu/pointwise/binary.cpp: arithmetic of two elements.
#include "vector/pointwise.hpp"
#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/binary.cpp"
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
AJ_ARITHMETIC(AJ_BINARY)
AJ_POWERS(AJ_BINARY)
AJ_BINARY(atan2, math::atan2(d, a, b))
AJ_BINARY(hypot, math::hypot(d, a, b))
AJ_BINARY(logaddexp, math::logaddexp(d, a, b))
AJ_LOOPS_OF(add_scaled, AddScaled, 2)
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
// Asked for once: the processor stays.
template <class Pair>
const LoopPair& kept(Pair pair) {
  static const LoopPair once = pair();
  return once;
}

// The loops of what a chooser makes; a functor without any is the kit's.
template <class F>
LoopPair pair_of(const F&) {
  if constexpr (std::is_same_v<F, scalar::Add>) return kept(AJ_PAIR(add));
  if constexpr (std::is_same_v<F, scalar::Sub>) return kept(AJ_PAIR(sub));
  if constexpr (std::is_same_v<F, scalar::Div>) return kept(AJ_PAIR(div));
  if constexpr (std::is_same_v<F, scalar::AddScaled<float>> ||
                std::is_same_v<F, scalar::AddScaled<double>>)
    return kept(AJ_PAIR(add_scaled));
  if constexpr (std::is_same_v<F, scalar::FloorDivide>)
    return kept([] { return floor_divide_pair(); });
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

// Sums and differences whose alpha is 1, as nearly all have it.
template <LoopPair (*Pair)(), aj_kernel_fn Otherwise>
aj_status* unscaled(void* self, aj_call* call) {
  static const LoopPair pair = Pair();  // asked for once: the processor stays
  const aj_value& alpha = call->args[2];
  const Loops* loops =
      alpha.tag == AJ_INT && alpha.v.i == 1 ? pair.of(call->plan->compute) : nullptr;
  if (!loops) return Otherwise(self, call);
  const char stateless = 0;
  return guard(call, [&] { run_rows(*call->plan, *loops, &stateless); });
}

// Loops of their own for exponents that programs use.
template <class T>
LoopPair loops_of_exponent(const T* e) {
  if (!e) return AJ_PAIR(power)();
  if (*e == T(2)) return AJ_PAIR(first_squared)();
  if (*e == T(3)) return AJ_PAIR(first_cubed)();
  if (*e == T(-1)) return AJ_PAIR(first_inverse)();
  if (*e == T(0.5)) return AJ_PAIR(first_root)();
  return AJ_PAIR(power)();
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
template <LoopPair (*Pair)(), class Chooser, class Set>
constexpr Spec unscaled_spec = {&unscaled<Pair, &chosen_binary<Chooser, Set>>, Set::mask, kInner};
using without_floats = Join<Join<integral, complexes>, bool_only>;
template <LoopPair (*Pair)(), class F, class Set, class Rest>
constexpr Spec spec = vectors<Pair, &plain_kernel<F, Rest, 2>, Set>;

AJ_KERNELS(binary_kernels) = {
    {"add", unscaled_spec<AJ_PAIR(add), AddChooser, all_types>},
    {"sub", unscaled_spec<AJ_PAIR(sub), SubChooser, numeric>},
    {"mul", spec<AJ_PAIR(mul), scalar::Mul, all_types, without_floats>},
    {"div", chosen_spec<DivChooser, numeric>},
    {"maximum", spec<AJ_PAIR(maximum), scalar::Maximum, reals_bool, integral_bool>},
    {"minimum", spec<AJ_PAIR(minimum), scalar::Minimum, reals_bool, integral_bool>},
    {"pow", {&pow_kernel, numeric::mask, kInner}},
    {"atan2", vectors<AJ_PAIR(atan2), nullptr, floating>},
    {"hypot", vectors<AJ_PAIR(hypot), nullptr, floating>},
    {"logaddexp", vectors<AJ_PAIR(logaddexp), nullptr, floating>},
    {"relu_backward", spec<AJ_PAIR(relu_backward), scalar::ReluBackward, reals, integral>},
    {nullptr, {}},
};

}  // namespace
}  // namespace adjoin::cpu
#endif
