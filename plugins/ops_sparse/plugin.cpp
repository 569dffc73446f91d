// plugins/ops_sparse/plugin.cpp: sparse tensors, loaded with the first name of theirs.
#include "register.hpp"

namespace adjoin {
aj_status* register_sparse(aj_registrar* r);  // opgen makes it of sparse.toml
}

AJ_PLUGIN(.name = "ops_sparse", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:sparse;key:sparse") {
  using namespace adjoin::ops::sparse;
  adjoin::kit::check(adjoin::register_sparse(plugin.env()->registrar));
  plugin.kernels("cpu");
  define_wrapper(plugin.env());
  define_kernels(plugin);
  define_derivatives(plugin.env());
}
