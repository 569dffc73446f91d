// plugins/cpu/pointwise/ternary.cpp: functions of three elements.
#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/ternary.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/plain-inl.hpp"
#include "vector/pointwise-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
AJ_LOOPS(where, Where, 3, choose)
AJ_LOOPS(clamp, Clamp, 3, same)
AJ_LOOPS(lerp, Lerp, 3, same)
AJ_LOOPS_OF(addcmul, AddCMul, 3)
AJ_LOOPS_OF(addcdiv, AddCDiv, 3)
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
// Of bools, in bytes that the compiler vectorizes.
struct WhereBool {
  bool operator()(bool c, bool a, bool b) const {
    return bool((int(c) & int(a)) | (int(!c) & int(b)));
  }
};

aj_status* where_kernel(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    const char stateless = 0;
    if (const Loops* loops = AJ_PAIR(where)().of(p.compute)) return run_rows(p, *loops, &stateless);
    visit<all_types>(p.compute, [&]<class T>() {
      using F = std::conditional_t<std::is_same_v<T, bool>, WhereBool, scalar::Where>;
      plain_map<bool, T, T>(p, F());
    });
  });
}

template <LoopPair (*Pair)(), class Chooser, class Set>
aj_status* chosen_ternary(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    visit<Set>(p.compute, [&]<class T>() {
      Chooser::template choose<T>(call, [&](auto f) {
        const Loops* loops = Pair().of(p.compute);
        loops ? run_rows(p, *loops, &f) : plain_map<T, T, T>(p, f);
      });
    });
  });
}
template <LoopPair (*Pair)(), class Chooser, class Set>
constexpr Spec chosen_spec = {&chosen_ternary<Pair, Chooser, Set>, Set::mask, kInner};

AJ_KERNELS(ternary_kernels) = {
    {"where", {&where_kernel, all_types::mask, kInner}},
    {"clamp", chosen_spec<AJ_PAIR(clamp), ClampChooser, reals_bool>},
    {"lerp",
     vectors<AJ_PAIR(lerp), &pointwise_kernel<scalar::Lerp, complexes, 3>, floating_complex>},
    {"addcmul", chosen_spec<AJ_PAIR(addcmul), AddCMulChooser, numeric>},
    {"addcdiv", chosen_spec<AJ_PAIR(addcdiv), AddCDivChooser, floating_complex>},
    {nullptr, {}},
};

}  // namespace
}  // namespace adjoin::cpu
#endif
