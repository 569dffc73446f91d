// plugins/ops_image/plugin.cpp: images and volumes, loaded with the first name of theirs.
#include <adjoin/kit/plugin.hpp>

namespace adjoin {
aj_status* register_image(aj_registrar* r);  // opgen makes it of image.toml
}

AJ_PLUGIN(.name = "ops_image", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:image") {
  adjoin::kit::check(adjoin::register_image(plugin.env()->registrar));
  plugin.kernels("cpu");
}
