// adjoin/kit/scalar_rows.hpp: the rows of pointwise ops whose kernels are a scalar function of the
// kit and nothing else, for every backend that goes element by element. Those of special functions
// stand in special_rows.hpp.
//
// Macros, because `one`, `two` and `three` are a backend's own templates <functor, dtypes> of
// constants, and its rows must be constants as well: nvcc and the loader read them where they lie.
#ifndef ADJOIN_KIT_SCALAR_ROWS_HPP
#define ADJOIN_KIT_SCALAR_ROWS_HPP
#include <adjoin/kit/choosers.hpp>

// clang-format off
// Signs, rounding and tests.
#define AJ_UNARY_ROWS(one)                                        \
  {"abs", one<scalar::Abs, numeric>},                             \
  {"neg", one<scalar::Neg, numeric>},                             \
  {"sign", one<scalar::Sign, reals_bool>},                        \
  {"square", one<scalar::Square, numeric>},                       \
  {"reciprocal", one<scalar::Reciprocal, floating_complex>},      \
  {"floor", one<scalar::Floor, reals>},                           \
  {"ceil", one<scalar::Ceil, reals>},                             \
  {"round", one<RoundChooser, reals>},                            \
  {"trunc", one<scalar::Trunc, reals>},                           \
  {"frac", one<scalar::Frac, floating>},                          \
  {"relu", one<scalar::Relu, reals>},                             \
  {"logical_not", one<scalar::LogicalNot, all_types>},            \
  {"bitwise_not", one<scalar::BitwiseNot, integral_bool>},        \
  {"isnan", one<scalar::IsNan, all_types>},                       \
  {"isinf", one<scalar::IsInf, all_types>},                       \
  {"isfinite", one<scalar::IsFinite, all_types>},                 \
  {"signbit", one<scalar::SignBit, reals_bool>}

// Exponentials, logarithms, trigonometry, activations.
#define AJ_MATH_ROWS(one)                                         \
  {"exp", one<scalar::Exp, floating_complex>},                    \
  {"exp2", one<scalar::Exp2, floating_complex>},                  \
  {"expm1", one<scalar::Expm1, floating_complex>},                \
  {"log", one<scalar::Log, floating_complex>},                    \
  {"log2", one<scalar::Log2, floating_complex>},                  \
  {"log10", one<scalar::Log10, floating_complex>},                \
  {"log1p", one<scalar::Log1p, floating_complex>},                \
  {"sqrt", one<scalar::Sqrt, floating_complex>},                  \
  {"rsqrt", one<scalar::Rsqrt, floating_complex>},                \
  {"sin", one<scalar::Sin, floating_complex>},                    \
  {"cos", one<scalar::Cos, floating_complex>},                    \
  {"tan", one<scalar::Tan, floating_complex>},                    \
  {"asin", one<scalar::Asin, floating_complex>},                  \
  {"acos", one<scalar::Acos, floating_complex>},                  \
  {"atan", one<scalar::Atan, floating_complex>},                  \
  {"sinh", one<scalar::Sinh, floating_complex>},                  \
  {"cosh", one<scalar::Cosh, floating_complex>},                  \
  {"tanh", one<scalar::Tanh, floating_complex>},                  \
  {"asinh", one<scalar::Asinh, floating_complex>},                \
  {"acosh", one<scalar::Acosh, floating_complex>},                \
  {"atanh", one<scalar::Atanh, floating_complex>},                \
  {"erf", one<scalar::Erf, floating>},                            \
  {"erfc", one<scalar::Erfc, floating>},                          \
  {"erfinv", one<scalar::Erfinv, floating>},                      \
  {"lgamma", one<scalar::Lgamma, floating>},                      \
  {"digamma", one<scalar::Digamma, floating>},                    \
  {"sigmoid", one<scalar::Sigmoid, floating_complex>},            \
  {"nn::gelu", one<GeluChooser, floating>},                       \
  {"nn::silu", one<scalar::Silu, floating_complex>},              \
  {"nn::elu", one<EluChooser, floating>},                         \
  {"nn::leaky_relu", one<LeakyReluChooser, floating>},            \
  {"nn::softplus", one<SoftplusChooser, floating>},               \
  {"nn::hardtanh", one<HardtanhChooser, reals>}

// Arithmetic. A division of whole numbers by zero is an error, which each backend tells in its own
// way: div, remainder, fmod and floor_divide are not among these.
#define AJ_BINARY_ROWS(two, three)                                \
  {"add", two<AddChooser, all_types>},                            \
  {"sub", two<SubChooser, numeric>},                              \
  {"mul", two<scalar::Mul, all_types>},                           \
  {"pow", two<PowChooser, numeric>},                              \
  {"atan2", two<scalar::Atan2, floating>},                        \
  {"hypot", two<scalar::Hypot, floating>},                        \
  {"logaddexp", two<scalar::LogAddExp, floating>},                \
  {"clamp", three<ClampChooser, reals_bool>},                     \
  {"lerp", three<scalar::Lerp, floating_complex>},                \
  {"addcmul", three<AddCMulChooser, numeric>},                    \
  {"addcdiv", three<AddCDivChooser, floating_complex>}

// Comparisons, logic and bits.
#define AJ_COMPARE_ROWS(two)                                      \
  {"maximum", two<scalar::Maximum, reals_bool>},                  \
  {"minimum", two<scalar::Minimum, reals_bool>},                  \
  {"bitwise_and", two<scalar::BitwiseAnd, integral_bool>},        \
  {"bitwise_or", two<scalar::BitwiseOr, integral_bool>},          \
  {"bitwise_xor", two<scalar::BitwiseXor, integral_bool>},        \
  {"bitwise_left_shift", two<scalar::ShiftLeft, integral>},       \
  {"bitwise_right_shift", two<scalar::ShiftRight, integral>},     \
  {"eq", two<scalar::Eq, all_types>},                             \
  {"ne", two<scalar::Ne, all_types>},                             \
  {"lt", two<scalar::Lt, reals_bool>},                            \
  {"le", two<scalar::Le, reals_bool>},                            \
  {"gt", two<scalar::Gt, reals_bool>},                            \
  {"ge", two<scalar::Ge, reals_bool>},                            \
  {"logical_and", two<scalar::LogicalAnd, all_types>},            \
  {"logical_or", two<scalar::LogicalOr, all_types>},              \
  {"logical_xor", two<scalar::LogicalXor, all_types>}
// clang-format on
#endif
