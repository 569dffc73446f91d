// plugins/ops_fft/plugin.cpp: Fourier transforms, loaded with the first name of theirs.
#include <adjoin/kit/plugin.hpp>

namespace adjoin {
aj_status* register_fft(aj_registrar* r);  // opgen makes it of fft.toml
}

AJ_PLUGIN(.name = "ops_fft", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:fft") {
  adjoin::kit::check(adjoin::register_fft(plugin.env()->registrar));
  plugin.kernels("cpu");
}
