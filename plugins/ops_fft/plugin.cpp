// plugins/ops_fft/plugin.cpp: Fourier transforms, loaded with the first name of theirs.
#include <adjoin/kit/plugin.hpp>

namespace adjoin {
aj_status* register_fft(aj_registrar* r);  // opgen makes it of fft.toml
namespace cpu::fft {
// Our own transform as a service; absent where the processor's kernels are not built.
[[gnu::weak]] void offer(kit::Registrar& plugin);
}  // namespace cpu::fft
}  // namespace adjoin

AJ_PLUGIN(.name = "ops_fft", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:fft;service:aj.fft/cpu") {
  adjoin::kit::check(adjoin::register_fft(plugin.env()->registrar));
  plugin.kernels("cpu");
  if (adjoin::cpu::fft::offer) adjoin::cpu::fft::offer(plugin);
}
