// plugins/cpu/pointwise/elementary.cpp: logarithms, roots and trigonometry.
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
AJ_UNARY(log, math::log(d, x))
AJ_UNARY(log2, math::log2(d, x))
AJ_UNARY(log10, math::log10(d, x))
AJ_UNARY(log1p, math::log1p(d, x))
AJ_UNARY(sqrt, hn::Sqrt(x))
AJ_UNARY(rsqrt, hn::Set(d, 1) / hn::Sqrt(x))
AJ_UNARY(sin, math::sin(d, x))
AJ_UNARY(cos, math::cos(d, x))
AJ_UNARY(tan, math::tan(d, x))
AJ_UNARY(asin, math::asin(d, x))
AJ_UNARY(acos, math::acos(d, x))
AJ_UNARY(atan, math::atan(d, x))
AJ_UNARY(sinh, math::sinh(d, x))
AJ_UNARY(cosh, math::cosh(d, x))
AJ_UNARY(asinh, math::asinh(d, x))
AJ_UNARY(acosh, math::acosh(d, x))
AJ_UNARY(atanh, math::atanh(d, x))
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
AJ_CHOSEN(log)
AJ_CHOSEN(log2)
AJ_CHOSEN(log10)
AJ_CHOSEN(log1p)
AJ_CHOSEN(sqrt)
AJ_CHOSEN(rsqrt)
AJ_CHOSEN(sin)
AJ_CHOSEN(cos)
AJ_CHOSEN(tan)
AJ_CHOSEN(asin)
AJ_CHOSEN(acos)
AJ_CHOSEN(atan)
AJ_CHOSEN(sinh)
AJ_CHOSEN(cosh)
AJ_CHOSEN(asinh)
AJ_CHOSEN(acosh)
AJ_CHOSEN(atanh)

template <class F>
constexpr aj_kernel_fn complex_loops = &pointwise_kernel<F, complexes, 1>;
template <LoopPair (*Pair)(), class F>
constexpr Spec math_spec = vectors<Pair, complex_loops<F>, floating_complex>;
}  // namespace

AJ_KERNELS(math_kernels) = {
    {"log", math_spec<log_pair, scalar::Log>},
    {"log2", math_spec<log2_pair, scalar::Log2>},
    {"log10", math_spec<log10_pair, scalar::Log10>},
    {"log1p", math_spec<log1p_pair, scalar::Log1p>},
    {"sqrt", math_spec<sqrt_pair, scalar::Sqrt>},
    {"rsqrt", math_spec<rsqrt_pair, scalar::Rsqrt>},
    {"sin", math_spec<sin_pair, scalar::Sin>},
    {"cos", math_spec<cos_pair, scalar::Cos>},
    {"tan", math_spec<tan_pair, scalar::Tan>},
    {"asin", math_spec<asin_pair, scalar::Asin>},
    {"acos", math_spec<acos_pair, scalar::Acos>},
    {"atan", math_spec<atan_pair, scalar::Atan>},
    {"sinh", math_spec<sinh_pair, scalar::Sinh>},
    {"cosh", math_spec<cosh_pair, scalar::Cosh>},
    {"asinh", math_spec<asinh_pair, scalar::Asinh>},
    {"acosh", math_spec<acosh_pair, scalar::Acosh>},
    {"atanh", math_spec<atanh_pair, scalar::Atanh>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
