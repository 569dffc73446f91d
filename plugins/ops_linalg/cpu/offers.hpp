// plugins/ops_linalg/cpu/offers.hpp: who serves problems of linear algebra on the processor.
#ifndef ADJOIN_PLUGINS_OPS_LINALG_OFFERS_HPP
#define ADJOIN_PLUGINS_OPS_LINALG_OFFERS_HPP
#include <adjoin/kit/linalg.hpp>

namespace adjoin::cpu {

inline constexpr aj_str kLinalgSlot = {"aj.linalg/cpu", 13};
extern const aj_linalg own_linalg, lapack_linalg, recursive_linalg;

// A counter that moves when a service comes, goes or is chosen.
inline uint64_t services_revision() {
  const aj_services* s = kit::env.services;
  return s && AJ_HAS_FN(s, aj_services, revision) ? s->revision() : 0;
}

}  // namespace adjoin::cpu
#endif
