// plugins/cpu/pointwise/special_vectors.cpp: special functions that have vector code.
#include <adjoin/kit/scalar_masked.hpp>
#include <adjoin/kit/scalar_special.hpp>

#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/special_vectors.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/math-inl.hpp"
#include "vector/math_bessel-inl.hpp"
#include "vector/math_gamma-inl.hpp"
#include "vector/plain-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
#define AJ_SPECIAL(name, Functor, ...) \
  AJ_UNARY(name, math::in_double(d, x, kit::scalar::Functor(), __VA_ARGS__()))
AJ_SPECIAL(i0, I0, math::BesselICore<false, false>)
AJ_SPECIAL(i0e, I0e, math::BesselICore<false, true>)
AJ_SPECIAL(i1, I1, math::BesselICore<true, false>)
AJ_SPECIAL(i1e, I1e, math::BesselICore<true, true>)
AJ_SPECIAL(k0, K0, math::BesselKCore<false, false>)
AJ_SPECIAL(k0e, ScaledK0, math::BesselKCore<false, true>)
AJ_SPECIAL(k1, K1, math::BesselKCore<true, false>)
AJ_SPECIAL(k1e, ScaledK1, math::BesselKCore<true, true>)
AJ_SPECIAL(j0, J0, math::BesselJCore<false>)
AJ_SPECIAL(j1, J1, math::BesselJCore<true>)
AJ_SPECIAL(y0, Y0, math::BesselYCore<false>)
AJ_SPECIAL(y1, Y1, math::BesselYCore<true>)
AJ_SPECIAL(erfcx, Erfcx, math::ErfcxCore)
AJ_SPECIAL(log_ndtr, LogNdtr, math::LogNdtrCore)
AJ_SPECIAL(digamma, Digamma, math::DigammaCore)
AJ_SPECIAL(ndtri, Ndtri, math::NdtriCore<!math::kSingle<hn::TFromD<D>>>)
#undef AJ_SPECIAL
AJ_UNARY(sinc, math::sinc(d, x))
AJ_UNARY(lgamma, (math::by_double<kit::scalar::Lgamma, math::LgammaCore>(d, x)))

struct Polygamma {
  int64_t n;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return math::in_double(d, x, kit::scalar::Polygamma{n}, math::PolygammaCore{n});
  }
};
AJ_LOOPS(polygamma, Polygamma, 1, same)
template <bool Upper>
struct IGamma {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V x) const {
    using F = std::conditional_t<Upper, kit::scalar::IGammaC, kit::scalar::IGamma>;
    if constexpr (!math::kFused) {
      return math::lanes(d, a, x, F());
    } else if constexpr (math::kSingle<hn::TFromD<D>>) {
      const hn::Half<D> half;
      const hn::Repartition<double, D> wide;
      const math::IGammaCore<Upper> core = {1e-10};
      auto low = core(wide, hn::PromoteTo(wide, hn::LowerHalf(half, a)),
                      hn::PromoteTo(wide, hn::LowerHalf(half, x)));
      auto high = core(wide, hn::PromoteTo(wide, hn::UpperHalf(half, a)),
                       hn::PromoteTo(wide, hn::UpperHalf(half, x)));
      return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
    } else {
      return math::IGammaCore<Upper>{1e-17}(d, a, x);
    }
  }
};
AJ_LOOPS(igamma, IGamma<false>, 2, same)
AJ_LOOPS(igammac, IGamma<true>, 2, same)
struct LogAddExp2 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    return math::logaddexp2(d, a, b);
  }
};
AJ_LOOPS(logaddexp2, LogAddExp2, 2, same)

// With places where the formula does not count.
AJ_UNARY(entr, hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Zero(d),
                              hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Neg(hn::Inf(d)),
                                             hn::Neg(x) * math::log(d, x))))
AJ_BINARY(xlogy, hn::IfThenElse(hn::And(hn::Eq(a, hn::Zero(d)), hn::Eq(b, b)), hn::Zero(d),
                                a* math::log(d, b)))
AJ_BINARY(xlog1py, hn::IfThenElse(hn::And(hn::Eq(a, hn::Zero(d)), hn::Eq(b, b)), hn::Zero(d),
                                  a* math::log1p(d, b)))
