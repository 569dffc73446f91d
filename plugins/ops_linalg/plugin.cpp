// plugins/ops_linalg/plugin.cpp: linear algebra, loaded with the first name of its.
#include <adjoin/abi/linalg.h>

#include <adjoin/kit/plugin.hpp>

namespace adjoin {
aj_status* register_linalg(aj_registrar* r);  // opgen makes it of linalg.toml
namespace cpu {                               // absent where the processor's kernels are left out
extern const aj_linalg own_linalg __attribute__((weak)), lapack_linalg __attribute__((weak)),
    recursive_linalg __attribute__((weak));
}
}  // namespace adjoin

AJ_PLUGIN(.name = "ops_linalg", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:linalg;service:aj.linalg/cpu") {
  using namespace adjoin::cpu;
  adjoin::kit::check(adjoin::register_linalg(plugin.env()->registrar));
  if (&own_linalg) {
    plugin.service("aj.linalg/cpu", "lapack", &lapack_linalg, 1);
    plugin.service("aj.linalg/cpu", "own", &own_linalg, 0);
    plugin.service("aj.linalg/cpu", "recursive", &recursive_linalg, 0);
  }
  plugin.kernels("cpu");
}
