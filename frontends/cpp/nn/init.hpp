// adjoin/nn/init.hpp: initial values; every function writes its tensor in place, unrecorded, and
// returns it. The same seed gives the same numbers as adjoin.nn.init in Python.
#ifndef ADJOIN_NN_INIT_HPP
#define ADJOIN_NN_INIT_HPP
#include <adjoin/joined.hpp>
#include <adjoin/kit/ops.hpp>
#include <cmath>
#include <numeric>

namespace AJ_HIDDEN adjoin {
namespace nn::init {

inline const Tensor& uniform_(const Tensor& t, double low = 0, double high = 1,
                              const Generator& generator = {}) {
  NoGradGuard off;
  adjoin::uniform_(t, low, high, generator);
  return t;
}
inline const Tensor& normal_(const Tensor& t, double mean = 0, double std = 1,
                             const Generator& generator = {}) {
  NoGradGuard off;
  adjoin::normal_(t, mean, std, generator);
  return t;
}
inline const Tensor& constant_(const Tensor& t, const Scalar& value) {
  NoGradGuard off;
  adjoin::fill_(t, value);
  return t;
}
inline const Tensor& ones_(const Tensor& t) { return constant_(t, 1.0); }
inline const Tensor& zeros_(const Tensor& t) { return constant_(t, 0.0); }

// Normal, cut off to [low, high]: drawn uniformly between the two quantiles and inverted.
inline const Tensor& trunc_normal_(const Tensor& t, double mean = 0, double std = 1,
                                   double low = -2, double high = 2,
                                   const Generator& generator = {}) {
  NoGradGuard off;
  auto quantile = [&](double edge) { return std::erf((edge - mean) / std / std::sqrt(2.0)); };
  adjoin::uniform_(t, quantile(low), quantile(high), generator);
  adjoin::erfinv_(t);
  adjoin::mul_(t, std * std::sqrt(2.0));
  adjoin::add_(t, mean);
  adjoin::clamp_(t, low, high);
  return t;
}

struct Fans {
  double in, out;
};
inline Fans fans(const Tensor& t) {
  if (t.ndim() < 2)
    kit::raise(AJ_INVALID_ARGUMENT,
               "init: fan in and fan out want 2 dimensions or more, the tensor has ", t.ndim());
  double field = 1;
  for (int64_t n : t.shape().subspan(2)) field *= double(n);
  return {double(t.size(1)) * field, double(t.size(0)) * field};
}

// How much a nonlinearity shrinks the deviation; slope is leaky_relu's.
inline double gain(std::string_view nonlinearity, double slope = 0.01) {
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "selu") return 3.0 / 4;
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1 + slope * slope));
  if (nonlinearity == "linear" || nonlinearity == "sigmoid") return 1;
  kit::raise(AJ_INVALID_ARGUMENT, "init: no gain is known for '", nonlinearity,
             "'; relu, tanh, selu, leaky_relu, linear, sigmoid have one");
}

// Glorot and Bengio, 2010.
inline const Tensor& xavier_uniform_(const Tensor& t, double gain = 1,
                                     const Generator& generator = {}) {
  double bound = gain * std::sqrt(6.0 / (fans(t).in + fans(t).out));
  return init::uniform_(t, -bound, bound, generator);
}
inline const Tensor& xavier_normal_(const Tensor& t, double gain = 1,
                                    const Generator& generator = {}) {
  return init::normal_(t, 0, gain * std::sqrt(2.0 / (fans(t).in + fans(t).out)), generator);
}

struct Kaiming {
  double slope = 0;
  bool fan_out = false;
  std::string_view nonlinearity = "leaky_relu";
};
// He et al., 2015.
inline const Tensor& kaiming_uniform_(const Tensor& t, Kaiming o = {},
                                      const Generator& generator = {}) {
  double fan = o.fan_out ? fans(t).out : fans(t).in;
  if (t.numel() == 0) return t;
  double bound = std::sqrt(3.0) * gain(o.nonlinearity, o.slope) / std::sqrt(fan);
  return init::uniform_(t, -bound, bound, generator);
}
inline const Tensor& kaiming_normal_(const Tensor& t, Kaiming o = {},
                                     const Generator& generator = {}) {
  double fan = o.fan_out ? fans(t).out : fans(t).in;
  if (t.numel() == 0) return t;
  return init::normal_(t, 0, gain(o.nonlinearity, o.slope) / std::sqrt(fan), generator);
}

// Orthonormal rows or columns, whichever are fewer, of the tensor as (size 0, rest) (Saxe et al.,
// 2013): Gram-Schmidt, twice per vector; a positive diagonal of R makes the result uniform over
// orthogonal matrices.
inline const Tensor& orthogonal_(const Tensor& t, double gain = 1,
                                 const Generator& generator = {}) {
  if (fans(t).in == 0 || t.numel() == 0) return t;
  NoGradGuard off;
  int64_t rows = t.size(0), columns = t.numel() / rows;
  int64_t few = std::min(rows, columns), many = std::max(rows, columns);
  Tensor draw = empty({many, few}, float64);
  adjoin::normal_(draw, 0, 1, generator);
  Tensor basis = zeros({few, many}, float64);  // a vector per row, so they are contiguous
  for (int64_t i = 0; i < few; ++i) {
    Tensor vector = select(draw, 1, i);
    for (int again = 0; i && again < 2; ++again) {
      Tensor before = narrow(basis, 0, 0, i);
      vector = vector - matmul(transpose(before, 0, 1), matmul(before, vector));
    }
    copy_(select(basis, 0, i), vector / vector_norm(vector));
  }
  Tensor shaped = rows >= columns ? transpose(basis, 0, 1) : basis;
  copy_(t, reshape(shaped, t.shape()) * gain);
  return t;
}

// A uniform bound of 1 / sqrt(fan_in) for a weight and its bias: what layers begin with.
inline void customary_(const Tensor& weight, const Tensor& bias) {
  kaiming_uniform_(weight, {.slope = std::sqrt(5.0)});
  double fan = fans(weight).in;
  if (bias.defined() && fan > 0) init::uniform_(bias, -1 / std::sqrt(fan), 1 / std::sqrt(fan));
}

}  // namespace nn::init
}  // namespace adjoin
#endif
