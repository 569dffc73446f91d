// plugins/cpu/pointwise/pieces.cpp: activations and losses made of pieces, and their gradients,
// each in one pass.
#include <adjoin/kit/pieces.hpp>

#include "vector/vector_kernel.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/pieces.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/math-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
template <class D, class V>
HWY_INLINE V between(D d, V x, hn::TFromD<D> low, hn::TFromD<D> high) {
  V a = hn::Set(d, low), b = hn::Set(d, high);
  return hn::IfThenElse(hn::Lt(x, a), a, hn::IfThenElse(hn::Gt(x, b), b, x));
}

template <class T>
struct Hardshrink {
  T lambd;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenZeroElse(hn::Le(hn::Abs(x), hn::Set(d, lambd)), x);
  }
};
template <class T>
struct Softshrink {
  T lambd;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return x - between(d, x, -lambd, lambd);
  }
};
template <class T>
struct Threshold {
  T threshold, value;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Le(x, hn::Set(d, threshold)), hn::Set(d, value), x);
  }
};
template <class T>
struct NanToNum {
  T nan, above, below;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V inf = hn::Set(d, T(HUGE_VALF));
    V y = hn::IfThenElse(hn::Eq(x, inf), hn::Set(d, above), x);
    y = hn::IfThenElse(hn::Eq(x, hn::Neg(inf)), hn::Set(d, below), y);
    return hn::IfThenElse(hn::IsNaN(x), hn::Set(d, nan), y);
  }
};
AJ_LOOPS_OF(hardshrink, Hardshrink, 1)
AJ_LOOPS_OF(softshrink, Softshrink, 1)
AJ_LOOPS_OF(threshold, Threshold, 1)
AJ_LOOPS_OF(nan_to_num, NanToNum, 1)

struct Prelu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V weight) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, weight * x);
  }
};
template <class T>
struct Huber {
  T delta, scale;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V target) const {
    V y = hn::Abs(x - target), bound = hn::Set(d, delta);
    V least = hn::IfThenElse(hn::Gt(y, bound), bound, y);
    return least * (y - least * hn::Set(d, T(0.5))) * hn::Set(d, scale);
  }
};
struct BceLogits {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V target) const {
    V above = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
    return above - x * target + math::log1p_to_one(d, math::exp(d, hn::Neg(hn::Abs(x))));
  }
};
struct Glu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V gate) const {
    return x * math::sigmoid(d, gate);
  }
};
template <class T>
struct Logit {
  T low, high;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V p = between(d, x, low, high);
    return math::log(d, p / (hn::Set(d, T(1)) - p));
  }
};
AJ_LOOPS(prelu, Prelu, 2, same)
AJ_LOOPS(glu, Glu, 2, same)
AJ_LOOPS_OF(logit, Logit, 1)
AJ_LOOPS_OF(huber, Huber, 2)
AJ_LOOPS(bce_logits, BceLogits, 2, same)

template <class T>
struct HardtanhSlope {
  T low, high, scale;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    auto outside = hn::Or(hn::Le(x, hn::Set(d, low)), hn::Ge(x, hn::Set(d, high)));
    return hn::IfThenZeroElse(outside, g * hn::Set(d, scale));
  }
};
template <class T>
struct ShrinkSlope {
  T lambd;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    return hn::IfThenZeroElse(hn::Le(hn::Abs(x), hn::Set(d, lambd)), g);
  }
};
template <class T>
struct LeakyReluSlope {
  T slope;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), g, g * hn::Set(d, slope));
  }
};
struct HardswishSlope {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    using T = hn::TFromD<D>;
    V three = hn::Set(d, T(3)), middle = g * (x / three + hn::Set(d, T(0.5)));
    middle = hn::IfThenElseZero(hn::Gt(x, hn::Neg(three)), middle);
    return hn::IfThenElse(hn::Ge(x, three), g, middle);
  }
};
template <class T>
struct EluSlope {
  T above, below, inner;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    V slope = hn::Set(d, below) * math::exp(d, x * hn::Set(d, inner));
    return g * hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Set(d, above), slope);
  }
};
template <class T>
struct SoftplusSlope {
  T beta, threshold;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    V y = x * hn::Set(d, beta);
    return hn::IfThenElse(hn::Gt(y, hn::Set(d, threshold)), g, g * math::sigmoid(d, y));
  }
};
template <class T>
struct LogitSlope {
  T low, high, beyond;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V p) const {
    auto outside = hn::Or(hn::Lt(p, hn::Set(d, low)), hn::Gt(p, hn::Set(d, high)));
    V slope = g / (p * (hn::Set(d, T(1)) - p));
    return hn::IfThenElse(outside, hn::Set(d, beyond), slope);
  }
};
AJ_LOOPS_OF(hardtanh_slope, HardtanhSlope, 2)
AJ_LOOPS_OF(shrink_slope, ShrinkSlope, 2)
AJ_LOOPS_OF(leaky_relu_slope, LeakyReluSlope, 2)
AJ_LOOPS(hardswish_slope, HardswishSlope, 2, same)
AJ_LOOPS_OF(elu_slope, EluSlope, 2)
AJ_LOOPS_OF(softplus_slope, SoftplusSlope, 2)
AJ_LOOPS_OF(logit_slope, LogitSlope, 2)

