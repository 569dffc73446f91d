// plugins/ops_linalg/plugin.cpp: linear algebra without factorisations, and distances, loaded with
// the first name of theirs.
#include <adjoin/kit/plugin.hpp>

namespace adjoin {
aj_status* register_linalg(aj_registrar* r);  // opgen makes it of linalg.toml
}

AJ_PLUGIN(.name = "ops_linalg", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:linalg") {
  adjoin::kit::check(adjoin::register_linalg(plugin.env()->registrar));
  plugin.kernels("cpu");
}