AJ_BINARY(fmax, hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(b)), a, b))
AJ_BINARY(fmin, hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(b)), a, b))
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
AJ_CHOSEN(i0)
AJ_CHOSEN(i0e)
AJ_CHOSEN(i1)
AJ_CHOSEN(i1e)
AJ_CHOSEN(k0)
AJ_CHOSEN(k0e)
AJ_CHOSEN(k1)
AJ_CHOSEN(k1e)
AJ_CHOSEN(j0)
AJ_CHOSEN(j1)
AJ_CHOSEN(y0)
AJ_CHOSEN(y1)
AJ_CHOSEN(igamma)
AJ_CHOSEN(igammac)
AJ_CHOSEN(erfcx)
AJ_CHOSEN(log_ndtr)
AJ_CHOSEN(ndtri)
AJ_CHOSEN(sinc)
AJ_CHOSEN(digamma)
AJ_CHOSEN(lgamma)
AJ_CHOSEN(polygamma)
AJ_CHOSEN(logaddexp2)
AJ_CHOSEN(entr)
AJ_CHOSEN(xlogy)
AJ_CHOSEN(xlog1py)
AJ_CHOSEN(fmax)
AJ_CHOSEN(fmin)

template <LoopPair (*Pair)(), class F>
constexpr Spec of_reals = vectors<Pair, &plain_kernel<F, integral_bool, 2>, reals_bool>;

// In the operand's own dtype: the next half is another number than the next float.
aj_status* nextafter(void*, aj_call* call) {
  return guard(call, [&] {
    visit<stored_floating>(call->plan->ops[0].dtype,
                           [&]<class T>() { plain_map<T, T>(*call->plan, scalar::NextAfter()); });
  });
}
}  // namespace

AJ_KERNELS(special_vector_kernels) = {
    {"i0", vectors<i0_pair, nullptr, floating>},
    {"special::i0e", vectors<i0e_pair, nullptr, floating>},
    {"special::i1", vectors<i1_pair, nullptr, floating>},
    {"special::i1e", vectors<i1e_pair, nullptr, floating>},
    {"special::modified_bessel_k0", vectors<k0_pair, nullptr, floating>},
    {"special::modified_bessel_k1", vectors<k1_pair, nullptr, floating>},
    {"special::scaled_modified_bessel_k0", vectors<k0e_pair, nullptr, floating>},
    {"special::scaled_modified_bessel_k1", vectors<k1e_pair, nullptr, floating>},
    {"special::bessel_j0", vectors<j0_pair, nullptr, floating>},
    {"special::bessel_j1", vectors<j1_pair, nullptr, floating>},
    {"special::bessel_y0", vectors<y0_pair, nullptr, floating>},
    {"special::bessel_y1", vectors<y1_pair, nullptr, floating>},
    {"igamma", vectors<igamma_pair, nullptr, floating>},
    {"igammac", vectors<igammac_pair, nullptr, floating>},
    {"special::erfcx", vectors<erfcx_pair, nullptr, floating>},
    {"special::log_ndtr", vectors<log_ndtr_pair, nullptr, floating>},
    {"special::ndtri", vectors<ndtri_pair, nullptr, floating>},
    {"sinc", vectors<sinc_pair, &pointwise_kernel<scalar::Sinc, complexes, 1>, floating_complex>},
    {"digamma", vectors<digamma_pair, nullptr, floating>},
    {"lgamma", vectors<lgamma_pair, nullptr, floating>},
    {"_::polygamma", chosen_vectors<polygamma_pair, PolygammaChooser, floating>},
    {"logaddexp2", vectors<logaddexp2_pair, nullptr, floating>},
    {"special::entr", vectors<entr_pair, nullptr, floating>},
    {"xlogy", vectors<xlogy_pair, nullptr, floating>},
    {"special::xlog1py", vectors<xlog1py_pair, nullptr, floating>},
    {"fmax", of_reals<fmax_pair, scalar::FMax>},
    {"fmin", of_reals<fmin_pair, scalar::FMin>},
    {"_::unit_step", binary<scalar::Heaviside, reals_bool>},
    {"_::angle_of_real", unary<scalar::AngleOfReal, floating>},
    {"_::mantissa", unary<scalar::Mantissa, floating>},
    {"_::exponent", unary<scalar::Exponent, floating>},
    {"copysign", binary<scalar::CopySign, floating>},
    {"nextafter", {&nextafter, stored_floating::mask, kInner}},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
