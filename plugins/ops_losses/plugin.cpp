// plugins/ops_losses/plugin.cpp: losses that few programs use, loaded with the first name of
// theirs.
#include <adjoin/kit/plugin.hpp>

namespace adjoin {
aj_status* register_losses(aj_registrar* r);  // opgen makes it of losses.toml
}

AJ_PLUGIN(.name = "ops_losses", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:losses") {
  adjoin::kit::check(adjoin::register_losses(plugin.env()->registrar));
}
