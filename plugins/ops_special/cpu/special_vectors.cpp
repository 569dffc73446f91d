// plugins/ops_special/cpu/special_vectors.cpp: special functions that have vector code.
#include <adjoin/kit/scalar_airy.hpp>
#include <adjoin/kit/scalar_masked.hpp>
#include <adjoin/kit/scalar_special.hpp>

#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_special/cpu/special_vectors.cpp"
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

// x 2^n: floats in doubles, where no power overflows that could matter; doubles by
// whole powers, which round nothing, and what is left. An infinite power makes NaN of 0 and of
// infinity; one that is only large leaves both.
struct Ldexp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V n) const {
    if constexpr (math::kSingle<hn::TFromD<D>>) {
      const hn::Half<D> half;
      const hn::Repartition<double, D> wide;
      const auto power = [&](auto a, auto b) HWY_ATTR {
        auto m = hn::PromoteTo(wide, b), y = hn::PromoteTo(wide, a);
        y = y * math::exp2(wide, math::clamped(wide, m, -600.0, 600.0));
        return hn::DemoteTo(
            half,
            hn::IfThenElse(hn::IsInf(m), y * hn::IfThenElseZero(hn::Gt(m, hn::Zero(wide)), m), y));
      };
      return hn::Combine(d, power(hn::UpperHalf(half, x), hn::UpperHalf(half, n)),
                         power(hn::LowerHalf(half, x), hn::LowerHalf(half, n)));
    } else {
      const V kept = math::clamped(d, n, -2400.0, 2400.0), whole = hn::Floor(kept);
      const V first = hn::Floor(whole * hn::Set(d, 0.5));
      V y = math::scale(d, x, first) * math::exp2(d, kept - whole);
      y = math::scale(d, y, whole - first);
      return hn::IfThenElse(hn::IsInf(n), y * hn::IfThenElseZero(hn::Gt(n, hn::Zero(d)), n), y);
    }
  }
};
AJ_LOOPS(ldexp, Ldexp, 2, same)

// With places where the formula does not count.
AJ_UNARY(entr, hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Zero(d),
                              hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Neg(hn::Inf(d)),
                                             hn::Neg(x) * math::log(d, x))))
AJ_BINARY(xlog1py, hn::IfThenElse(hn::And(hn::Eq(a, hn::Zero(d)), hn::Eq(b, b)), hn::Zero(d),
                                  a* math::log1p(d, b)))
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
// In the operand's own dtype: the next half is another number than the next float.
aj_status* nextafter(void*, aj_call* call) {
  return guard(call, [&] {
    visit<stored_floating>(call->plan->ops[0].dtype,
                           [&]<class T>() { plain_map<T, T>(*call->plan, scalar::NextAfter()); });
  });
}

AJ_KERNELS(special_vector_kernels) = {
    {"i0", vectors<AJ_PAIR(i0), nullptr, floating>},
    {"special::i0e", vectors<AJ_PAIR(i0e), nullptr, floating>},
    {"special::i1", vectors<AJ_PAIR(i1), nullptr, floating>},
    {"special::i1e", vectors<AJ_PAIR(i1e), nullptr, floating>},
    {"special::modified_bessel_k0", vectors<AJ_PAIR(k0), nullptr, floating>},
    {"special::modified_bessel_k1", vectors<AJ_PAIR(k1), nullptr, floating>},
    {"special::scaled_modified_bessel_k0", vectors<AJ_PAIR(k0e), nullptr, floating>},
    {"special::scaled_modified_bessel_k1", vectors<AJ_PAIR(k1e), nullptr, floating>},
    {"special::bessel_j0", vectors<AJ_PAIR(j0), nullptr, floating>},
    {"special::bessel_j1", vectors<AJ_PAIR(j1), nullptr, floating>},
    {"special::bessel_y0", vectors<AJ_PAIR(y0), nullptr, floating>},
    {"special::bessel_y1", vectors<AJ_PAIR(y1), nullptr, floating>},
    {"igamma", vectors<AJ_PAIR(igamma), nullptr, floating>},
    {"igammac", vectors<AJ_PAIR(igammac), nullptr, floating>},
    {"special::erfcx", vectors<AJ_PAIR(erfcx), nullptr, floating>},
    {"special::log_ndtr", vectors<AJ_PAIR(log_ndtr), nullptr, floating>},
    {"special::ndtri", vectors<AJ_PAIR(ndtri), nullptr, floating>},
    {"sinc",
     vectors<AJ_PAIR(sinc), &pointwise_kernel<scalar::Sinc, complexes, 1>, floating_complex>},
    {"digamma", vectors<AJ_PAIR(digamma), nullptr, floating>},
    {"lgamma", vectors<AJ_PAIR(lgamma), nullptr, floating>},
    {"_::polygamma", chosen_vectors<AJ_PAIR(polygamma), PolygammaChooser, floating>},
    {"logaddexp2", vectors<AJ_PAIR(logaddexp2), nullptr, floating>},
    {"special::entr", vectors<AJ_PAIR(entr), nullptr, floating>},
    {"special::xlog1py", vectors<AJ_PAIR(xlog1py), nullptr, floating>},
    {"_::ldexp_each", vectors<AJ_PAIR(ldexp), nullptr, floating>},
    {"_::unit_step", binary<scalar::Heaviside, reals_bool>},
    {"_::mantissa", unary<scalar::Mantissa, floating>},
    {"_::exponent", unary<scalar::Exponent, floating>},
    {"special::airy_ai", unary<scalar::AiryAi, floating>},
    {"copysign", binary<scalar::CopySign, floating>},
    {"nextafter", {&nextafter, stored_floating::mask, kInner}},
    {nullptr, {}},
};

}  // namespace
}  // namespace adjoin::cpu
#endif
