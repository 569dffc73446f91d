// plugins/ops_arrays/plugin.cpp: tensors cut, piled up and paired, loaded with the first name of
// theirs.
#include <adjoin/kit/plugin.hpp>

namespace adjoin {
aj_status* register_arrays(aj_registrar* r);  // opgen makes it of arrays.toml
}

AJ_PLUGIN(.name = "ops_arrays", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:arrays") {
  adjoin::kit::check(adjoin::register_arrays(plugin.env()->registrar));
}
