// adjoin/kit/env.hpp: the interfaces that this shared library reached, and how it reached them.
//
// One Env per shared library: the namespace is hidden, so two plugins in a process never share (or
// overwrite) it.
#ifndef ADJOIN_KIT_ENV_HPP
#define ADJOIN_KIT_ENV_HPP
#include <adjoin/abi/autograd.h>
#include <adjoin/abi/base.h>
#include <adjoin/abi/core.h>
#include <adjoin/abi/op.h>
#include <adjoin/abi/service.h>

// Hidden whatever the flags of whoever compiles: a weak symbol that two plugins export would be one
// object in the process. The attribute counts for the one namespace body it stands on, so every
// file of the kit opens the namespace like this.
#define AJ_HIDDEN [[gnu::visibility("hidden")]]

namespace adjoin {
namespace AJ_HIDDEN kit {

struct Env {
  const aj_core* core = nullptr;
  const aj_dispatch* op = nullptr;
  const aj_autograd* autograd = nullptr;
  const aj_services* services = nullptr;
};

inline Env env;

// query: the member of aj_plugin_env in a plugin, aj_get_interface in a frontend. An interface that
// is absent stays NULL.
inline void bind(const void* (*query)(const char* name, uint32_t major)) {
  env.core = static_cast<const aj_core*>(query("aj.core", 1));
  env.op = static_cast<const aj_dispatch*>(query("aj.op", 1));
  env.autograd = static_cast<const aj_autograd*>(query("aj.autograd", 1));
  env.services = static_cast<const aj_services*>(query("aj.service", 1));
}

inline const aj_core& core() { return *env.core; }
inline const aj_dispatch& dispatch() { return *env.op; }
inline const aj_autograd& autograd() { return *env.autograd; }
inline const aj_services& services() { return *env.services; }

}  // namespace kit
}  // namespace adjoin
#endif
