// adjoin/kit/choosers.hpp: functors that depend on a call's other arguments: alpha, rounding_mode,
// a slope, a bound.
//
// Places of arguments are those of the rows in core/ops.
#ifndef ADJOIN_KIT_CHOOSERS_HPP
#define ADJOIN_KIT_CHOOSERS_HPP
#include <adjoin/kit/loops.hpp>
#include <adjoin/kit/scalar_math.hpp>
#include <adjoin/kit/view.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {

// The value of a number operand of the plan, if it is one.
template <class T>
const T* number_operand(const aj_call* call, uint32_t op) {
  const aj_operand& o = call->plan->ops[op];
  return (o.flags & AJ_OPERAND_NUMBER) && same(o.dtype, dtype_of<T>) ? static_cast<const T*>(o.data)
                                                                     : nullptr;
}

// A factor that must not lose its fraction.
template <class T>
T alpha_of(const aj_value& alpha) {
  if (is_integer<T> && alpha.tag != AJ_INT && alpha.tag != AJ_BOOL)
    raise(AJ_INVALID_ARGUMENT,
          "alpha must be a whole number, since the tensors are; cast one to a floating dtype");
  return number<T>(alpha);
}

struct AddChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    T alpha = alpha_of<T>(Args(call)[2]);
    alpha == T(1) ? go(scalar::Add{}) : go(scalar::AddScaled<T>{alpha});
  }
};
struct SubChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    T alpha = alpha_of<T>(Args(call)[2]);
    alpha == T(1) ? go(scalar::Sub{}) : go(scalar::AddScaled<T>{scalar::Neg{}(alpha)});
  }
};
struct DivChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    std::string_view mode = Args(call).string(2);
    if constexpr (!is_integer<T>)
      if (mode.empty()) return go(scalar::Div{});
    if constexpr (!is_complex<T>) {
      if (mode == "floor") return go(scalar::FloorDivide{});
      if (mode == "trunc") return go(scalar::TruncDivide{});
    }
    raise(AJ_INVALID_ARGUMENT, "rounding_mode is '", mode, "' for ", dtype_of<T>,
          "; None, 'floor' and 'trunc' are known, the last two for real numbers only");
  }
};
template <class F>
struct OfFirst {  // the second operand is known already
  template <class T>
  AJ_HD T operator()(T x, T) const {
    return F{}(x);
  }
};
struct PowChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    if (const T* e = number_operand<T>(call, 2)) {
      if constexpr (is_integer<T>) {
        const aj_value& given = Args(call)[1];  // which T may have wrapped
        const bool fits = given.tag != AJ_INT || std::in_range<T>(given.v.i);
        if (given.tag == AJ_INT ? given.v.i < 0 : *e < T(0))
          raise(AJ_INVALID_ARGUMENT, "integers have no negative powers: the exponent is ",
                given.tag == AJ_INT ? given.v.i : int64_t(*e), "; use floats");
        if (!fits)
          raise(AJ_INVALID_ARGUMENT, "the exponent ", given.v.i, " does not fit into ", dtype_of<T>,
                "; cast the tensor first");
      }
      // A complex power by its logarithm would lose digits.
      if constexpr (is_complex<T>)
        if (*e == T(1)) return go(OfFirst<scalar::Positive>{});
      if (*e == T(2)) return go(OfFirst<scalar::Square>{});
      if (*e == T(3)) return go(OfFirst<scalar::Cube>{});
    }
    go(scalar::Pow{});
  }
};
struct ClampChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    const aj_operand* ops = call->plan->ops;
    go(scalar::Clamp{ops[2].data != nullptr, ops[3].data != nullptr});
  }
};
struct RoundChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    int64_t decimals = Args(call).integer(1);
    if (decimals < 0 && is_integer<T>)
      raise(AJ_INVALID_ARGUMENT, "decimals of whole numbers must not be negative: ", decimals,
            "; cast them with .to(), or divide by 10 before");
    if (decimals == 0 || is_integer<T>) return go(scalar::Round{});
    if constexpr (!is_integer<T>)
      go(scalar::RoundDecimals<T>{T(std::pow(10.0, std::abs(double(decimals)))), decimals < 0});
  }
};
struct AddCMulChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    go(scalar::AddCMul<T>{number<T>(Args(call)[3])});
  }
};
struct AddCDivChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    go(scalar::AddCDiv<T>{number<T>(Args(call)[3])});
  }
};
struct GeluChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    std::string_view how = Args(call).string(1);
    if (how == "none") return go(scalar::Gelu{});
    if (how == "tanh") return go(scalar::GeluTanh{});
    raise(AJ_INVALID_ARGUMENT, "approximate is '", how, "'; 'none' and 'tanh' are known");
  }
};
struct EluChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    go(scalar::Elu<T>{number<T>(Args(call)[1])});
  }
};
struct LeakyReluChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    go(scalar::LeakyRelu<T>{number<T>(Args(call)[1])});
  }
};
struct SoftplusChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    go(scalar::Softplus<T>{number<T>(Args(call)[1]), number<T>(Args(call)[2])});
  }
};
// A bound of integers that lies beyond them is their last one.
template <class T>
T bound(double b) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (b <= double(Limits::lowest())) return Limits::lowest();
    if (b >= double(Limits::max())) return Limits::max();
  }
  return T(b);
}
struct HardtanhChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    double low = number<double>(Args(call)[1]), high = number<double>(Args(call)[2]);
    if (low > high) raise(AJ_INVALID_ARGUMENT, "min_val ", low, " is above max_val ", high);
    go(scalar::Hardtanh<T>{bound<T>(low), bound<T>(high)});
  }
};

}  // namespace kit
}  // namespace adjoin
#endif
