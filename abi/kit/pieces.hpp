// adjoin/kit/pieces.hpp: activations and losses of one element that are made of pieces, and slopes
// of such functions times a gradient; what they depend on besides, from the call.
//
// Places of arguments are those of the rows in core/ops.
#ifndef ADJOIN_KIT_PIECES_HPP
#define ADJOIN_KIT_PIECES_HPP
#include <adjoin/kit/choosers.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {
namespace scalar {

// ---- functions; a NaN stays one
template <class T>
struct Hardshrink {
  T lambd;
  AJ_HD T operator()(T x) const { return std::fabs(x) <= lambd ? T(0) : x; }
};
template <class T>
struct Softshrink {
  T lambd;
  AJ_HD T operator()(T x) const { return x - (x < -lambd ? -lambd : x > lambd ? lambd : x); }
};
template <class T>
struct Threshold {
  T threshold, value;
  AJ_HD T operator()(T x) const { return x <= threshold ? value : x; }
};
template <class T>
struct NanToNum {
  T nan, above, below;
  AJ_HD T operator()(T x) const {
    const T inf = T(HUGE_VALF);
    return x != x ? nan : x == inf ? above : x == -inf ? below : x;
  }
};
struct Prelu {
  template <class T>
  AJ_HD T operator()(T x, T weight) const {
    return x > T(0) ? x : weight * x;
  }
};
struct Glu {
  template <class T>
  AJ_HD T operator()(T x, T gate) const {
    return x * Sigmoid{}(gate);
  }
};
template <class T>
struct Logit {
  T low, high;
  AJ_HD T operator()(T x) const {
    T p = x < low ? low : x > high ? high : x;
    return std::log(p / (T(1) - p));
  }
};
// d^2 / 2, or delta (|d| - delta / 2) where |d| is above delta: with c = min(|d|, delta) both are
// c (|d| - c / 2).
template <class T>
struct Huber {
  T delta, scale;
  AJ_HD T operator()(T x, T target) const {
    T d = std::fabs(x - target), least = d > delta ? delta : d;
    return least * (d - least * T(0.5)) * scale;
  }
};
struct BceLogits {
  template <class T>
  AJ_HD T operator()(T x, T target) const {
    return (x < T(0) ? T(0) : x) - x * target + std::log1p(std::exp(-std::fabs(x)));
  }
};

// ---- slopes times a gradient g
template <class T>
struct HardtanhSlope {
  T low, high, scale;
  AJ_HD T operator()(T g, T x) const { return x <= low || x >= high ? T(0) : g * scale; }
};
template <class T>
struct ShrinkSlope {
  T lambd;
  AJ_HD T operator()(T g, T x) const { return std::fabs(x) <= lambd ? T(0) : g; }
};
template <class T>
struct LeakyReluSlope {
  T slope;
  AJ_HD T operator()(T g, T x) const { return x > 0 ? g : g * slope; }
};
struct HardswishSlope {
  template <class T>
  AJ_HD T operator()(T g, T x) const {
    return x >= T(3) ? g : x > T(-3) ? g * (x / T(3) + T(0.5)) : T(0);
  }
};
template <class T>
struct EluSlope {
  T above, below, inner;
  AJ_HD T operator()(T g, T x) const {
    return x > 0 ? g * above : g * (below * std::exp(x * inner));
  }
};
template <class T>
struct SoftplusSlope {
  T beta, threshold;
  AJ_HD T operator()(T g, T x) const {
    T y = x * beta;
    return y > threshold ? g : g / (T(1) + std::exp(-y));
  }
};
struct PreluSlope {
  template <class T>
  AJ_HD T operator()(T g, T x, T weight) const {
    return x > T(0) ? g : g * weight;
  }
};
struct PreluWeightSlope {
  template <class T>
  AJ_HD T operator()(T g, T x) const {
    return x > T(0) ? T(0) : g * x;
  }
};
template <class T>
struct HuberSlope {
  T delta, scale;
  AJ_HD T operator()(T g, T x, T target) const {
    T d = x - target;
    return g * ((d < -delta ? -delta : d > delta ? delta : d) * scale);
  }
};
struct GluGateSlope {
  template <class T>
  AJ_HD T operator()(T g, T x, T gate) const {
    T s = Sigmoid{}(gate);
    return g * x * (s * (T(1) - s));
  }
};
struct BceLogitsSlope {
  template <class T>
  AJ_HD T operator()(T g, T x, T target) const {
    return g * (Sigmoid{}(x)-target);
  }
};

}  // namespace scalar

// F<T> of the numbers that begin at the argument `First`.
template <template <class> class F, uint32_t First, uint32_t N>
struct NumbersChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    Args args(call);
    if constexpr (N == 1)
      go(F<T>{number<T>(args[First])});
    else if constexpr (N == 2)
      go(F<T>{number<T>(args[First]), number<T>(args[First + 1])});
    else
      go(F<T>{number<T>(args[First]), number<T>(args[First + 1]), number<T>(args[First + 2])});
  }
};
using HardshrinkChooser = NumbersChooser<scalar::Hardshrink, 1, 1>;
struct SoftshrinkChooser : NumbersChooser<scalar::Softshrink, 1, 1> {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    double lambd = number<double>(Args(call)[1]);
    if (!(lambd >= 0)) raise(AJ_INVALID_ARGUMENT, "lambd must not be negative: ", lambd);
    NumbersChooser::choose<T>(call, go);
  }
};
using ThresholdChooser = NumbersChooser<scalar::Threshold, 1, 2>;
using NanToNumChooser = NumbersChooser<scalar::NanToNum, 1, 3>;
using LogitChooser = NumbersChooser<scalar::Logit, 1, 2>;
using HuberChooser = NumbersChooser<scalar::Huber, 2, 2>;
using HardtanhSlopeChooser = NumbersChooser<scalar::HardtanhSlope, 2, 3>;
using ShrinkSlopeChooser = NumbersChooser<scalar::ShrinkSlope, 2, 1>;
using LeakyReluSlopeChooser = NumbersChooser<scalar::LeakyReluSlope, 2, 1>;
using EluSlopeChooser = NumbersChooser<scalar::EluSlope, 2, 3>;
using SoftplusSlopeChooser = NumbersChooser<scalar::SoftplusSlope, 2, 2>;
using HuberSlopeChooser = NumbersChooser<scalar::HuberSlope, 3, 2>;

}  // namespace kit
}  // namespace adjoin
#endif
