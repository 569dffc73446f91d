// plugins/cuda/plugin.cpp: NVIDIA's GPUs as a device; a plugin like any other. Without a driver it
// loads and says why there is no device.
#include <adjoin/kit/plugin.hpp>

#include "../gpu/vendor/device.hpp"
#include "../gpu/vendor/device_times.hpp"
#include "../gpu/vendor/fourier.hpp"
#include "../gpu/vendor/product.hpp"
#include "../gpu/vendor/report.hpp"
#include "../gpu/vendor/solver.hpp"
#include "switches.hpp"
#include "tables.hpp"

AJ_PLUGIN(.name = "cuda", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides =
              "device:cuda;service:aj.blas/cuda;service:aj.linalg/cuda;service:aj.fft/cuda;"
              "service:aj.switches/cuda;service:aj.device_times/cuda") {
  plugin.device(adjoin::vendor::device_table);
  adjoin::vendor::offer_services(plugin, aj_plugin_note_v1, 100);
  adjoin::vendor::offer_device_times(plugin, aj_plugin_note_v1.name);
  plugin.service("aj.switches/cuda", aj_plugin_note_v1.name, &adjoin::vendor::switch_table, 0);
  // Before the kernels that serve where there is no library.
  plugin.kernels("cuda", adjoin::vendor::product_kernels, 10);
  plugin.kernels("cuda", adjoin::vendor::factor_kernels, 10);
  plugin.kernels("cuda", adjoin::vendor::transform_kernels, 10);
  plugin.kernels("cuda", adjoin::vendor::convolution_kernels, 10);
  plugin.kernels("cuda");
}
