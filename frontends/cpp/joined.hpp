// adjoin/joined.hpp: joins the program to libadjoin, and has what every program needs. Every header
// that a program may include starts with it, so each of them stands alone.
#ifndef ADJOIN_JOINED_HPP
#define ADJOIN_JOINED_HPP
#ifndef ADJOIN_KIT_ERROR_HPP  // errors tell the line of the call, unless the kit was included first
#define ADJOIN_CALL_SITES
#endif
// A network of yours is a struct of hidden ones, about which gcc would warn in every program.
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wattributes"
#endif
#include <adjoin/abi/capi.h>

#include <adjoin/kit/error.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {
// Before main: a static object of a program may already compute.
inline const bool joined = (bind(aj_get_interface), true);
}  // namespace kit
}  // namespace adjoin

namespace AJ_HIDDEN adjoin {

using Error = kit::Error;

inline void manual_seed(uint64_t seed) { kit::check(kit::env.core->manual_seed(seed)); }

}  // namespace adjoin
#endif
