// plugins/cpu/pointwise/elementary.cpp: logarithms, roots and trigonometry.
#include "vector/pointwise.hpp"
#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/elementary.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/math-inl.hpp"
#include "vector/math_inverse-inl.hpp"
#include "vector/plain-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
AJ_LOGARITHMS(AJ_UNARY)
AJ_ROOTS(AJ_UNARY)
AJ_ANGLES(AJ_UNARY)
AJ_INVERSES(AJ_UNARY)
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
template <class F>
constexpr aj_kernel_fn complex_loops = &pointwise_kernel<F, complexes, 1>;
template <LoopPair (*Pair)(), class F>
constexpr Spec math_spec = vectors<Pair, complex_loops<F>, floating_complex>;

AJ_KERNELS(math_kernels) = {
    {"log", math_spec<AJ_PAIR(log), scalar::Log>},
    {"log2", math_spec<AJ_PAIR(log2), scalar::Log2>},
    {"log10", math_spec<AJ_PAIR(log10), scalar::Log10>},
    {"log1p", math_spec<AJ_PAIR(log1p), scalar::Log1p>},
    {"sqrt", math_spec<AJ_PAIR(sqrt), scalar::Sqrt>},
    {"rsqrt", math_spec<AJ_PAIR(rsqrt), scalar::Rsqrt>},
    {"sin", math_spec<AJ_PAIR(sin), scalar::Sin>},
    {"cos", math_spec<AJ_PAIR(cos), scalar::Cos>},
    {"tan", math_spec<AJ_PAIR(tan), scalar::Tan>},
    {"asin", math_spec<AJ_PAIR(asin), scalar::Asin>},
    {"acos", math_spec<AJ_PAIR(acos), scalar::Acos>},
    {"atan", math_spec<AJ_PAIR(atan), scalar::Atan>},
    {"sinh", math_spec<AJ_PAIR(sinh), scalar::Sinh>},
    {"cosh", math_spec<AJ_PAIR(cosh), scalar::Cosh>},
    {"asinh", math_spec<AJ_PAIR(asinh), scalar::Asinh>},
    {"acosh", math_spec<AJ_PAIR(acosh), scalar::Acosh>},
    {"atanh", math_spec<AJ_PAIR(atanh), scalar::Atanh>},
    {nullptr, {}},
};

}  // namespace
}  // namespace adjoin::cpu
#endif
