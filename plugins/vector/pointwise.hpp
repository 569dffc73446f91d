// plugins/vector/pointwise.hpp: element-wise functions as expressions, listed once: the kernels
// make loops of them, the fuser steps of a chain. DO(name, expression) of the tag d and of the
// vectors x, or a and b. Their formulas are the functions of math-inl.hpp; include them where a
// list is used.
#ifndef ADJOIN_PLUGINS_VECTOR_POINTWISE_HPP
#define ADJOIN_PLUGINS_VECTOR_POINTWISE_HPP

// clang-format off
#define AJ_SIGNS(DO)                                            \
  DO(abs, hn::Abs(x))                                           \
  DO(neg, hn::Neg(x))                                           \
  DO(square, x * x)                                             \
  DO(reciprocal, hn::Set(d, hn::TFromD<D>(1)) / x)              \
  DO(floor, hn::Floor(x))                                       \
  DO(ceil, hn::Ceil(x))                                         \
  DO(trunc, hn::Trunc(x))                                       \
  DO(relu, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x))

#define AJ_ROOTS(DO)                                            \
  DO(sqrt, hn::Sqrt(x))                                         \
  DO(rsqrt, hn::Set(d, 1) / hn::Sqrt(x))

#define AJ_LOGARITHMS(DO)                                       \
  DO(log, math::log(d, x))                                      \
  DO(log2, math::log2(d, x))                                    \
  DO(log10, math::log10(d, x))                                  \
  DO(log1p, math::log1p(d, x))

#define AJ_ANGLES(DO)                                           \
  DO(sin, math::sin(d, x))                                      \
  DO(cos, math::cos(d, x))                                      \
  DO(tan, math::tan(d, x))

#define AJ_INVERSES(DO)                                         \
  DO(asin, math::asin(d, x))                                    \
  DO(acos, math::acos(d, x))                                    \
  DO(atan, math::atan(d, x))                                    \
  DO(sinh, math::sinh(d, x))                                    \
  DO(cosh, math::cosh(d, x))                                    \
  DO(asinh, math::asinh(d, x))                                  \
  DO(acosh, math::acosh(d, x))                                  \
  DO(atanh, math::atanh(d, x))

#define AJ_EXPONENTIALS(DO)                                     \
  DO(exp, math::exp(d, x))                                      \
  DO(exp2, math::exp2(d, x))                                    \
  DO(expm1, math::expm1(d, x))                                  \
  DO(tanh, math::tanh(d, x))                                    \
  DO(sigmoid, math::sigmoid(d, x))                              \
  DO(silu, math::silu(d, x))

#define AJ_ERRORS(DO)                                           \
  DO(erf, math::erf(d, x))                                      \
  DO(erfc, math::erfc(d, x))                                    \
  DO(gelu, math::gelu(d, x))                                    \
  DO(gelu_tanh, math::gelu_tanh(d, x))

#define AJ_ARITHMETIC(DO)                                       \
  DO(add, a + b)                                                \
  DO(sub, a - b)                                                \
  DO(mul, a * b)                                                \
  DO(div, a / b)                                                \
  DO(maximum, hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b)) \
  DO(minimum, hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b)) \
  DO(relu_backward, hn::IfThenElseZero(hn::Gt(b, hn::Zero(d)), a))

// Powers; `first_` ones are those of exponents that programs use, and look at the base alone.
#define AJ_POWERS(DO)                                           \
  DO(power, math::pow(d, a, b))                                 \
  DO(first_squared, a * a)                                      \
  DO(first_cubed, a * a * a)                                    \
  DO(first_inverse, hn::Set(d, hn::TFromD<D>(1)) / a)           \
  DO(first_root, math::root_as_power(d, a))

#define AJ_COMPARISONS(DO)                                      \
  DO(eq, hn::Eq(a, b))                                          \
  DO(ne, hn::Not(hn::Eq(a, b))) /* a NaN differs from everything */ \
  DO(lt, hn::Lt(a, b))                                          \
  DO(le, hn::Le(a, b))                                          \
  DO(gt, hn::Gt(a, b))                                          \
  DO(ge, hn::Ge(a, b))
// clang-format on

#endif
