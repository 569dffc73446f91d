// plugins/vector/math-inl.hpp: elementary functions of Highway's vectors, for every instruction
// set:
//   namespace m = HWY_NAMESPACE::math;  v = m::exp(d, v);
// d is a tag of float or double of any length. Include it, after "simd.hpp", from a file of vector
// code that has included <adjoin/kit/scalar_math.hpp> before. Zeros keep their signs, infinities
// and NaN are as in C, subnormal numbers count; a lane's result depends on that lane only.
// Errors in ULP over the whole range, float32: exp exp2 expm1 log log2 log10 log1p 1; tanh sigmoid
// erf erfc sin cos tan pow 2; silu gelu_tanh 3; gelu 8. float64: 2; silu erfc gelu gelu_tanh 3.
#if defined(ADJOIN_PLUGINS_VECTOR_MATH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_MATH_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_MATH_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_MATH_INL_HPP
#endif
#include "math_erf-inl.hpp"
#include "math_exp-inl.hpp"
#include "math_log-inl.hpp"
#include "math_pow-inl.hpp"
#include "math_trig-inl.hpp"
#endif