struct PreluSlope {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x, V weight) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), g, g * weight);
  }
};
struct PreluWeightSlope {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x) const {
    return hn::IfThenZeroElse(hn::Gt(x, hn::Zero(d)), g * x);
  }
};
// The gradient of a mean or sum is one number.
template <class T>
struct HuberSlope {
  static constexpr bool kFirstWhole = true;
  T delta, scale;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x, V target) const {
    return g * (between(d, x - target, -delta, delta) * hn::Set(d, scale));
  }
};
struct BceLogitsSlope {
  static constexpr bool kFirstWhole = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x, V target) const {
    return g * (math::sigmoid(d, x) - target);
  }
};
struct GluGateSlope {
  static constexpr bool kFirstWhole = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V g, V x, V gate) const {
    V s = math::sigmoid(d, gate);
    return g * x * hn::NegMulAdd(s, s, s);
  }
};
AJ_LOOPS(prelu_slope, PreluSlope, 3, same)
AJ_LOOPS(glu_gate_slope, GluGateSlope, 3, same)
AJ_LOOPS(prelu_weight_slope, PreluWeightSlope, 2, same)
AJ_LOOPS_OF(huber_slope, HuberSlope, 3)
AJ_LOOPS(bce_logits_slope, BceLogitsSlope, 3, same)
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
// The fields of LogitSlope.
template <class T>
struct LogitNumbers {
  T low, high, beyond;
};

template <LoopPair (*Pair)(), class Chooser>
constexpr Spec chosen = chosen_vectors<Pair, Chooser, floating>;
template <LoopPair (*Pair)()>
constexpr Spec same_for_all = vectors<Pair, nullptr, floating>;

AJ_KERNELS(pieces_kernels) = {
    {"nn::hardshrink", chosen<AJ_PAIR(hardshrink), HardshrinkChooser>},
    {"nn::softshrink", chosen<AJ_PAIR(softshrink), SoftshrinkChooser>},
    {"nn::threshold", chosen<AJ_PAIR(threshold), ThresholdChooser>},
    {"_::nan_to_num_each", chosen<AJ_PAIR(nan_to_num), NanToNumChooser>},
    {"_::prelu_each", same_for_all<AJ_PAIR(prelu)>},
    {"_::glu_each", same_for_all<AJ_PAIR(glu)>},
    {"_::logit_each", chosen<AJ_PAIR(logit), LogitChooser>},
    {"_::huber_each", chosen<AJ_PAIR(huber), HuberChooser>},
    {"_::bce_logits_each", same_for_all<AJ_PAIR(bce_logits)>},
    {"_::hardtanh_backward", chosen<AJ_PAIR(hardtanh_slope), HardtanhSlopeChooser>},
    {"_::shrink_backward", chosen<AJ_PAIR(shrink_slope), ShrinkSlopeChooser>},
    {"_::leaky_relu_backward", chosen<AJ_PAIR(leaky_relu_slope), LeakyReluSlopeChooser>},
    {"_::hardswish_backward", same_for_all<AJ_PAIR(hardswish_slope)>},
    {"_::elu_backward", chosen<AJ_PAIR(elu_slope), EluSlopeChooser>},
    {"_::softplus_backward", chosen<AJ_PAIR(softplus_slope), SoftplusSlopeChooser>},
    {"_::logit_backward", chosen<AJ_PAIR(logit_slope), NumbersChooser<LogitNumbers, 2, 3>>},
    {"_::glu_gate_backward", same_for_all<AJ_PAIR(glu_gate_slope)>},
    {"_::prelu_backward", same_for_all<AJ_PAIR(prelu_slope)>},
    {"_::prelu_weight_backward", same_for_all<AJ_PAIR(prelu_weight_slope)>},
    {"_::huber_backward", chosen<AJ_PAIR(huber_slope), HuberSlopeChooser>},
    {"_::bce_logits_backward", same_for_all<AJ_PAIR(bce_logits_slope)>},
    {nullptr, {}},
};

}  // namespace
}  // namespace adjoin::cpu
#endif
