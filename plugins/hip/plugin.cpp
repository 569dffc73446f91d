// plugins/hip/plugin.cpp: AMD's GPUs as a device; a plugin like any other. Without a runtime or a
// driver it loads and says why there is no device.
#include <adjoin/kit/plugin.hpp>

#include "../gpu/vendor/device.hpp"
#include "../gpu/vendor/device_times.hpp"
#include "../gpu/vendor/fourier.hpp"
#include "../gpu/vendor/product.hpp"
#include "../gpu/vendor/report.hpp"
#include "../gpu/vendor/solver.hpp"

AJ_PLUGIN(.name = "hip", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides =
              "device:hip;service:aj.blas/hip;service:aj.linalg/hip;service:aj.fft/hip;"
              "service:aj.device_times/hip") {
  plugin.device(adjoin::vendor::device_table);
  adjoin::vendor::offer_services(plugin, aj_plugin_note_v1, 100);
  adjoin::vendor::offer_device_times(plugin, aj_plugin_note_v1.name);
  // Before the kernels that serve where there is no library.
  plugin.kernels("hip", adjoin::vendor::product_kernels, 10);
  plugin.kernels("hip", adjoin::vendor::factor_kernels, 10);
  plugin.kernels("hip", adjoin::vendor::transform_kernels, 10);
  plugin.kernels("hip");  // none where hipcc was missing
}
