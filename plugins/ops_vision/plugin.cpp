// plugins/ops_vision/plugin.cpp: the ops of torchvision, loaded with the first name of theirs.
#include <adjoin/kit/plugin.hpp>

namespace adjoin {
aj_status* register_vision(aj_registrar* r);  // opgen makes it of vision.toml
}

AJ_PLUGIN(.name = "ops_vision", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:torchvision") {
  adjoin::kit::check(adjoin::register_vision(plugin.env()->registrar));
}
