// adjoin/kit/kit.hpp: everything that a plugin's author writes with.
#ifndef ADJOIN_KIT_KIT_HPP
#define ADJOIN_KIT_KIT_HPP
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/plugin.hpp>
#include <adjoin/kit/scalar_math.hpp>
#include <cmath>

namespace adjoin {
namespace AJ_HIDDEN kit {
// The maths of one element, found by an author who writes abs(x): without these, C's abs(int) would
// be.
using std::abs, std::exp, std::expm1, std::log, std::log1p, std::sqrt, std::sin, std::cos, std::tan,
    std::tanh, std::pow, std::fma, std::floor, std::ceil, std::trunc, std::erf;
}  // namespace kit
}  // namespace adjoin
#endif
