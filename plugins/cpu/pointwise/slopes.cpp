// plugins/cpu/pointwise/slopes.cpp: gradients through activations, each in one pass.
#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/slopes.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/math-inl.hpp"
#include "vector/pointwise-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
// Phi(x) + x phi(x), the normal distribution's functions.
struct GeluSlope {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    using T = hn::TFromD<D>;
    V half = hn::Set(d, T(0.5));
    if constexpr (math::kFused && math::kSingle<T>) return g * single(d, x);
    V cdf = half * math::erfc(d, x * hn::Set(d, T(-0.7071067811865476)));
    V pdf = math::exp(d, x * x * hn::Neg(half)) * hn::Set(d, T(0.3989422804014327));
    return g * hn::MulAdd(x, pdf, cdf);
  }
  // Phi(-a) = gelu(-a) / -a, which costs a third of erfc.
  template <class D, class V>
  static HWY_INLINE V single(D d, V x) {
    using T = hn::TFromD<D>;
    V half = hn::Set(d, T(0.5)), a = hn::Min(hn::Set(d, T(15)), hn::Abs(x)), minus = hn::Neg(a);
    V tail = hn::IfThenElse(hn::Lt(a, hn::Set(d, T(1e-30))), half, math::gelu(d, minus) / minus);
    V cdf = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Set(d, T(1)) - tail);
    V pdf = math::exp(d, a * minus * half) * hn::Set(d, T(0.3989422804014327));
    return hn::MulAdd(hn::CopySign(a, x), pdf, cdf);
  }
};
struct GeluTanhSlope {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    using T = hn::TFromD<D>;
    const T k = T(0.7978845608028654), c = T(0.044715);  // sqrt(2 / pi); the cubic term's weight
    V one = hn::Set(d, 1), half = hn::Set(d, T(0.5)), xx = x * x;
    V t = math::tanh(d, x * hn::MulAdd(xx, hn::Set(d, c * k), hn::Set(d, k)));
    V slope = x * hn::NegMulAdd(t, t, one) * hn::MulAdd(xx, hn::Set(d, 3 * c * k), hn::Set(d, k));
    return g * hn::MulAdd(t + slope, half, half);
  }
};
AJ_LOOPS(tanh_slope, TanhSlope, 2, same)
AJ_LOOPS(sigmoid_slope, SigmoidSlope, 2, same)
AJ_LOOPS(silu_slope, SiluSlope, 2, same)
AJ_LOOPS(gelu_slope, GeluSlope, 2, same)
AJ_LOOPS(gelu_tanh_slope, GeluTanhSlope, 2, same)
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
struct ComplexTanhSlope {
  template <class T>
  T operator()(T g, T y) const {
    T slope = T(1) - y * y;
    return g * T(slope.re, -slope.im);
  }
};
struct ComplexSigmoidSlope {
  template <class T>
  T operator()(T g, T y) const {
    T slope = y * (T(1) - y);
    return g * T(slope.re, -slope.im);
  }
};
template <class F>
constexpr aj_kernel_fn complex_loops = &pointwise_kernel<F, complexes, 2>;

template <LoopPair (*Pair)()>
constexpr Spec slope = {&vector_kernel<Pair, nullptr>, floating::mask, kInner};

aj_status* gelu_slope(void*, aj_call* call) {
  return guard(call, [&] {
    bool tanh = Args(call).string(2) == "tanh";
    LoopPair pair = tanh ? AJ_PAIR(gelu_tanh_slope)() : AJ_PAIR(gelu_slope)();
    const char stateless = 0;
    run_rows(*call->plan, *pair.of(call->plan->compute), &stateless);
  });
}

AJ_KERNELS(backward_kernels) = {
    {"_::tanh_backward",
     vectors<AJ_PAIR(tanh_slope), complex_loops<ComplexTanhSlope>, floating_complex>},
    {"_::sigmoid_backward",
     vectors<AJ_PAIR(sigmoid_slope), complex_loops<ComplexSigmoidSlope>, floating_complex>},
    {"_::silu_backward", slope<AJ_PAIR(silu_slope)>},
    {"_::gelu_backward", {&gelu_slope, floating::mask, kInner}},
    {nullptr, {}},
};

}  // namespace
}  // namespace adjoin::cpu
#endif
