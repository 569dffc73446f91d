// plugins/ops_special/plugin.cpp: special functions, loaded with the first name of theirs.
#include <adjoin/kit/plugin.hpp>

namespace adjoin {
aj_status* register_special(aj_registrar* r);  // opgen makes it of special.toml
}

AJ_PLUGIN(.name = "ops_special", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:special") {
  adjoin::kit::check(adjoin::register_special(plugin.env()->registrar));
  plugin.kernels("cpu");
}
