// plugins/vector/pointwise-inl.hpp: element-wise functions that have numbers of their own, or a
// condition: what kernels make loops of and the fuser steps of a chain.
#if defined(ADJOIN_PLUGINS_VECTOR_POINTWISE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_POINTWISE_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_POINTWISE_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_POINTWISE_INL_HPP
#endif

#include "math-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct AddScaled {
  T alpha;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    return a + hn::Set(d, alpha) * b;
  }
};

struct Where {
  template <class D, class M, class V>
  HWY_INLINE V operator()(D, M condition, V a, V b) const {
    return hn::IfThenElse(condition, a, b);
  }
};
struct Clamp {  // max wins over min; any NaN wins over both
  bool has_min, has_max;
  template <class D, class V>
  HWY_INLINE V operator()(D, V x, V low, V high) const {
    if (has_min) x = hn::IfThenElse(hn::Or(hn::Gt(x, low), hn::IsNaN(x)), x, low);
    if (has_max) x = hn::IfThenElse(hn::Or(hn::Lt(x, high), hn::IsNaN(x)), x, high);
    return x;
  }
};
struct Lerp {  // from the nearer end, so that weights 0 and 1 give the ends themselves
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b, V w) const {
    V span = b - a;
    return hn::IfThenElse(hn::Lt(hn::Abs(w), hn::Set(d, hn::TFromD<D>(0.5))), a + w * span,
                          b - span * (hn::Set(d, hn::TFromD<D>(1)) - w));
  }
};
template <class T>
struct AddCMul {
  T value;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V a, V b) const {
    return x + hn::Set(d, value) * a * b;
  }
};
template <class T>
struct AddCDiv {
  T value;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V a, V b) const {
    return x + hn::Set(d, value) * a / b;
  }
};

template <class T>
struct LeakyRelu {
  T slope;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, x * hn::Set(d, slope));
  }
};
template <class T>
struct Elu {
  T alpha;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Set(d, alpha) * math::expm1(d, x));
  }
};
// log(1 + e^y) = max(y, 0) + log1p(e^-|y|)
template <class T>
struct Softplus {
  T beta, threshold;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V b = hn::Set(d, beta), y = x * b;
    V soft = math::log1p_to_one(d, math::exp(d, hn::Neg(hn::Abs(y))));
    soft = hn::IfThenElse(hn::Lt(y, hn::Zero(d)), hn::Zero(d), y) + soft;
    return hn::IfThenElse(hn::Gt(y, hn::Set(d, threshold)), x, soft / b);
  }
};

// Gradients.
struct TanhSlope {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V y) const {
    return g * hn::NegMulAdd(y, y, hn::Set(d, 1));
  }
};
struct SigmoidSlope {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V y) const {
    return g * (y * (hn::Set(d, 1) - y));
  }
};
struct SiluSlope {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    V one = hn::Set(d, 1), s = math::sigmoid(d, x);
    return g * (s * hn::MulAdd(x, one - s, one));
  }
};

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif
