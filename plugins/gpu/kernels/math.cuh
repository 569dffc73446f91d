// plugins/gpu/kernels/math.cuh: exponentials, trigonometry, special functions and activations of
// one element.
#include <adjoin/kit/scalar_rows.hpp>

#include "../trig.cuh"

namespace adjoin::gpu {
namespace {

// Gradients through activations, each in one pass.
struct Conjugate {
  template <class T>
  static AJ_HD T of(T x) {
    if constexpr (is_complex<T>)
      return T(x.re, -x.im);
    else
      return x;
  }
};
struct TanhSlope {
  template <class T>
  AJ_HD T operator()(T g, T y) const {
    return g * Conjugate::of(T(T(1) - y * y));
  }
};
struct SigmoidSlope {
  template <class T>
  AJ_HD T operator()(T g, T y) const {
    return g * Conjugate::of(T(y * (T(1) - y)));
  }
};
struct SiluSlope {
  template <class T>
  AJ_HD T operator()(T g, T x) const {
    T s = scalar::Sigmoid()(x);
    return g * (s * (T(1) + x * (T(1) - s)));
  }
};
// Phi(x) + x phi(x), the normal distribution's functions.
struct GeluSlope {
  template <class T>
  AJ_HD T operator()(T g, T x) const {
    T cdf = T(0.5) * scalar::Erfc()(x * T(-0.7071067811865476));
    T pdf = scalar::Exp()(x * x * T(-0.5)) * T(0.3989422804014327);
    return g * (cdf + x * pdf);
  }
};
struct GeluTanhSlope {
  template <class T>
  AJ_HD T operator()(T g, T x) const {
    constexpr T k = T(0.7978845608028654),
                c = T(0.044715);  // sqrt(2 / pi); the cubic term's weight
    T xx = x * x, t = scalar::Tanh()(x * (k + xx * (c * k)));
    T slope = x * (T(1) - t * t) * (k + xx * (3 * c * k));
    return g * (T(0.5) + T(0.5) * (t + slope));
  }
};
struct GeluSlopeChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    Args(call).string(2) == "tanh" ? go(GeluTanhSlope{}) : go(GeluSlope{});
  }
};

// x + 3 between 0 and 6; a NaN stays.
struct SixSteps {
  template <class T>
  AJ_HD T operator()(T x) const {
    T y = x + T(3);
    return y < T(0) ? T(0) : y > T(6) ? T(6) : y;
  }
};
struct Hardsigmoid {
  template <class T>
  AJ_HD T operator()(T x) const {
    return SixSteps{}(x) / T(6);
  }
};
struct Hardswish {
  template <class T>
  AJ_HD T operator()(T x) const {
    return x * SixSteps{}(x) / T(6);
  }
};

}  // namespace

AJ_KERNELS(math_kernels) = {
    AJ_MATH_ROWS(turning),
    {"nn::hardsigmoid", one<Hardsigmoid, floating>},
    {"nn::hardswish", one<Hardswish, floating>},
    {"relu_backward", two<scalar::ReluBackward, reals>},
    {"_::tanh_backward", two<TanhSlope, floating_complex>},
    {"_::sigmoid_backward", two<SigmoidSlope, floating_complex>},
    {"_::silu_backward", two<SiluSlope, floating>},
    {"_::gelu_backward", two<GeluSlopeChooser, floating>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu
