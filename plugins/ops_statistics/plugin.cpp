// plugins/ops_statistics/plugin.cpp: statistics, loaded with the first name of theirs.
#include <adjoin/kit/plugin.hpp>

namespace adjoin {
aj_status* register_statistics(aj_registrar* r);  // opgen makes it of statistics.toml
}

AJ_PLUGIN(.name = "ops_statistics", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:statistics") {
  adjoin::kit::check(adjoin::register_statistics(plugin.env()->registrar));
  plugin.kernels("cpu");
}
