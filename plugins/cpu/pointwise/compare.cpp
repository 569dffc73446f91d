// plugins/cpu/pointwise/compare.cpp: comparisons and logic.
#include "vector/pointwise.hpp"
#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/compare.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/plain-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
#define AJ_COMPARE(name, comparison)                \
  struct name##_f {                                 \
    template <class D, class V>                     \
    HWY_INLINE auto operator()(D, V a, V b) const { \
      return comparison;                            \
    }                                               \
  };                                                \
  AJ_LOOPS(name, name##_f, 2, to_bool)
AJ_COMPARISONS(AJ_COMPARE)
#undef AJ_COMPARE
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
using without_floats = Join<Join<integral, complexes>, bool_only>;
// Without the branch of && and ||, which an even choice makes dear.
struct And {
  template <class T>
  bool operator()(T a, T b) const {
    return bool(int(scalar::is_true(a)) & int(scalar::is_true(b)));
  }
};
struct Or {
  template <class T>
  bool operator()(T a, T b) const {
    return bool(int(scalar::is_true(a)) | int(scalar::is_true(b)));
  }
};

template <LoopPair (*Pair)(), class F, class Set, class Rest>
constexpr Spec spec = vectors<Pair, &plain_kernel<F, Rest, 2>, Set>;

AJ_KERNELS(compare_kernels) = {
    {"eq", spec<AJ_PAIR(eq), scalar::Eq, all_types, without_floats>},
    {"ne", spec<AJ_PAIR(ne), scalar::Ne, all_types, without_floats>},
    {"lt", spec<AJ_PAIR(lt), scalar::Lt, reals_bool, integral_bool>},
    {"le", spec<AJ_PAIR(le), scalar::Le, reals_bool, integral_bool>},
    {"gt", spec<AJ_PAIR(gt), scalar::Gt, reals_bool, integral_bool>},
    {"ge", spec<AJ_PAIR(ge), scalar::Ge, reals_bool, integral_bool>},
    {"logical_and", binary<And, all_types>},
    {"logical_or", binary<Or, all_types>},
    {"logical_xor", binary<scalar::LogicalXor, all_types>},
    {nullptr, {}},
};

}  // namespace
}  // namespace adjoin::cpu
#endif
